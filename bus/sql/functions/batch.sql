-- Batches: a name for many commands or processes, and one message when the last of them is done.

-- The new batch's row, or the refusal.
CREATE OR REPLACE FUNCTION commandbus.open_batch(id uuid, batch_type text, domain text, name text,
    custom_data jsonb, reply_to text, adding text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.check_reply_queue(open_batch.reply_to);
    INSERT INTO commandbus.batch (batch_id, domain, name, batch_type, status, custom_data, reply_to)
    VALUES (id, open_batch.domain, open_batch.name, open_batch.batch_type, 'PENDING',
            open_batch.custom_data, open_batch.reply_to)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('batch %s exists already', id),
            format('Add to it with %s(batch_id => …), or leave batch_id out; nothing was created.',
                   adding));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION commandbus.refuse_empty_batch(member text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.refuse('BATCH_EMPTY', format('a batch needs at least one %s', member),
                              'An empty batch could never complete; nothing was created.');
END
$$;

CREATE OR REPLACE FUNCTION commandbus.create_batch(domain text, name text DEFAULT NULL,
    commands jsonb DEFAULT NULL, custom_data jsonb DEFAULT NULL, reply_to text DEFAULT NULL,
    batch_id uuid DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known commandbus.domain := commandbus.known_domain(create_batch.domain);
    id    uuid := coalesce(create_batch.batch_id, commandbus.new_id());
BEGIN
    IF commands IS NULL OR commands = '[]' THEN
        PERFORM commandbus.refuse_empty_batch('command');
    ELSIF jsonb_typeof(commands) <> 'array'
          OR jsonb_path_exists(commands, 'strict $[*] ? (@.type() != "object")') THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'commands must be a JSON array of objects',
            'Each object has the arguments of commandbus.send as keys; nothing was created.');
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(commands) c
                  WHERE c ->> 'domain' <> create_batch.domain
                     OR (c ->> 'batch_id')::uuid <> id) THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'a command names another domain or batch than its batch',
            'Leave domain and batch_id out: they are the batch''s; nothing was created.');
    END IF;
    PERFORM commandbus.open_batch(id, 'COMMAND', known.domain, create_batch.name,
                                  create_batch.custom_data, create_batch.reply_to, 'send');
    PERFORM commandbus.send_many((
        SELECT jsonb_agg(c.command || jsonb_build_object('domain', known.domain, 'batch_id', id)
                         ORDER BY c.ord)
        FROM jsonb_array_elements(commands) WITH ORDINALITY c(command, ord)));
    RETURN id;
END
$$;

-- The same with the commands as arrays: see send_arrays.
CREATE OR REPLACE FUNCTION commandbus.create_batch_arrays(domain text, name text, custom_data jsonb,
    reply_to text, batch_id uuid, command_types text[], data jsonb[] DEFAULT NULL,
    command_ids uuid[] DEFAULT NULL, correlation_ids uuid[] DEFAULT NULL,
    reply_tos text[] DEFAULT NULL, max_attempts integer[] DEFAULT NULL,
    delay_seconds double precision[] DEFAULT NULL, timeout_seconds integer[] DEFAULT NULL,
    headers jsonb[] DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known commandbus.domain := commandbus.known_domain(create_batch_arrays.domain);
    id    uuid := coalesce(create_batch_arrays.batch_id, commandbus.new_id());
    n     integer := coalesce(cardinality(command_types), 0);
BEGIN
    IF n = 0 THEN
        PERFORM commandbus.refuse_empty_batch('command');
    END IF;
    PERFORM commandbus.open_batch(id, 'COMMAND', known.domain, name, custom_data, reply_to, 'send');
    PERFORM commandbus.send_arrays(array_fill(known.domain, ARRAY[n]), command_types, data,
        command_ids, correlation_ids, reply_tos, max_attempts, delay_seconds, timeout_seconds,
        array_fill(id, ARRAY[n]), headers);
    RETURN id;
END
$$;

-- True while a member is not done. From the last sent backwards: in a running batch that one is
-- open. By index whatever the statistics of an empty table said when the plan was made.
CREATE OR REPLACE FUNCTION commandbus.batch_has_open(batch_id uuid) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    PERFORM FROM commandbus.command_metadata c
    WHERE c.batch_id = batch_has_open.batch_id
      AND c.status IN ('PENDING', 'IN_PROGRESS', 'IN_TROUBLESHOOTING_QUEUE')
    ORDER BY c.msg_id DESC LIMIT 1;
    IF NOT FOUND THEN
        PERFORM FROM commandbus.process p
        WHERE p.batch_id = batch_has_open.batch_id AND p.completed_at IS NULL
        ORDER BY p.completed_at DESC LIMIT 1;
    END IF;
    RETURN FOUND;
END
$$;

-- Closes one batch if nothing of it is open. Callers have committed the outcomes they brought, so
-- of two that finish the last two members at the same moment at least one sees both.
CREATE OR REPLACE FUNCTION commandbus.close_batch(id uuid) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    closing commandbus.batch;
    counted record;
BEGIN
    -- An older snapshot than the lock could miss what was added meanwhile.
    IF current_setting('transaction_isolation') <> 'read committed'
       OR commandbus.batch_has_open(id) THEN
        RETURN false;
    END IF;
    -- Who holds it is closing it, or adding to it: then it is not done. Nobody waits here, for a
    -- settler must never wait for a sender's open transaction.
    SELECT * INTO closing FROM commandbus.batch b WHERE b.batch_id = id AND b.completed_at IS NULL
    FOR UPDATE SKIP LOCKED;
    -- Once more, in a statement that began after the lock: something may have been added.
    IF NOT FOUND OR commandbus.batch_has_open(id) THEN
        RETURN false;
    END IF;

    SELECT s.total, s.completed, s.failed, s.canceled,
           CASE WHEN s.failed + s.canceled = 0 THEN 'COMPLETED'
                ELSE 'COMPLETED_WITH_FAILURES' END AS status
    INTO counted FROM commandbus.batch_status s WHERE s.batch_id = id;
    UPDATE commandbus.batch b
    SET status = counted.status, total = counted.total, completed = counted.completed,
        failed = counted.failed, canceled = counted.canceled,
        started_at = coalesce(b.started_at, statement_timestamp()),
        completed_at = statement_timestamp()
    WHERE b.batch_id = id;
    INSERT INTO commandbus.audit (domain, event_type, details)
    VALUES (closing.domain, 'BATCH_COMPLETED',
            jsonb_build_object('batch_id', id, 'status', counted.status,
                               'total', counted.total, 'completed', counted.completed,
                               'failed', counted.failed, 'canceled', counted.canceled));
    IF closing.reply_to IS NOT NULL
       AND NOT commandbus.enqueue(closing.reply_to, ARRAY[jsonb_build_object(
               'batch_id', id, 'domain', closing.domain, 'status', counted.status,
               'total', counted.total, 'completed', counted.completed, 'failed', counted.failed,
               'canceled', counted.canceled)]) THEN
        INSERT INTO commandbus.audit (domain, event_type, details)
        VALUES (closing.domain, 'REPLY_UNDELIVERABLE',
                jsonb_build_object('reply_to', closing.reply_to, 'batch_id', id));
    END IF;
    RETURN true;
END
$$;

-- Closes what is done among the given batches, or among all open ones. Returns those it closed.
CREATE OR REPLACE FUNCTION commandbus.close_batches(batch_ids uuid[] DEFAULT NULL,
    max_batches integer DEFAULT 100)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one uuid;
BEGIN
    FOR one IN
        SELECT b.batch_id FROM commandbus.batch b
        WHERE b.completed_at IS NULL AND (batch_ids IS NULL OR b.batch_id = ANY (batch_ids))
          AND NOT commandbus.batch_has_open(b.batch_id)
        ORDER BY b.batch_id LIMIT max_batches
    LOOP
        IF commandbus.close_batch(one) THEN
            RETURN NEXT one;
        END IF;
    END LOOP;
END
$$;

-- Counts follow the rows until the batch closes; from then on the frozen ones count, so that
-- retention of members does not change them. A process counts in the words of commands: one that
-- the business or an operator undid has not succeeded.
CREATE OR REPLACE VIEW commandbus.batch_status AS
SELECT b.batch_id, b.domain, b.name, b.batch_type, b.status, b.custom_data, b.reply_to,
       coalesce(b.total, c.total) AS total,
       coalesce(b.completed, c.completed) AS completed,
       coalesce(b.failed, c.failed) AS failed,
       coalesce(b.canceled, c.canceled) AS canceled,
       CASE WHEN b.completed_at IS NULL THEN c.in_tsq ELSE 0 END AS in_troubleshooting,
       CASE WHEN b.completed_at IS NULL THEN c.in_progress ELSE 0 END AS in_progress,
       CASE WHEN b.completed_at IS NULL THEN c.pending ELSE 0 END AS pending,
       b.created_at, b.started_at, b.completed_at
FROM commandbus.batch b
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS total,
           (count(*) FILTER (WHERE m.status = 'COMPLETED'))::integer AS completed,
           (count(*) FILTER (WHERE m.status = 'FAILED'))::integer AS failed,
           (count(*) FILTER (WHERE m.status = 'CANCELED'))::integer AS canceled,
           (count(*) FILTER (WHERE m.status = 'IN_TROUBLESHOOTING_QUEUE'))::integer AS in_tsq,
           (count(*) FILTER (WHERE m.status = 'IN_PROGRESS'))::integer AS in_progress,
           (count(*) FILTER (WHERE m.status = 'PENDING'))::integer AS pending
    FROM (
        SELECT m.status FROM commandbus.command_metadata m
        WHERE m.batch_id = b.batch_id AND b.completed_at IS NULL AND b.batch_type = 'COMMAND'
        UNION ALL
        SELECT CASE p.status WHEN 'COMPLETED' THEN 'COMPLETED'::commandbus.command_status
                             WHEN 'FAILED' THEN 'FAILED'
                             WHEN 'COMPENSATED' THEN 'FAILED'
                             WHEN 'CANCELED' THEN 'CANCELED'
                             WHEN 'WAITING_FOR_TSQ' THEN 'IN_TROUBLESHOOTING_QUEUE'
                             WHEN 'PENDING' THEN 'PENDING'
                             ELSE 'IN_PROGRESS' END
        FROM commandbus.process p
        WHERE p.batch_id = b.batch_id AND b.completed_at IS NULL AND b.batch_type = 'PROCESS'
    ) m
) c;
