-- What must hold of payments when everything has come to its end, whatever was killed on the way:
-- DESIGN 8, by what the simulator has booked and by every reply that was ever sent. One line for
-- each thing that does not hold. It shares nothing with deploy/local/demo/ledger.sql: what one of
-- them overlooks the other may see.
--
-- asked: how many payments were submitted; deed: a statement to run before, which is undone;
-- $BOOKINGS: a folder with fx.json, risk.json and gateway.json, each what GET /bookings/{api} of
-- the simulator says. attack.reply is filled by attack_spy.sql.
\set fx `cat "$BOOKINGS/fx.json"`
\set risk `cat "$BOOKINGS/risk.json"`
\set gateway `cat "$BOOKINGS/gateway.json"`
BEGIN;
CREATE TEMP TABLE booking ON COMMIT DROP AS
SELECT b.api, lower(b.e ->> 'key') AS key, b.e ->> 'id' AS id, b.e ->> 'status' AS status,
       (b.e ->> 'released')::integer AS released
FROM (SELECT 'fx' AS api, jsonb_array_elements(:'fx'::jsonb) AS e
      UNION ALL SELECT 'risk', jsonb_array_elements(:'risk'::jsonb)
      UNION ALL SELECT 'gateway', jsonb_array_elements(:'gateway'::jsonb)) b;
:deed;
WITH api (api, command_type, domain, reference) AS (VALUES
    ('fx', 'BookFx', 'fx', 'fxContractId'),
    ('risk', 'BookRisk', 'risk', 'riskReference'),
    ('gateway', 'SubmitPayment', 'payments', 'submissionReference')
), payment AS (
    SELECT p.process_id, p.status::text AS status, m.status AS said, p.state,
           p.status IN ('COMPLETED', 'COMPENSATED', 'FAILED', 'CANCELED') AS has_ended
    FROM commandbus.process p FULL JOIN payments.payment m USING (process_id)
), command AS (
    SELECT c.*, c.status IN ('COMPLETED', 'FAILED', 'CANCELED') AS is_final
    FROM commandbus.command_metadata c
), booked AS (
    -- What counts downstream, with the payment whose command has made it; an answer of DECLINED is
    -- not a booking.
    SELECT b.*, c.command_id, c.correlation_id AS process_id, p.status AS payment_status,
           p.has_ended, p.state, a.reference
    FROM booking b JOIN api a USING (api)
    LEFT JOIN command c ON c.command_id::text = b.key AND c.command_type = a.command_type
        AND c.domain = a.domain
    LEFT JOIN payment p ON p.process_id = c.correlation_id
    WHERE b.status IS DISTINCT FROM 'DECLINED'
), owed AS ( -- what a payment that is complete has downstream
    SELECT p.process_id, a.api, p.state ->> a.reference AS id FROM payment p CROSS JOIN api a
    WHERE p.status = 'COMPLETED'
      AND (a.api <> 'fx' OR p.state ->> 'debitCurrency' <> p.state ->> 'creditCurrency')
), reply AS (
    SELECT r.command_id, count(*) FILTER (WHERE r.final) AS finals, count(*) AS n
    FROM attack.reply r GROUP BY 1
), ending AS (
    SELECT a.domain, a.command_id, count(*) AS n,
           max(a.lease_no)
               FILTER (WHERE a.event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED')) AS lease_no
    FROM commandbus.audit a
    WHERE a.event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED', 'OPERATOR_CANCEL',
                           'OPERATOR_COMPLETE')
    GROUP BY 1, 2
), problem (rule, what) AS (
    -- 8.1: nothing is lost, nothing is left over.
    SELECT '8.1', format('%s payments, not %s', count(*), :asked) FROM payment
    HAVING count(*) <> :asked
    UNION ALL
    SELECT '8.1', format('payment %s: its process is %s, its row %s', process_id,
                         coalesce(status, 'missing'), coalesce(said, 'missing'))
    FROM payment
    WHERE status IS NULL OR said IS NULL OR NOT (has_ended OR status = 'WAITING_FOR_TSQ')
       OR has_ended AND said <> ALL (CASE status WHEN 'COMPLETED' THEN '{COMPLETE}'
                                     WHEN 'COMPENSATED' THEN '{CANCELLED}'
                                     ELSE '{FAILED,CANCELLED}' END::text[])
    UNION ALL
    SELECT '8.1', format('%s %s is %s', c.command_type, c.command_id, c.status) FROM command c
    LEFT JOIN payment p ON p.process_id = c.correlation_id
    WHERE NOT c.is_final AND NOT (c.status = 'IN_TROUBLESHOOTING_QUEUE'
                                  AND p.status IS NOT DISTINCT FROM 'WAITING_FOR_TSQ')
    UNION ALL
    SELECT '8.1', format('message %s waits in %s', m.msg_id, m.queue)
    FROM (SELECT 'fx__commands' AS queue, msg_id FROM pgmq.q_fx__commands
          UNION ALL SELECT 'risk__commands', msg_id FROM pgmq.q_risk__commands
          UNION ALL SELECT 'payments__commands', msg_id FROM pgmq.q_payments__commands
          UNION ALL SELECT 'payments__replies', msg_id FROM pgmq.q_payments__replies) m
    UNION ALL
    SELECT '8.1', format('%s of payment %s lies unread in its inbox', i.kind, i.process_id)
    FROM commandbus.process_inbox i JOIN payment p USING (process_id) WHERE p.has_ended
    -- 8.2: every place of the limit is free again.
    UNION ALL
    SELECT '8.2', format('%s holds a place of %s until %s', f.command_id, f.domain, f.held_until)
    FROM commandbus.fleet_lease f
    WHERE f.command_id IS NOT NULL AND f.held_until > clock_timestamp()
    -- 8.3: one end, under the last fence.
    UNION ALL
    SELECT '8.3', format('%s %s has ended %s times', c.command_type, c.command_id, e.n)
    FROM command c JOIN ending e USING (domain, command_id) WHERE e.n > 1 OR NOT c.is_final
    UNION ALL
    SELECT '8.3', format('%s %s is COMPLETED, and nobody has completed it', c.command_type,
                         c.command_id)
    FROM command c
    WHERE c.status = 'COMPLETED'
      AND NOT EXISTS (SELECT FROM ending e
                      WHERE e.domain = c.domain AND e.command_id = c.command_id)
    UNION ALL
    SELECT '8.3', format('%s %s ended under lease %s, and was claimed again', c.command_type,
                         c.command_id, e.lease_no)
    FROM command c JOIN ending e USING (domain, command_id)
    WHERE EXISTS (SELECT FROM commandbus.audit a
                  WHERE a.domain = c.domain AND a.command_id = c.command_id
                    AND a.event_type = 'RECEIVED' AND a.lease_no > e.lease_no)
    -- 8.4: booked once, and nothing that was booked is left behind unseen.
    UNION ALL
    SELECT '8.4', format('%s has booking %s of nobody, key %s', api, id, key) FROM booked
    WHERE process_id IS NULL
    UNION ALL
    SELECT '8.4', format('%s has key %s %s times', api, key, count(*)) FROM booked GROUP BY api, key
    HAVING count(*) > 1
    UNION ALL
    SELECT '8.4', format('payment %s is booked %s times at %s', process_id, count(*), api)
    FROM booked
    WHERE process_id IS NOT NULL GROUP BY process_id, api HAVING count(*) > 1
    UNION ALL
    SELECT '8.4', format('payment %s is complete, and %s has no booking %s of it that stands',
                         o.process_id, o.api, o.id)
    FROM owed o
    WHERE NOT EXISTS (SELECT FROM booked b
                      WHERE b.api = o.api AND b.process_id = o.process_id AND b.id = o.id
                        AND b.released = 0)
    UNION ALL
    SELECT '8.4', format('payment %s is complete, and %s has a booking %s that it does not need',
                         b.process_id, b.api, b.id)
    FROM booked b
    WHERE b.payment_status = 'COMPLETED'
      AND NOT EXISTS (SELECT FROM owed o WHERE o.process_id = b.process_id AND o.api = b.api)
    UNION ALL
    SELECT '8.4', format('payment %s is %s, and %s was released %s times', process_id,
                         payment_status, api, released)
    FROM booked
    WHERE api <> 'gateway'
      AND (released > 1 OR has_ended AND released <> (payment_status <> 'COMPLETED')::integer)
    UNION ALL
    -- What was submitted cannot be taken back: whoever looks at the payment has to see it.
    SELECT '8.4', format('payment %s is %s, and does not say that it is at the gateway as %s',
                         process_id, payment_status, id)
    FROM booked
    WHERE api = 'gateway' AND has_ended AND state ->> reference IS DISTINCT FROM id
    UNION ALL
    SELECT '8.4', format('%s %s is COMPLETED, and %s knows nothing of it', c.command_type,
                         c.command_id, a.api)
    FROM command c JOIN api a USING (command_type, domain)
    WHERE c.status = 'COMPLETED'
      AND NOT EXISTS (SELECT FROM booking b WHERE b.api = a.api AND b.key = c.command_id::text)
    -- 8.5
    UNION ALL
    SELECT '8.5', format('%s of %s: %s', a.event_type, a.command_id, a.details)
    FROM commandbus.audit a
    WHERE a.event_type IN ('POISON_ARCHIVED', 'REPLY_UNDELIVERABLE', 'REPLY_DEAD_LETTERED')
    -- 8.6: one final reply for each command.
    UNION ALL
    SELECT '8.6', format('%s %s is %s, and has %s final replies', c.command_type, c.command_id,
                         c.status, coalesce(r.finals, 0))
    FROM command c LEFT JOIN reply r USING (command_id)
    WHERE c.reply_to IS NOT NULL AND coalesce(r.finals, 0) <> c.is_final::integer
    UNION ALL
    SELECT '8.6', format('%s %s is in the TSQ, and nobody was told', c.command_type, c.command_id)
    FROM command c
    WHERE c.reply_to IS NOT NULL AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
      AND NOT EXISTS (SELECT FROM reply r WHERE r.command_id = c.command_id)
    UNION ALL
    SELECT '8.6', format('%s replies to %s, which nobody has sent', r.n, r.command_id) FROM reply r
    WHERE NOT EXISTS (SELECT FROM command c WHERE c.command_id = r.command_id)
)
SELECT rule, what FROM problem ORDER BY 1, 2 LIMIT 40;
ROLLBACK;
