-- Processes from outside: which types there are, starting one, bringing it a response.

-- The type that a caller named, or the refusal for one that no worker has registered.
CREATE OR REPLACE FUNCTION commandbus.known_process_type(name text) RETURNS commandbus.process_type
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_row commandbus.process_type;
BEGIN
    SELECT * INTO found_row FROM commandbus.process_type t WHERE t.process_type = name;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('UNKNOWN_PROCESS_TYPE',
            format('process type ''%s'' is not registered', left(name, 80)),
            'Check the spelling, or start a worker whose handler sets have it: it registers its '
            'types.');
    END IF;
    RETURN found_row;
END
$$;

CREATE OR REPLACE FUNCTION commandbus.check_payload(what text, payload jsonb, payload_limit integer)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The text is what is carried: a few bytes of binary JSON can be kilobytes of it (1e100000).
    IF octet_length(payload::text) > payload_limit THEN
        PERFORM commandbus.refuse('PAYLOAD_TOO_LARGE',
            format('%s has %s bytes, the limit is %s', what, octet_length(payload::text),
                   payload_limit),
            'Keep large things elsewhere and name them; nothing changed.');
    END IF;
    IF commandbus.is_too_deep(payload) THEN
        PERFORM commandbus.refuse('INVALID_DATA',
                                  format('%s is nested deeper than 32 levels', what),
                                  'Flatten it; nothing changed.');
    END IF;
END
$$;

-- Safe to repeat and to run from many workers at once; the highest version of all of them stays.
-- Programs that do not agree on what a response of one version may hold are not let in one after
-- the other: whoever started last would decide what the others' processes are told.
CREATE OR REPLACE FUNCTION commandbus.register_process_type(process_type text, domain text,
    version integer, execution_model text DEFAULT 'PROCESS_STEP', reply_queue text DEFAULT NULL,
    redact text[] DEFAULT '{}', responses jsonb DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue text := coalesce(register_process_type.reply_queue,
                           register_process_type.domain || '__replies');
    hidden text[] := coalesce(register_process_type.redact, '{}');
    known commandbus.process_type;
    other text;
BEGIN
    IF register_process_type.process_type IS NULL
       OR register_process_type.process_type !~ '^[A-Za-z][A-Za-z0-9_.-]{0,99}$' THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('invalid process type ''%s''', left(register_process_type.process_type, 80)),
            'A letter first, then letters, digits, _ . -, 100 at most; nothing was registered.');
    ELSIF (register_process_type.version > 0
           AND register_process_type.execution_model IN ('PROCESS_STEP', 'STEP_BASED'))
          IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'a process type has a version from 1 on and the execution model PROCESS_STEP or '
            'STEP_BASED', 'Correct the type; nothing was registered.');
    END IF;
    PERFORM commandbus.register_domain(register_process_type.domain,
                                       register_process_type.reply_queue);

    SELECT * INTO known FROM commandbus.process_type t
    WHERE t.process_type = register_process_type.process_type;
    -- Nearly always all is there, and nothing is written.
    IF NOT FOUND OR known.version < register_process_type.version OR known.reply_queue <> queue
       OR (known.version = register_process_type.version AND NOT hidden <@ known.redact)
       OR (known.version = register_process_type.version AND known.responses IS DISTINCT FROM
           coalesce(register_process_type.responses || known.responses,
                    register_process_type.responses, known.responses)) THEN
        INSERT INTO commandbus.process_type AS t (process_type, domain, execution_model, version,
                                                  reply_queue, redact, responses)
        VALUES (register_process_type.process_type, register_process_type.domain,
                register_process_type.execution_model::commandbus.execution_model,
                register_process_type.version, queue, hidden, register_process_type.responses)
        ON CONFLICT ON CONSTRAINT process_type_pkey DO UPDATE
        SET version = greatest(t.version, excluded.version), reply_queue = excluded.reply_queue,
            updated_at = now(),
            -- What is hidden is shown again only by a newer version, not by an older worker that
            -- starts.
            redact = CASE WHEN excluded.version > t.version THEN excluded.redact
                          WHEN excluded.version < t.version THEN t.redact
                          ELSE ARRAY(SELECT unnest(t.redact || excluded.redact) AS name
                                     GROUP BY name ORDER BY name) END,
            -- Likewise what it takes: while two workers of one version run, what either of them
            -- takes is kept.
            responses = CASE WHEN excluded.version > t.version THEN excluded.responses
                             WHEN excluded.version < t.version THEN t.responses
                             ELSE coalesce(excluded.responses || t.responses, excluded.responses,
                                           t.responses) END,
            former_queues = CASE WHEN t.reply_queue = excluded.reply_queue THEN t.former_queues
                                 ELSE array_append(array_remove(t.former_queues, t.reply_queue),
                                                   t.reply_queue) END
        WHERE t.domain = excluded.domain AND t.execution_model = excluded.execution_model;
        SELECT * INTO known FROM commandbus.process_type t
        WHERE t.process_type = register_process_type.process_type;
    END IF;
    IF known.domain <> register_process_type.domain
       OR known.execution_model::text <> register_process_type.execution_model THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process type ''%s'' is %s of domain ''%s'' already',
                   known.process_type, known.execution_model, known.domain),
            'A type has one domain and one execution model: choose another name; nothing was '
            'registered.');
    END IF;
    SELECT min(k) INTO other FROM jsonb_object_keys(register_process_type.responses) k
    WHERE known.version = register_process_type.version
      AND known.responses -> k <> register_process_type.responses -> k;
    IF other IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('version %s of process type ''%s'' has other fields of response %s already',
                   known.version, known.process_type, other),
            'Give the type that has changed a higher .version; nothing was registered.');
    END IF;
    -- From now on send() takes it as reply_to from nobody else. What was sent with it before was
    -- sent by no process: those replies are dead letters.
    UPDATE commandbus.reply_queue r SET of_processes = true
    WHERE r.queue_name = queue AND NOT r.of_processes;
END
$$;

-- With leased_by the caller itself runs it: no worker sees it before that lease is over.
CREATE OR REPLACE FUNCTION commandbus.start_process(process_type text, state jsonb,
    process_id uuid DEFAULT NULL, deadline timestamptz DEFAULT NULL, batch_id uuid DEFAULT NULL,
    leased_by text DEFAULT NULL, lease_seconds double precision DEFAULT 30)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known  commandbus.process_type := commandbus.known_process_type(start_process.process_type);
    id     uuid := coalesce(start_process.process_id, commandbus.new_id());
    moment timestamptz := commandbus.now();
    lease  interval;
BEGIN
    IF state IS NULL OR jsonb_typeof(state) <> 'object' THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            format('state must be a JSON object, not %s', coalesce(jsonb_typeof(state), 'null')),
            'Correct the state; nothing was started.');
    ELSIF NOT isfinite(deadline) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a deadline is a moment, not infinity',
                                  'Leave it out for none; nothing was started.');
    ELSIF leased_by IS NOT NULL
          AND (leased_by <> '' AND lease_seconds > 0 AND lease_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'leased_by must be a name and lease_seconds 0 to 86400 (a day)',
            'Correct the call; nothing was started.');
    END IF;
    PERFORM commandbus.check_payload('state', state,
                                     (commandbus.known_domain(known.domain)).payload_limit);
    IF batch_id IS NOT NULL THEN
        PERFORM commandbus.hold_batch(batch_id, 'PROCESS', known.domain);
    END IF;
    IF leased_by IS NOT NULL THEN
        lease := make_interval(secs => lease_seconds);
    END IF;

    WITH started AS (
        INSERT INTO commandbus.process (process_id, batch_id, lease_no, lease_until, lease_owner,
            wake_at, deadline_at, created_at, updated_at, content_bytes, status, execution_model,
            domain, process_type, reply_queue, initial_state, state)
        VALUES (id, batch_id, CASE WHEN lease IS NULL THEN 0 ELSE 1 END,
            statement_timestamp() + lease, leased_by, moment + coalesce(lease, interval '0'),
            deadline, moment, moment, 2 * octet_length(state::text),
            CASE WHEN lease IS NULL THEN 'PENDING'::commandbus.process_status ELSE 'EXECUTING' END,
            known.execution_model, known.domain, known.process_type, known.reply_queue, state,
            state)
        ON CONFLICT DO NOTHING
        RETURNING process.process_id
    )
    INSERT INTO commandbus.process_event (process_id, event, worker, db_user)
    SELECT started.process_id, 'PROCESS_CREATED', leased_by, session_user FROM started;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s exists already', id),
            'It was started before: commandbus process show ' || id
            || '. Nothing was started again.');
    END IF;
    IF lease IS NULL THEN
        PERFORM commandbus.wake(known.domain || '__processes');
    END IF;
    RETURN id;
END
$$;

-- Many in one call, all of them or none; their ids in the order of the states. `labels` is what
-- refusals call the states, such as their lines in a file. Each may have an id and a deadline of
-- its own; with leased_by the caller itself runs them, as in start_process.
CREATE OR REPLACE FUNCTION commandbus.start_processes(process_type text, states jsonb,
    deadline timestamptz DEFAULT NULL, batch_id uuid DEFAULT NULL, labels text[] DEFAULT NULL,
    process_ids uuid[] DEFAULT NULL, deadlines timestamptz[] DEFAULT NULL,
    leased_by text DEFAULT NULL, lease_seconds double precision DEFAULT 30)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known         commandbus.process_type
                      := commandbus.known_process_type(start_processes.process_type);
    payload_limit integer := (commandbus.known_domain(known.domain)).payload_limit;
    moment        timestamptz := commandbus.now();
    wrong         record;
    ids           uuid[];
    taken         uuid;
    lease         interval;
BEGIN
    IF states IS NULL OR jsonb_typeof(states) <> 'array' THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            format('states must be a JSON array of objects, not %s',
                   coalesce(jsonb_typeof(states), 'null')),
            'One object for each process; nothing was started.');
    ELSIF cardinality(labels) <> jsonb_array_length(states) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'there must be one label for each state',
                                  'Correct the call; nothing was started.');
    ELSIF cardinality(process_ids) <> jsonb_array_length(states)
          OR array_position(process_ids, NULL) IS NOT NULL
          OR cardinality(deadlines) <> jsonb_array_length(states) THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'there must be one id and one deadline for each state, if there are any',
            'Correct the call; nothing was started.');
    ELSIF leased_by IS NOT NULL
          AND (leased_by <> '' AND lease_seconds > 0 AND lease_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'leased_by must be a name and lease_seconds 0 to 86400 (a day)',
            'Correct the call; nothing was started.');
    ELSIF NOT isfinite(deadline) OR 'infinity' = ANY (deadlines)
          OR '-infinity' = ANY (deadlines) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a deadline is a moment, not infinity',
                                  'Leave it out for none; nothing was started.');
    END IF;
    -- The first that cannot be taken, if any.
    SELECT s.state, coalesce(labels[s.ord], 'state ' || s.ord) AS label INTO wrong
    FROM jsonb_array_elements(states) WITH ORDINALITY s(state, ord)
    WHERE jsonb_typeof(s.state) <> 'object' OR octet_length(s.state::text) > payload_limit
       OR commandbus.is_too_deep(s.state)
    ORDER BY s.ord LIMIT 1;
    IF FOUND THEN
        PERFORM commandbus.check_payload(wrong.label, wrong.state, payload_limit);
        PERFORM commandbus.refuse('INVALID_DATA',
                                  format('%s must be a JSON object, not %s', wrong.label,
                                         jsonb_typeof(wrong.state)),
                                  'Correct the state; nothing was started.');
    END IF;
    IF batch_id IS NOT NULL THEN
        PERFORM commandbus.hold_batch(batch_id, 'PROCESS', known.domain);
    END IF;

    IF leased_by IS NOT NULL THEN
        lease := make_interval(secs => lease_seconds);
    END IF;

    IF (SELECT count(DISTINCT u) <> count(u) FROM unnest(process_ids) u) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'an id is there twice in process_ids',
                                  'Each process has an id of its own; nothing was started.');
    END IF;
    WITH item AS MATERIALIZED (
        SELECT coalesce(process_ids[s.ord], commandbus.new_id()) AS id, s.state, s.ord,
               coalesce(deadlines[s.ord], deadline) AS until
        FROM jsonb_array_elements(states) WITH ORDINALITY s(state, ord)
    ), started AS (
        INSERT INTO commandbus.process (process_id, batch_id, lease_no, lease_until, lease_owner,
            wake_at, deadline_at, created_at, updated_at, content_bytes, status, execution_model,
            domain, process_type, reply_queue, initial_state, state)
        SELECT i.id, batch_id, CASE WHEN lease IS NULL THEN 0 ELSE 1 END,
               statement_timestamp() + lease, leased_by, moment + coalesce(lease, interval '0'),
               i.until, moment, moment, 2 * octet_length(i.state::text),
               CASE WHEN lease IS NULL THEN 'PENDING'::commandbus.process_status
                    ELSE 'EXECUTING' END,
               known.execution_model, known.domain, known.process_type, known.reply_queue, i.state,
               i.state
        FROM item i
        ON CONFLICT DO NOTHING
        RETURNING process.process_id
    ), told AS (
        INSERT INTO commandbus.process_event (process_id, event, worker, db_user)
        SELECT s.process_id, 'PROCESS_CREATED', leased_by, session_user FROM started s
    )
    SELECT array_agg(i.id ORDER BY i.ord),
           (array_agg(i.id ORDER BY i.ord)
                FILTER (WHERE NOT EXISTS (SELECT FROM started s WHERE s.process_id = i.id)))[1]
    INTO ids, taken FROM item i;
    IF taken IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s exists already', taken),
            'It was started before: commandbus process show ' || taken || '. Nothing was started.');
    END IF;
    IF ids IS NOT NULL AND lease IS NULL THEN
        PERFORM commandbus.wake(known.domain || '__processes', cardinality(ids));
    END IF;
    RETURN QUERY SELECT unnest(ids);
END
$$;

-- A batch of processes. The deadline is that of each process that has none of its own.
CREATE OR REPLACE FUNCTION commandbus.start_batch(process_type text, states jsonb,
    name text DEFAULT NULL, reply_to text DEFAULT NULL, custom_data jsonb DEFAULT NULL,
    batch_id uuid DEFAULT NULL, deadline timestamptz DEFAULT NULL, labels text[] DEFAULT NULL,
    process_ids uuid[] DEFAULT NULL, deadlines timestamptz[] DEFAULT NULL,
    leased_by text DEFAULT NULL, lease_seconds double precision DEFAULT 30)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known commandbus.process_type := commandbus.known_process_type(start_batch.process_type);
    id    uuid := coalesce(start_batch.batch_id, commandbus.new_id());
BEGIN
    IF states IS NULL OR states = '[]' THEN
        PERFORM commandbus.refuse_empty_batch('process');
    END IF;
    PERFORM commandbus.open_batch(id, 'PROCESS', known.domain, start_batch.name,
                                  start_batch.custom_data, start_batch.reply_to, 'start_processes');
    PERFORM commandbus.start_processes(start_batch.process_type, states, deadline, id, labels,
                                       process_ids, deadlines, leased_by, lease_seconds);
    RETURN id;
END
$$;
