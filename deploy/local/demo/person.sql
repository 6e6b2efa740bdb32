-- Decides what has waited for a person for a moment: one in eight approvals is declined.
SELECT payments.resolve_approval(a.process_id, get_byte(uuid_send(a.process_id), 15) % 8 <> 0,
                                 'demo', 'looked at')
FROM payments.pending_approval a
WHERE a.status = 'PENDING' AND a.created_at < now() - interval '1 second';
SELECT payments.resolve_network_response(r.process_id, r.level, 'demo')
FROM payments.pending_network_response r
WHERE r.status = 'PENDING' AND r.created_at < now() - interval '1 second';
