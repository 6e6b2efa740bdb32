-- Queues exist because a domain was registered, never by accident of a typo in send.

-- Claiming messages is a function of each queue's own, "<queue>.take": its plan is kept. EXECUTE would
-- plan anew at every claim, which takes six times as long as the claim itself, and longer the more dead
-- entries lie at the ends of the index that the planner looks at. Internal: only receive calls it.
CREATE FUNCTION commandbus.create_queue_take(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- By ctid and not by msg_id: the row was just locked, its place is known.
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(quantity integer, lease_end timestamptz, after timestamptz,
            OUT msg_ids bigint[], OUT visible_at timestamptz[])
        LANGUAGE plpgsql AS $body$
        BEGIN
            WITH due AS MATERIALIZED (
                SELECT q.ctid AS place, q.vt FROM pgmq.%2$I q
                WHERE q.vt <= statement_timestamp() AND q.vt >= after ORDER BY q.vt LIMIT quantity FOR UPDATE SKIP LOCKED
            ), taken AS (
                UPDATE pgmq.%2$I q SET vt = lease_end,
                    read_ct = greatest(least(q.read_ct, 2147483646), 0) + 1,
                    last_read_at = statement_timestamp()
                FROM due WHERE q.ctid = due.place RETURNING q.msg_id, due.vt
            )
            SELECT array_agg(taken.msg_id), array_agg(taken.vt) INTO msg_ids, visible_at FROM taken;
        END
        $body$
    $sql$, queue_name || '.take', 'q_' || queue_name);
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.take');
END
$$;

-- Taking messages out of a queue for good, likewise: "<queue>.pop". Internal: only deliver_replies calls it, and
-- puts back what cannot be delivered yet.
CREATE FUNCTION commandbus.create_queue_pop(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(quantity integer, OUT msg_ids bigint[], OUT read_cts integer[],
            OUT enqueued_at timestamptz[], OUT vts timestamptz[], OUT messages jsonb[], OUT headers jsonb[])
        LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        BEGIN
            WITH due AS MATERIALIZED (
                SELECT q.ctid AS place FROM pgmq.%2$I q
                WHERE q.vt <= statement_timestamp() ORDER BY q.vt LIMIT quantity FOR UPDATE SKIP LOCKED
            ), popped AS (
                DELETE FROM pgmq.%2$I q USING due WHERE q.ctid = due.place
                RETURNING q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
            )
            SELECT array_agg(p.msg_id), array_agg(p.read_ct), array_agg(p.enqueued_at), array_agg(p.vt),
                   array_agg(p.message), array_agg(p.headers)
            INTO msg_ids, read_cts, enqueued_at, vts, messages, headers FROM popped p;
        END
        $body$
    $sql$, queue_name || '.pop', 'q_' || queue_name);
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.pop');
END
$$;

-- Putting messages into a queue, likewise: "<queue>.put", which answers their ids in the order of the arrays. Internal:
-- whoever sends or replies calls it. Without a moment of its own a message is visible at once.
CREATE FUNCTION commandbus.create_queue_put(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(messages jsonb[], vts timestamptz[] DEFAULT NULL, headers jsonb[] DEFAULT NULL)
        RETURNS bigint[] LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        DECLARE
            msg_ids bigint[];
        BEGIN
            WITH item AS MATERIALIZED (
                SELECT nextval(%3$L::regclass) AS msg_id, i.*
                FROM unnest(messages, vts, headers) WITH ORDINALITY i(message, vt, headers, ord)
            ), message AS (
                INSERT INTO pgmq.%2$I (msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers)
                OVERRIDING SYSTEM VALUE
                SELECT i.msg_id, 0, statement_timestamp(), NULL, coalesce(i.vt, statement_timestamp()), i.message, i.headers
                FROM item i
            )
            SELECT array_agg(i.msg_id ORDER BY i.ord) INTO msg_ids FROM item i;
            RETURN msg_ids;
        END
        $body$
    $sql$, queue_name || '.put', 'q_' || queue_name, format('pgmq.%I', 'q_' || queue_name || '_msg_id_seq'));
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.put');
END
$$;

-- Somebody took messages out of a queue by hand. Noted in a row of its own, so that nobody waits
-- for somebody else who does so in a long transaction.
CREATE FUNCTION commandbus.note_touch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO commandbus.touched_queue (queue_name) VALUES (substr(TG_TABLE_NAME, 3));
    RETURN NULL;
END
$$;

-- One queue of PGMQ, with what churn asks for.
CREATE FUNCTION commandbus.create_queue(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_table   text := format('pgmq.%I', 'q_' || queue_name);
    archive_table text := format('pgmq.%I', 'a_' || queue_name);
    queue_seq     text := format('pgmq.%I', 'q_' || queue_name || '_msg_id_seq');
BEGIN
    PERFORM pgmq.create(queue_name);

    -- A queue lives on dead rows: claims slow down to half after some 300,000 deletions without a
    -- vacuum. Vacuum by count, without pausing, and leave room in each page so that a new version
    -- of a claimed message finds a place near the old one.
    EXECUTE format('ALTER TABLE %s SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, '
                   'autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_scale_factor = 0, '
                   'autovacuum_vacuum_insert_threshold = 50000, autovacuum_analyze_scale_factor = 0, '
                   'autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0)', queue_table);
    EXECUTE format('GRANT SELECT ON %s, %s, %s TO commandbus_operator', queue_table, archive_table, queue_seq);
    -- What pgmq.metrics reads. Payloads stay out of sight of monitoring.
    EXECUTE format('GRANT SELECT (msg_id, read_ct, enqueued_at, last_read_at, vt) ON %s, %s TO commandbus_monitor',
                   queue_table, archive_table);
    EXECUTE format('GRANT SELECT ON %s TO commandbus_monitor', queue_seq);
    PERFORM commandbus.create_queue_take(queue_name);
    PERFORM commandbus.create_queue_pop(queue_name);
    PERFORM commandbus.create_queue_put(queue_name);
END
$$;

CREATE FUNCTION commandbus.queue_exists(queue_name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_regclass(format('pgmq.%I', 'q_' || queue_name)) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.take')) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.pop')) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.put')) IS NOT NULL
$$;

-- Makes <domain>__commands and <domain>__replies, and the named further reply queue if there is
-- one. Safe to repeat and to run from many workers at once.
CREATE FUNCTION commandbus.register_domain(domain text, reply_queue text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    problem  text := commandbus.domain_name_problem(register_domain.domain);
    commands text := register_domain.domain || '__commands';
    replies  text[] := array_remove(ARRAY[register_domain.domain || '__replies', reply_queue], NULL);
    name     text;
BEGIN
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME', problem, 'Choose another name; nothing was created.');
    END IF;
    IF reply_queue IS NOT NULL
       AND (reply_queue !~ '^[a-z][a-z0-9_]*$' OR length(reply_queue) > 47 OR reply_queue LIKE '%\_\_commands') THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('''%s'' is no name for a reply queue', left(reply_queue, 80)),
            'a-z first, then a-z, 0-9 and _, 47 characters at most, not ending in __commands.');
    END IF;

    -- Nearly always all is there, and nothing is locked.
    IF EXISTS (SELECT FROM commandbus.domain d WHERE d.domain = register_domain.domain)
       AND commandbus.queue_exists(commands)
       AND NOT EXISTS (SELECT FROM unnest(replies) q(name)
                       WHERE NOT commandbus.queue_exists(q.name)
                          OR NOT EXISTS (SELECT FROM commandbus.reply_queue r WHERE r.queue_name = q.name)) THEN
        RETURN;
    END IF;

    PERFORM pg_advisory_xact_lock(hashtextextended('commandbus.register_domain', 0));
    IF NOT commandbus.queue_exists(commands) THEN
        PERFORM commandbus.create_queue(commands);
        -- Our own functions do what they do as the owner: for them this is one comparison a DELETE,
        -- and nothing for the UPDATE of a claim.
        EXECUTE format('CREATE OR REPLACE TRIGGER commandbus_touched '
                       'AFTER DELETE OR TRUNCATE ON pgmq.%I FOR EACH STATEMENT '
                       'WHEN (current_user <> ''commandbus_owner'') '
                       'EXECUTE FUNCTION commandbus.note_touch()', 'q_' || commands);
        INSERT INTO commandbus.touched_queue (queue_name) VALUES (commands);
        -- A queue that was dropped and comes again must not give out ids that commands have had.
        PERFORM setval(format('pgmq.%I', 'q_' || commands || '_msg_id_seq')::regclass, max(c.msg_id))
        FROM commandbus.command_metadata c WHERE c.domain = register_domain.domain HAVING max(c.msg_id) > 0;
    END IF;
    INSERT INTO commandbus.domain (domain) VALUES (register_domain.domain) ON CONFLICT DO NOTHING;
    FOREACH name IN ARRAY replies LOOP
        IF NOT commandbus.queue_exists(name) THEN
            PERFORM commandbus.create_queue(name);
        END IF;
        INSERT INTO commandbus.reply_queue (queue_name, domain) VALUES (name, register_domain.domain) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Every queue of ours in figures. A queue that is missing has no depth, and hides none of the others.
CREATE FUNCTION commandbus.queue_metrics()
RETURNS TABLE (queue_name text, domain text, kind text, depth bigint, visible bigint, oldest_age_seconds bigint,
               waiting_seconds bigint, total_sent bigint, archived bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    FOR queue_name, domain, kind IN
        SELECT d.domain || '__commands', d.domain, 'commands' FROM commandbus.domain d
        UNION ALL SELECT r.queue_name, r.domain, 'replies' FROM commandbus.reply_queue r ORDER BY 1
    LOOP
        depth := NULL; visible := NULL; oldest_age_seconds := NULL; waiting_seconds := NULL; total_sent := NULL;
        IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') THEN
            EXECUTE format('SELECT count(*), count(*) FILTER (WHERE vt <= now()), '
                           '       floor(extract(epoch FROM now() - min(enqueued_at) FILTER (WHERE isfinite(enqueued_at))))::bigint, '
                           '       floor(extract(epoch FROM now() - min(vt) FILTER (WHERE vt <= now() AND isfinite(vt))))::bigint, '
                           '       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pgmq.%I) FROM pgmq.%I',
                           'q_' || queue_name || '_msg_id_seq', 'q_' || queue_name)
            INTO depth, visible, oldest_age_seconds, waiting_seconds, total_sent;
        END IF;
        archived := coalesce(pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'a_' || queue_name))), 0);
        RETURN NEXT;
    END LOOP;
END
$$;
