-- Sending: row, message, audit and wake-up in one transaction, the caller's own if it has one.

-- NULL when a command may be sent as it is, else a refusal as 'CODE: text'. One expression, so
-- that it costs nothing per row when inlined into a set.
CREATE OR REPLACE FUNCTION commandbus.command_problem(command_type text, data jsonb,
    max_attempts integer, delay_seconds double precision, timeout_seconds integer, headers jsonb,
    payload_limit integer, callers_id uuid DEFAULT NULL)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN commandbus.is_derived_id(callers_id)
            THEN format('INVALID_DATA: command_id %s is of version 8, which is for commands of '
                        'processes; leave command_id out or use an id of version 4, 5 or 7',
                        callers_id)
        -- Not {0,99} in the pattern: a state for each of them is set up at each match, 5 µs.
        WHEN command_type IS NULL OR length(command_type) > 100
             OR command_type !~ '^[A-Za-z][A-Za-z0-9_.-]*$'
            THEN format('INVALID_NAME: invalid command type ''%s'': a letter first, then letters, '
                        'digits, _ . -, 100 at most', left(command_type, 80))
        WHEN data IS NULL OR jsonb_typeof(data) <> 'object'
            THEN format('INVALID_DATA: data must be a JSON object, not %s',
                        coalesce(jsonb_typeof(data), 'null'))
        -- The text is what is carried: a few bytes of binary JSON can be kilobytes of it
        -- (1e100000).
        WHEN octet_length(data::text) > payload_limit
            THEN format('PAYLOAD_TOO_LARGE: data has %s bytes, the limit is %s',
                        octet_length(data::text), payload_limit)
        WHEN headers IS NOT NULL AND (jsonb_typeof(headers) <> 'object'
                                      OR octet_length(headers::text) > 65536)
            THEN 'INVALID_DATA: headers must be a JSON object of at most 64 KiB'
        WHEN max_attempts < 1 OR max_attempts > 1000
            THEN format('INVALID_DATA: max_attempts must be 1 to 1000, not %s', max_attempts)
        WHEN NOT delay_seconds >= 0 OR delay_seconds > 31536000
            THEN format('INVALID_DATA: delay_seconds must be 0 to 31536000 (a year), not %s',
                        delay_seconds)
        WHEN timeout_seconds < 1 OR timeout_seconds > 86400
            THEN format('INVALID_DATA: timeout_seconds must be 1 to 86400 (a day), not %s',
                        timeout_seconds)
    END
$$;

CREATE OR REPLACE FUNCTION commandbus.refuse_problem(problem text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.refuse(split_part(problem, ': ', 1),
                              substr(problem, strpos(problem, ': ') + 2),
                              'Correct the command and send it again; nothing was sent.');
END
$$;

-- Deeper than this the C side does not read (JSON_MAX_DEPTH): whoever would have to, could never go
-- on.
CREATE OR REPLACE FUNCTION commandbus.is_too_deep(payload jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_path_exists(payload, '$.**{33}')
$$;

-- The wire format of a command. jsonb_build_object would look up the type of each argument again
-- for each row.
CREATE OR REPLACE FUNCTION commandbus.command_message(domain text, command_type text,
    command_id uuid, correlation_id uuid, data jsonb, reply_to text)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_set(
        jsonb_object('{domain,command_type,command_id,correlation_id,reply_to}'::text[],
                     ARRAY[domain, command_type, command_id::text, correlation_id::text, reply_to]),
        '{data}', data)
$$;

-- Locks a batch against closing while the caller adds to it.
CREATE OR REPLACE FUNCTION commandbus.hold_batch(batch_id uuid, batch_type text, domain text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held commandbus.batch;
BEGIN
    SELECT * INTO held FROM commandbus.batch b WHERE b.batch_id = hold_batch.batch_id FOR SHARE;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('BATCH_NOT_FOUND', format('there is no batch %s', batch_id),
                                  'Create it first, or leave batch_id out; nothing was added.');
    ELSIF held.batch_type <> hold_batch.batch_type THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('batch %s holds %s', batch_id,
                   CASE held.batch_type WHEN 'COMMAND' THEN 'commands' ELSE 'processes' END),
            'Use a batch of the right kind; nothing was added.');
    ELSIF held.domain <> hold_batch.domain THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('batch %s is of domain ''%s''', batch_id, held.domain),
            'A batch has one domain: create another for this one; nothing was added.');
    ELSIF held.completed_at IS NOT NULL THEN
        PERFORM commandbus.refuse('BATCH_CLOSED',
                                  format('batch %s closed at %s', batch_id, held.completed_at),
                                  'Create a new batch for what comes now; nothing was added.');
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION commandbus.send(domain text, command_type text, data jsonb DEFAULT '{}',
    command_id uuid DEFAULT NULL, correlation_id uuid DEFAULT NULL, reply_to text DEFAULT NULL,
    max_attempts integer DEFAULT NULL, delay_seconds double precision DEFAULT 0,
    timeout_seconds integer DEFAULT NULL, batch_id uuid DEFAULT NULL, headers jsonb DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_sort = off SET enable_seqscan = off AS $$ -- for the sleepers: see wake
#variable_conflict use_variable
DECLARE
    limits     record;
    problem    text;
    id         uuid := coalesce(command_id, commandbus.new_id());
    new_msg_id bigint;
BEGIN
    SELECT d.payload_limit,
           reply_to IS NULL OR EXISTS (SELECT FROM commandbus.reply_queue r
                                       WHERE r.queue_name = reply_to
                                         AND NOT r.of_processes) AS may_reply_there,
           (SELECT left(s.worker, 1000) FROM commandbus.sleeper s
            WHERE s.queue_name = send.domain || '__commands'
              AND s.expires_at > statement_timestamp()
            ORDER BY s.expires_at DESC LIMIT 1) AS sleeper
    INTO limits FROM commandbus.domain d WHERE d.domain = send.domain;
    IF NOT FOUND THEN
        PERFORM commandbus.known_domain(domain);
    END IF;
    IF NOT limits.may_reply_there THEN
        PERFORM commandbus.check_reply_queue(reply_to);
    END IF;
    problem := commandbus.command_problem(command_type, data, max_attempts,
                                          coalesce(delay_seconds, 0), timeout_seconds, headers,
                                          limits.payload_limit, command_id);
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse_problem(problem);
    END IF;
    IF batch_id IS NOT NULL THEN
        PERFORM commandbus.hold_batch(batch_id, 'COMMAND', domain);
    END IF;
    correlation_id := coalesce(correlation_id, gen_random_uuid());

    new_msg_id := commandbus.put_one_into(domain || '__commands',
        commandbus.command_message(domain, command_type, id, correlation_id, data, reply_to),
        statement_timestamp() + make_interval(secs => coalesce(delay_seconds, 0)), headers);
    WITH sent AS (
        INSERT INTO commandbus.command_metadata (command_id, correlation_id, batch_id, msg_id,
            created_at, updated_at, max_attempts, timeout_seconds, domain, command_type, status,
            reply_to, headers, data)
        VALUES (id, correlation_id, batch_id, new_msg_id, statement_timestamp(),
            statement_timestamp(), max_attempts, timeout_seconds, domain, command_type, 'PENDING',
            reply_to, headers, data)
        ON CONFLICT DO NOTHING
        -- The column: the argument is NULL when the id is a new one.
        RETURNING command_metadata.command_id
    )
    INSERT INTO commandbus.audit (command_id, domain, event_type, db_user)
    SELECT sent.command_id, domain, 'SENT', session_user FROM sent;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('DUPLICATE_COMMAND',
            format('command %s was already sent to domain ''%s''', id, domain),
            'It is there already: commandbus command show ' || id
            || '. Nothing was sent again.');
    END IF;

    IF limits.sleeper IS NOT NULL AND coalesce(delay_seconds, 0) = 0 THEN
        PERFORM pg_notify('commandbus_' || domain || '__commands', limits.sleeper);
    END IF;
    RETURN id;
END
$$;

-- The first few ids that stand twice, or are in the table already.
CREATE OR REPLACE FUNCTION commandbus.name_duplicates(domain text, command_ids uuid[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(d.id::text, ', ')
    FROM (
        SELECT i.id FROM unnest(command_ids) i(id)
        GROUP BY i.id
        HAVING count(*) > 1 OR EXISTS (SELECT FROM commandbus.command_metadata c
                                       WHERE c.command_id = i.id
                                         AND c.domain = name_duplicates.domain)
        ORDER BY i.id LIMIT 3
    ) d
$$;

-- Writes the commands of one domain, which the caller has checked. process_ids: of those that
-- processes send.
CREATE OR REPLACE FUNCTION commandbus.put_commands(domain text, command_ids uuid[],
    correlation_ids uuid[], command_types text[], data jsonb[], reply_tos text[],
    max_attempts integer[], vts timestamptz[], timeouts integer[], batch_ids uuid[],
    headers jsonb[], process_ids uuid[] DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue_name text := put_commands.domain || '__commands';
    msg_ids    bigint[];
    violated   text;
BEGIN
    msg_ids := commandbus.put_into(queue_name,
        ARRAY(SELECT commandbus.command_message(put_commands.domain, i.command_type, i.command_id,
                                                i.correlation_id, i.data, i.reply_to)
              FROM unnest(command_ids, correlation_ids, command_types, put_commands.data, reply_tos)
                  WITH ORDINALITY i(command_id, correlation_id, command_type, data, reply_to, ord)
              ORDER BY i.ord),
        vts, put_commands.headers);
    INSERT INTO commandbus.command_metadata (command_id, correlation_id, batch_id, process_id,
        msg_id, created_at, updated_at, max_attempts, timeout_seconds, domain, command_type, status,
        reply_to, headers, data)
    SELECT i.command_id, i.correlation_id, i.batch_id, i.process_id, i.msg_id,
           statement_timestamp(), statement_timestamp(), i.max_attempts, i.timeout,
           put_commands.domain, i.command_type, 'PENDING', i.reply_to, i.headers, i.data
    FROM unnest(msg_ids, command_ids, correlation_ids, command_types, put_commands.data, reply_tos,
                put_commands.max_attempts, timeouts, batch_ids, put_commands.headers, process_ids)
        i(msg_id, command_id, correlation_id, command_type, data, reply_to, max_attempts, timeout,
          batch_id, headers, process_id);
    INSERT INTO commandbus.audit (command_id, domain, event_type, db_user)
    SELECT i, put_commands.domain, 'SENT', session_user FROM unnest(command_ids) i;

    IF statement_timestamp() >= ANY (vts) THEN
        PERFORM commandbus.wake(queue_name, cardinality(command_ids));
    END IF;
EXCEPTION
    -- Cheaper than ON CONFLICT for each row: in nearly every call there is none.
    WHEN unique_violation THEN
        GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
        IF violated <> 'command_metadata_key' THEN
            RAISE;
        END IF;
        PERFORM commandbus.refuse('DUPLICATE_COMMAND',
            format('commands for domain ''%s'' were already sent or stand twice in the call: %s',
                   put_commands.domain,
                   commandbus.name_duplicates(put_commands.domain, command_ids)),
            'Leave them out and send the rest again; nothing of this call was sent.');
END
$$;

-- Locks the batches and checks the reply queues that the commands name.
CREATE OR REPLACE FUNCTION commandbus.check_shared(domain text, batch_ids uuid[], reply_tos text[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.hold_batch(b.id, 'COMMAND', check_shared.domain)
    FROM (SELECT DISTINCT id FROM unnest(batch_ids) id WHERE id IS NOT NULL ORDER BY id) b;
    PERFORM commandbus.check_reply_queue(r.name)
    FROM (SELECT DISTINCT name FROM unnest(reply_tos) name) r;
END
$$;

-- Sends what the arrays say, the i-th element of each being of the i-th command, and answers the
-- ids in that order. NULL for an array that has nothing to say of any command. Whatever sends many
-- commands ends here: the C library with its arrays as they are, others by send_many.
CREATE OR REPLACE FUNCTION commandbus.send_arrays(domains text[], command_types text[],
    data jsonb[] DEFAULT NULL, command_ids uuid[] DEFAULT NULL, correlation_ids uuid[] DEFAULT NULL,
    reply_tos text[] DEFAULT NULL, max_attempts integer[] DEFAULT NULL,
    delay_seconds double precision[] DEFAULT NULL, timeout_seconds integer[] DEFAULT NULL,
    batch_ids uuid[] DEFAULT NULL, headers jsonb[] DEFAULT NULL)
RETURNS uuid[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    total integer := coalesce(cardinality(domains), 0);
    names text[] := ARRAY(SELECT DISTINCT d FROM unnest(domains) d ORDER BY 1);
    known commandbus.domain;
    c     record; -- the commands of one domain, column by column
    ords  bigint[] := '{}';
    ids   uuid[] := '{}';
BEGIN
    IF total <> ANY (ARRAY[coalesce(cardinality(command_types), 0), cardinality(send_arrays.data),
                           cardinality(command_ids), cardinality(correlation_ids),
                           cardinality(reply_tos), cardinality(send_arrays.max_attempts),
                           cardinality(send_arrays.delay_seconds),
                           cardinality(send_arrays.timeout_seconds), cardinality(batch_ids),
                           cardinality(send_arrays.headers)]) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'the arrays have different lengths',
            'Each has one element for each command, or is NULL; nothing was sent.');
    END IF;

    FOR i IN 1 .. cardinality(names) LOOP
        known := commandbus.known_domain(names[i]);
        -- Checked in the same pass that picks them out.
        SELECT array_agg(p.ord) AS ord, array_agg(p.command_id) AS command_id,
               array_agg(p.correlation_id) AS correlation_id,
               array_agg(p.command_type) AS command_type, array_agg(p.data) AS data,
               array_agg(p.reply_to) AS reply_to, array_agg(p.max_attempts) AS max_attempts,
               array_agg(statement_timestamp()
                         + make_interval(secs => least(greatest(p.delay_seconds, 0),
                                                       31536000))) AS vt,
               array_agg(p.timeout_seconds) AS timeout_seconds,
               array_agg(p.batch_id) AS batch_id, array_agg(p.headers) AS headers,
               min(format('%s (command %s of the call)', p.problem, p.ord))
                   FILTER (WHERE p.problem IS NOT NULL) AS problem
        INTO c
        FROM (
            SELECT n.ord, n.command_type, coalesce(n.data, '{}') AS data, n.reply_to,
                   n.max_attempts, n.timeout_seconds, n.batch_id, n.headers,
                   coalesce(n.delay_seconds, 0) AS delay_seconds,
                   coalesce(n.command_id, commandbus.new_id()) AS command_id,
                   coalesce(n.correlation_id, gen_random_uuid()) AS correlation_id,
                   commandbus.command_problem(n.command_type, coalesce(n.data, '{}'),
                       n.max_attempts, coalesce(n.delay_seconds, 0), n.timeout_seconds,
                       n.headers, known.payload_limit, n.command_id) AS problem
            FROM unnest(domains, command_types, send_arrays.data, command_ids, correlation_ids,
                        reply_tos, send_arrays.max_attempts, send_arrays.delay_seconds,
                        send_arrays.timeout_seconds, batch_ids, send_arrays.headers)
                WITH ORDINALITY n(domain, command_type, data, command_id, correlation_id, reply_to,
                                  max_attempts, delay_seconds, timeout_seconds, batch_id, headers,
                                  ord)
            WHERE n.domain = known.domain
        ) p;
        IF c.problem IS NOT NULL THEN
            PERFORM commandbus.refuse_problem(c.problem);
        END IF;
        PERFORM commandbus.check_shared(known.domain, c.batch_id, c.reply_to);
        PERFORM commandbus.put_commands(known.domain, c.command_id, c.correlation_id,
            c.command_type, c.data, c.reply_to, c.max_attempts, c.vt, c.timeout_seconds, c.batch_id,
            c.headers);
        ords := ords || c.ord;
        ids := ids || c.command_id;
    END LOOP;

    -- In the order of the call, also when domains are mixed.
    RETURN ARRAY(SELECT r.id FROM unnest(ords, ids) r(ord, id) ORDER BY r.ord);
END
$$;

CREATE OR REPLACE FUNCTION commandbus.send_many(commands jsonb) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    c record; -- the commands, column by column
BEGIN
    IF commands IS NULL OR jsonb_typeof(commands) <> 'array'
       OR jsonb_path_exists(commands, 'strict $[*] ? (@.type() != "object")') THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'commands must be a JSON array of objects',
            'Each object has the arguments of commandbus.send as keys; nothing was sent.');
    END IF;

    BEGIN
        SELECT array_agg(n.domain) AS domain, array_agg(n.command_type) AS command_type,
               array_agg(n.data) AS data, array_agg(n.command_id) AS command_id,
               array_agg(n.correlation_id) AS correlation_id, array_agg(n.reply_to) AS reply_to,
               array_agg(n.max_attempts) AS max_attempts,
               array_agg(n.delay_seconds) AS delay_seconds,
               array_agg(n.timeout_seconds) AS timeout_seconds, array_agg(n.batch_id) AS batch_id,
               array_agg(n.headers) AS headers
        INTO c FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) n;
    EXCEPTION
        WHEN data_exception THEN
            PERFORM commandbus.refuse('INVALID_DATA', 'a command has a value of the wrong type',
                'Ids are UUIDs, max_attempts and timeout_seconds integers, delay_seconds a '
                'number; nothing was sent.');
    END;
    RETURN QUERY SELECT unnest(commandbus.send_arrays(c.domain, c.command_type, c.data,
        c.command_id, c.correlation_id, c.reply_to, c.max_attempts, c.delay_seconds,
        c.timeout_seconds, c.batch_id, c.headers));
END
$$;
