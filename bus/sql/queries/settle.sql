-- The outcomes of commands.

--: settle
-- $1 domain, $2 worker, then arrays with one element an item: $3 command ids, $4 lease numbers,
-- $5 outcomes, $6 results, $7 error codes, $8 error messages, $9 seconds until the next attempt,
-- $10 whether the handler still runs
SELECT verdicts, batch_ids
FROM commandbus.settle($1::text, $2::text, $3::uuid[], $4::bigint[], $5::text[], $6::jsonb[],
                       $7::text[], $8::text[], $9::double precision[],
                       still_running => $10::boolean[])

--: settle_held
-- The parameters of settle.sql. Behind statements that happen only if everything is settled.
SELECT verdicts, batch_ids
FROM commandbus.settle($1::text, $2::text, $3::uuid[], $4::bigint[], $5::text[], $6::jsonb[],
                       $7::text[], $8::text[], $9::double precision[], all_or_nothing => true,
                       still_running => $10::boolean[])
