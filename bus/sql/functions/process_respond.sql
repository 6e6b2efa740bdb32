-- Responses: who may bring them, whether they fit, and delivering them.

-- Whether the login has the rights of a role, or may take them on (SET ROLE). The login and not
-- current_user: in a definer function that is the owner, and SET ROLE gains nothing here.
-- Superusers have every role, nobody has one that is gone.
CREATE OR REPLACE FUNCTION commandbus.login_has(role oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- From version 16 on MEMBER is also who may only administer a role.
    SELECT coalesce(pg_has_role(session_user, login_has.role,
        CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'USAGE, SET'
             ELSE 'MEMBER' END), false)
$$;

-- Refuses a response that the login has no right to bring. Operators and workers (who settle
-- processes) may bring any, and so may who owns the schema; everybody else those that
-- allow_response has given to a role of theirs.
CREATE OR REPLACE FUNCTION commandbus.check_responder(process_id uuid, response text,
    place tid DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known_type text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles r
               WHERE r.rolname IN ('commandbus_operator', 'commandbus_worker', 'commandbus_owner')
                 AND commandbus.login_has(r.oid)) THEN
        RETURN;
    END IF;
    -- Where the row was last, if the caller knows: see respond.
    SELECT p.process_type INTO known_type FROM commandbus.process p
    WHERE p.ctid = place AND p.process_id = check_responder.process_id;
    IF NOT FOUND THEN
        SELECT p.process_type INTO known_type FROM commandbus.process p
        WHERE p.process_id = check_responder.process_id;
    END IF;
    IF NOT FOUND THEN
        -- Also if it is there a moment later: its type was not asked for.
        PERFORM commandbus.refuse('PROCESS_NOT_FOUND',
            format('there is no process %s', check_responder.process_id),
            'Check the id: commandbus process list. Nothing changed.');
    ELSIF NOT EXISTS (SELECT FROM commandbus.responder r
                      WHERE r.process_type = known_type
                        AND r.response IN (check_responder.response, '*')
                        AND commandbus.login_has(r.role)) THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('login %s may not bring the response ''%s'' to a process of type %s',
                   session_user, left(check_responder.response, 80), known_type),
            format('An administrator allows it with: commandbus responder allow %1$s %2$s %3$L, or '
                   'in SQL: SELECT commandbus.allow_response(%2$L, %3$L, %1$L). Nothing changed.',
                   session_user, known_type, left(check_responder.response, 80)));
    END IF;
END
$$;

-- Lets a role, such as a login, bring a response to processes of a type; '*' is each response of
-- the type. True when that is new. Rights are given by who owns the schema; roles that are gone
-- take theirs along.
CREATE OR REPLACE FUNCTION commandbus.allow_response(process_type text, response text, role text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found_role oid := (SELECT r.oid FROM pg_roles r WHERE r.rolname = allow_response.role);
BEGIN
    IF allow_response.process_type IS NULL
       OR allow_response.process_type !~ '^[A-Za-z][A-Za-z0-9_.-]{0,99}$' THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('invalid process type ''%s''', left(allow_response.process_type, 80)),
            'A letter first, then letters, digits, _ . -, 100 at most; nothing changed.');
    ELSIF (length(allow_response.response) BETWEEN 1 AND 200) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_NAME', 'a response needs a name of 1 to 200 characters',
                                  'Nothing changed.');
    ELSIF found_role IS NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('there is no role ''%s''', left(allow_response.role, 80)),
            'Create it first: CREATE ROLE … LOGIN IN ROLE commandbus_sender; nothing changed.');
    END IF;
    DELETE FROM commandbus.responder d
    WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = d.role);
    INSERT INTO commandbus.responder (process_type, response, role)
    VALUES (allow_response.process_type, allow_response.response, found_role)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;

-- Takes that right back, from everybody where role is NULL. How many rights that were.
CREATE OR REPLACE FUNCTION commandbus.forbid_response(process_type text, response text,
    role text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    gone bigint;
BEGIN
    DELETE FROM commandbus.responder d
    WHERE d.process_type = forbid_response.process_type AND d.response = forbid_response.response
      AND (forbid_response.role IS NULL
           OR d.role = (SELECT r.oid FROM pg_roles r WHERE r.rolname = forbid_response.role));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- So many bytes as text. The stored size tells nothing: a few hundred bytes may hold 1e131000 or
-- compressed text, which is up to a thousand times as long for whoever reads it.
CREATE OR REPLACE FUNCTION commandbus.json_bytes(value jsonb) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(octet_length(value::text), 0)::bigint
$$;

-- What a claim of this process would really read, in bytes of text; the 200 are what else there is
-- of a record.
CREATE OR REPLACE FUNCTION commandbus.measured_content(process_id uuid) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN (
        SELECT octet_length(p.initial_state::text) + octet_length(p.state::text)
               + coalesce((SELECT sum(200 + octet_length(i.name) + octet_length(i.payload::text))
                           FROM commandbus.process_inbox i WHERE i.process_id = p.process_id), 0)
               + coalesce((SELECT sum(200 + octet_length(h.name)
                                      + coalesce(octet_length(h.error_message), 0)
                                      + coalesce(octet_length(h.result::text), 0)
                                      + coalesce(octet_length(h.opening::text), 0)
                                      + coalesce(octet_length(h.patch::text), 0)
                                      + coalesce(octet_length(h.owes::text), 0))
                           FROM commandbus.process_history h WHERE h.process_id = p.process_id), 0)
        FROM commandbus.process p WHERE p.process_id = measured_content.process_id);
END
$$;

-- Whether a value is what a field of a response takes: a kind ("text?", where ? admits null), or a
-- list of texts, one of which it must be. Kinds that this version does not know admit anything.
CREATE OR REPLACE FUNCTION commandbus.fits_field(value jsonb, field jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN jsonb_typeof(field) = 'array' THEN jsonb_typeof(value) = 'string' AND field @> value
        WHEN right(field #>> '{}', 1) = '?' AND value = 'null' THEN true
        ELSE CASE rtrim(field #>> '{}', '?')
            WHEN 'text' THEN jsonb_typeof(value) = 'string'
            WHEN 'boolean' THEN jsonb_typeof(value) = 'boolean'
            WHEN 'number' THEN jsonb_typeof(value) = 'number'
            WHEN 'integer' THEN jsonb_typeof(value) = 'number' AND value::text ~ '^-?[0-9]{1,19}$'
            WHEN 'decimal' THEN jsonb_typeof(value) = 'string'
                                AND value #>> '{}' ~ '^-?[0-9]+([.][0-9]+)?$'
            WHEN 'uuid' THEN jsonb_typeof(value) = 'string'
                             AND value #>> '{}' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            WHEN 'object' THEN jsonb_typeof(value) = 'object'
            ELSE true
        END
    END
$$;

-- Refuses a response that the type does not take: a name that none of its code knows, a payload
-- that does not fit the fields that its worker has registered. `responses` is {"<name>": {"fields":
-- {"<field>": <kind>}, "needs": [one of these]}}; without fields any payload is kept, and the
-- process's code decides when it runs. A field that is not among them is no reason to refuse:
-- whoever answers may say more than a process asks for, and more next year than this. It is kept
-- with the rest.
CREATE OR REPLACE FUNCTION commandbus.check_response(process_type text, name text, payload jsonb)
RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    taken   jsonb := (SELECT t.responses FROM commandbus.process_type t
                      WHERE t.process_type = check_response.process_type);
    fields  jsonb := taken -> name -> 'fields';
    needs   jsonb := taken -> name -> 'needs';
    content jsonb := coalesce(payload, '{}');
    wrong   record;
BEGIN
    IF taken IS NULL THEN
        RETURN;
    ELSIF NOT taken ? name THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('process type %s takes no response ''%s''', process_type, left(name, 80)),
            CASE WHEN taken = '{}' THEN 'It takes none; nothing changed.'
                 ELSE left('It takes ' || (SELECT string_agg(k, ', ' ORDER BY k)
                                           FROM jsonb_object_keys(taken) k), 200)
                      || '. Nothing changed.' END);
    ELSIF fields IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(content) <> 'object' THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            format('the payload of response %s must be a JSON object, not %s', name,
                   jsonb_typeof(content)), 'Nothing changed.');
    END IF;
    -- Names and kinds only: a value may be an account number.
    SELECT e.key, fields -> e.key AS field INTO wrong FROM jsonb_each(content) e
    WHERE fields ? e.key AND NOT commandbus.fits_field(e.value, fields -> e.key)
    ORDER BY e.key LIMIT 1;
    IF FOUND THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            format('field ''%s'' of response %s must be %s', wrong.key, name,
                   CASE jsonb_typeof(wrong.field) WHEN 'array'
                        THEN (SELECT string_agg(v, ' or ')
                              FROM jsonb_array_elements_text(wrong.field) v)
                        ELSE rtrim(wrong.field #>> '{}', '?') END),
            'Nothing changed.');
    ELSIF needs IS NOT NULL AND NOT EXISTS (SELECT FROM jsonb_array_elements_text(needs) n
                                            WHERE coalesce(content -> n, 'null') <> 'null') THEN
        PERFORM commandbus.refuse('INVALID_DATA', format('response %s needs %s', name,
            (SELECT string_agg(n, ' or ') FROM jsonb_array_elements_text(needs) n)),
            -- Perhaps it is there, misspelt.
            CASE WHEN EXISTS (SELECT FROM jsonb_object_keys(content) k WHERE NOT fields ? k)
                 THEN left('It has ' || (SELECT string_agg(k, ', ' ORDER BY k)
                                         FROM jsonb_object_keys(fields) k), 200) || '. '
                 ELSE '' END || 'Nothing changed.');
    END IF;
END
$$;

-- Whether the process was given this response before. One without an id never was.
CREATE OR REPLACE FUNCTION commandbus.has_response(process_id uuid, response_id uuid)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN has_response.response_id IS NOT NULL
       AND (EXISTS (SELECT FROM commandbus.process_inbox i
                    WHERE i.process_id = has_response.process_id
                      AND i.response_id = has_response.response_id)
            OR EXISTS (SELECT FROM commandbus.process_history h
                       WHERE h.process_id = has_response.process_id
                         AND h.response_id = has_response.response_id));
END
$$;

-- Refuses so many more bytes for a process that may hold no more than `most`. Returns what it has:
-- what was counted, or what is really there where that would be too much. A response that was given
-- already needs no room: it is asked for after the measurement, which it may be part of by then.
CREATE OR REPLACE FUNCTION commandbus.check_room(process_id uuid, response_id uuid, counted bigint,
    bytes bigint, most bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    content bigint := counted;
BEGIN
    IF content + bytes > most THEN
        content := commandbus.measured_content(process_id);
    END IF;
    IF content + bytes > most AND NOT commandbus.has_response(process_id, response_id) THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process %s holds %s bytes of state, records and responses, and takes responses '
                   'up to %s', process_id, content, most),
            'Keep large things elsewhere and name them in the response, or wait until it has '
            'ended. Nothing changed.');
    END IF;
    RETURN content;
END
$$;

-- An asynchronous response: recorded in the order of arrival, applied by the process's next run.
-- False when this response_id was there already.
--
-- Many responses in one transaction: each makes a new version of the row, and by its key every one
-- of them would be looked at each time. So the place of the last one is remembered until the
-- transaction ends, and while the process is due nothing that is indexed changes.
--
-- Renewals of leases pass over a locked row, so whoever brings again and again what is refused must
-- not keep it locked: whether there is room is looked at before the lock, and again behind it.
CREATE OR REPLACE FUNCTION commandbus.respond(process_id uuid, name text,
    payload jsonb DEFAULT '{}', response_id uuid DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    seen    record;
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
        PERFORM commandbus.refuse('INVALID_NAME', 'a response needs a name of 1 to 200 characters',
                                  'Nothing changed.');
    END IF;
    IF starts_with(last, respond.process_id || ' (') THEN
        place := substr(last, 38)::tid;
    END IF;
    PERFORM commandbus.check_responder(respond.process_id, respond.name, place);
    SELECT p.domain, p.process_type, p.content_bytes INTO seen FROM commandbus.process p
    WHERE p.ctid = place AND p.process_id = respond.process_id;
    IF NOT FOUND THEN
        SELECT p.domain, p.process_type, p.content_bytes INTO seen FROM commandbus.process p
        WHERE p.process_id = respond.process_id;
    END IF;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('PROCESS_NOT_FOUND',
            format('there is no process %s', respond.process_id),
            'Check the id: commandbus process list. Nothing changed.');
    END IF;
    PERFORM commandbus.check_payload('payload', respond.payload,
                                     (commandbus.known_domain(seen.domain)).payload_limit);
    -- The rest of what a run may load is for what it makes of them.
    most := (commandbus.known_domain(seen.domain)).content_limit * 3 / 4;
    bytes := 200 + coalesce(octet_length(respond.payload::text), 2);
    IF seen.content_bytes + bytes > most
       AND NOT commandbus.has_response(respond.process_id, respond.response_id) THEN
        PERFORM commandbus.check_response(seen.process_type, respond.name, respond.payload);
        PERFORM commandbus.check_room(respond.process_id, respond.response_id, seen.content_bytes,
                                      bytes, most);
    END IF;

    IF place IS NOT NULL THEN
        SELECT * INTO held FROM commandbus.process p
        WHERE p.ctid = place AND p.process_id = respond.process_id FOR UPDATE;
    END IF;
    IF held.process_id IS NULL THEN
        SELECT * INTO held FROM commandbus.process p WHERE p.process_id = respond.process_id
        FOR UPDATE;
        IF NOT FOUND THEN -- purged meanwhile
            PERFORM commandbus.refuse('PROCESS_NOT_FOUND',
                format('there is no process %s', respond.process_id), 'Nothing changed.');
        END IF;
        place := (SELECT p.ctid FROM commandbus.process p WHERE p.process_id = respond.process_id);
    END IF;

    -- Statements that began after the lock: they see what whoever held the row before has written.
    IF commandbus.has_response(respond.process_id, respond.response_id) THEN
        RETURN false;
    END IF;
    PERFORM commandbus.check_response(held.process_type, respond.name, respond.payload);
    IF EXISTS (SELECT FROM commandbus.process_inbox i
               WHERE i.process_id = respond.process_id AND i.seq <= held.inbox_seq - 9999)
       AND (SELECT count(*) FROM commandbus.process_inbox i
            WHERE i.process_id = respond.process_id) >= 10000 THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process %s has 10000 responses that no run has taken yet', respond.process_id),
            'Find out why nothing runs it: commandbus process show ' || respond.process_id
            || '. Nothing changed.');
    END IF;
    content := commandbus.check_room(respond.process_id, NULL, held.content_bytes, bytes, most);

    -- Who holds the lease finds it when it settles. Of the others only those that wait for it, or
    -- are done and take it late, run because of it.
    wakes := (held.lease_owner IS NOT NULL AND held.lease_until > statement_timestamp()) IS NOT TRUE
             AND held.status NOT IN ('PENDING', 'WAITING_FOR_RETRY', 'WAITING_FOR_TSQ',
                                     'COMPENSATING');
    INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, response_id, name, payload)
    VALUES (held.process_id, held.inbox_seq + 1, clock_timestamp(), 'RESPONSE', respond.response_id,
            respond.name, coalesce(respond.payload, '{}'));
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
        PERFORM commandbus.wake(held.domain || '__processes');
    END IF;
    RETURN true;
END
$$;
