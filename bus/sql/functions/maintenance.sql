-- Messages that were lost or hidden are found and brought back, by workers in turn.

-- Commands that wait for a message nobody will ever read: somebody emptied or dropped the queue.
-- Gives each a new message, or with dry_run only names them. Walks the whole table: see
-- keep_messages().
CREATE OR REPLACE FUNCTION commandbus.restore_messages(domain text,
    max_commands integer DEFAULT 1000, dry_run boolean DEFAULT false)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := (commandbus.known_domain(restore_messages.domain)).domain || '__commands';
    lost_ones  text := format('FROM commandbus.command_metadata c '
                              'WHERE c.domain = $1 AND c.completed_at IS NULL '
                              'AND c.tsq_at IS NULL '
                              'AND NOT EXISTS (SELECT FROM pgmq.%I q WHERE q.msg_id = c.msg_id)',
                              'q_' || queue_name);
    held       uuid[];
    lost       record;
    new_msg_id bigint;
BEGIN
    IF dry_run IS NOT FALSE THEN
        RETURN QUERY EXECUTE 'SELECT c.command_id ' || lost_ones || ' LIMIT $2'
        USING restore_messages.domain, max_commands;
        RETURN;
    END IF;
    PERFORM commandbus.reveal_messages(queue_name, past_lease => true);
    EXECUTE 'SELECT array_agg(h.command_id) FROM (SELECT c.command_id ' || lost_ones
            || ' LIMIT $2 FOR UPDATE OF c SKIP LOCKED) h'
    INTO held USING restore_messages.domain, max_commands;

    -- In a statement that began after the lock: whoever moves a message holds its command's row.
    FOR lost IN EXECUTE 'SELECT c.* ' || lost_ones || ' AND c.command_id = ANY ($2)'
                USING restore_messages.domain, held LOOP
        -- Read by whoever runs it just now: what is in progress is found by that.
        EXECUTE format('INSERT INTO pgmq.%I (read_ct, vt, message, headers) '
                       'VALUES ($4, $1, $2, $3) RETURNING msg_id', 'q_' || queue_name)
        INTO new_msg_id
        USING greatest(lost.lease_until, statement_timestamp()),
              commandbus.command_message(lost.domain, lost.command_type, lost.command_id,
                                         lost.correlation_id, lost.data, lost.reply_to),
              lost.headers, (lost.status = 'IN_PROGRESS')::integer;
        UPDATE commandbus.command_metadata c SET msg_id = new_msg_id
        WHERE c.command_id = lost.command_id AND c.domain = lost.domain;
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, db_user,
                                      details)
        VALUES (lost.command_id, lost.lease_no, lost.attempts, lost.domain, 'RELEASED',
                session_user,
                jsonb_build_object('reason', 'its message had vanished from the queue',
                                   'lost_msg_id', lost.msg_id));
        RETURN NEXT lost.command_id;
    END LOOP;
    PERFORM commandbus.wake(queue_name, 1000);
END
$$;

-- How many commands of each domain have lost their message, up to 1000: for doctor.
CREATE OR REPLACE FUNCTION commandbus.lost_messages() RETURNS TABLE (domain text, commands bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.domain, count(*)
    FROM commandbus.domain d CROSS JOIN LATERAL commandbus.restore_messages(d.domain, 1000, true)
    WHERE has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || d.domain || '__commands')),
                              'SELECT')
    GROUP BY d.domain
$$;

-- True for one of all that ask within so many seconds: it does the chore for the whole fleet. Until
-- its transaction ends the others are told no.
CREATE OR REPLACE FUNCTION commandbus.take_turn(chore text, seconds double precision)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(
               hashtextextended('commandbus.chore.' || take_turn.chore, 0)) THEN
        RETURN false;
    END IF;
    INSERT INTO commandbus.chore AS c (chore, next_at)
    VALUES (take_turn.chore, clock_timestamp() + make_interval(secs => seconds))
    ON CONFLICT (chore) DO UPDATE SET next_at = excluded.next_at
        WHERE c.next_at <= clock_timestamp();
    RETURN FOUND;
END
$$;

-- restore_messages() for housekeeping, which asks often: the whole table is looked through once an
-- hour over the fleet, and as soon as somebody has taken messages out of the queue by hand. One row
-- a command that got a new message.
CREATE OR REPLACE FUNCTION commandbus.keep_messages(domain text,
    every_seconds double precision DEFAULT 3600)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue    text := (commandbus.known_domain(keep_messages.domain)).domain || '__commands';
    at_once  constant integer := 1000;
    touched  boolean;
    restored bigint;
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue)), 'INSERT') IS NOT TRUE THEN
        RETURN; -- what was noted stays until there is a queue again
    END IF;
    PERFORM commandbus.reveal_messages(queue);
    -- Taken before the look: what is touched after it is noted anew.
    DELETE FROM commandbus.touched_queue t WHERE t.ctid = ANY (ARRAY(
        SELECT o.ctid FROM commandbus.touched_queue o
        WHERE o.queue_name = queue FOR UPDATE SKIP LOCKED));
    touched := FOUND;
    IF NOT touched AND NOT commandbus.take_turn('messages of ' || queue, every_seconds) THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT r FROM commandbus.restore_messages(keep_messages.domain, at_once) r;
    GET DIAGNOSTICS restored = ROW_COUNT;
    -- There are more, or somebody held one of them.
    IF restored >= at_once
       OR (touched
           AND EXISTS (SELECT FROM commandbus.restore_messages(keep_messages.domain, 1, true))) THEN
        INSERT INTO commandbus.touched_queue (queue_name) VALUES (queue);
    END IF;
END
$$;

-- For doctor: queues with messages that nobody would ever see.
CREATE OR REPLACE FUNCTION commandbus.hidden_messages()
RETURNS TABLE (queue_name text, messages bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT q.name, m.messages
    FROM (SELECT d.domain || '__commands' FROM commandbus.domain d
          UNION
          SELECT unnest(t.former_queues || t.reply_queue) FROM commandbus.process_type t) q(name)
    CROSS JOIN LATERAL commandbus.reveal_messages(q.name, true, dry_run => true) m(messages)
    WHERE m.messages > 0 ORDER BY 1
$$;
