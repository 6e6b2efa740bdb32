-- Replies that a process still waits for although its command has ended are sent again.

-- Processes that wait for the reply of a command that has an outcome, and have no such reply in
-- their inbox: it is on its way, or it was lost. The outcome is final, or the command is in the
-- troubleshooting queue and its process does not know.
CREATE OR REPLACE VIEW commandbus.missing_reply AS
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
CREATE OR REPLACE FUNCTION commandbus.reply_again(command_domain text, command_id uuid)
RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
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
        SELECT a.details ->> 'reason' AS reason, (a.details ->> 'failed')::boolean AS failed
        FROM commandbus.audit a
        WHERE c.status = 'CANCELED' AND a.command_id = c.command_id AND a.domain = c.domain
          AND a.event_type = 'OPERATOR_CANCEL' ORDER BY a.at DESC, a.id DESC LIMIT 1
    ) d ON true
    WHERE c.command_id = reply_again.command_id AND c.domain = command_domain
$$;

-- Of these commands those whose reply lies in its queue as it was put there, visible from the
-- moment at which its command ended: one look at the index for each, however many others lie there
-- (among 100,000, 0.4 ms instead of 360 for reading them all). Of one that is not found nothing is
-- known.
CREATE OR REPLACE FUNCTION commandbus.replies_as_sent(queue text, command_ids uuid[],
    final boolean[], ended_at timestamptz[])
RETURNS uuid[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    found_ uuid[];
BEGIN
    EXECUTE format('SELECT array_agg(l.id) FROM unnest($1, $2, $3) l(id, final, ended_at) '
        'CROSS JOIN LATERAL ('
        '    SELECT FROM pgmq.%I q WHERE q.vt = l.ended_at '
        'AND lower(q.message ->> ''command_id'') = l.id::text '
        '        AND (NOT l.final OR (q.message ->> ''final'') IS DISTINCT FROM ''false'') '
        'LIMIT 1) q', 'q_' || queue)
    INTO found_ USING command_ids, final, ended_at;
    RETURN found_;
END
$$;

-- Replies that were lost: somebody deleted them, or their queue. Puts each into the inbox of the
-- process that waits for it, made again from the command's row; with dry_run it only names them. Of
-- these processes, or of all: then of those that have waited, and whose command has had its
-- outcome, for longer than the grace. A reply that still lies in its queue is not lost. Never waits
-- for a lock.
--
-- A reply is in the queue or in the inbox when its command has ended, and moves from the one to the
-- other to the record, each move in one transaction that holds the process. What is not in the
-- queue, and when we look after that neither in the inbox nor recorded, is nowhere.
CREATE OR REPLACE FUNCTION commandbus.restore_replies(process_ids uuid[] DEFAULT NULL,
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
           array_agg(m.final) AS final, array_agg(m.ended_at) AS ended_at,
           array_agg(DISTINCT m.reply_to) AS queues
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
            sent := sent || commandbus.replies_as_sent(queue, lost.commands, lost.final,
                                                       lost.ended_at);
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
        -- What has ended since the look at its queue has its reply there or in the inbox.
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
        PERFORM commandbus.wake(one.domain || '__processes');
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
CREATE OR REPLACE FUNCTION commandbus.keep_replies(every_seconds double precision DEFAULT 20,
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
