-- What every other function uses: refusals, ids, the clock, names.

-- Raises a refusal of CONTRACT: SQLSTATE of class CB, the code's name first in the message, and a
-- hint that says what to do.
CREATE OR REPLACE FUNCTION commandbus.refuse(code text, message text, hint text) RETURNS void
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

-- In plpgsql, whose plans are kept: an SQL function that cannot be inlined is planned at every
-- call.
CREATE OR REPLACE FUNCTION commandbus.now() RETURNS timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN clock_timestamp() + (SELECT c.moved_by FROM commandbus.clock c WHERE c.only_row);
END
$$;

-- A UUID of version 7: ids in order of time keep index insertions on few pages, also when the
-- tables hold months of history.
CREATE OR REPLACE FUNCTION commandbus.new_id() RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    -- Of version 4 with the first 48 bits replaced; two more bits make a 7 of the 4.
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
               substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3)
               FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;

-- Whether an id is of version 8 (RFC 9562): those are derived from a process, and stand for its
-- commands and steps. Anybody can work them out, so nobody but processes may send with them.
CREATE OR REPLACE FUNCTION commandbus.is_derived_id(id uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(id::text, 15, 1) = '8'
$$;

-- NULL when the name is fine. 37 = 47, PGMQ's longest queue name, less '__commands'.
CREATE OR REPLACE FUNCTION commandbus.domain_name_problem(name text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN name IS NULL OR name !~ '^[a-z][a-z0-9_]*$'
            THEN format('invalid domain name ''%s'': a-z first, then a-z, 0-9 and _',
                        left(name, 80))
        WHEN name LIKE '%\_\_%' OR name LIKE '%\_'
            THEN format('invalid domain name ''%s'': it may not contain __ nor end in _',
                        left(name, 80))
        WHEN length(name) > 37
            THEN format('''%s'' is too long for a domain: 37 characters at most (PGMQ''s queue '
                        'names have 47)', left(name, 80))
    END
$$;

-- The row of a domain, or the refusal for one that nobody registered.
CREATE OR REPLACE FUNCTION commandbus.known_domain(name text) RETURNS commandbus.domain
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_row commandbus.domain;
BEGIN
    SELECT * INTO found_row FROM commandbus.domain d WHERE d.domain = name;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('UNKNOWN_DOMAIN',
            format('domain ''%s'' is not registered', left(name, 80)),
            'Check the spelling (commandbus queue list), or register it: commandbus queue create '
            '<domain>.');
    END IF;
    RETURN found_row;
END
$$;

-- A reply goes to a queue that exists to hold replies, or nowhere. Those of processes are theirs
-- alone: what workers find there they take for replies to processes, and archive what is none.
CREATE OR REPLACE FUNCTION commandbus.check_reply_queue(name text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of_processes boolean := (SELECT r.of_processes FROM commandbus.reply_queue r
                             WHERE r.queue_name = name);
BEGIN
    IF of_processes THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('workers take what is in ''%s'' for replies to processes', name),
            'Name a queue that you read yourself (commandbus queue create DOMAIN --reply-queue '
            'NAME makes one); nothing was created or sent.');
    ELSIF name IS NOT NULL AND of_processes IS NULL THEN
        PERFORM commandbus.refuse('INVALID_NAME',
            format('unknown reply queue ''%s''', left(name, 80)),
            'Replies go to <domain>__replies of a registered domain, or to a queue made by '
            'commandbus queue create <domain> --reply-queue <name>; never to a __commands queue.');
    END IF;
END
$$;

-- What depends on the fleet's limit reads it after it has its locks, in a new statement.
CREATE OR REPLACE FUNCTION commandbus.refuse_isolation(name text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT commandbus.refuse('INVALID_OPERATION',
        format('%s works in READ COMMITTED only: an older snapshot does not know the fleet''s '
               'limit', name),
        format('Call %s in a transaction of its own with the default isolation.', name))
$$;

-- Whether a text is a UUID in its usual 36 characters. Without a regular expression: a forged
-- reply must not be dear.
CREATE OR REPLACE FUNCTION commandbus.is_uuid(value text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT length(value) = 36 AND translate(value, '0123456789abcdefABCDEF', '') = '----'
       AND substr(value, 9, 1) = '-' AND substr(value, 14, 1) = '-' AND substr(value, 19, 1) = '-'
       AND substr(value, 24, 1) = '-'
$$;

-- NULL also for a moment that never comes: one such row must not fail the claim of all others. What
-- was before 1970 is past all the same, and 0 is not a moment in C.
CREATE OR REPLACE FUNCTION commandbus.to_ms(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN moment < 'infinity'
                THEN floor(date_part('epoch', greatest(moment, '1970-01-01 00:00:01Z'))
                           * 1000)::bigint END
$$;

-- A string as JSON, null for NULL. STABLE as to_json is, or it would not be inlined.
CREATE OR REPLACE FUNCTION commandbus.quoted(value text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce(to_json(value)::text, 'null')
$$;
