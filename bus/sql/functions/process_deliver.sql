-- Replies to processes: into their inboxes, by whoever ends a command (give_replies), or from a
-- reply queue, where those lie that could not be put there at once.

-- Puts replies into the inboxes of live processes and makes them due, or leaves that to who holds
-- the lease and finds them when it settles. What belongs to nobody (NULL), to a process that has
-- ended or does not exist, or to one that somebody has locked, is not put: returns the places of
-- the others in the arrays, NULL for none. Several for one process are numbered in the order of the
-- arrays. Never waits for a lock.
--
-- The caller answers for it that each process has sent the command that the message is about, to
-- command_domains: that is in the command's row, and nothing in a message proves it.
-- Stages, in one statement:
--   1. mail: what there is for each process
--   2. held: the rows of live ones are locked, in order
--   3. woken: inbox_seq and wake_at; a row that moved between the snapshot and its lock is left out
--   4. arrived, told: inbox, and an event for a reply that ends nothing
CREATE OR REPLACE FUNCTION commandbus.put_replies(worker text, process_ids uuid[],
    command_domains text[], messages jsonb[])
RETURNS integer[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
    done   record;
BEGIN
    WITH mail AS MATERIALIZED (
        SELECT m.process_id, count(*) AS n,
               sum(200 + commandbus.json_bytes(m.message))::bigint AS bytes,
               array_agg(m.ord ORDER BY m.ord) AS ords,
               array_agg(m.domain ORDER BY m.ord) AS domains,
               array_agg(m.message ORDER BY m.ord) AS messages
        FROM unnest(put_replies.process_ids, put_replies.command_domains, put_replies.messages)
            WITH ORDINALITY m(process_id, domain, message, ord)
        WHERE m.process_id IS NOT NULL
        GROUP BY m.process_id ORDER BY m.process_id
    ), held AS MATERIALIZED (
        SELECT m.*, p.place, p.leased
        FROM mail m CROSS JOIN LATERAL (
            SELECT p.ctid AS place,
                   (p.lease_owner IS NOT NULL
                    AND p.lease_until > statement_timestamp()) IS TRUE AS leased
            FROM commandbus.process p
            WHERE p.process_id = m.process_id
              AND p.status NOT IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED')
            FOR UPDATE OF p SKIP LOCKED
        ) p
    ), woken AS (
        UPDATE commandbus.process p
        SET inbox_seq = p.inbox_seq + h.n, content_bytes = p.content_bytes + h.bytes,
            wake_at = CASE WHEN h.leased THEN p.wake_at ELSE moment END
        -- By place: by key, a plan made while the table was small read all of it at each call.
        FROM held h WHERE p.ctid = h.place
        RETURNING p.process_id, p.domain, p.inbox_seq - h.n AS seq, h.leased, h.ords, h.domains,
                  h.messages
    ), arrived AS (
        INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, name, payload)
        SELECT w.process_id, w.seq + m.n, clock_timestamp(), 'REPLY', m.message ->> 'outcome',
               m.message || jsonb_build_object('domain', m.domain)
        FROM woken w
        CROSS JOIN LATERAL unnest(w.messages, w.domains) WITH ORDINALITY m(message, domain, n)
    ), told AS (
        -- Of a final reply the record tells.
        INSERT INTO commandbus.process_event (at, process_id, command_id, event, step_name, worker,
                                              details)
        SELECT moment, w.process_id, (m.message ->> 'command_id')::uuid, 'REPLY_NOT_FINAL',
               (SELECT h.name FROM commandbus.process_history h
                WHERE h.process_id = w.process_id
                  AND h.command_id = (m.message ->> 'command_id')::uuid LIMIT 1),
               put_replies.worker, m.message - 'correlation_id'
        FROM woken w CROSS JOIN LATERAL unnest(w.messages) m(message)
        WHERE m.message -> 'final' = 'false'
    )
    SELECT array_agg(o.ord::integer) AS ords,
           array_agg(DISTINCT w.domain) FILTER (WHERE NOT w.leased) AS domains
    INTO done FROM woken w CROSS JOIN LATERAL unnest(w.ords) o(ord);
    IF done.domains IS NOT NULL THEN
        PERFORM commandbus.wake(d || '__processes', cardinality(done.ords))
        FROM unnest(done.domains) d;
    END IF;
    RETURN done.ords;
END
$$;

-- The commands' and processes' ids of messages in the wire format of a reply, NULL for what is
-- none. Nearly always all of them are: then nothing is asked twice.
CREATE OR REPLACE FUNCTION commandbus.read_replies(messages jsonb[], OUT command_ids uuid[],
    OUT process_ids uuid[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fine boolean;
BEGIN
    BEGIN
        SELECT array_agg(r.command_id::uuid ORDER BY r.ord),
               array_agg(r.process_id::uuid ORDER BY r.ord),
               -- The cast takes other places of the hyphens, too.
               bool_and(coalesce(r.outcome IN ('SUCCESS', 'FAILED', 'CANCELED')
                        AND r.command_id LIKE '________-____-____-____-____________'
                        AND r.process_id LIKE '________-____-____-____-____________', false))
        INTO command_ids, process_ids, fine
        FROM (SELECT m.ord, m.message ->> 'command_id' AS command_id,
                     m.message ->> 'correlation_id' AS process_id,
                     m.message ->> 'outcome' AS outcome
              FROM unnest(messages) WITH ORDINALITY m(message, ord) OFFSET 0) r;
    EXCEPTION
        WHEN data_exception THEN
            fine := false;
    END;
    IF fine THEN
        RETURN;
    END IF;
    SELECT array_agg(CASE WHEN r.fine THEN (r.message ->> 'command_id')::uuid END ORDER BY r.ord),
           array_agg(CASE WHEN r.fine THEN (r.message ->> 'correlation_id')::uuid END
                     ORDER BY r.ord)
    INTO command_ids, process_ids
    FROM (
        SELECT m.message, m.ord, coalesce(
                   jsonb_typeof(m.message) = 'object'
                   AND m.message ->> 'outcome' IN ('SUCCESS', 'FAILED', 'CANCELED')
                   AND commandbus.is_uuid(m.message ->> 'command_id')
                   AND commandbus.is_uuid(m.message ->> 'correlation_id'), false) AS fine
        FROM unnest(messages) WITH ORDINALITY m(message, ord)
    ) r;
END
$$;

-- Up to `quantity` messages of a reply queue. A reply for a live process goes into its inbox and
-- wakes it, one for a process that has ended is archived (late), what is not a reply too
-- (dead-lettered), and so, once it is older than the grace, is a reply to a process or a command
-- that nobody knows. What belongs to a process that somebody has locked stays (locked). Never waits
-- for a lock.
-- Stages:
--   1. messages are taken out of the queue ("<queue>.pop")
--   2. asked of the commands: whether the process that each names has sent it
--   3. replies go into the inboxes (put_replies); nearly always that was all
--   4. rest: what becomes of each of the others (LATE, LOCKED, EARLY, DEAD), with events and audit
--   5. those are put back or archived
CREATE OR REPLACE FUNCTION commandbus.deliver_replies(reply_queue text, worker text,
    quantity integer DEFAULT 100, grace_seconds double precision DEFAULT 60, OUT delivered bigint,
    OUT late bigint, OUT dead_lettered bigint, OUT taken bigint, OUT locked bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    queue        commandbus.reply_queue;
    got          record; -- the messages, column by column
    ids          record; -- whose they are
    asked        record; -- where the commands went, and whose they are
    put          integer[];
    fates        text[];
    i            integer;
    held         uuid[];
    done         record;
BEGIN
    IF (quantity > 0 AND grace_seconds >= 0 AND worker <> '') IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'quantity must be positive, grace_seconds not negative and '
                                  'worker a name', 'Correct the call; nothing was delivered.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            'replies are delivered in READ COMMITTED only: an older snapshot does not know what is '
            'locked',
            'Call deliver_replies in a transaction of its own with the default isolation.');
    END IF;
    SELECT * INTO queue FROM commandbus.reply_queue r
    WHERE r.queue_name = deliver_replies.reply_queue;
    IF NOT FOUND THEN
        PERFORM commandbus.check_reply_queue(coalesce(deliver_replies.reply_queue, ''));
    END IF;
    delivered := 0; late := 0; dead_lettered := 0; taken := 0; locked := 0;
    -- One that no process type replies to is somebody else's to read: what lies there is no dead
    -- letter.
    IF NOT queue.of_processes THEN
        RETURN;
    END IF;
    -- A queue that somebody dropped must not stop what follows.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || deliver_replies.reply_queue)),
                           'DELETE') IS NOT TRUE
       OR to_regproc(format('commandbus.%I', deliver_replies.reply_queue || '.pop')) IS NULL THEN
        RETURN;
    END IF;

    EXECUTE format('SELECT * FROM commandbus.%I($1)', deliver_replies.reply_queue || '.pop')
    INTO got USING quantity;
    taken := coalesce(cardinality(got.msg_ids), 0);
    IF taken = 0 THEN
        RETURN;
    END IF;
    SELECT * INTO ids FROM commandbus.read_replies(got.messages);
    -- Of the command that this process sent, and no other: only settle_processes writes process_id,
    -- in the transaction that writes the record. Which record it is, the engine finds: by the id,
    -- which is derived from process, step and send number, and by the domain.
    SELECT array_agg(c.domain ORDER BY m.ord) AS domains,
           array_agg(c.process_id ORDER BY m.ord) AS process_ids
    INTO asked
    FROM unnest(ids.command_ids, ids.process_ids) WITH ORDINALITY m(command_id, process_id, ord)
    LEFT JOIN LATERAL (
        SELECT c.domain, c.process_id FROM commandbus.command_metadata c
        WHERE c.command_id = m.command_id AND c.process_id = m.process_id
          AND c.reply_to = deliver_replies.reply_queue
        LIMIT 1
    ) c ON true;
    put := commandbus.put_replies(deliver_replies.worker, asked.process_ids, asked.domains,
                                  got.messages);
    delivered := coalesce(cardinality(put), 0);
    IF delivered = taken THEN
        RETURN;
    END IF;

    fates := array_fill(NULL::text, ARRAY[taken::integer]);
    FOREACH i IN ARRAY coalesce(put, '{}') LOOP
        fates[i] := 'LIVE';
    END LOOP;
    SELECT array_agg(p.process_id) INTO held
    FROM (SELECT DISTINCT m.id FROM unnest(ids.process_ids, fates) m(id, fate)
          WHERE m.id IS NOT NULL AND m.fate IS NULL ORDER BY m.id) r
    CROSS JOIN LATERAL (
        SELECT p.process_id FROM commandbus.process p WHERE p.process_id = r.id
        FOR UPDATE OF p SKIP LOCKED
    ) p;
    -- In a statement that began after the locks: it sees what whoever had them before has written.
    WITH rest AS MATERIALIZED (
        SELECT m.ord, m.msg_id, m.message, m.command_id, m.process_id,
               CASE WHEN m.process_id IS NULL THEN 'the message is not a reply'
                    WHEN p.status IS NULL THEN 'there is no such process'
                    WHEN m.sent_to IS NULL THEN 'the process has no such command' END AS problem,
               CASE WHEN m.fate IS NOT NULL THEN m.fate
                    WHEN m.process_id IS NULL THEN 'DEAD'
                    WHEN p.status IS NULL OR m.sent_to IS NULL THEN
                        CASE WHEN isfinite(m.enqueued_at)
                                  AND m.enqueued_at > statement_timestamp()
                                                      - make_interval(secs => grace_seconds)
                             THEN 'EARLY' ELSE 'DEAD' END
                    WHEN m.process_id = ANY (held)
                         AND p.status IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED')
                    THEN 'LATE'
                    ELSE 'LOCKED' END AS fate -- or it was so a moment ago
        FROM unnest(got.msg_ids, got.enqueued_at, got.messages, ids.command_ids, ids.process_ids,
                    asked.domains, fates)
            WITH ORDINALITY m(msg_id, enqueued_at, message, command_id, process_id, sent_to, fate,
                              ord)
        LEFT JOIN LATERAL (
            SELECT p.status FROM commandbus.process p
            WHERE p.process_id = m.process_id AND m.fate IS NULL LIMIT 1
        ) p ON true
    ), told AS (
        INSERT INTO commandbus.process_event (at, process_id, command_id, event, step_name, worker,
                                              details)
        SELECT commandbus.now(), r.process_id, r.command_id, 'LATE_REPLY',
               (SELECT h.name FROM commandbus.process_history h
                WHERE h.process_id = r.process_id AND h.command_id = r.command_id LIMIT 1),
               deliver_replies.worker, r.message - 'correlation_id'
        FROM rest r WHERE r.fate = 'LATE' ORDER BY r.ord
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, domain, event_type, worker, details)
        SELECT r.command_id, queue.domain, 'REPLY_DEAD_LETTERED', deliver_replies.worker,
               jsonb_build_object('queue', deliver_replies.reply_queue, 'msg_id', r.msg_id,
                                  'reason', r.problem)
        FROM rest r WHERE r.fate = 'DEAD'
    )
    SELECT count(*) FILTER (WHERE r.fate = 'LATE') AS late,
           count(*) FILTER (WHERE r.fate = 'DEAD') AS dead,
           count(*) FILTER (WHERE r.fate = 'LOCKED') AS locked,
           array_agg(r.fate ORDER BY r.ord) AS fates,
           array_agg(r.msg_id) FILTER (WHERE r.fate IN ('LATE', 'DEAD')) AS archives
    INTO done FROM rest r;
    late := done.late; dead_lettered := done.dead; locked := done.locked;

    -- As they were; what came too early again in a second.
    EXECUTE format('INSERT INTO pgmq.%I (msg_id, read_ct, enqueued_at, last_read_at, vt, '
                   'message, headers) '
                   'OVERRIDING SYSTEM VALUE SELECT m.msg_id, '
                   '    least(m.read_ct, 2147483646) + 1, m.enqueued_at, statement_timestamp(), '
                   '    CASE m.fate WHEN ''EARLY'' '
                   'THEN statement_timestamp() + interval ''1 second'' ELSE m.vt END, '
                   '    m.message, m.headers '
                   'FROM unnest($1, $2, $3, $4, $5, $6, $7) '
                   'm(msg_id, read_ct, enqueued_at, vt, message, headers, fate) '
                   'WHERE m.fate <> ''LIVE''', 'q_' || deliver_replies.reply_queue)
    USING got.msg_ids, got.read_cts, got.enqueued_at, got.vts, got.messages, got.headers,
          done.fates;
    IF done.archives IS NOT NULL THEN
        PERFORM commandbus.archive_messages(deliver_replies.reply_queue, done.archives);
    END IF;
END
$$;

-- The same from the queues that these types had before: commands that were sent then still reply
-- there. How many were delivered.
CREATE OR REPLACE FUNCTION commandbus.deliver_former_replies(worker text, process_types text[],
    grace_seconds double precision DEFAULT 60)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue     text;
    delivered bigint := 0;
BEGIN
    FOR queue IN SELECT DISTINCT q FROM commandbus.process_type t
                 CROSS JOIN LATERAL unnest(t.former_queues) q
                 WHERE t.process_type = ANY (process_types) ORDER BY 1 LOOP
        delivered := delivered
            + (SELECT d.delivered
               FROM commandbus.deliver_replies(queue, worker, grace_seconds =>
                        deliver_former_replies.grace_seconds) d);
    END LOOP;
    RETURN delivered;
END
$$;
