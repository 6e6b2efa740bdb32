-- What every other function uses: refusals, ids, the clock, names.

-- Raises a refusal of CONTRACT: SQLSTATE of class CB, the code's name first in the message, and a
-- hint that says what to do.
CREATE FUNCTION commandbus.refuse(code text, message text, hint text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '%: %', code, message USING HINT = hint, ERRCODE = CASE code
        WHEN 'DUPLICATE_COMMAND'    THEN 'CB001'
        WHEN 'COMMAND_NOT_FOUND'    THEN 'CB002'
        WHEN 'PROCESS_NOT_FOUND'    THEN 'CB003'
        WHEN 'BATCH_NOT_FOUND'      THEN 'CB004'
        WHEN 'BATCH_CLOSED'         THEN 'CB005'
        WHEN 'BATCH_EMPTY'          THEN 'CB006'
        WHEN 'INVALID_OPERATION'    THEN 'CB007'
        WHEN 'UNKNOWN_DOMAIN'       THEN 'CB008'
        WHEN 'UNKNOWN_PROCESS_TYPE' THEN 'CB009'
        WHEN 'INVALID_NAME'         THEN 'CB010'
        WHEN 'INVALID_DATA'         THEN 'CB011'
        WHEN 'PAYLOAD_TOO_LARGE'    THEN 'CB012'
        WHEN 'SCHEMA_TOO_NEW'       THEN 'CB013'
        ELSE 'CB000' END;
END
$$;

-- One row: how far tests have moved the clock of process timers.
CREATE TABLE commandbus.clock (
    only_row   boolean  PRIMARY KEY DEFAULT true CHECK (only_row),
    moved_by   interval NOT NULL DEFAULT '0'
);
INSERT INTO commandbus.clock DEFAULT VALUES;

-- In plpgsql, whose plans are kept: an SQL function that cannot be inlined is planned at every call.
CREATE FUNCTION commandbus.now() RETURNS timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN clock_timestamp() + (SELECT c.moved_by FROM commandbus.clock c WHERE c.only_row);
END
$$;

-- A UUID of version 7: ids in order of time keep index insertions on few pages, also when the
-- tables hold months of history.
CREATE FUNCTION commandbus.new_id() RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT overlay(gen_random_uuid()::text
                   PLACING overlay(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
                                   PLACING '-' FROM 9 FOR 0) || '-7'
                   FROM 1 FOR 15)::uuid
$$;

-- Whether an id is of version 8 (RFC 9562): those are derived from a process, and stand for its
-- commands and steps. Anybody can work them out, so nobody but processes may send with them.
CREATE FUNCTION commandbus.is_derived_id(id uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(id::text, 15, 1) = '8'
$$;

-- NULL when the name is fine. 37 = 47, PGMQ's longest queue name, less '__commands'.
CREATE FUNCTION commandbus.domain_name_problem(name text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN name IS NULL OR name !~ '^[a-z][a-z0-9_]*$'
            THEN format('''%s'' is no domain name: a-z first, then a-z, 0-9 and _', left(name, 80))
        WHEN name LIKE '%\_\_%' OR name LIKE '%\_'
            THEN format('''%s'' is no domain name: it may not contain __ nor end in _', left(name, 80))
        WHEN length(name) > 37
            THEN format('''%s'' is too long for a domain: 37 characters at most (PGMQ''s queue names have 47)',
                        left(name, 80))
    END
$$;

-- The row of a domain, or the refusal for one that nobody registered.
CREATE FUNCTION commandbus.known_domain(name text) RETURNS commandbus.domain
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_row commandbus.domain;
BEGIN
    SELECT * INTO found_row FROM commandbus.domain d WHERE d.domain = name;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('UNKNOWN_DOMAIN', format('domain ''%s'' is not registered', left(name, 80)),
            'Check the spelling (commandbus queue list), or register it: commandbus queue create <domain>.');
    END IF;
    RETURN found_row;
END
$$;

-- A reply goes to a queue that exists to hold replies, or nowhere. Those of processes are theirs alone: what
-- workers find there they take for replies to processes, and archive what is none.
CREATE FUNCTION commandbus.check_reply_queue(name text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of_processes boolean := (SELECT r.of_processes FROM commandbus.reply_queue r WHERE r.queue_name = name);
BEGIN
    IF of_processes THEN
        PERFORM commandbus.refuse('INVALID_OPERATION', format('workers take what is in ''%s'' for replies to processes', name),
            'Name a queue that you read yourself (commandbus queue create DOMAIN --reply-queue NAME makes one); '
            'nothing was created or sent.');
    ELSIF name IS NOT NULL AND of_processes IS NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME', format('''%s'' is no registered reply queue', left(name, 80)),
            'Replies go to <domain>__replies of a registered domain, or to a queue made by '
            'commandbus queue create <domain> --reply-queue <name>; never to a __commands queue.');
    END IF;
END
$$;
