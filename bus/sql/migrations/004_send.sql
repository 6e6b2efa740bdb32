-- Sending: row, message, audit and wake-up in one transaction, the caller's own if it has one.

-- NULL when a command may be sent as it is, else a refusal as 'CODE: text'. One expression, so
-- that it costs nothing per row when inlined into a set.
CREATE FUNCTION commandbus.command_problem(command_type text, data jsonb, max_attempts integer,
    delay_seconds double precision, timeout_seconds integer, headers jsonb, payload_limit integer,
    callers_id uuid DEFAULT NULL)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN commandbus.is_derived_id(callers_id)
            THEN format('INVALID_DATA: command_id %s is of version 8, which is for commands of processes; leave '
                        'command_id out or use an id of version 4, 5 or 7', callers_id)
        WHEN command_type IS NULL OR command_type !~ '^[A-Za-z][A-Za-z0-9_.-]{0,99}$'
            THEN format('INVALID_NAME: ''%s'' is no command type: a letter first, then letters, digits, _ . -, '
                        '100 at most', left(command_type, 80))
        WHEN data IS NULL OR jsonb_typeof(data) <> 'object'
            THEN format('INVALID_DATA: data must be a JSON object, not %s', coalesce(jsonb_typeof(data), 'null'))
        -- The text is what is carried: a few bytes of binary JSON can be kilobytes of it (1e100000).
        WHEN octet_length(data::text) > payload_limit
            THEN format('PAYLOAD_TOO_LARGE: data has %s bytes, the limit is %s', octet_length(data::text), payload_limit)
        WHEN headers IS NOT NULL AND (jsonb_typeof(headers) <> 'object' OR octet_length(headers::text) > 65536)
            THEN 'INVALID_DATA: headers must be a JSON object of at most 64 KiB'
        WHEN max_attempts < 1 OR max_attempts > 1000
            THEN format('INVALID_DATA: max_attempts must be 1 to 1000, not %s', max_attempts)
        WHEN NOT delay_seconds >= 0 OR delay_seconds > 31536000
            THEN format('INVALID_DATA: delay_seconds must be 0 to 31536000 (a year), not %s', delay_seconds)
        WHEN timeout_seconds < 1 OR timeout_seconds > 86400
            THEN format('INVALID_DATA: timeout_seconds must be 1 to 86400 (a day), not %s', timeout_seconds)
    END
$$;

CREATE FUNCTION commandbus.refuse_problem(problem text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.refuse(split_part(problem, ': ', 1), substr(problem, strpos(problem, ': ') + 2),
                              'Correct the command and send it again; nothing was sent.');
END
$$;

-- Deeper than this the C side does not read (JSON_MAX_DEPTH): whoever would have to, could never go on.
CREATE FUNCTION commandbus.is_too_deep(payload jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_path_exists(payload, '$.**{33}')
$$;

-- The wire format of a command.
CREATE FUNCTION commandbus.command_message(domain text, command_type text, command_id uuid,
    correlation_id uuid, data jsonb, reply_to text)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('domain', domain, 'command_type', command_type, 'command_id', command_id,
                              'correlation_id', correlation_id, 'data', data, 'reply_to', reply_to)
$$;

-- Wakes a worker only if one sleeps: a NOTIFY in every commit would serialise all commits.
--
-- Newest first and without a sort, so by the index on time, whatever the planner thinks of a table that
-- it saw empty. By any other index, or by EXISTS, it would look at every dead row of a held snapshot.
CREATE FUNCTION commandbus.wake_sleepers(queue_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT s.expires_at FROM commandbus.sleeper s
        WHERE s.queue_name = wake_sleepers.queue_name AND s.expires_at > statement_timestamp()
        ORDER BY s.expires_at DESC LIMIT 1) IS NOT NULL THEN
        PERFORM pg_notify('commandbus_' || queue_name, '');
    END IF;
END
$$;

-- Locks a batch against closing while the caller adds to it.
CREATE FUNCTION commandbus.hold_batch(batch_id uuid, batch_type text, domain text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held commandbus.batch;
BEGIN
    SELECT * INTO held FROM commandbus.batch b WHERE b.batch_id = hold_batch.batch_id FOR SHARE;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('BATCH_NOT_FOUND', format('there is no batch %s', batch_id),
                                  'Create it first, or leave batch_id out; nothing was added.');
    ELSIF held.batch_type <> hold_batch.batch_type THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('batch %s holds %s', batch_id,
            CASE held.batch_type WHEN 'COMMAND' THEN 'commands' ELSE 'processes' END), 'Use a batch of the right kind; nothing was added.');
    ELSIF held.domain <> hold_batch.domain THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('batch %s is of domain ''%s''', batch_id, held.domain),
                                  'A batch has one domain: create another for this one; nothing was added.');
    ELSIF held.completed_at IS NOT NULL THEN
        PERFORM commandbus.refuse('BATCH_CLOSED', format('batch %s closed at %s', batch_id, held.completed_at),
                                  'Create a new batch for what comes now; nothing was added.');
    END IF;
END
$$;

CREATE FUNCTION commandbus.send(domain text, command_type text, data jsonb DEFAULT '{}', command_id uuid DEFAULT NULL,
    correlation_id uuid DEFAULT NULL, reply_to text DEFAULT NULL, max_attempts integer DEFAULT NULL,
    delay_seconds double precision DEFAULT 0, timeout_seconds integer DEFAULT NULL, batch_id uuid DEFAULT NULL,
    headers jsonb DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_sort = off SET enable_seqscan = off AS $$ -- for the sleepers: see wake_sleepers
#variable_conflict use_variable
DECLARE
    limits     record;
    problem    text;
    id         uuid := coalesce(command_id, commandbus.new_id());
    new_msg_id bigint;
BEGIN
    SELECT d.payload_limit,
           reply_to IS NULL OR EXISTS (SELECT FROM commandbus.reply_queue r
                                       WHERE r.queue_name = reply_to AND NOT r.of_processes) AS may_reply_there,
           (SELECT s.expires_at FROM commandbus.sleeper s
            WHERE s.queue_name = send.domain || '__commands' AND s.expires_at > statement_timestamp()
            ORDER BY s.expires_at DESC LIMIT 1) IS NOT NULL AS somebody_sleeps
    INTO limits FROM commandbus.domain d WHERE d.domain = send.domain;
    IF NOT FOUND THEN
        PERFORM commandbus.known_domain(domain);
    END IF;
    IF NOT limits.may_reply_there THEN
        PERFORM commandbus.check_reply_queue(reply_to);
    END IF;
    problem := commandbus.command_problem(command_type, data, max_attempts, coalesce(delay_seconds, 0),
                                          timeout_seconds, headers, limits.payload_limit, command_id);
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse_problem(problem);
    END IF;
    IF batch_id IS NOT NULL THEN
        PERFORM commandbus.hold_batch(batch_id, 'COMMAND', domain);
    END IF;
    correlation_id := coalesce(correlation_id, gen_random_uuid());

    -- Every column is named: the server parses the defaults of those that are not, at each call.
    EXECUTE format('INSERT INTO pgmq.%I (read_ct, enqueued_at, last_read_at, vt, message, headers) '
                   'VALUES (0, statement_timestamp(), NULL, $1, $2, $3) RETURNING msg_id', 'q_' || domain || '__commands')
    INTO new_msg_id
    USING statement_timestamp() + make_interval(secs => coalesce(delay_seconds, 0)),
          commandbus.command_message(domain, command_type, id, correlation_id, data, reply_to), headers;

    WITH sent AS (
        INSERT INTO commandbus.command_metadata (command_id, correlation_id, batch_id, msg_id, created_at, updated_at,
            max_attempts, timeout_seconds, domain, command_type, status, reply_to, headers, data)
        VALUES (id, correlation_id, batch_id, new_msg_id, statement_timestamp(), statement_timestamp(),
            max_attempts, timeout_seconds, domain, command_type, 'PENDING', reply_to, headers, data)
        ON CONFLICT DO NOTHING
        RETURNING command_metadata.command_id -- the column: the argument is NULL when the id is a new one
    )
    INSERT INTO commandbus.audit (command_id, domain, event_type, db_user)
    SELECT sent.command_id, domain, 'SENT', session_user FROM sent;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('DUPLICATE_COMMAND', format('command %s was already sent to domain ''%s''', id, domain),
                                  'It is there already: commandbus command show ' || id || '. Nothing was sent again.');
    END IF;

    IF limits.somebody_sleeps AND coalesce(delay_seconds, 0) = 0 THEN
        PERFORM pg_notify('commandbus_' || domain || '__commands', '');
    END IF;
    RETURN id;
END
$$;
