-- $1 worker, $2 process ids, $3 lease numbers, $4 vt_seconds. One row an id, in their order.
SELECT held FROM unnest(commandbus.extend_processes($1::text, $2::uuid[], $3::bigint[], $4::double precision))
    WITH ORDINALITY e(held, ord) ORDER BY ord
