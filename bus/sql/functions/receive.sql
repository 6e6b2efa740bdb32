-- Claiming: up to `quantity` due commands of a domain, each with a lease and a fence.
--
-- Messages are found by the index on vt: pgmq.read walks the primary key past every invisible row.
-- `after` is a place in that index where the last claim ended; dead entries before it are not
-- walked over again. Callers start at -infinity again now and then, once a second when that is
-- cheap.

-- From when on leases that have run out can be taken: what expired while the server was away is its
-- holder's for one more visibility timeout after it came back, so that an outage does not make the
-- fleet run everything twice.
CREATE OR REPLACE FUNCTION commandbus.reclaims_from(vt_seconds double precision) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    since timestamptz := (SELECT u.since FROM commandbus.uptime u WHERE u.only_row);
BEGIN
    IF since IS NULL THEN
        INSERT INTO commandbus.uptime (since) VALUES (statement_timestamp()) ON CONFLICT DO NOTHING;
        since := statement_timestamp();
    END IF;
    RETURN greatest(since, pg_postmaster_start_time()) + make_interval(secs => vt_seconds);
END
$$;

-- Messages that were taken but whose command was not: each is archived, put off or given back, so
-- that none of them loops and none holds up the rest of its claim. Returns what was noteworthy.
CREATE OR REPLACE FUNCTION commandbus.sort_out_messages(domain text, worker text,
    left_over bigint[], vt_seconds double precision, default_max_attempts integer)
RETURNS TABLE (event text, command_id uuid, msg_id bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    queue_name text := sort_out_messages.domain || '__commands';
    found_row  record;
    next_vt    timestamptz;
    one        bigint;
BEGIN
    FOREACH one IN ARRAY left_over LOOP
        SELECT c.command_id, c.correlation_id, c.status, c.attempts, c.lease_no, c.lease_until,
               c.lease_owner, c.timeout_seconds, c.process_id, c.reply_to,
               coalesce(c.max_attempts, default_max_attempts) AS max_attempts
        INTO found_row
        FROM commandbus.command_metadata c
        WHERE c.msg_id = one AND c.domain = sort_out_messages.domain
        ORDER BY c.status NOT IN ('PENDING', 'IN_PROGRESS') LIMIT 1;

        IF NOT FOUND OR found_row.status NOT IN ('PENDING', 'IN_PROGRESS') THEN
            PERFORM commandbus.archive_messages(queue_name, ARRAY[one]);
            INSERT INTO commandbus.audit (command_id, domain, event_type, worker, details)
            VALUES (found_row.command_id, sort_out_messages.domain, 'POISON_ARCHIVED',
                    sort_out_messages.worker,
                    jsonb_build_object('msg_id', one, 'queue', queue_name, 'reason',
                        CASE WHEN found_row.command_id IS NULL
                             THEN 'no command stands behind this message'
                             ELSE 'the command is ' || found_row.status END));
            RETURN QUERY SELECT 'POISON_ARCHIVED', found_row.command_id, one;
            CONTINUE;
        END IF;

        next_vt := CASE
            WHEN found_row.status = 'PENDING' THEN statement_timestamp()
            -- Renewed after the message came due: the lease on the row is what counts.
            WHEN found_row.lease_until > statement_timestamp() THEN found_row.lease_until
            -- Expired while the server was away: its holder gets one VT to come back.
            ELSE greatest(statement_timestamp(), commandbus.reclaims_from(vt_seconds))
        END;
        IF next_vt <= statement_timestamp() AND found_row.attempts >= found_row.max_attempts THEN
            UPDATE commandbus.command_metadata c
            SET status = 'IN_TROUBLESHOOTING_QUEUE', tsq_at = statement_timestamp(),
                updated_at = statement_timestamp(),
                -- The fence moves on: what the silent holder may still bring is STALE.
                lease_no = c.lease_no + 1, lease_owner = NULL, lease_until = NULL,
                error_type = 'TRANSIENT', error_code = 'LEASE_EXHAUSTED',
                error_message = 'its last run ended without an outcome: the worker died or lost '
                                'its lease'
            WHERE c.ctid = (SELECT l.ctid FROM commandbus.command_metadata l
                            WHERE l.command_id = found_row.command_id
                              AND l.domain = sort_out_messages.domain
                              AND l.status IN ('PENDING', 'IN_PROGRESS')
                              AND l.lease_no = found_row.lease_no
                              -- Renewed since it was read: then its holder lives.
                              AND l.lease_until IS NOT DISTINCT FROM found_row.lease_until
                            FOR UPDATE SKIP LOCKED);
            IF FOUND THEN
                PERFORM commandbus.archive_messages(queue_name, ARRAY[one]);
                PERFORM commandbus.remember_silent(sort_out_messages.domain, found_row.command_id,
                    found_row.lease_no, found_row.lease_owner, found_row.timeout_seconds,
                    found_row.lease_until);
                INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type,
                                              worker, details)
                -- The worker is who ran it last, not who found that it has no end. The fence is the
                -- new one: under the old one a run began and never ended.
                VALUES (found_row.command_id, found_row.lease_no + 1, found_row.attempts,
                        sort_out_messages.domain, 'MOVED_TO_TSQ', found_row.lease_owner,
                        jsonb_build_object('error_type', 'TRANSIENT',
                                           'error_code', 'LEASE_EXHAUSTED',
                                           'found_by', sort_out_messages.worker));
                IF found_row.reply_to IS NOT NULL THEN
                    PERFORM commandbus.send_replies(sort_out_messages.domain,
                        ARRAY[found_row.reply_to],
                        ARRAY[commandbus.reply_message(found_row.command_id,
                              found_row.correlation_id, 'FAILED', NULL, 'TRANSIENT',
                              'LEASE_EXHAUSTED', 'its last run ended without an outcome: the '
                              'worker died or lost its lease', NULL, false)],
                        ARRAY[found_row.process_id], sort_out_messages.worker);
                END IF;
                RETURN QUERY SELECT 'LEASE_EXHAUSTED', found_row.command_id, one;
                CONTINUE;
            END IF;
        END IF;

        -- Somebody holds the command's row for a moment: the message comes again soon.
        EXECUTE format('UPDATE pgmq.%I SET vt = $2, read_ct = read_ct - 1 WHERE msg_id = $1',
                       'q_' || queue_name)
        USING one, greatest(next_vt, statement_timestamp() + interval '100 milliseconds');
    END LOOP;
END
$$;

-- The first member claimed starts its batch. A batch that somebody adds to just now is started by
-- the next claim.
CREATE OR REPLACE FUNCTION commandbus.start_batches(domain text, msg_ids bigint[]) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH waiting AS MATERIALIZED (
        SELECT b.batch_id FROM commandbus.batch b
        WHERE b.status = 'PENDING' AND b.domain = start_batches.domain AND b.batch_id IN (
            SELECT c.batch_id FROM commandbus.command_metadata c
            WHERE c.msg_id = ANY (msg_ids) AND c.domain = start_batches.domain
              AND c.batch_id IS NOT NULL)
        ORDER BY b.batch_id FOR UPDATE SKIP LOCKED
    ), started AS (
        UPDATE commandbus.batch b SET status = 'IN_PROGRESS', started_at = statement_timestamp()
        FROM waiting w WHERE b.batch_id = w.batch_id
        RETURNING b.batch_id
    )
    INSERT INTO commandbus.audit (domain, event_type, details)
    SELECT start_batches.domain, 'BATCH_STARTED', jsonb_build_object('batch_id', s.batch_id)
    FROM started s
$$;

-- What it reads is bounded: commands with claim_bytes of text together, and one more; the rest is
-- put back as it was, and a row with the event MORE says so. A command whose lease ran out is due
-- since then, and comes after those that were due before: it runs again as soon as one that was
-- sent at that moment would.
-- Stages:
--   1. limited domains: as many places as are free, else nothing (free_places)
--   2. messages that are due become invisible until the lease ends ("<queue>.take")
--   3. held, counted: their commands are locked, as many as claim_bytes allow
--   4. claimed, audited, placed, silent: row, audit record and place of the fleet limit, in one
--      statement
--   5. messages without a claimed command: put back, released, or poison (sort_out_messages)
--   6. batches whose first command this was are started
CREATE OR REPLACE FUNCTION commandbus.receive(domain text, worker text, quantity integer,
    vt_seconds double precision DEFAULT 30, default_max_attempts integer DEFAULT 3,
    default_timeout_seconds integer DEFAULT 30, after timestamptz DEFAULT '-infinity',
    claim_bytes bigint DEFAULT 33554432)
RETURNS TABLE (event text, command_id uuid, msg_id bigint, lease_no bigint, attempt integer,
               max_attempts integer, timeout_seconds integer, command_type text,
               correlation_id uuid, reply_to text, batch_id uuid, waited_us bigint,
               visible_at timestamptz, headers jsonb, data jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- One plan for all calls, by index whatever the statistics of an empty table said when it was made.
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off
-- Claims of a limited domain take turns. Who waits for somebody that does not go on has other
-- domains to serve.
SET lock_timeout = '500ms' AS $$
#variable_conflict use_column
DECLARE
    known     commandbus.domain;
    lease_end timestamptz := statement_timestamp() + make_interval(secs => receive.vt_seconds);
    spots     tid[];
    taken     record;
    served    integer;
    expires   boolean;
    -- As many as we take, each as long as may be, are more than claim_bytes: count them.
    large     boolean;
    left_over bigint[];
    put_back  bigint[];
BEGIN
    IF (quantity > 0 AND vt_seconds > 0 AND vt_seconds <= 86400 AND default_max_attempts > 0
        AND default_timeout_seconds > 0
        AND worker <> '' AND after IS NOT NULL AND claim_bytes > 0) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'quantity, default_max_attempts, default_timeout_seconds and claim_bytes must be '
            'positive, vt_seconds at most a day, and worker a name',
            'Correct the call; nothing was claimed.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse_isolation('receive');
    END IF;
    -- Before the limit is read: set_fleet_limit() waits for whoever claims by the old one, and we
    -- for it.
    PERFORM pg_advisory_xact_lock_shared(
        hashtextextended('commandbus.claims.' || receive.domain, 0));
    known := commandbus.known_domain(receive.domain);
    IF known.fleet_limit > 0 THEN
        -- A claimer that vanishes while its answer is on the way has its transaction open, and the
        -- domain locked for the whole fleet, until the server gives it up: after seconds, and not a
        -- quarter of an hour.
        PERFORM set_config('tcp_user_timeout', '5000', true);
        spots := commandbus.free_places(receive.domain, quantity);
        quantity := cardinality(spots);
        IF (quantity > 0) IS NOT TRUE THEN
            RETURN;
        END IF;
    END IF;

    EXECUTE format('SELECT * FROM commandbus.%I($1, $2, $3)', receive.domain || '__commands.take')
    INTO taken USING quantity, lease_end, after;
    IF taken.msg_ids IS NULL THEN
        RETURN;
    END IF;
    large := quantity::bigint * (known.payload_limit + 65536) > claim_bytes; -- data and headers
    expires := statement_timestamp() >= commandbus.reclaims_from(receive.vt_seconds);

    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT c.*, t.visible_at, t.msg_id
        FROM unnest(taken.msg_ids, taken.visible_at) t(msg_id, visible_at)
        -- LATERAL: one look-up a message, whatever the planner thinks of a table it saw empty.
        CROSS JOIN LATERAL (
            SELECT c.ctid AS place, c.status, c.lease_owner, c.lease_until,
                   CASE WHEN large
                        THEN commandbus.json_bytes(c.data) + commandbus.json_bytes(c.headers)
                        ELSE 0 END AS bytes
            FROM commandbus.command_metadata c
            WHERE c.msg_id = t.msg_id AND c.domain = receive.domain
              AND (c.status = 'PENDING'
                   OR (c.status = 'IN_PROGRESS' AND c.lease_until <= statement_timestamp()
                       AND expires))
              AND c.attempts < coalesce(c.max_attempts, receive.default_max_attempts)
            LIMIT 1 FOR UPDATE OF c SKIP LOCKED
        ) c
    ), counted AS (
        SELECT h.*, sum(h.bytes) OVER (ORDER BY h.visible_at, h.msg_id ROWS UNBOUNDED PRECEDING)
                    - h.bytes AS bytes_before
        FROM held h
    ), claimed AS (
        UPDATE commandbus.command_metadata c
        SET status = 'IN_PROGRESS', attempts = c.attempts + 1, lease_no = c.lease_no + 1,
            lease_owner = receive.worker, lease_until = lease_end,
            updated_at = statement_timestamp(),
            max_attempts = coalesce(c.max_attempts, receive.default_max_attempts),
            timeout_seconds = coalesce(c.timeout_seconds, receive.default_timeout_seconds)
        FROM counted held WHERE c.ctid = held.place AND held.bytes_before < claim_bytes
        RETURNING c.command_id, c.msg_id, c.lease_no, c.attempts, c.max_attempts, c.timeout_seconds,
                  c.command_type, c.correlation_id, c.reply_to, c.batch_id, held.visible_at,
                  c.headers, c.data, held.status AS former_status, held.lease_owner AS former_owner,
                  held.lease_until AS former_until
    ), audited AS (
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker)
        SELECT c.command_id, c.lease_no, c.attempts, receive.domain, 'RECEIVED', receive.worker
        FROM claimed c
    ), placed AS (
        UPDATE commandbus.fleet_place p
        SET turn = p.turn + 1, command_id = c.command_id, lease_no = c.lease_no,
            worker = receive.worker, timeout_seconds = c.timeout_seconds,
            held_until = lease_end + make_interval(secs => c.timeout_seconds)
        FROM (SELECT c.command_id, c.lease_no, c.timeout_seconds,
                     spots[row_number() OVER ()] AS spot
              FROM claimed c) c
        WHERE known.fleet_limit > 0 AND p.ctid = c.spot
    ), silent AS (
        -- Under a limit it has its place. Without one it is remembered, in case that a limit is
        -- set.
        INSERT INTO commandbus.fleet_place (domain, place, command_id, lease_no, worker,
                                            timeout_seconds, held_until)
        SELECT receive.domain, 0, c.command_id, c.lease_no - 1, c.former_owner, c.timeout_seconds,
               c.former_until + make_interval(secs => c.timeout_seconds)
        FROM claimed c
        WHERE c.former_status = 'IN_PROGRESS' AND known.fleet_limit = 0
          AND c.former_until + make_interval(secs => c.timeout_seconds) > statement_timestamp()
    )
    SELECT NULL::text, c.command_id, c.msg_id, c.lease_no, c.attempts, c.max_attempts,
           c.timeout_seconds, c.command_type, c.correlation_id, c.reply_to, c.batch_id,
           CASE WHEN isfinite(c.visible_at)
                THEN (date_part('epoch', statement_timestamp() - c.visible_at) * 1000000)::bigint
                ELSE 0 END,
           c.visible_at, c.headers, c.data
    FROM claimed c;
    GET DIAGNOSTICS served = ROW_COUNT;

    IF served < cardinality(taken.msg_ids) THEN
        left_over := ARRAY(
            SELECT t.msg_id FROM unnest(taken.msg_ids) t(msg_id)
            WHERE NOT EXISTS (SELECT FROM commandbus.command_metadata c
                              WHERE c.msg_id = t.msg_id AND c.domain = receive.domain
                                AND c.status = 'IN_PROGRESS'
                                AND c.lease_owner = receive.worker AND c.lease_until = lease_end)
            ORDER BY 1);
        -- What the claim had no room for keeps its place in the queue.
        IF large AND (SELECT sum(c.bytes) FROM unnest(taken.msg_ids) t(msg_id) CROSS JOIN LATERAL (
                SELECT commandbus.json_bytes(c.data) + commandbus.json_bytes(c.headers) AS bytes
                FROM commandbus.command_metadata c
                WHERE c.msg_id = t.msg_id AND c.domain = receive.domain
                  AND t.msg_id <> ALL (left_over)
                LIMIT 1
            ) c) >= claim_bytes THEN
            put_back := ARRAY(SELECT l FROM unnest(left_over) l WHERE EXISTS (
                SELECT FROM commandbus.command_metadata c
                WHERE c.msg_id = l AND c.domain = receive.domain
                  AND (c.status = 'PENDING'
                       OR (c.status = 'IN_PROGRESS' AND c.lease_until <= statement_timestamp()
                           AND expires
                           AND c.attempts < coalesce(c.max_attempts,
                                                     receive.default_max_attempts)))));
            left_over := ARRAY(SELECT l FROM unnest(left_over) l WHERE l <> ALL (put_back)
                               ORDER BY 1);
            EXECUTE format('UPDATE pgmq.%I q SET vt = t.visible_at, read_ct = q.read_ct - 1 '
                           'FROM unnest($1, $2) t(msg_id, visible_at) '
                           'WHERE q.msg_id = t.msg_id AND t.msg_id = ANY ($3)',
                           'q_' || receive.domain || '__commands')
            USING taken.msg_ids, taken.visible_at, put_back;
            RETURN QUERY
            SELECT 'MORE', NULL::uuid, NULL::bigint, NULL::bigint, NULL::integer, NULL::integer,
                   NULL::integer, NULL::text, NULL::uuid, NULL::text, NULL::uuid, NULL::bigint,
                   NULL::timestamptz, NULL::jsonb, NULL::jsonb;
        END IF;
        RETURN QUERY
        SELECT s.event, s.command_id, s.msg_id, NULL::bigint, NULL::integer, NULL::integer,
               NULL::integer, NULL::text, NULL::uuid, NULL::text, NULL::uuid, NULL::bigint,
               NULL::timestamptz, NULL::jsonb, NULL::jsonb
        FROM commandbus.sort_out_messages(receive.domain, receive.worker, left_over, vt_seconds,
                                          default_max_attempts) s;
    END IF;

    IF EXISTS (SELECT FROM commandbus.batch b
               WHERE b.status = 'PENDING' AND b.domain = receive.domain) THEN
        PERFORM commandbus.start_batches(receive.domain, taken.msg_ids);
    END IF;
END
$$;
