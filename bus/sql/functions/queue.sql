-- Queues exist because a domain was registered, never by accident of a typo in send.

-- Claiming messages is a function of each queue's own, "<queue>.take": its plan is kept. EXECUTE
-- would plan anew at every claim, which takes six times as long as the claim itself, and longer the
-- more dead entries lie at the ends of the index that the planner looks at. Internal: only receive
-- calls it.
CREATE OR REPLACE FUNCTION commandbus.create_queue_take(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- By ctid and not by msg_id: the row was just locked, its place is known. In two statements,
    -- so that a claim that finds nothing prepares no more than the look.
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(quantity integer, lease_end timestamptz,
            after timestamptz, OUT msg_ids bigint[], OUT visible_at timestamptz[])
        LANGUAGE plpgsql AS $body$
        DECLARE
            places tid[];
        BEGIN
            SELECT array_agg(due.place), array_agg(due.msg_id), array_agg(due.vt)
            INTO places, msg_ids, visible_at
            FROM (
                SELECT q.ctid AS place, q.msg_id, q.vt FROM pgmq.%2$I q
                WHERE q.vt <= statement_timestamp() AND q.vt >= after
                ORDER BY q.vt LIMIT quantity FOR UPDATE SKIP LOCKED
            ) due;
            IF places IS NOT NULL THEN
                UPDATE pgmq.%2$I q SET vt = lease_end,
                    read_ct = greatest(least(q.read_ct, 2147483646), 0) + 1,
                    last_read_at = statement_timestamp()
                WHERE q.ctid = ANY (places);
            END IF;
        END
        $body$
    $sql$, queue_name || '.take', 'q_' || queue_name);
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.take');
END
$$;

-- Taking messages out of a queue for good, likewise: "<queue>.pop". Internal: only deliver_replies
-- calls it, and puts back what cannot be delivered yet.
CREATE OR REPLACE FUNCTION commandbus.create_queue_pop(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(quantity integer, OUT msg_ids bigint[],
            OUT read_cts integer[], OUT enqueued_at timestamptz[], OUT vts timestamptz[],
            OUT messages jsonb[], OUT headers jsonb[])
        LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        BEGIN
            WITH due AS MATERIALIZED (
                SELECT q.ctid AS place FROM pgmq.%2$I q
                WHERE q.vt <= statement_timestamp()
                ORDER BY q.vt LIMIT quantity FOR UPDATE SKIP LOCKED
            ), popped AS (
                DELETE FROM pgmq.%2$I q USING due WHERE q.ctid = due.place
                RETURNING q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
            )
            SELECT array_agg(p.msg_id), array_agg(p.read_ct), array_agg(p.enqueued_at),
                   array_agg(p.vt), array_agg(p.message), array_agg(p.headers)
            INTO msg_ids, read_cts, enqueued_at, vts, messages, headers FROM popped p;
        END
        $body$
    $sql$, queue_name || '.pop', 'q_' || queue_name);
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.pop');
END
$$;

-- Putting messages into a queue, likewise: "<queue>.put", which answers their ids in the order of
-- the arrays, or NULL for messages without moments: those are visible at once. Internal: whoever
-- sends or replies calls it.
CREATE OR REPLACE FUNCTION commandbus.create_queue_put(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(messages jsonb[],
            vts timestamptz[] DEFAULT NULL, headers jsonb[] DEFAULT NULL)
        RETURNS bigint[] LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        DECLARE
            msg_ids bigint[];
        BEGIN
            IF vts IS NULL AND headers IS NULL THEN -- replies, whose ids nobody asks for
                INSERT INTO pgmq.%2$I (read_ct, enqueued_at, last_read_at, vt, message, headers)
                SELECT 0, statement_timestamp(), NULL, statement_timestamp(), m, NULL
                FROM unnest(messages) m;
                RETURN NULL;
            END IF;
            msg_ids := ARRAY(SELECT nextval(%3$L::regclass)
                             FROM generate_series(1, cardinality(messages)));
            INSERT INTO pgmq.%2$I (msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers)
            OVERRIDING SYSTEM VALUE
            SELECT i.msg_id, 0, statement_timestamp(), NULL, coalesce(i.vt, statement_timestamp()),
                   i.message, i.headers
            FROM unnest(msg_ids, messages, vts, headers) i(msg_id, message, vt, headers);
            RETURN msg_ids;
        END
        $body$
    $sql$, queue_name || '.put', 'q_' || queue_name,
        format('pgmq.%I', 'q_' || queue_name || '_msg_id_seq'));
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.put');
END
$$;

-- Putting one message into a queue, likewise: "<queue>.put_one". Internal: only send calls it.
CREATE OR REPLACE FUNCTION commandbus.create_queue_put_one(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(message jsonb, vt timestamptz, headers jsonb)
        RETURNS bigint LANGUAGE plpgsql AS $body$
        #variable_conflict use_variable
        DECLARE
            new_id bigint;
        BEGIN
            INSERT INTO pgmq.%2$I AS q (read_ct, enqueued_at, last_read_at, vt, message, headers)
            VALUES (0, statement_timestamp(), NULL, vt, message, headers)
            RETURNING q.msg_id INTO new_id;
            RETURN new_id;
        END
        $body$
    $sql$, queue_name || '.put_one', 'q_' || queue_name);
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.put_one');
END
$$;

-- Settling the commands of a call that all succeeded, likewise: "<queue>.finish". When one of them
-- or its message is locked, gone or somebody else's, nothing is changed and `ords` is NULL.
-- Internal: only settle calls it.
-- Stages, each a statement that finds rows by their places, which the locks keep from moving:
--   1. rows under their fence are locked; what is somebody else's or locked by others is skipped
--   2. their messages are locked, likewise, and deleted if none was skipped
--   3. rows and audit records
CREATE OR REPLACE FUNCTION commandbus.create_queue_finish(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($sql$
        CREATE OR REPLACE FUNCTION commandbus.%1$I(worker text, command_ids uuid[],
            lease_nos bigint[], results jsonb[], OUT ords integer[], OUT longest_result integer,
            OUT batch_ids uuid[], OUT reply_queues text[], OUT process_ids uuid[],
            OUT replies jsonb[])
        LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        DECLARE
            n        integer := cardinality(command_ids);
            held     integer[];
            places   tid[];
            msg_ids  bigint[];
            attempts integer[];
            messages tid[];
        BEGIN
            SELECT array_agg(i.ord::integer), array_agg(c.place), array_agg(c.msg_id),
                   array_agg(c.attempts), max(octet_length(i.result::text)),
                   array_agg(c.batch_id) FILTER (WHERE c.batch_id IS NOT NULL),
                   array_agg(c.reply_to) FILTER (WHERE c.reply_to IS NOT NULL),
                   array_agg(c.process_id) FILTER (WHERE c.reply_to IS NOT NULL),
                   array_agg(commandbus.reply_message(i.command_id, c.correlation_id, 'SUCCESS',
                             i.result, NULL, NULL, NULL, NULL, true))
                       FILTER (WHERE c.reply_to IS NOT NULL)
            INTO held, places, msg_ids, attempts, longest_result, batch_ids, reply_queues,
                 process_ids, replies
            FROM unnest(command_ids, lease_nos, results)
                WITH ORDINALITY i(command_id, lease_no, result, ord)
            CROSS JOIN LATERAL (
                SELECT c.ctid AS place, c.msg_id, c.attempts, c.correlation_id, c.reply_to,
                       c.batch_id, c.process_id
                FROM commandbus.command_metadata c
                WHERE c.command_id = i.command_id AND c.domain = %3$L
                  AND c.lease_no = i.lease_no AND c.status = 'IN_PROGRESS'
                FOR UPDATE OF c SKIP LOCKED
            ) c;
            IF cardinality(held) IS DISTINCT FROM n THEN
                RETURN;
            END IF;
            messages := ARRAY(SELECT q.ctid FROM pgmq.%2$I q WHERE q.msg_id = ANY (msg_ids)
                              FOR UPDATE SKIP LOCKED);
            -- Fewer also when an item stands twice.
            IF cardinality(messages) < n THEN
                RETURN;
            END IF;
            DELETE FROM pgmq.%2$I q WHERE q.ctid = ANY (messages);

            UPDATE commandbus.command_metadata c
            SET status = 'COMPLETED', result = h.result, error_type = NULL, error_code = NULL,
                error_message = NULL, lease_owner = NULL, lease_until = NULL,
                completed_at = statement_timestamp(), tsq_at = NULL,
                updated_at = statement_timestamp()
            FROM unnest(places, results) h(place, result) WHERE c.ctid = h.place;
            INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker,
                                          details)
            SELECT i.command_id, i.lease_no, i.attempt, %3$L, 'COMPLETED', worker, i.result
            FROM unnest(command_ids, lease_nos, attempts, results)
                i(command_id, lease_no, attempt, result);
            ords := held;
            IF batch_ids IS NOT NULL THEN
                batch_ids := ARRAY(SELECT DISTINCT b FROM unnest(batch_ids) b);
            END IF;
        END
        $body$
    $sql$, queue_name || '.finish', 'q_' || queue_name, left(queue_name, -10));
    EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', queue_name || '.finish');
END
$$;

-- All that a queue needs. Only queues of commands are sent to one by one, or settled.
CREATE OR REPLACE FUNCTION commandbus.create_queue_functions(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.create_queue_take(queue_name);
    PERFORM commandbus.create_queue_pop(queue_name);
    PERFORM commandbus.create_queue_put(queue_name);
    IF queue_name LIKE '%\_\_commands' THEN
        PERFORM commandbus.create_queue_put_one(queue_name);
        PERFORM commandbus.create_queue_finish(queue_name);
    END IF;
END
$$;

-- The functions of queues by the name of a queue: take_of, put_into, put_one_into and finish_of. A
-- branch for every queue, in which the call is planned once. EXECUTE would parse and plan it every
-- time, for 15 to 25 µs; it is left for queues without a branch: one that was registered while
-- somebody registered another from an older snapshot.
CREATE OR REPLACE FUNCTION commandbus.create_queue_switches() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    switch   record;
    branches text;
BEGIN
    FOR switch IN
        SELECT * FROM (VALUES
            ('take_of', 'take', 'record', 'quantity, lease_end, after',
             'quantity integer, lease_end timestamptz, after timestamptz'),
            ('put_into', 'put', 'bigint[]', 'messages, vts, headers',
             'messages jsonb[], vts timestamptz[], headers jsonb[]'),
            ('put_one_into', 'put_one', 'bigint', 'message, vt, headers',
             'message jsonb, vt timestamptz, headers jsonb'),
            ('finish_of', 'finish', 'record', 'worker, command_ids, lease_nos, results',
             'worker text, command_ids uuid[], lease_nos bigint[], results jsonb[]'))
            s(name, verb, result, passed, arguments)
    LOOP
        SELECT string_agg(format('WHEN %L THEN RETURN commandbus.%I(%s);', q.name,
                                 q.name || '.' || switch.verb, switch.passed), E'\n')
        INTO branches
        FROM (SELECT n.name
              FROM (SELECT d.domain || '__commands' AS name FROM commandbus.domain d
                    UNION SELECT r.queue_name FROM commandbus.reply_queue r) n
              WHERE to_regproc(format('commandbus.%I', n.name || '.' || switch.verb)) IS NOT NULL
              -- Branches are tried one by one, each with a plan: more would cost more than EXECUTE.
              ORDER BY 1 LIMIT 64) q;
        EXECUTE format($sql$
            CREATE OR REPLACE FUNCTION commandbus.%1$I(queue_name text, %2$s)
            RETURNS %3$s LANGUAGE plpgsql AS $body$
            DECLARE
                answer %3$s;
            BEGIN
                CASE queue_name
                WHEN NULL THEN RETURN NULL; -- there may be no queue at all
                %4$s
                ELSE
                    EXECUTE format('SELECT * FROM commandbus.%%I(%5$s)', queue_name || %6$L)
                    INTO answer USING %7$s;
                    RETURN answer;
                END CASE;
            END
            $body$
        $sql$, switch.name, switch.arguments, switch.result, branches,
            (SELECT string_agg('$' || i, ', ')
             FROM generate_series(1, cardinality(string_to_array(switch.passed, ','))) i),
            '.' || switch.verb, switch.passed);
        EXECUTE format('REVOKE ALL ON FUNCTION commandbus.%I FROM PUBLIC', switch.name);
    END LOOP;
END
$$;

-- Somebody took messages out of a queue by hand. Noted in a row of its own, so that nobody waits
-- for somebody else who does so in a long transaction.
CREATE OR REPLACE FUNCTION commandbus.note_touch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO commandbus.touched_queue (queue_name) VALUES (substr(TG_TABLE_NAME, 3));
    RETURN NULL;
END
$$;

-- One queue of PGMQ, with what churn asks for.
CREATE OR REPLACE FUNCTION commandbus.create_queue(queue_name text) RETURNS void
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
                   'autovacuum_vacuum_threshold = 10000, '
                   'autovacuum_vacuum_insert_scale_factor = 0, '
                   'autovacuum_vacuum_insert_threshold = 50000, '
                   'autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, '
                   'autovacuum_vacuum_cost_delay = 0)', queue_table);
    EXECUTE format('GRANT SELECT ON %s, %s, %s TO commandbus_operator', queue_table, archive_table,
                   queue_seq);
    -- What pgmq.metrics reads. Payloads stay out of sight of monitoring.
    EXECUTE format('GRANT SELECT (msg_id, read_ct, enqueued_at, last_read_at, vt) ON %s, %s '
                   'TO commandbus_monitor', queue_table, archive_table);
    EXECUTE format('GRANT SELECT ON %s TO commandbus_monitor', queue_seq);
    PERFORM commandbus.create_queue_functions(queue_name);
END
$$;

-- The functions of every queue again: migrate calls it when it has replaced those above. Nobody
-- registers a domain meanwhile, which would replace the same functions.
CREATE OR REPLACE FUNCTION commandbus.renew_queue_functions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('commandbus.register_domain', 0));
    FOR name IN SELECT d.domain || '__commands' FROM commandbus.domain d
                UNION SELECT r.queue_name FROM commandbus.reply_queue r LOOP
        IF commandbus.queue_exists(name) THEN
            PERFORM commandbus.create_queue_functions(name);
        END IF;
    END LOOP;
    PERFORM commandbus.create_queue_switches();
END
$$;

CREATE OR REPLACE FUNCTION commandbus.queue_exists(queue_name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_regclass(format('pgmq.%I', 'q_' || queue_name)) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.take')) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.pop')) IS NOT NULL
       AND to_regproc(format('commandbus.%I', queue_name || '.put')) IS NOT NULL
$$;

-- Makes <domain>__commands and <domain>__replies, and the named further reply queue if there is
-- one. Safe to repeat and to run from many workers at once.
CREATE OR REPLACE FUNCTION commandbus.register_domain(domain text, reply_queue text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    problem  text := commandbus.domain_name_problem(register_domain.domain);
    commands text := register_domain.domain || '__commands';
    replies  text[] := array_remove(ARRAY[register_domain.domain || '__replies', reply_queue],
                                    NULL);
    name     text;
BEGIN
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME', problem,
                                  'Choose another name; nothing was created.');
    END IF;
    IF reply_queue IS NOT NULL
       AND (reply_queue !~ '^[a-z][a-z0-9_]*$' OR length(reply_queue) > 47
            OR reply_queue LIKE '%\_\_commands') THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('invalid reply queue name ''%s''', left(reply_queue, 80)),
            'a-z first, then a-z, 0-9 and _, 47 characters at most, not ending in __commands.');
    END IF;

    -- Nearly always all is there, and nothing is locked.
    IF EXISTS (SELECT FROM commandbus.domain d WHERE d.domain = register_domain.domain)
       AND commandbus.queue_exists(commands)
       AND NOT EXISTS (SELECT FROM unnest(replies) q(name)
                       WHERE NOT commandbus.queue_exists(q.name)
                          OR NOT EXISTS (SELECT FROM commandbus.reply_queue r
                                         WHERE r.queue_name = q.name)) THEN
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
        PERFORM setval(format('pgmq.%I', 'q_' || commands || '_msg_id_seq')::regclass,
                       max(c.msg_id))
        FROM commandbus.command_metadata c WHERE c.domain = register_domain.domain
        HAVING max(c.msg_id) > 0;
    END IF;
    INSERT INTO commandbus.domain (domain) VALUES (register_domain.domain) ON CONFLICT DO NOTHING;
    FOREACH name IN ARRAY replies LOOP
        IF NOT commandbus.queue_exists(name) THEN
            PERFORM commandbus.create_queue(name);
        END IF;
        INSERT INTO commandbus.reply_queue (queue_name, domain)
        VALUES (name, register_domain.domain) ON CONFLICT DO NOTHING;
    END LOOP;
    PERFORM commandbus.create_queue_switches();
END
$$;

-- Every queue of ours in figures. A queue that is missing has no depth, and hides none of the
-- others.
CREATE OR REPLACE FUNCTION commandbus.queue_metrics()
RETURNS TABLE (queue_name text, domain text, kind text, depth bigint, visible bigint,
               oldest_age_seconds bigint, waiting_seconds bigint, total_sent bigint,
               archived bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    FOR queue_name, domain, kind IN
        SELECT d.domain || '__commands', d.domain, 'commands' FROM commandbus.domain d
        UNION ALL SELECT r.queue_name, r.domain, 'replies' FROM commandbus.reply_queue r ORDER BY 1
    LOOP
        depth := NULL; visible := NULL; oldest_age_seconds := NULL; waiting_seconds := NULL;
        total_sent := NULL;
        IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') THEN
            EXECUTE format('SELECT count(*), count(*) FILTER (WHERE vt <= now()), '
                           '       floor(extract(epoch FROM now() - min(enqueued_at) '
                           'FILTER (WHERE isfinite(enqueued_at))))::bigint, '
                           '       floor(extract(epoch FROM now() - min(vt) '
                           'FILTER (WHERE vt <= now() AND isfinite(vt))))::bigint, '
                           '       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END '
                           'FROM pgmq.%I) FROM pgmq.%I',
                           'q_' || queue_name || '_msg_id_seq', 'q_' || queue_name)
            INTO depth, visible, oldest_age_seconds, waiting_seconds, total_sent;
        END IF;
        archived := coalesce(
            pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'a_' || queue_name))), 0);
        RETURN NEXT;
    END LOOP;
END
$$;

-- pgmq.archive, which fails when a message of that id lies in the archive already: one that
-- somebody put back into the queue by hand. The newer copy stays.
CREATE OR REPLACE FUNCTION commandbus.archive_messages(queue_name text, msg_ids bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('DELETE FROM pgmq.%I WHERE msg_id = ANY ($1)', 'a_' || queue_name) USING msg_ids;
    PERFORM pgmq.archive(queue_name, msg_ids);
END
$$;

-- Takes finished messages out of their queue, or puts those to be run again off. Returns those that
-- somebody else has locked; nothing here waits.
CREATE OR REPLACE FUNCTION commandbus.move_messages(queue_name text, deletes bigint[],
    archives bigint[], puts_off bigint[], put_off_until timestamptz[])
RETURNS bigint[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moved  bigint;
    locked bigint[];
BEGIN
    -- A queue that somebody dropped, or made again as another user, must not stop other domains.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'DELETE')
       IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    EXECUTE format('DELETE FROM pgmq.%1$I WHERE ctid = ANY (ARRAY('
                   '    SELECT ctid FROM pgmq.%1$I WHERE msg_id = ANY ($1) '
                   'FOR UPDATE SKIP LOCKED))', 'q_' || queue_name)
    USING deletes;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF archives IS NOT NULL OR puts_off IS NOT NULL OR moved < cardinality(deletes) THEN
        EXECUTE format('SELECT array_agg(msg_id) FROM pgmq.%1$I '
                       'WHERE msg_id = ANY ($1) AND msg_id <> ALL (ARRAY('
                       '    SELECT msg_id FROM pgmq.%1$I WHERE msg_id = ANY ($1) '
                       'FOR UPDATE SKIP LOCKED))', 'q_' || queue_name)
        INTO locked
        USING coalesce(deletes, '{}') || coalesce(archives, '{}') || coalesce(puts_off, '{}');
        -- A claim moved one between our snapshot and our lock: it is ours now, by its id.
        IF locked IS NULL AND moved < cardinality(deletes) THEN
            EXECUTE format('DELETE FROM pgmq.%I WHERE msg_id = ANY ($1)', 'q_' || queue_name)
            USING deletes;
        END IF;
        IF locked IS NULL AND archives IS NOT NULL THEN
            PERFORM commandbus.archive_messages(queue_name, archives);
        END IF;
        IF locked IS NULL AND puts_off IS NOT NULL THEN
            EXECUTE format('UPDATE pgmq.%I q SET vt = p.until '
                           'FROM unnest($1, $2) p(msg_id, until) WHERE q.msg_id = p.msg_id',
                           'q_' || queue_name)
            USING puts_off, put_off_until;
            GET DIAGNOSTICS moved = ROW_COUNT;
            -- Gone from the queue, by hand most likely: the row has all it takes.
            IF moved < cardinality(puts_off) THEN
                EXECUTE format('INSERT INTO pgmq.%1$I (msg_id, read_ct, enqueued_at, last_read_at, '
                               'vt, message, headers) '
                               'OVERRIDING SYSTEM VALUE '
                               'SELECT c.msg_id, 1, c.created_at, statement_timestamp(), p.until, '
                               '    commandbus.command_message(c.domain, c.command_type, '
                               'c.command_id, c.correlation_id, c.data, '
                               '    c.reply_to), c.headers FROM unnest($1, $2) p(msg_id, until) '
                               'JOIN commandbus.command_metadata c '
                               'ON c.msg_id = p.msg_id AND c.domain = $3 '
                               'AND c.status = ''PENDING'' '
                               'WHERE NOT EXISTS (SELECT FROM pgmq.%1$I q '
                               'WHERE q.msg_id = p.msg_id)', 'q_' || queue_name)
                USING puts_off, put_off_until, left(queue_name, -10);
            END IF;
        END IF;
    END IF;
    RETURN locked;
END
$$;

-- Makes messages visible that nobody would see for longer than anything of ours asks for: somebody
-- wrote such a vt by hand. The claim sorts out what each of them is. A command may be put off for a
-- year, a reply never for longer than a lease; that is one look at the index on vt. past_lease:
-- also messages of running commands that would outlast their lease, which takes a look at each.
-- Returns how many there are, or with dry_run would be.
CREATE OR REPLACE FUNCTION commandbus.reveal_messages(queue_name text,
    past_lease boolean DEFAULT false, dry_run boolean DEFAULT false)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_table text := format('pgmq.%I', 'q_' || queue_name);
    is_commands boolean := queue_name LIKE '%\_\_commands';
    hidden      text := format('FROM %s q WHERE q.vt > statement_timestamp() + $1', queue_table);
    revealed    bigint := 0;
BEGIN
    IF has_table_privilege(to_regclass(queue_table), 'UPDATE') IS NOT TRUE THEN
        RETURN 0;
    END IF;
    IF past_lease AND is_commands THEN
        hidden := hidden || format(' OR (q.vt > statement_timestamp() AND EXISTS ('
            'SELECT FROM commandbus.command_metadata c WHERE c.msg_id = q.msg_id AND c.domain = %L '
            'AND c.status = ''IN_PROGRESS'' AND c.lease_until + interval ''1 minute'' < q.vt))',
            left(queue_name, -10));
    END IF;
    EXECUTE CASE WHEN dry_run THEN 'SELECT count(*) ' || hidden
        ELSE format('WITH hidden AS MATERIALIZED ('
            '    SELECT q.ctid AS place %2$s FOR UPDATE OF q SKIP LOCKED'
            '), revealed AS ('
            '    UPDATE %1$s q SET vt = statement_timestamp() FROM hidden h WHERE q.ctid = h.place '
            '    RETURNING 1'
            ') SELECT count(*) FROM revealed', queue_table, hidden) END
    INTO revealed USING CASE WHEN is_commands THEN interval '366 days' ELSE interval '1 day' END;
    IF revealed > 0 AND NOT dry_run THEN
        PERFORM commandbus.wake(queue_name, revealed);
    END IF;
    RETURN revealed;
END
$$;

-- One queue, cheap whatever its depth: counted up to 10,000, beyond that as the statistics have it.
-- waiting_seconds is how long the first due message has been due. NULLs when the queue is gone.
CREATE OR REPLACE FUNCTION commandbus.queue_sample(queue_name text, OUT depth bigint,
    OUT visible bigint, OUT oldest_age_seconds double precision,
    OUT waiting_seconds double precision, OUT total_sent bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    enough    constant bigint := 10000;
    invisible bigint;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT')
       IS NOT TRUE THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT (SELECT count(*) FROM (SELECT FROM pgmq.%1$I LIMIT $1 + 1) a), '
                   '(SELECT count(*) FROM (SELECT FROM pgmq.%1$I '
                   'WHERE vt > statement_timestamp() LIMIT $1 + 1) i), '
                   '(SELECT extract(epoch FROM statement_timestamp() - enqueued_at) FROM pgmq.%1$I '
                   '     WHERE isfinite(enqueued_at) ORDER BY msg_id LIMIT 1), '
                   '(SELECT extract(epoch FROM statement_timestamp() - vt) FROM pgmq.%1$I '
                   '     WHERE vt <= statement_timestamp() AND vt > ''-infinity'' '
                   'ORDER BY vt LIMIT 1), '
                   '(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pgmq.%2$I)',
                   'q_' || queue_name, 'q_' || queue_name || '_msg_id_seq')
    INTO depth, invisible, oldest_age_seconds, waiting_seconds, total_sent USING enough;
    IF depth > enough THEN
        depth := greatest(
            pg_stat_get_live_tuples(to_regclass(format('pgmq.%I', 'q_' || queue_name))), enough);
    END IF;
    -- Two reads of a queue that moves may disagree by a few.
    visible := greatest(depth - invisible, 0);
END
$$;

-- For the metrics of a worker: depth -1 for a queue that is gone.
CREATE OR REPLACE FUNCTION commandbus.queue_samples(domains text[])
RETURNS TABLE (domain text, depth bigint, oldest_due_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, coalesce(s.depth, -1), coalesce(s.waiting_seconds, 0)
    FROM unnest(domains) WITH ORDINALITY d(domain, ord)
    CROSS JOIN LATERAL commandbus.queue_sample(d.domain || '__commands') s
    ORDER BY d.ord
$$;

-- How long the first due message of a queue has been due, one look at an index; 0 for none, or no
-- queue.
CREATE OR REPLACE FUNCTION commandbus.oldest_due(queue_name text) RETURNS double precision
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    seconds double precision;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') THEN
        EXECUTE format('SELECT extract(epoch FROM statement_timestamp() - vt) FROM pgmq.%I '
                       'WHERE vt <= statement_timestamp() AND vt > ''-infinity'' '
                       'ORDER BY vt LIMIT 1', 'q_' || queue_name)
        INTO seconds;
    END IF;
    RETURN coalesce(seconds, 0);
END
$$;
