-- What today's workers call and a database of before 0.1.0 has not got, by what it has: the tests
-- of upgrades have no worker of that time. `migrate` replaces it with the real one.
SET ROLE commandbus_owner;

CREATE FUNCTION commandbus.settle_process_arrays(worker text,
    items commandbus.process_outcome[], grown bigint[],
    opened commandbus.process_record[] DEFAULT NULL, opened_of integer[] DEFAULT NULL,
    rewritten commandbus.process_record[] DEFAULT NULL, rewritten_of integer[] DEFAULT NULL,
    repeats boolean DEFAULT true, commands commandbus.new_command[] DEFAULT NULL,
    commands_of integer[] DEFAULT NULL, consumed integer[] DEFAULT NULL,
    consumed_of integer[] DEFAULT NULL, OUT verdicts text[], OUT batch_ids uuid[])
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.verdicts, s.batch_ids
    FROM commandbus.settle_processes(worker, (
        SELECT jsonb_agg(to_jsonb(i) || jsonb_build_object(
                   'records', (SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r.ordinal), '[]')
                               FROM (SELECT * FROM unnest(opened) WITH ORDINALITY r
                                     WHERE opened_of[r.ordinality::integer] = i.ordinality
                                     UNION ALL
                                     SELECT * FROM unnest(rewritten) WITH ORDINALITY r
                                     WHERE rewritten_of[r.ordinality::integer] = i.ordinality) r),
                   'commands', (SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.ordinality), '[]')
                                FROM unnest(settle_process_arrays.commands) WITH ORDINALITY c
                                WHERE commands_of[c.ordinality::integer] = i.ordinality),
                   'consumed', (SELECT coalesce(jsonb_agg(c.seq), '[]')
                                FROM unnest(settle_process_arrays.consumed, consumed_of)
                                    c(seq, item)
                                WHERE c.item = i.ordinality)) ORDER BY i.ordinality)
        FROM unnest(items) WITH ORDINALITY i)) s
$$;
