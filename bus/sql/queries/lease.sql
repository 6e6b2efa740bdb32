-- Claiming commands, and keeping or giving back what was claimed.

--: receive
-- $1 domain, $2 worker, $3 quantity, $4 vt_seconds, $5 default_max_attempts,
-- $6 default_timeout_seconds, $7 place in the queue to start from, $8 claim_bytes. The columns are
-- numbered in receive.c.
SELECT event, command_id, msg_id, lease_no, attempt, max_attempts, timeout_seconds, command_type,
       correlation_id, reply_to, batch_id, waited_us, visible_at, headers, data
FROM commandbus.receive($1::text, $2::text, $3::integer, $4::double precision, $5::integer,
                        $6::integer, $7::timestamptz, $8::bigint)

--: hold_fence
-- $1 domain, $2 command id, $3 lease number
SELECT commandbus.hold_fence($1::text, $2::uuid, $3::bigint)

--: extend
-- $1 domain, $2 worker, $3 command ids, $4 lease numbers, $5 vt_seconds
SELECT commandbus.extend($1::text, $2::text, $3::uuid[], $4::bigint[], $5::double precision)

--: release_unknown
-- $1 domain, $2 worker, $3 and $4 the command ids and lease numbers that the worker knows
SELECT commandbus.release_unknown($1::text, $2::text, $3::uuid[], $4::bigint[])
