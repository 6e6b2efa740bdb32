-- Many commands in one call: all of them or none.

-- How a command looks in send_many, create_batch and files of JSON lines: send's arguments.
CREATE TYPE commandbus.new_command AS (
    domain text, command_type text, data jsonb, command_id uuid, correlation_id uuid, reply_to text,
    max_attempts integer, delay_seconds double precision, timeout_seconds integer, batch_id uuid, headers jsonb);

-- Sends the commands of one domain; send_many has checked what they share.
CREATE FUNCTION commandbus.put_commands(domain text, commands jsonb, payload_limit integer) RETURNS SETOF uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := put_commands.domain || '__commands';
    asked      bigint;
    sent       bigint;
    problem    text;
    due_now    boolean;
BEGIN
    SELECT count(*), min(format('%s (command %s of the call)', p.problem, i.ord)) FILTER (WHERE p.problem IS NOT NULL),
           bool_or(coalesce(i.delay_seconds, 0) = 0)
    INTO asked, problem, due_now
    FROM ROWS FROM (jsonb_populate_recordset(NULL::commandbus.new_command, commands)) WITH ORDINALITY
         AS i(domain, command_type, data, command_id, correlation_id, reply_to, max_attempts, delay_seconds,
              timeout_seconds, batch_id, headers, ord)
    CROSS JOIN LATERAL (SELECT commandbus.command_problem(i.command_type, coalesce(i.data, '{}'), i.max_attempts,
        coalesce(i.delay_seconds, 0), i.timeout_seconds, i.headers, payload_limit)) AS p(problem)
    WHERE i.domain = put_commands.domain;
    IF problem IS NOT NULL THEN
        PERFORM commandbus.refuse_problem(problem);
    END IF;

    RETURN QUERY EXECUTE format($sql$
        WITH item AS MATERIALIZED (
            SELECT nextval(%2$L) AS msg_id, coalesce(i.command_id, commandbus.new_id()) AS command_id,
                   coalesce(i.correlation_id, gen_random_uuid()) AS correlation_id, i.command_type,
                   coalesce(i.data, '{}') AS data, i.reply_to, i.max_attempts, i.timeout_seconds, i.batch_id, i.headers,
                   statement_timestamp() + make_interval(secs => coalesce(i.delay_seconds, 0)) AS vt
            FROM jsonb_populate_recordset(NULL::commandbus.new_command, $2) i
            WHERE i.domain = $1
        ), message AS (
            INSERT INTO pgmq.%1$I (msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers)
            OVERRIDING SYSTEM VALUE
            SELECT i.msg_id, 0, statement_timestamp(), NULL, i.vt, commandbus.command_message($1, i.command_type,
                   i.command_id, i.correlation_id, i.data, i.reply_to), i.headers
            FROM item i
        ), command AS (
            INSERT INTO commandbus.command_metadata (command_id, correlation_id, batch_id, msg_id, created_at,
                updated_at, max_attempts, timeout_seconds, domain, command_type, status, reply_to, headers, data)
            SELECT i.command_id, i.correlation_id, i.batch_id, i.msg_id, statement_timestamp(), statement_timestamp(),
                   i.max_attempts, i.timeout_seconds, $1, i.command_type, 'PENDING', i.reply_to, i.headers, i.data
            FROM item i
            ON CONFLICT DO NOTHING
            RETURNING command_id, msg_id
        ), audited AS (
            INSERT INTO commandbus.audit (command_id, domain, event_type, db_user)
            SELECT c.command_id, $1, 'SENT', session_user FROM command c
        )
        SELECT c.command_id FROM command c
        $sql$, 'q_' || queue_name, format('pgmq.%I', 'q_' || queue_name || '_msg_id_seq'))
    USING put_commands.domain, commands;

    GET DIAGNOSTICS sent = ROW_COUNT;
    IF sent < asked THEN
        PERFORM commandbus.refuse('DUPLICATE_COMMAND',
            format('%s of the commands for domain ''%s'' were already sent or stand twice in the call: %s', asked - sent,
                   put_commands.domain, commandbus.name_duplicates(put_commands.domain, commands)),
            'Leave them out and send the rest again; nothing of this call was sent.');
    END IF;
    IF due_now THEN
        PERFORM commandbus.wake_sleepers(queue_name);
    END IF;
END
$$;

-- The first few ids that stand twice in the call, or are in the table already. Called before the
-- refusal undoes the call, so the rows it just wrote are told apart by their transaction.
CREATE FUNCTION commandbus.name_duplicates(domain text, commands jsonb) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(d.command_id::text, ', '), 'none')
    FROM (
        SELECT i.command_id
        FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) i
        WHERE i.domain = name_duplicates.domain AND i.command_id IS NOT NULL
        GROUP BY i.command_id
        HAVING count(*) > 1 OR EXISTS (
            SELECT FROM commandbus.command_metadata c
            WHERE c.command_id = i.command_id AND c.domain = name_duplicates.domain
              AND c.xmin::text::bigint <> (pg_current_xact_id()::text::numeric % 4294967296)::bigint)
        ORDER BY i.command_id LIMIT 3
    ) d
$$;

CREATE FUNCTION commandbus.send_many(commands jsonb) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    shared    record;
    known     commandbus.domain;
    n_domains integer;
BEGIN
    IF commands IS NULL OR jsonb_typeof(commands) <> 'array' OR jsonb_path_exists(commands, '$[*] ? (@.type() != "object")') THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'commands must be a JSON array of objects',
            'Each object has the arguments of commandbus.send as keys; nothing was sent.');
    END IF;

    -- Batches first, in order: the lock order everywhere is batch before what is added to it.
    FOR shared IN SELECT DISTINCT i.batch_id FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) i
                  WHERE i.batch_id IS NOT NULL ORDER BY 1 LOOP
        PERFORM commandbus.hold_batch(shared.batch_id, 'COMMAND');
    END LOOP;
    FOR shared IN SELECT DISTINCT i.reply_to FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) i
                  WHERE i.reply_to IS NOT NULL ORDER BY 1 LOOP
        PERFORM commandbus.check_reply_queue(shared.reply_to);
    END LOOP;

    SELECT count(DISTINCT coalesce(i.domain, '')) INTO n_domains
    FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) i;
    IF n_domains > 1 THEN
        -- Ids come back in the order of the call, also when domains are mixed.
        SELECT jsonb_agg(CASE WHEN c.command ->> 'command_id' IS NULL
                              THEN jsonb_set(c.command, '{command_id}', to_jsonb(commandbus.new_id())) ELSE c.command END
                         ORDER BY c.ord)
        INTO commands FROM jsonb_array_elements(commands) WITH ORDINALITY c(command, ord);
    END IF;
    FOR shared IN SELECT DISTINCT coalesce(i.domain, '') AS domain
                  FROM jsonb_populate_recordset(NULL::commandbus.new_command, commands) i ORDER BY 1 LOOP
        known := commandbus.known_domain(shared.domain);
        IF n_domains = 1 THEN
            RETURN QUERY SELECT commandbus.put_commands(known.domain, commands, known.payload_limit);
        ELSE
            PERFORM commandbus.put_commands(known.domain, commands, known.payload_limit);
        END IF;
    END LOOP;
    IF n_domains > 1 THEN
        RETURN QUERY SELECT (c.command ->> 'command_id')::uuid
                     FROM jsonb_array_elements(commands) WITH ORDINALITY c(command, ord) ORDER BY c.ord;
    END IF;
END
$$;
