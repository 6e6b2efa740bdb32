-- Processes from outside: which types there are, starting one, bringing it a response.

-- The type that a caller named, or the refusal for one that no worker has registered.
CREATE FUNCTION commandbus.known_process_type(name text) RETURNS commandbus.process_type
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_row commandbus.process_type;
BEGIN
    SELECT * INTO found_row FROM commandbus.process_type t WHERE t.process_type = name;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('UNKNOWN_PROCESS_TYPE', format('process type ''%s'' is not registered', left(name, 80)),
            'Check the spelling, or start a worker whose handler sets have it: it registers its types.');
    END IF;
    RETURN found_row;
END
$$;

CREATE FUNCTION commandbus.check_payload(what text, payload jsonb, payload_limit integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The text is what is carried: a few bytes of binary JSON can be kilobytes of it (1e100000).
    IF octet_length(payload::text) > payload_limit THEN
        PERFORM commandbus.refuse('PAYLOAD_TOO_LARGE', format('%s has %s bytes, the limit is %s', what,
            octet_length(payload::text), payload_limit), 'Keep large things elsewhere and name them; nothing changed.');
    END IF;
    IF commandbus.is_too_deep(payload) THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('%s is nested deeper than 32 levels', what),
                                  'Flatten it; nothing changed.');
    END IF;
END
$$;

-- Safe to repeat and to run from many workers at once; the highest version of all of them stays. Programs that do not
-- agree on what a response of one version may hold are not let in one after the other: whoever started last would decide
-- what the others' processes are told.
CREATE FUNCTION commandbus.register_process_type(process_type text, domain text, version integer,
    execution_model text DEFAULT 'PROCESS_STEP', reply_queue text DEFAULT NULL, redact text[] DEFAULT '{}',
    responses jsonb DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue text := coalesce(register_process_type.reply_queue, register_process_type.domain || '__replies');
    hidden text[] := coalesce(register_process_type.redact, '{}');
    known commandbus.process_type;
    other text;
BEGIN
    IF register_process_type.process_type IS NULL OR register_process_type.process_type !~ '^[A-Za-z][A-Za-z0-9_.-]{0,99}$' THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('''%s'' is no process type', left(register_process_type.process_type, 80)),
            'A letter first, then letters, digits, _ . -, 100 at most; nothing was registered.');
    ELSIF (register_process_type.version > 0 AND register_process_type.execution_model IN ('PROCESS_STEP', 'STEP_BASED')) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a process type has a version from 1 on and the execution model PROCESS_STEP '
            'or STEP_BASED', 'Correct the type; nothing was registered.');
    END IF;
    PERFORM commandbus.register_domain(register_process_type.domain, register_process_type.reply_queue);

    SELECT * INTO known FROM commandbus.process_type t WHERE t.process_type = register_process_type.process_type;
    -- Nearly always all is there, and nothing is written.
    IF NOT FOUND OR known.version < register_process_type.version OR known.reply_queue <> queue
       OR (known.version = register_process_type.version AND NOT hidden <@ known.redact)
       OR (known.version = register_process_type.version AND known.responses IS DISTINCT FROM
           coalesce(register_process_type.responses || known.responses, register_process_type.responses, known.responses)) THEN
        INSERT INTO commandbus.process_type AS t (process_type, domain, execution_model, version, reply_queue, redact, responses)
        VALUES (register_process_type.process_type, register_process_type.domain,
                register_process_type.execution_model::commandbus.execution_model, register_process_type.version, queue, hidden,
                register_process_type.responses)
        ON CONFLICT ON CONSTRAINT process_type_pkey DO UPDATE
        SET version = greatest(t.version, excluded.version), reply_queue = excluded.reply_queue, updated_at = now(),
            -- What is hidden is shown again only by a newer version, not by an older worker that starts.
            redact = CASE WHEN excluded.version > t.version THEN excluded.redact
                          WHEN excluded.version < t.version THEN t.redact
                          ELSE ARRAY(SELECT unnest(t.redact || excluded.redact) AS name GROUP BY name ORDER BY name) END,
            -- Likewise what it takes: while two workers of one version run, what either of them takes is kept.
            responses = CASE WHEN excluded.version > t.version THEN excluded.responses
                             WHEN excluded.version < t.version THEN t.responses
                             ELSE coalesce(excluded.responses || t.responses, excluded.responses, t.responses) END,
            former_queues = CASE WHEN t.reply_queue = excluded.reply_queue THEN t.former_queues
                                 ELSE array_append(array_remove(t.former_queues, t.reply_queue), t.reply_queue) END
        WHERE t.domain = excluded.domain AND t.execution_model = excluded.execution_model;
        SELECT * INTO known FROM commandbus.process_type t WHERE t.process_type = register_process_type.process_type;
    END IF;
    IF known.domain <> register_process_type.domain OR known.execution_model::text <> register_process_type.execution_model THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process type ''%s'' is %s of domain ''%s'' already',
            known.process_type, known.execution_model, known.domain),
            'A type has one domain and one execution model: choose another name; nothing was registered.');
    END IF;
    SELECT min(k) INTO other FROM jsonb_object_keys(register_process_type.responses) k
    WHERE known.version = register_process_type.version AND known.responses -> k <> register_process_type.responses -> k;
    IF other IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('version %s of process type ''%s'' has other fields of response %s '
            'already', known.version, known.process_type, other),
            'Give the type that has changed a higher .version; nothing was registered.');
    END IF;
    -- From now on send() takes it as reply_to from nobody else. What was sent with it before was sent by no process: those
    -- replies are dead letters.
    UPDATE commandbus.reply_queue r SET of_processes = true WHERE r.queue_name = queue AND NOT r.of_processes;
END
$$;

-- With leased_by the caller itself runs it: no worker sees it before that lease is over.
CREATE FUNCTION commandbus.start_process(process_type text, state jsonb, process_id uuid DEFAULT NULL,
    deadline timestamptz DEFAULT NULL, batch_id uuid DEFAULT NULL, leased_by text DEFAULT NULL,
    lease_seconds double precision DEFAULT 30)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known  commandbus.process_type := commandbus.known_process_type(start_process.process_type);
    id     uuid := coalesce(start_process.process_id, commandbus.new_id());
    moment timestamptz := commandbus.now();
    lease  interval;
BEGIN
    IF state IS NULL OR jsonb_typeof(state) <> 'object' THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('state must be a JSON object, not %s', coalesce(jsonb_typeof(state), 'null')),
            'Correct the state; nothing was started.');
    ELSIF NOT isfinite(deadline) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a deadline is a moment, not infinity', 'Leave it out for none; nothing was started.');
    ELSIF leased_by IS NOT NULL AND (leased_by <> '' AND lease_seconds > 0 AND lease_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'leased_by must be a name and lease_seconds 0 to 86400 (a day)',
            'Correct the call; nothing was started.');
    END IF;
    PERFORM commandbus.check_payload('state', state, (commandbus.known_domain(known.domain)).payload_limit);
    IF batch_id IS NOT NULL THEN
        PERFORM commandbus.hold_batch(batch_id, 'PROCESS', known.domain);
    END IF;
    IF leased_by IS NOT NULL THEN
        lease := make_interval(secs => lease_seconds);
    END IF;

    WITH started AS (
        INSERT INTO commandbus.process (process_id, batch_id, lease_no, lease_until, lease_owner, wake_at, deadline_at,
            created_at, updated_at, content_bytes, status, execution_model, domain, process_type, reply_queue, initial_state,
            state)
        VALUES (id, batch_id, CASE WHEN lease IS NULL THEN 0 ELSE 1 END, statement_timestamp() + lease, leased_by,
            moment + coalesce(lease, interval '0'), deadline, moment, moment, 2 * octet_length(state::text),
            CASE WHEN lease IS NULL THEN 'PENDING'::commandbus.process_status ELSE 'EXECUTING' END,
            known.execution_model, known.domain, known.process_type, known.reply_queue, state, state)
        ON CONFLICT DO NOTHING
        RETURNING process.process_id
    )
    INSERT INTO commandbus.process_event (process_id, event, worker, db_user)
    SELECT started.process_id, 'PROCESS_CREATED', leased_by, session_user FROM started;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s exists already', id),
            'It was started before: commandbus process show ' || id || '. Nothing was started again.');
    END IF;
    IF lease IS NULL THEN
        PERFORM commandbus.wake_sleepers(known.domain || '__processes');
    END IF;
    RETURN id;
END
$$;

-- Many in one call, all of them or none; their ids in the order of the states. `labels` is what refusals call
-- the states, such as their lines in a file. Each may have an id and a deadline of its own; with leased_by the caller itself
-- runs them, as in start_process.
CREATE FUNCTION commandbus.start_processes(process_type text, states jsonb, deadline timestamptz DEFAULT NULL,
    batch_id uuid DEFAULT NULL, labels text[] DEFAULT NULL, process_ids uuid[] DEFAULT NULL,
    deadlines timestamptz[] DEFAULT NULL, leased_by text DEFAULT NULL, lease_seconds double precision DEFAULT 30)
RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known         commandbus.process_type := commandbus.known_process_type(start_processes.process_type);
    payload_limit integer := (commandbus.known_domain(known.domain)).payload_limit;
    moment        timestamptz := commandbus.now();
    wrong         record;
    ids           uuid[];
    taken         uuid;
    lease         interval;
BEGIN
    IF states IS NULL OR jsonb_typeof(states) <> 'array' THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('states must be a JSON array of objects, not %s',
            coalesce(jsonb_typeof(states), 'null')), 'One object for each process; nothing was started.');
    ELSIF cardinality(labels) <> jsonb_array_length(states) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'there must be one label for each state', 'Correct the call; nothing was started.');
    ELSIF cardinality(process_ids) <> jsonb_array_length(states) OR array_position(process_ids, NULL) IS NOT NULL
          OR cardinality(deadlines) <> jsonb_array_length(states) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'there must be one id and one deadline for each state, if there are any',
                                  'Correct the call; nothing was started.');
    ELSIF leased_by IS NOT NULL AND (leased_by <> '' AND lease_seconds > 0 AND lease_seconds <= 86400) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'leased_by must be a name and lease_seconds 0 to 86400 (a day)',
            'Correct the call; nothing was started.');
    ELSIF NOT isfinite(deadline) OR 'infinity' = ANY (deadlines) OR '-infinity' = ANY (deadlines) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a deadline is a moment, not infinity', 'Leave it out for none; nothing was started.');
    END IF;
    -- The first that cannot be taken, if any.
    SELECT s.state, coalesce(labels[s.ord], 'state ' || s.ord) AS label INTO wrong
    FROM jsonb_array_elements(states) WITH ORDINALITY s(state, ord)
    WHERE jsonb_typeof(s.state) <> 'object' OR octet_length(s.state::text) > payload_limit OR commandbus.is_too_deep(s.state)
    ORDER BY s.ord LIMIT 1;
    IF FOUND THEN
        PERFORM commandbus.check_payload(wrong.label, wrong.state, payload_limit);
        PERFORM commandbus.refuse('INVALID_DATA', format('%s must be a JSON object, not %s', wrong.label, jsonb_typeof(wrong.state)),
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
        SELECT coalesce(process_ids[s.ord], commandbus.new_id()) AS id, s.state, s.ord, coalesce(deadlines[s.ord], deadline) AS until
        FROM jsonb_array_elements(states) WITH ORDINALITY s(state, ord)
    ), started AS (
        INSERT INTO commandbus.process (process_id, batch_id, lease_no, lease_until, lease_owner, wake_at, deadline_at, created_at,
            updated_at, content_bytes, status, execution_model, domain, process_type, reply_queue, initial_state, state)
        SELECT i.id, batch_id, CASE WHEN lease IS NULL THEN 0 ELSE 1 END, statement_timestamp() + lease, leased_by,
               moment + coalesce(lease, interval '0'), i.until, moment, moment, 2 * octet_length(i.state::text),
               CASE WHEN lease IS NULL THEN 'PENDING'::commandbus.process_status ELSE 'EXECUTING' END,
               known.execution_model, known.domain, known.process_type, known.reply_queue, i.state, i.state
        FROM item i
        ON CONFLICT DO NOTHING
        RETURNING process.process_id
    ), told AS (
        INSERT INTO commandbus.process_event (process_id, event, worker, db_user)
        SELECT s.process_id, 'PROCESS_CREATED', leased_by, session_user FROM started s
    )
    SELECT array_agg(i.id ORDER BY i.ord),
           (array_agg(i.id ORDER BY i.ord) FILTER (WHERE NOT EXISTS (SELECT FROM started s WHERE s.process_id = i.id)))[1]
    INTO ids, taken FROM item i;
    IF taken IS NOT NULL THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s exists already', taken),
            'It was started before: commandbus process show ' || taken || '. Nothing was started.');
    END IF;
    IF ids IS NOT NULL AND lease IS NULL THEN
        PERFORM commandbus.wake_sleepers(known.domain || '__processes');
    END IF;
    RETURN QUERY SELECT unnest(ids);
END
$$;

-- A batch of processes. The deadline is that of each process that has none of its own.
CREATE FUNCTION commandbus.start_batch(process_type text, states jsonb, name text DEFAULT NULL, reply_to text DEFAULT NULL,
    custom_data jsonb DEFAULT NULL, batch_id uuid DEFAULT NULL, deadline timestamptz DEFAULT NULL, labels text[] DEFAULT NULL,
    process_ids uuid[] DEFAULT NULL, deadlines timestamptz[] DEFAULT NULL, leased_by text DEFAULT NULL,
    lease_seconds double precision DEFAULT 30)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    known commandbus.process_type := commandbus.known_process_type(start_batch.process_type);
    id    uuid := coalesce(start_batch.batch_id, commandbus.new_id());
BEGIN
    IF states IS NULL OR states = '[]' THEN
        PERFORM commandbus.refuse('BATCH_EMPTY', 'a batch needs at least one process',
                                  'An empty batch could never complete; nothing was created.');
    END IF;
    PERFORM commandbus.open_batch(id, 'PROCESS', known.domain, start_batch.name, start_batch.custom_data,
                                  start_batch.reply_to, 'start_processes');
    PERFORM commandbus.start_processes(start_batch.process_type, states, deadline, id, labels, process_ids, deadlines, leased_by,
                                       lease_seconds);
    RETURN id;
END
$$;

-- Whether the login has the rights of a role, or may take them on (SET ROLE). The login and not current_user: in a definer
-- function that is the owner, and SET ROLE gains nothing here. Superusers have every role, nobody has one that is gone.
CREATE FUNCTION commandbus.login_has(role oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- From version 16 on MEMBER is also who may only administer a role.
    SELECT coalesce(pg_has_role(session_user, login_has.role,
        CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'USAGE, SET' ELSE 'MEMBER' END), false)
$$;

-- Refuses a response that the login has no right to bring. Operators and workers (who settle processes) may bring any, and so
-- may who owns the schema; everybody else those that allow_response has given to a role of theirs.
CREATE FUNCTION commandbus.check_responder(process_id uuid, response text, place tid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known_type text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN ('commandbus_operator', 'commandbus_worker', 'commandbus_owner')
                                        AND commandbus.login_has(r.oid)) THEN
        RETURN;
    END IF;
    -- Where the row was last, if the caller knows: see respond.
    SELECT p.process_type INTO known_type FROM commandbus.process p
    WHERE p.ctid = place AND p.process_id = check_responder.process_id;
    IF NOT FOUND THEN
        SELECT p.process_type INTO known_type FROM commandbus.process p WHERE p.process_id = check_responder.process_id;
    END IF;
    IF NOT FOUND THEN
        -- Also if it is there a moment later: its type was not asked for.
        PERFORM commandbus.refuse('PROCESS_NOT_FOUND', format('there is no process %s', check_responder.process_id),
            'Check the id: commandbus process list. Nothing changed.');
    ELSIF NOT EXISTS (SELECT FROM commandbus.responder r
                      WHERE r.process_type = known_type AND r.response IN (check_responder.response, '*')
                        AND commandbus.login_has(r.role)) THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('login %s may not bring the response ''%s'' to a process of type %s',
            session_user, left(check_responder.response, 80), known_type),
            format('An administrator allows it with: commandbus responder allow %1$s %2$s %3$L, or in SQL: SELECT '
                   'commandbus.allow_response(%2$L, %3$L, %1$L). Nothing changed.',
                   session_user, known_type, left(check_responder.response, 80)));
    END IF;
END
$$;

-- Lets a role, such as a login, bring a response to processes of a type; '*' is each response of the type. True when that is
-- new. Rights are given by who owns the schema; roles that are gone take theirs along.
CREATE FUNCTION commandbus.allow_response(process_type text, response text, role text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found_role oid := (SELECT r.oid FROM pg_roles r WHERE r.rolname = allow_response.role);
BEGIN
    IF allow_response.process_type IS NULL OR allow_response.process_type !~ '^[A-Za-z][A-Za-z0-9_.-]{0,99}$' THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('invalid process type ''%s''', left(allow_response.process_type, 80)),
            'A letter first, then letters, digits, _ . -, 100 at most; nothing changed.');
    ELSIF (length(allow_response.response) BETWEEN 1 AND 200) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_NAME', 'a response needs a name of 1 to 200 characters', 'Nothing changed.');
    ELSIF found_role IS NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('there is no role ''%s''', left(allow_response.role, 80)),
            'Create it first: CREATE ROLE … LOGIN IN ROLE commandbus_sender; nothing changed.');
    END IF;
    DELETE FROM commandbus.responder d WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = d.role);
    INSERT INTO commandbus.responder (process_type, response, role)
    VALUES (allow_response.process_type, allow_response.response, found_role) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;

-- Takes that right back, from everybody where role is NULL. How many rights that were.
CREATE FUNCTION commandbus.forbid_response(process_type text, response text, role text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    gone bigint;
BEGIN
    DELETE FROM commandbus.responder d
    WHERE d.process_type = forbid_response.process_type AND d.response = forbid_response.response
      AND (forbid_response.role IS NULL OR d.role = (SELECT r.oid FROM pg_roles r WHERE r.rolname = forbid_response.role));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- So many bytes as text. The stored size tells nothing: a few hundred bytes may hold 1e131000 or compressed text, which
-- is up to a thousand times as long for who reads it.
CREATE FUNCTION commandbus.json_bytes(value jsonb) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(octet_length(value::text), 0)::bigint
$$;

-- What a claim of this process would really read, in bytes of text; the 200 are what else there is of a record.
CREATE FUNCTION commandbus.measured_content(process_id uuid) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT octet_length(p.initial_state::text) + octet_length(p.state::text)
               + coalesce((SELECT sum(200 + octet_length(i.name) + octet_length(i.payload::text))
                           FROM commandbus.process_inbox i WHERE i.process_id = p.process_id), 0)
               + coalesce((SELECT sum(200 + octet_length(h.name) + coalesce(octet_length(h.error_message), 0)
                                      + coalesce(octet_length(h.result::text), 0) + coalesce(octet_length(h.opening::text), 0)
                                      + coalesce(octet_length(h.patch::text), 0) + coalesce(octet_length(h.owes::text), 0))
                           FROM commandbus.process_history h WHERE h.process_id = p.process_id), 0)
        FROM commandbus.process p WHERE p.process_id = measured_content.process_id);
END
$$;

-- Whether a value is what a field of a response takes: a kind ("text?", where ? admits null), or a list of texts, one of which
-- it must be. Kinds that this version does not know admit anything.
CREATE FUNCTION commandbus.fits_field(value jsonb, field jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN jsonb_typeof(field) = 'array' THEN jsonb_typeof(value) = 'string' AND field @> value
        WHEN right(field #>> '{}', 1) = '?' AND value = 'null' THEN true
        ELSE CASE rtrim(field #>> '{}', '?')
            WHEN 'text' THEN jsonb_typeof(value) = 'string'
            WHEN 'boolean' THEN jsonb_typeof(value) = 'boolean'
            WHEN 'number' THEN jsonb_typeof(value) = 'number'
            WHEN 'integer' THEN jsonb_typeof(value) = 'number' AND value::text ~ '^-?[0-9]{1,19}$'
            WHEN 'decimal' THEN jsonb_typeof(value) = 'string' AND value #>> '{}' ~ '^-?[0-9]+([.][0-9]+)?$'
            WHEN 'uuid' THEN jsonb_typeof(value) = 'string'
                             AND value #>> '{}' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            WHEN 'object' THEN jsonb_typeof(value) = 'object'
            ELSE true
        END
    END
$$;

-- Refuses a response that the type does not take: a name that none of its code knows, a payload that does not fit the fields
-- that its worker has registered. `responses` is {"<name>": {"fields": {"<field>": <kind>}, "needs": [one of these]}}; without
-- fields any payload is kept, and the process's code decides when it runs. A field that is not among them is no reason to
-- refuse: whoever answers may say more than a process asks for, and more next year than this. It is kept with the rest.
CREATE FUNCTION commandbus.check_response(process_type text, name text, payload jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    taken   jsonb := (SELECT t.responses FROM commandbus.process_type t WHERE t.process_type = check_response.process_type);
    fields  jsonb := taken -> name -> 'fields';
    needs   jsonb := taken -> name -> 'needs';
    content jsonb := coalesce(payload, '{}');
    wrong   record;
BEGIN
    IF taken IS NULL THEN
        RETURN;
    ELSIF NOT taken ? name THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('process type %s takes no response ''%s''', process_type, left(name, 80)),
            CASE WHEN taken = '{}' THEN 'It takes none; nothing changed.'
                 ELSE left('It takes ' || (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(taken) k), 200)
                      || '. Nothing changed.' END);
    ELSIF fields IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(content) <> 'object' THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('the payload of response %s must be a JSON object, not %s', name,
            jsonb_typeof(content)), 'Nothing changed.');
    END IF;
    -- Names and kinds only: a value may be an account number.
    SELECT e.key, fields -> e.key AS field INTO wrong FROM jsonb_each(content) e
    WHERE fields ? e.key AND NOT commandbus.fits_field(e.value, fields -> e.key)
    ORDER BY e.key LIMIT 1;
    IF FOUND THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('field ''%s'' of response %s must be %s', wrong.key, name,
            CASE jsonb_typeof(wrong.field)
                WHEN 'array' THEN (SELECT string_agg(v, ' or ') FROM jsonb_array_elements_text(wrong.field) v)
                ELSE rtrim(wrong.field #>> '{}', '?') END), 'Nothing changed.');
    ELSIF needs IS NOT NULL AND NOT EXISTS (SELECT FROM jsonb_array_elements_text(needs) n
                                            WHERE coalesce(content -> n, 'null') <> 'null') THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('response %s needs %s', name,
            (SELECT string_agg(n, ' or ') FROM jsonb_array_elements_text(needs) n)),
            -- Perhaps it is there, misspelt.
            CASE WHEN EXISTS (SELECT FROM jsonb_object_keys(content) k WHERE NOT fields ? k)
                 THEN left('It has ' || (SELECT string_agg(k, ', ' ORDER BY k) FROM jsonb_object_keys(fields) k), 200) || '. '
                 ELSE '' END || 'Nothing changed.');
    END IF;
END
$$;

-- An asynchronous response: recorded in the order of arrival, applied by the process's next run. False when
-- this response_id was there already.
--
-- Many responses in one transaction: each makes a new version of the row, and by its key every one of them would be
-- looked at each time. So the place of the last one is remembered until the transaction ends, and while the process is
-- due nothing that is indexed changes.
CREATE FUNCTION commandbus.respond(process_id uuid, name text, payload jsonb DEFAULT '{}', response_id uuid DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    held    commandbus.process;
    wakes   boolean;
    -- "<process_id> <ctid>" of the response before this one in the same transaction.
    last    text := current_setting('commandbus.responded', true);
    place   tid;
    bytes   bigint;
    content bigint;
    most    bigint;
BEGIN
    IF (length(respond.name) BETWEEN 1 AND 200) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_NAME', 'a response needs a name of 1 to 200 characters', 'Nothing changed.');
    END IF;
    IF starts_with(last, respond.process_id || ' (') THEN
        place := substr(last, 38)::tid;
    END IF;
    PERFORM commandbus.check_responder(respond.process_id, respond.name, place);
    IF place IS NOT NULL THEN
        SELECT * INTO held FROM commandbus.process p
        WHERE p.ctid = place AND p.process_id = respond.process_id FOR UPDATE;
    END IF;
    IF held.process_id IS NULL THEN
        SELECT * INTO held FROM commandbus.process p WHERE p.process_id = respond.process_id FOR UPDATE;
        IF NOT FOUND THEN
            PERFORM commandbus.refuse('PROCESS_NOT_FOUND', format('there is no process %s', respond.process_id),
                'Check the id: commandbus process list. Nothing changed.');
        END IF;
        place := (SELECT p.ctid FROM commandbus.process p WHERE p.process_id = respond.process_id);
    END IF;
    PERFORM commandbus.check_payload('payload', respond.payload, (commandbus.known_domain(held.domain)).payload_limit);

    -- Statements that began after the lock: they see what whoever held the row before has written.
    IF respond.response_id IS NOT NULL
       AND (EXISTS (SELECT FROM commandbus.process_inbox i
                    WHERE i.process_id = respond.process_id AND i.response_id = respond.response_id)
            OR EXISTS (SELECT FROM commandbus.process_history h
                       WHERE h.process_id = respond.process_id AND h.response_id = respond.response_id)) THEN
        RETURN false;
    END IF;
    PERFORM commandbus.check_response(held.process_type, respond.name, respond.payload);
    IF EXISTS (SELECT FROM commandbus.process_inbox i WHERE i.process_id = respond.process_id AND i.seq <= held.inbox_seq - 9999)
       AND (SELECT count(*) FROM commandbus.process_inbox i WHERE i.process_id = respond.process_id) >= 10000 THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s has 10000 responses that no run has taken yet',
            respond.process_id), 'Find out why nothing runs it: commandbus process show ' || respond.process_id || '. Nothing changed.');
    END IF;
    -- The rest of what a run may load is for what it makes of them.
    most := (commandbus.known_domain(held.domain)).content_limit * 3 / 4;
    bytes := 200 + coalesce(octet_length(respond.payload::text), 2);
    content := held.content_bytes;
    IF content + bytes > most THEN
        content := commandbus.measured_content(respond.process_id);
    END IF;
    IF content + bytes > most THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s holds %s bytes of state, records and responses, and '
            'takes responses up to %s', respond.process_id, content, most),
            'Keep large things elsewhere and name them in the response, or wait until it has ended. Nothing changed.');
    END IF;

    -- Who holds the lease finds it when it settles. Of the others only those that wait for it, or are done
    -- and take it late, run because of it.
    wakes := (held.lease_owner IS NOT NULL AND held.lease_until > statement_timestamp()) IS NOT TRUE
             AND held.status NOT IN ('PENDING', 'WAITING_FOR_RETRY', 'WAITING_FOR_TSQ', 'COMPENSATING');
    INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, response_id, name, payload)
    VALUES (held.process_id, held.inbox_seq + 1, clock_timestamp(), 'RESPONSE', respond.response_id, respond.name,
            coalesce(respond.payload, '{}'));
    wakes := wakes AND (held.wake_at <= commandbus.now()) IS NOT TRUE;
    UPDATE commandbus.process p
    SET inbox_seq = held.inbox_seq + 1, content_bytes = content + bytes,
        wake_at = CASE WHEN wakes THEN commandbus.now() ELSE p.wake_at END
    WHERE p.ctid = place AND p.process_id = respond.process_id
    RETURNING p.ctid INTO place;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'process % moved while the response was taken', respond.process_id
            USING ERRCODE = 'serialization_failure', HINT = 'Call again; nothing changed.';
    END IF;
    PERFORM set_config('commandbus.responded', respond.process_id || ' ' || place, true);
    IF wakes THEN
        PERFORM commandbus.wake_sleepers(held.domain || '__processes');
    END IF;
    RETURN true;
END
$$;
