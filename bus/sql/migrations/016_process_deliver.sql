-- Delivering replies: from a reply queue into the inboxes of the processes that wait for them.

-- Whether a text is a UUID in its usual 36 characters. Without a regular expression: a forged
-- reply must not be dear.
CREATE FUNCTION commandbus.is_uuid(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT length(value) = 36 AND translate(value, '0123456789abcdefABCDEF', '') = '----'
       AND substr(value, 9, 1) = '-' AND substr(value, 14, 1) = '-' AND substr(value, 19, 1) = '-' AND substr(value, 24, 1) = '-'
$$;

-- The commands' and processes' ids of messages in the wire format of a reply, NULL for what is none. Nearly always
-- all of them are: then nothing is asked twice.
CREATE FUNCTION commandbus.read_replies(messages jsonb[], OUT command_ids uuid[], OUT process_ids uuid[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fine boolean;
BEGIN
    BEGIN
        SELECT array_agg(r.command_id::uuid ORDER BY r.ord), array_agg(r.process_id::uuid ORDER BY r.ord),
               -- The cast takes other places of the hyphens, too.
               bool_and(coalesce(r.outcome IN ('SUCCESS', 'FAILED', 'CANCELED')
                        AND r.command_id LIKE '________-____-____-____-____________'
                        AND r.process_id LIKE '________-____-____-____-____________', false))
        INTO command_ids, process_ids, fine
        FROM (SELECT m.ord, m.message ->> 'command_id' AS command_id, m.message ->> 'correlation_id' AS process_id,
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
           array_agg(CASE WHEN r.fine THEN (r.message ->> 'correlation_id')::uuid END ORDER BY r.ord)
    INTO command_ids, process_ids
    FROM (
        SELECT m.message, m.ord, coalesce(
                   jsonb_typeof(m.message) = 'object' AND m.message ->> 'outcome' IN ('SUCCESS', 'FAILED', 'CANCELED')
                   AND commandbus.is_uuid(m.message ->> 'command_id')
                   AND commandbus.is_uuid(m.message ->> 'correlation_id'), false) AS fine
        FROM unnest(messages) WITH ORDINALITY m(message, ord)
    ) r;
END
$$;

-- Up to `quantity` messages of a reply queue. A reply for a live process goes into its inbox and wakes it, one
-- for a process that has ended is archived (late), what is no reply too (dead-lettered), and so, once it is older
-- than the grace, is a reply to a process or a command that nobody knows. What belongs to a process that
-- somebody has locked stays (locked). Never waits for a lock.
CREATE FUNCTION commandbus.deliver_replies(reply_queue text, worker text, quantity integer DEFAULT 100,
    grace_seconds double precision DEFAULT 60, OUT delivered bigint, OUT late bigint, OUT dead_lettered bigint,
    OUT taken bigint, OUT locked bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    queue        commandbus.reply_queue;
    moment       timestamptz := commandbus.now();
    got          record; -- the messages, column by column
    ids          record; -- whose they are
    held         uuid[];
    done         record;
BEGIN
    IF (quantity > 0 AND grace_seconds >= 0 AND worker <> '') IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'quantity must be positive, grace_seconds not negative and worker a name',
                                  'Correct the call; nothing was delivered.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', 'replies are delivered in READ COMMITTED only: an older snapshot does '
            'not know what is locked', 'Call deliver_replies in a transaction of its own with the default isolation.');
    END IF;
    SELECT * INTO queue FROM commandbus.reply_queue r WHERE r.queue_name = deliver_replies.reply_queue;
    IF NOT FOUND THEN
        PERFORM commandbus.check_reply_queue(coalesce(deliver_replies.reply_queue, ''));
    END IF;
    delivered := 0; late := 0; dead_lettered := 0; taken := 0; locked := 0;
    -- One that no process type replies to is somebody else's to read: what lies there is no dead letter.
    IF NOT queue.of_processes THEN
        RETURN;
    END IF;
    -- A queue that somebody dropped must not stop what follows.
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || deliver_replies.reply_queue)), 'DELETE') IS NOT TRUE
       OR to_regproc(format('commandbus.%I', deliver_replies.reply_queue || '.pop')) IS NULL THEN
        RETURN;
    END IF;

    EXECUTE format('SELECT * FROM commandbus.%I($1)', deliver_replies.reply_queue || '.pop') INTO got USING quantity;
    taken := coalesce(cardinality(got.msg_ids), 0);
    IF taken = 0 THEN
        RETURN;
    END IF;
    SELECT * INTO ids FROM commandbus.read_replies(got.messages);
    SELECT array_agg(p.process_id) INTO held
    FROM (SELECT DISTINCT id FROM unnest(ids.process_ids) id WHERE id IS NOT NULL ORDER BY id) r
    CROSS JOIN LATERAL (
        SELECT p.process_id FROM commandbus.process p WHERE p.process_id = r.id FOR UPDATE OF p SKIP LOCKED
    ) p;

    -- In a statement that began after the locks: it sees what whoever had them before has written.
    WITH reply AS MATERIALIZED (
        SELECT m.ord, m.msg_id, m.message, m.command_id, m.process_id, p.place, p.domain, p.inbox_seq, c.domain AS sent_to,
               (p.lease_owner IS NOT NULL AND p.lease_until > statement_timestamp()) IS TRUE AS leased,
               CASE WHEN m.process_id IS NULL THEN 'the message is no reply'
                    WHEN p.status IS NULL THEN 'there is no such process'
                    WHEN c.command_id IS NULL THEN 'the process has no such command' END AS problem,
               CASE WHEN m.process_id IS NULL THEN 'DEAD'
                    WHEN p.status IS NULL OR c.command_id IS NULL THEN
                        CASE WHEN isfinite(m.enqueued_at) AND m.enqueued_at > statement_timestamp() - make_interval(secs => grace_seconds)
                             THEN 'EARLY' ELSE 'DEAD' END
                    WHEN (m.process_id = ANY (held)) IS NOT TRUE THEN 'LOCKED'
                    WHEN p.status IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED') THEN 'LATE'
                    ELSE 'LIVE' END AS fate
        FROM unnest(got.msg_ids, got.enqueued_at, got.messages, ids.command_ids, ids.process_ids)
            WITH ORDINALITY m(msg_id, enqueued_at, message, command_id, process_id, ord)
        LEFT JOIN LATERAL (
            SELECT p.ctid AS place, p.domain, p.status, p.inbox_seq, p.lease_owner, p.lease_until FROM commandbus.process p
            WHERE p.process_id = m.process_id LIMIT 1
        ) p ON true
        LEFT JOIN LATERAL (
            -- Of the command that this process sent, and no other: only settle_processes writes process_id, in the
            -- transaction that writes the record. Which record it is, the engine finds: by the id, which is derived from
            -- process, step and send number, and by the domain.
            SELECT c.command_id, c.domain FROM commandbus.command_metadata c
            WHERE c.command_id = m.command_id AND c.process_id = m.process_id AND c.reply_to = deliver_replies.reply_queue
            LIMIT 1
        ) c ON true
    ), arrived AS (
        INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, name, payload)
        SELECT r.process_id, r.inbox_seq + row_number() OVER (PARTITION BY r.process_id ORDER BY r.msg_id),
               clock_timestamp(), 'REPLY', r.message ->> 'outcome', r.message || jsonb_build_object('domain', r.sent_to)
        FROM reply r WHERE r.fate = 'LIVE'
    ), woken AS (
        UPDATE commandbus.process p
        SET inbox_seq = p.inbox_seq + r.n, content_bytes = p.content_bytes + r.bytes,
            wake_at = CASE WHEN r.leased THEN p.wake_at ELSE moment END
        FROM (SELECT r.place, r.leased, count(*) AS n, sum(200 + commandbus.json_bytes(r.message)) AS bytes
              FROM reply r WHERE r.fate = 'LIVE' GROUP BY 1, 2) r
        -- By place: by key, a plan made while the table was small read all of it at each call.
        WHERE p.ctid = r.place
    ), told AS (
        -- Of a final reply that is in time the record tells.
        INSERT INTO commandbus.process_event (at, process_id, command_id, event, step_name, worker, details)
        SELECT moment, r.process_id, r.command_id,
               CASE r.fate WHEN 'LATE' THEN 'LATE_REPLY' ELSE 'REPLY_NOT_FINAL' END,
               (SELECT h.name FROM commandbus.process_history h
                WHERE h.process_id = r.process_id AND h.command_id = r.command_id LIMIT 1),
               deliver_replies.worker, r.message - 'correlation_id'
        FROM reply r WHERE r.fate = 'LATE' OR (r.fate = 'LIVE' AND r.message -> 'final' = 'false')
        ORDER BY r.ord
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, domain, event_type, worker, details)
        SELECT r.command_id, queue.domain, 'REPLY_DEAD_LETTERED', deliver_replies.worker,
               jsonb_build_object('queue', deliver_replies.reply_queue, 'msg_id', r.msg_id, 'reason', r.problem)
        FROM reply r WHERE r.fate = 'DEAD'
    )
    SELECT count(*) FILTER (WHERE r.fate = 'LIVE') AS live, count(*) FILTER (WHERE r.fate = 'LATE') AS late,
           count(*) FILTER (WHERE r.fate = 'DEAD') AS dead, count(*) FILTER (WHERE r.fate = 'LOCKED') AS locked,
           array_agg(DISTINCT r.domain) FILTER (WHERE r.fate = 'LIVE' AND NOT r.leased) AS domains,
           array_agg(r.fate ORDER BY r.ord) AS fates, array_agg(r.msg_id) FILTER (WHERE r.fate IN ('LATE', 'DEAD')) AS archives
    INTO done FROM reply r;
    delivered := done.live; late := done.late; dead_lettered := done.dead; locked := done.locked;

    IF delivered < taken THEN
        -- As they were; what came too early again in a second.
        EXECUTE format('INSERT INTO pgmq.%I (msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers) '
                       'OVERRIDING SYSTEM VALUE SELECT m.msg_id, '
                       '    least(m.read_ct, 2147483646) + 1, m.enqueued_at, statement_timestamp(), '
                       '    CASE m.fate WHEN ''EARLY'' THEN statement_timestamp() + interval ''1 second'' ELSE m.vt END, '
                       '    m.message, m.headers '
                       'FROM unnest($1, $2, $3, $4, $5, $6, $7) m(msg_id, read_ct, enqueued_at, vt, message, headers, fate) '
                       'WHERE m.fate <> ''LIVE''', 'q_' || deliver_replies.reply_queue)
        USING got.msg_ids, got.read_cts, got.enqueued_at, got.vts, got.messages, got.headers, done.fates;
        IF done.archives IS NOT NULL THEN
            PERFORM commandbus.archive_messages(deliver_replies.reply_queue, done.archives);
        END IF;
    END IF;
    PERFORM commandbus.wake_sleepers(d || '__processes') FROM unnest(done.domains) d;
END
$$;

-- The same from the queues that these types had before: commands that were sent then still reply there. How many were
-- delivered.
CREATE FUNCTION commandbus.deliver_former_replies(worker text, process_types text[], grace_seconds double precision DEFAULT 60)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue     text;
    delivered bigint := 0;
BEGIN
    FOR queue IN SELECT DISTINCT q FROM commandbus.process_type t CROSS JOIN LATERAL unnest(t.former_queues) q
                 WHERE t.process_type = ANY (process_types) ORDER BY 1 LOOP
        delivered := delivered
            + (SELECT d.delivered FROM commandbus.deliver_replies(queue, worker, grace_seconds => deliver_former_replies.grace_seconds) d);
    END LOOP;
    RETURN delivered;
END
$$;

-- Processes that wait for the reply of a command that has an outcome, and have no such reply in
-- their inbox: it is on its way, or it was lost. The outcome is final, or the command is in the
-- troubleshooting queue and its process does not know.
CREATE VIEW commandbus.missing_reply AS
SELECT p.process_id, p.process_type, p.domain, c.domain AS command_domain, c.command_id,
       c.status AS outcome, c.reply_to, c.completed_at IS NOT NULL AS final,
       coalesce(c.completed_at, c.tsq_at) AS ended_at
FROM commandbus.process p
CROSS JOIN LATERAL (
    SELECT h.domain, h.command_id FROM commandbus.process_history h
    WHERE h.process_id = p.process_id AND h.status = 'WAITING' AND h.command_id IS NOT NULL
    ORDER BY h.ordinal DESC LIMIT 1
) h
JOIN commandbus.command_metadata c
  ON c.command_id = h.command_id AND c.domain = h.domain AND c.process_id = p.process_id
WHERE p.completed_at IS NULL
  AND (p.lease_owner IS NULL OR p.lease_until <= statement_timestamp())
  AND (c.completed_at IS NOT NULL OR (c.tsq_at IS NOT NULL AND p.status <> 'WAITING_FOR_TSQ'))
  AND NOT EXISTS (
      SELECT FROM commandbus.process_inbox i
      WHERE i.process_id = p.process_id AND i.kind = 'REPLY'
        AND lower(i.payload ->> 'command_id') = c.command_id::text
        AND i.payload ->> 'domain' = c.domain
        AND (c.completed_at IS NULL OR (i.payload ->> 'final') IS DISTINCT FROM 'false'));

-- The reply that a command sent with its outcome, made again from its row. Only the audit knows why
-- it was canceled.
CREATE FUNCTION commandbus.reply_again(command_domain text, command_id uuid) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT commandbus.reply_message(c.command_id, c.correlation_id,
        CASE c.status WHEN 'COMPLETED' THEN 'SUCCESS' WHEN 'CANCELED' THEN 'CANCELED'
                      ELSE 'FAILED' END,
        c.result,
        -- One whose failure its process goes on with says what that was: end_failed().
        CASE WHEN c.status <> 'CANCELED' OR d.failed THEN c.error_type END,
        CASE WHEN c.status <> 'CANCELED' OR d.failed THEN c.error_code END,
        CASE WHEN c.status <> 'CANCELED' OR d.failed THEN c.error_message END,
        d.reason, c.completed_at IS NOT NULL)
    FROM commandbus.command_metadata c
    LEFT JOIN LATERAL (
        SELECT a.details ->> 'reason' AS reason, (a.details ->> 'failed')::boolean AS failed FROM commandbus.audit a
        WHERE c.status = 'CANCELED' AND a.command_id = c.command_id AND a.domain = c.domain
          AND a.event_type = 'OPERATOR_CANCEL' ORDER BY a.at DESC, a.id DESC LIMIT 1
    ) d ON true
    WHERE c.command_id = reply_again.command_id AND c.domain = command_domain
$$;

-- Of these commands those whose reply lies in its queue as it was put there, visible from the moment at which its command
-- ended: one look at the index for each, however many others lie there (among 100,000, 0.4 ms instead of 360 for reading
-- them all). Of one that is not found nothing is known.
CREATE FUNCTION commandbus.replies_as_sent(queue text, command_ids uuid[], final boolean[], ended_at timestamptz[])
RETURNS uuid[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    found_ uuid[];
BEGIN
    EXECUTE format('SELECT array_agg(l.id) FROM unnest($1, $2, $3) l(id, final, ended_at) CROSS JOIN LATERAL ('
        '    SELECT FROM pgmq.%I q WHERE q.vt = l.ended_at AND lower(q.message ->> ''command_id'') = l.id::text '
        '        AND (NOT l.final OR (q.message ->> ''final'') IS DISTINCT FROM ''false'') LIMIT 1) q', 'q_' || queue)
    INTO found_ USING command_ids, final, ended_at;
    RETURN found_;
END
$$;

-- Replies that were lost: somebody deleted them, or their queue. Puts each into the inbox of the
-- process that waits for it, made again from the command's row; with dry_run it only names them. Of
-- these processes, or of all: then of those that have waited, and whose command has had its outcome,
-- for longer than the grace. A reply that still lies in its queue is not lost. Never waits for a lock.
--
-- A reply moves from the queue to the inbox to the record, each move in one transaction that holds
-- the process. What is not in the queue, and when we look after that neither in the inbox nor
-- recorded, is nowhere.
CREATE FUNCTION commandbus.restore_replies(process_ids uuid[] DEFAULT NULL,
    grace_seconds double precision DEFAULT 0, max_processes integer DEFAULT 1000,
    dry_run boolean DEFAULT false)
RETURNS TABLE (process_id uuid, process_type text, command_id uuid, outcome text,
               ended_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    grace  interval := make_interval(secs => grace_seconds);
    cutoff timestamptz := commandbus.now() - grace;
    ids    uuid[] := process_ids;
    lost   record; -- the processes and the commands they wait for, column by column
    queue  text;
    found_ uuid[];
    sent   uuid[];
    one    record;
BEGIN
    IF (grace_seconds >= 0 AND max_processes > 0 AND dry_run IS NOT NULL) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'grace_seconds must not be negative and max_processes must be positive',
            'Correct the call; nothing was restored.');
    END IF;
    IF ids IS NULL THEN
        ids := ARRAY(
            SELECT l.process_id FROM commandbus.live_process l
            WHERE l.updated_at <= cutoff AND l.status IN
                ('WAITING_FOR_REPLY', 'WAITING_FOR_ASYNC', 'COMPENSATING', 'WAITING_FOR_TSQ'));
    END IF;
    SELECT array_agg(m.process_id) AS processes, array_agg(m.command_id) AS commands,
           array_agg(m.final) AS final, array_agg(m.ended_at) AS ended_at, array_agg(DISTINCT m.reply_to) AS queues
    INTO lost
    FROM unnest(ids) i(id) JOIN commandbus.missing_reply m ON m.process_id = i.id
    -- Strictly: what ends in this very statement has its reply on the way.
    WHERE m.ended_at < statement_timestamp() - grace;
    IF lost.processes IS NULL THEN
        RETURN;
    END IF;

    FOREACH queue IN ARRAY lost.queues LOOP
        CONTINUE WHEN has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue)), 'SELECT')
                      IS NOT TRUE;
        -- Who settles a process asks for a few, and nearly always they are on their way.
        IF cardinality(lost.commands) <= 100 THEN
            sent := sent || commandbus.replies_as_sent(queue, lost.commands, lost.final, lost.ended_at);
            CONTINUE WHEN lost.commands <@ sent;
        END IF;
        -- One that nobody would see is not on its way: reveal_messages() is for it.
        EXECUTE format('SELECT array_agg(l.id) FROM pgmq.%I q JOIN unnest($1, $2) l(id, final) '
            'ON l.id::text = lower(q.message ->> ''command_id'') '
            'AND (NOT l.final OR (q.message ->> ''final'') IS DISTINCT FROM ''false'') '
            'WHERE q.vt <= statement_timestamp() + interval ''1 day''', 'q_' || queue)
        INTO found_ USING lost.commands, lost.final;
        sent := sent || found_;
    END LOOP;
    SELECT array_agg(l.process_id), array_agg(l.command_id), array_agg(l.final)
    INTO lost.processes, lost.commands, lost.final
    FROM unnest(lost.processes, lost.commands, lost.final) l(process_id, command_id, final)
    LEFT JOIN (SELECT DISTINCT unnest(sent)) f(id) ON f.id = l.command_id
    WHERE f.id IS NULL;
    lost.processes := lost.processes[1:max_processes];
    lost.commands := lost.commands[1:max_processes];
    lost.final := lost.final[1:max_processes];

    IF dry_run THEN
        RETURN QUERY
        SELECT m.process_id, m.process_type, m.command_id, m.outcome::text, m.ended_at
        FROM unnest(lost.processes, lost.commands) l(process_id, command_id)
        JOIN commandbus.missing_reply m
          ON m.process_id = l.process_id AND m.command_id = l.command_id;
        RETURN;
    END IF;
    -- Commands before processes. Who holds a command decides about it now, and replies.
    found_ := ARRAY(
        SELECT c.command_id FROM unnest(lost.processes, lost.commands) l(process_id, command_id)
        JOIN commandbus.command_metadata c
          ON c.command_id = l.command_id AND c.process_id = l.process_id
        ORDER BY c.command_id FOR SHARE OF c SKIP LOCKED);
    ids := ARRAY(
        SELECT p.process_id FROM unnest(lost.processes, lost.commands) l(process_id, command_id)
        JOIN commandbus.process p ON p.process_id = l.process_id
        WHERE l.command_id = ANY (found_) ORDER BY p.process_id FOR UPDATE OF p SKIP LOCKED);
    FOR one IN
        SELECT m.*, p.inbox_seq + 1 AS seq, r.message
        FROM unnest(ids) i(id) JOIN commandbus.process p ON p.process_id = i.id
        JOIN commandbus.missing_reply m ON m.process_id = i.id AND m.command_id = ANY (found_)
        -- What has ended since the look at its queue has its reply there.
        JOIN unnest(lost.commands, lost.final) l(command_id, final)
          ON l.command_id = m.command_id AND l.final = m.final
        CROSS JOIN LATERAL commandbus.reply_again(m.command_domain, m.command_id) r(message)
        ORDER BY m.process_id
    LOOP
        INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload)
        VALUES (one.process_id, one.seq, 'REPLY', one.message ->> 'outcome',
                one.message || jsonb_build_object('domain', one.command_domain));
        UPDATE commandbus.process p
        SET inbox_seq = one.seq, wake_at = commandbus.now(),
            content_bytes = p.content_bytes + 200 + commandbus.json_bytes(one.message)
        WHERE p.process_id = one.process_id;
        INSERT INTO commandbus.process_event (process_id, command_id, event, db_user, details)
        VALUES (one.process_id, one.command_id, 'REPLY_RESTORED', session_user,
                one.message - 'correlation_id' || jsonb_build_object('ended_at', one.ended_at));
        PERFORM commandbus.wake_sleepers(one.domain || '__processes');
        process_id := one.process_id;
        process_type := one.process_type;
        command_id := one.command_id;
        outcome := one.outcome;
        ended_at := one.ended_at;
        RETURN NEXT;
    END LOOP;
END
$$;

-- restore_replies() for housekeeping, which asks often: one instance at a time over the fleet, and
-- never for more than a twentieth of the time, however many processes wait. Makes hidden replies
-- visible first. One row a reply.
CREATE FUNCTION commandbus.keep_replies(every_seconds double precision DEFAULT 20,
    grace_seconds double precision DEFAULT 20)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF NOT commandbus.take_turn('replies', every_seconds) THEN
        RETURN;
    END IF;
    PERFORM commandbus.reveal_messages(q.name)
    FROM (SELECT DISTINCT unnest(t.former_queues || t.reply_queue) FROM commandbus.process_type t
          ORDER BY 1) q(name);
    RETURN QUERY
    SELECT r.command_id
    FROM commandbus.restore_replies(grace_seconds => keep_replies.grace_seconds) r;
    UPDATE commandbus.chore c
    SET next_at = greatest(c.next_at,
                           clock_timestamp() + 20 * (clock_timestamp() - statement_timestamp()))
    WHERE c.chore = 'replies';
END
$$;

-- For doctor: queues with messages that nobody would ever see.
CREATE FUNCTION commandbus.hidden_messages() RETURNS TABLE (queue_name text, messages bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT q.name, m.messages
    FROM (SELECT d.domain || '__commands' FROM commandbus.domain d
          UNION
          SELECT unnest(t.former_queues || t.reply_queue) FROM commandbus.process_type t) q(name)
    CROSS JOIN LATERAL commandbus.reveal_messages(q.name, true, dry_run => true) m(messages)
    WHERE m.messages > 0 ORDER BY 1
$$;
