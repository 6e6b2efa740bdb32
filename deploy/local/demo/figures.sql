-- What the view shows, one row; :'stats' is what the simulator says of itself.
WITH payment AS (
    SELECT count(*) AS started,
           count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
           count(*) FILTER (WHERE status IN ('COMPENSATED', 'FAILED', 'CANCELED')) AS undone,
           count(*) FILTER (WHERE status = 'WAITING_FOR_TSQ') AS parked,
           count(*) FILTER (WHERE status = 'WAITING_FOR_ASYNC'
                              AND current_wait LIKE 'await%') AS confirming
    FROM commandbus.process WHERE process_type = 'PaymentStep'
), queue AS (
    SELECT coalesce(max(visible) FILTER (WHERE queue_name = 'fx__commands'), 0) AS fx,
           coalesce(max(visible) FILTER (WHERE queue_name = 'risk__commands'), 0) AS risk,
           coalesce(max(visible) FILTER (WHERE queue_name = 'payments__commands'), 0) AS payments
    FROM commandbus.queue_metrics()
), simulator AS (
    SELECT :'stats'::jsonb AS s
)
SELECT started, completed, undone, parked, confirming, queue.fx, queue.risk, queue.payments,
       s #>> '{fx,in_flight}', s #>> '{fx,calls}', s #>> '{fx,most_in_flight}',
       s #>> '{risk,in_flight}', s #>> '{risk,calls}', s #>> '{risk,most_in_flight}',
       s #>> '{gateway,in_flight}', s #>> '{gateway,calls}', s #>> '{gateway,most_in_flight}'
FROM payment, queue, simulator
