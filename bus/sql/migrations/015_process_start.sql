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

-- Safe to repeat and to run from many workers at once; the highest version of all of them stays.
CREATE FUNCTION commandbus.register_process_type(process_type text, domain text, version integer,
    execution_model text DEFAULT 'PROCESS_STEP', reply_queue text DEFAULT NULL, redact text[] DEFAULT '{}')
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue text := coalesce(register_process_type.reply_queue, register_process_type.domain || '__replies');
    hidden text[] := coalesce(register_process_type.redact, '{}');
    known commandbus.process_type;
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
       OR (known.version = register_process_type.version AND NOT hidden <@ known.redact) THEN
        INSERT INTO commandbus.process_type AS t (process_type, domain, execution_model, version, reply_queue, redact)
        VALUES (register_process_type.process_type, register_process_type.domain,
                register_process_type.execution_model::commandbus.execution_model, register_process_type.version, queue, hidden)
        ON CONFLICT ON CONSTRAINT process_type_pkey DO UPDATE
        SET version = greatest(t.version, excluded.version), reply_queue = excluded.reply_queue, updated_at = now(),
            -- What is hidden is shown again only by a newer version, not by an older worker that starts.
            redact = CASE WHEN excluded.version > t.version THEN excluded.redact
                          WHEN excluded.version < t.version THEN t.redact
                          ELSE ARRAY(SELECT unnest(t.redact || excluded.redact) AS name GROUP BY name ORDER BY name) END,
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
            created_at, updated_at, status, execution_model, domain, process_type, reply_queue, initial_state, state)
        VALUES (id, batch_id, CASE WHEN lease IS NULL THEN 0 ELSE 1 END, statement_timestamp() + lease, leased_by,
            moment + coalesce(lease, interval '0'), deadline, moment, moment,
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

-- An asynchronous response: recorded in the order of arrival, applied by the process's next run. False when
-- this response_id was there already.
CREATE FUNCTION commandbus.respond(process_id uuid, name text, payload jsonb DEFAULT '{}', response_id uuid DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    held  commandbus.process;
    wakes boolean;
BEGIN
    IF (length(respond.name) BETWEEN 1 AND 200) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_NAME', 'a response needs a name of 1 to 200 characters', 'Nothing changed.');
    END IF;
    SELECT * INTO held FROM commandbus.process p WHERE p.process_id = respond.process_id FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('PROCESS_NOT_FOUND', format('there is no process %s', respond.process_id),
            'Check the id: commandbus process list. Nothing changed.');
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
    IF held.inbox_seq >= 10000
       AND (SELECT count(*) FROM commandbus.process_inbox i WHERE i.process_id = respond.process_id) >= 10000 THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s has 10000 responses that no run has taken yet',
            respond.process_id), 'Find out why nothing runs it: commandbus process show ' || respond.process_id || '. Nothing changed.');
    END IF;
    -- Far below what one claim can read (process_content): beyond that nobody could run it.
    IF held.content_bytes + octet_length(respond.payload::text) > 134217728 THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('process %s has %s bytes of responses and records, and takes no '
            'more than 128 MiB', respond.process_id, held.content_bytes),
            'Keep large things elsewhere and name them in the response. Nothing changed.');
    END IF;

    -- Who holds the lease finds it when it settles. Of the others only those that wait for it, or are done
    -- and take it late, run because of it.
    wakes := (held.lease_owner IS NOT NULL AND held.lease_until > statement_timestamp()) IS NOT TRUE
             AND held.status NOT IN ('PENDING', 'WAITING_FOR_RETRY', 'WAITING_FOR_TSQ', 'COMPENSATING');
    INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, response_id, name, payload)
    VALUES (held.process_id, held.inbox_seq + 1, clock_timestamp(), 'RESPONSE', respond.response_id, respond.name,
            coalesce(respond.payload, '{}'));
    UPDATE commandbus.process p
    SET inbox_seq = held.inbox_seq + 1, content_bytes = p.content_bytes + coalesce(octet_length(respond.payload::text), 2),
        wake_at = CASE WHEN wakes THEN commandbus.now() ELSE p.wake_at END
    WHERE p.process_id = held.process_id;
    IF wakes THEN
        PERFORM commandbus.wake_sleepers(held.domain || '__processes');
    END IF;
    RETURN true;
END
$$;
