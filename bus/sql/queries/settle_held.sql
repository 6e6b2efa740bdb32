-- The parameters of settle.sql. Behind statements that happen only if everything is settled.
SELECT verdicts, batch_ids
FROM commandbus.settle($1::text, $2::text, $3::uuid[], $4::bigint[], $5::text[], $6::jsonb[],
                       $7::text[], $8::text[], $9::double precision[], all_or_nothing => true,
                       still_running => $10::boolean[])
