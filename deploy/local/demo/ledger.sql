-- What does not fit between the payments and what the simulator has booked: the view problem (kind
-- lost, duplicate or left_behind; what). Whatever happened before, it is empty once every payment
-- is at its end or in the troubleshooting queue. For the demo's report and for tests/fleet. :asked
-- is how many payments were submitted; $BOOKINGS is a folder with fx.json, risk.json and
-- gateway.json, each what GET /bookings/{api} of the simulator says.
\set fx `cat "$BOOKINGS/fx.json"`
\set risk `cat "$BOOKINGS/risk.json"`
\set gateway `cat "$BOOKINGS/gateway.json"`

-- A booking with the payment that it is for. What was DECLINED is an answer, and no booking.
CREATE TEMP TABLE booking AS
SELECT b.api, lower(b.e ->> 'key') AS command_id, b.e ->> 'status' <> 'DECLINED' AS booked,
       (b.e ->> 'released')::integer AS released, p.process_id, p.status, p.state
FROM (SELECT 'fx' AS api, e FROM jsonb_array_elements(:'fx'::jsonb) e
      UNION ALL SELECT 'risk', e FROM jsonb_array_elements(:'risk'::jsonb) e
      UNION ALL SELECT 'gateway', e FROM jsonb_array_elements(:'gateway'::jsonb) e) b
LEFT JOIN commandbus.command_metadata c ON c.command_id::text = lower(b.e ->> 'key')
LEFT JOIN commandbus.process p ON p.process_id = c.correlation_id;
ANALYZE booking;

CREATE TEMP VIEW problem AS
WITH payment AS (
    SELECT process_id, status, state ->> 'debitCurrency' <> state ->> 'creditCurrency' AS needs_fx
    FROM commandbus.process WHERE process_type = 'PaymentStep'
)
SELECT 'lost' AS kind, 'a payment was submitted and never started' AS what
FROM generate_series(1, :asked - (SELECT count(*) FROM payment))
UNION ALL
SELECT 'lost', format('payment %s is %s', process_id, status) FROM payment
WHERE status NOT IN ('COMPLETED', 'COMPENSATED', 'FAILED', 'CANCELED', 'WAITING_FOR_TSQ')
UNION ALL
SELECT 'lost', format('payment %s is complete, and %s has nothing of it', p.process_id, needs.api)
FROM payment p
CROSS JOIN LATERAL (VALUES ('gateway'), ('risk'), (CASE WHEN needs_fx THEN 'fx' END)) AS needs(api)
WHERE p.status = 'COMPLETED' AND needs.api IS NOT NULL
  AND NOT EXISTS (SELECT FROM booking b
                  WHERE b.booked AND b.process_id = p.process_id AND b.api = needs.api)
UNION ALL
SELECT 'lost', format('command %s %s is complete, and nobody there knows of it', command_type,
                      command_id)
FROM commandbus.command_metadata c
WHERE command_type IN ('BookRisk', 'BookFx', 'SubmitPayment') AND status = 'COMPLETED'
  AND NOT EXISTS (SELECT FROM booking b WHERE b.command_id = c.command_id::text)
UNION ALL
-- A payment is submitted once, and books once, whatever was repeated on the way.
SELECT 'duplicate', format('payment %s is at %s for the %s. time', process_id, api, nth)
FROM (SELECT process_id, api, row_number() OVER (PARTITION BY process_id, api) AS nth
      FROM booking WHERE booked AND process_id IS NOT NULL) AS each
WHERE nth > 1
UNION ALL
SELECT 'duplicate', format('%s of payment %s is released %s times', api, process_id, released)
FROM booking WHERE released > 1
UNION ALL
SELECT 'left_behind', CASE
    WHEN process_id IS NULL THEN format('%s has a booking of nobody, %s', api, command_id)
    WHEN status = 'COMPLETED'
    THEN format('payment %s is complete, and %s is released', process_id, api)
    WHEN api = 'gateway'
    THEN format('payment %s is %s, and does not say that it was submitted', process_id, status)
    ELSE format('payment %s is %s, and %s is not released', process_id, status, api) END
FROM booking
WHERE booked AND (process_id IS NULL
    OR status = 'COMPLETED' AND released > 0
    OR status IN ('COMPENSATED', 'FAILED', 'CANCELED') AND (api <> 'gateway' AND released = 0
        -- What was submitted cannot be taken back: whoever looks at the payment has to see it.
        OR api = 'gateway' AND coalesce(state ->> 'submissionReference', '') = ''))
UNION ALL
SELECT 'left_behind', format('payment %s is %s, and its process is %s', process_id, m.status,
                             p.status)
FROM payment p JOIN payments.payment m USING (process_id)
WHERE m.status <> CASE p.status WHEN 'COMPLETED' THEN 'COMPLETE'
                                WHEN 'WAITING_FOR_TSQ' THEN m.status
                                WHEN 'FAILED' THEN 'FAILED' ELSE 'CANCELLED' END
  AND p.status IN ('COMPLETED', 'COMPENSATED', 'CANCELED', 'FAILED');
