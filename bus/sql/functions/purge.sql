-- Retention, a small batch at a time: what is finished, older than its age, and nobody waits for.

-- Ids of commands whose reply still lies unread in one of these queues since before `cutoff`.
CREATE OR REPLACE FUNCTION commandbus.unread_replies(queue_names text[], cutoff timestamptz)
RETURNS SETOF uuid LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_name text;
BEGIN
    FOREACH queue_name IN ARRAY queue_names LOOP
        IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'SELECT') THEN
            RETURN QUERY EXECUTE format(
                'SELECT (message ->> ''command_id'')::uuid FROM pgmq.%I WHERE enqueued_at < $1 '
                'AND message ->> ''command_id'' ~ ''^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$''',
                'q_' || queue_name) USING cutoff + interval '1 minute';
        END IF;
    END LOOP;
END
$$;

-- NULL keeps that kind forever. Members of a batch go only after their batch has closed, commands
-- of a process only after it has ended, a process with all that is known of it. Returns how many
-- rows went, of processes themselves only; call again until all are 0.
CREATE OR REPLACE FUNCTION commandbus.purge(commands_older_than interval DEFAULT NULL,
    audit_older_than interval DEFAULT NULL, archives_older_than interval DEFAULT NULL,
    batch_size integer DEFAULT 1000, processes_older_than interval DEFAULT NULL,
    OUT commands bigint, OUT batches bigint, OUT audit bigint, OUT archives bigint,
    OUT processes bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    command_cutoff timestamptz := statement_timestamp() - commands_older_than;
    process_cutoff timestamptz := commandbus.now() - processes_older_than;
    ended          uuid[];
    unread         uuid[];
    queue_name     text;
    gone           bigint;
BEGIN
    IF (batch_size > 0) IS NOT TRUE
       OR least(commands_older_than, audit_older_than, archives_older_than,
                processes_older_than) < interval '0' THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  'ages must not be negative and batch_size must be positive',
                                  'Correct the call; nothing was purged.');
    END IF;

    SELECT array_agg(u.id) INTO unread
    FROM commandbus.unread_replies(ARRAY(SELECT r.queue_name FROM commandbus.reply_queue r),
                                   command_cutoff) u(id);
    WITH finished AS (
        SELECT c.ctid AS place FROM commandbus.command_metadata c
        WHERE c.created_at < command_cutoff AND c.completed_at < command_cutoff
          AND (c.batch_id IS NULL OR NOT EXISTS (
                  SELECT FROM commandbus.batch b
                  WHERE b.batch_id = c.batch_id AND b.completed_at IS NULL))
          AND (unread IS NULL OR c.command_id <> ALL (unread))
          AND NOT EXISTS (SELECT FROM commandbus.process p
                          WHERE p.process_id = c.process_id AND p.completed_at IS NULL)
        ORDER BY c.created_at LIMIT batch_size FOR UPDATE SKIP LOCKED
    )
    DELETE FROM commandbus.command_metadata c USING finished WHERE c.ctid = finished.place;
    GET DIAGNOSTICS commands = ROW_COUNT;
    -- Handlers of commands that are gone may still run. Their places stay until their time is over,
    -- but not under a fence: who sends a command with the same id again begins at the first one.
    UPDATE commandbus.fleet_place p SET turn = p.turn + 1, lease_no = 0
    WHERE p.ctid = ANY (ARRAY(
        SELECT o.ctid FROM commandbus.fleet_place o
        WHERE o.lease_no > 0 AND NOT EXISTS (SELECT FROM commandbus.command_metadata c
                                             WHERE c.command_id = o.command_id
                                               AND c.domain = o.domain)
        FOR UPDATE SKIP LOCKED));

    -- Locked first: who holds one has it yet, and what is known of it stays with it. A run that
    -- brings one a late response holds its lease.
    ended := ARRAY(
        SELECT p.process_id FROM commandbus.process p
        WHERE p.created_at < process_cutoff AND p.completed_at < process_cutoff
          AND (p.lease_until IS NULL OR p.lease_until <= statement_timestamp())
          AND (p.batch_id IS NULL OR NOT EXISTS (
                  SELECT FROM commandbus.batch b
                  WHERE b.batch_id = p.batch_id AND b.completed_at IS NULL))
        LIMIT batch_size FOR UPDATE SKIP LOCKED);
    DELETE FROM commandbus.process_history h WHERE h.process_id = ANY (ended);
    DELETE FROM commandbus.process_attempt a WHERE a.process_id = ANY (ended);
    DELETE FROM commandbus.process_inbox i WHERE i.process_id = ANY (ended);
    DELETE FROM commandbus.process_event e WHERE e.process_id = ANY (ended);
    DELETE FROM commandbus.process p WHERE p.process_id = ANY (ended);
    GET DIAGNOSTICS processes = ROW_COUNT;

    WITH closed AS (
        SELECT b.ctid AS place FROM commandbus.batch b
        -- The age of its kind: it stays as long as its members would.
        WHERE b.completed_at < CASE b.batch_type WHEN 'COMMAND' THEN command_cutoff
                                    ELSE process_cutoff END
          AND NOT EXISTS (SELECT FROM commandbus.command_metadata c WHERE c.batch_id = b.batch_id)
          AND NOT EXISTS (SELECT FROM commandbus.process p WHERE p.batch_id = b.batch_id)
        LIMIT batch_size FOR UPDATE SKIP LOCKED
    )
    DELETE FROM commandbus.batch b USING closed WHERE b.ctid = closed.place;
    GET DIAGNOSTICS batches = ROW_COUNT;

    WITH old AS (
        SELECT a.ctid AS place FROM commandbus.audit a
        WHERE a.at < statement_timestamp() - audit_older_than
          AND NOT EXISTS (SELECT FROM commandbus.command_metadata c
                          WHERE c.command_id = a.command_id AND c.domain = a.domain
                            AND c.completed_at IS NULL)
        LIMIT batch_size FOR UPDATE SKIP LOCKED
    )
    DELETE FROM commandbus.audit a USING old WHERE a.ctid = old.place;
    GET DIAGNOSTICS audit = ROW_COUNT;

    archives := 0;
    IF archives_older_than IS NOT NULL THEN
        FOR queue_name IN SELECT d.domain || '__commands' FROM commandbus.domain d
                          UNION ALL SELECT r.queue_name FROM commandbus.reply_queue r
                          ORDER BY 1 LOOP
            CONTINUE WHEN has_table_privilege(to_regclass(format('pgmq.%I', 'a_' || queue_name)),
                                              'DELETE') IS NOT TRUE;
            EXECUTE format('DELETE FROM pgmq.%1$I WHERE ctid = ANY (ARRAY('
                           'SELECT ctid FROM pgmq.%1$I '
                           'WHERE archived_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
                           'a_' || queue_name)
            USING statement_timestamp() - archives_older_than, batch_size - archives;
            GET DIAGNOSTICS gone = ROW_COUNT;
            archives := archives + gone;
        END LOOP;
    END IF;
END
$$;
