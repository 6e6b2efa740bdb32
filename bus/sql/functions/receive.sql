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
                    PERFORM commandbus.give_replies(sort_out_messages.domain,
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
-- Stages, each a statement of its own, so that what is rare costs nothing when it is not needed:
--   1. limited domains: as many places as are free, else nothing (free_places)
--   2. messages that are due become invisible until the lease ends ("<queue>.take")
--   3. their commands are locked, as many as claim_bytes allow
--   4. audit records, places of the fleet limit, silent holders that are taken over from
--   5. rows, which are the answer
--   6. messages without a claimed command: put back, released, or poison (sort_out_messages)
--   7. batches whose first command this was are started
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
    known     record;
    lease_end timestamptz := statement_timestamp() + make_interval(secs => receive.vt_seconds);
    spots     tid[];
    taken     record;
    held      record; -- the commands that are claimed, column by column
    claimed   integer;
    expires   boolean;
    -- As many as we take, each as long as may be, are more than claim_bytes: count them.
    large     boolean;
    -- Those that claim_bytes leave no room for, and since when they are due.
    no_room    bigint[];
    no_room_at timestamptz[];
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
    SELECT d.fleet_limit, d.payload_limit,
           (SELECT u.since FROM commandbus.uptime u WHERE u.only_row) AS up_since
    INTO known FROM commandbus.domain d WHERE d.domain = receive.domain;
    IF NOT FOUND THEN
        PERFORM commandbus.known_domain(receive.domain);
    END IF;
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

    taken := commandbus.take_of(receive.domain || '__commands', quantity, lease_end, after);
    IF taken.msg_ids IS NULL THEN
        RETURN;
    END IF;
    large := quantity::bigint * (known.payload_limit + 65536) > claim_bytes; -- data and headers
    -- Nearly always the server has served for long.
    expires := (greatest(known.up_since, pg_postmaster_start_time())
                + make_interval(secs => receive.vt_seconds) <= statement_timestamp()
                AND known.up_since IS NOT NULL)
               OR statement_timestamp() >= commandbus.reclaims_from(receive.vt_seconds);

    SELECT array_agg(c.place) AS places, array_agg(t.msg_id) AS msg_ids,
           array_agg(t.visible_at) AS visible_at, array_agg(c.command_id) AS command_ids,
           array_agg(c.lease_no + 1) AS lease_nos, array_agg(c.attempts + 1) AS attempts,
           array_agg(coalesce(c.timeout_seconds, receive.default_timeout_seconds)) AS timeouts,
           bool_or(c.status = 'IN_PROGRESS') AS taken_over,
           bool_or(c.batch_id IS NOT NULL) AS in_batch,
           CASE WHEN large THEN array_agg(c.bytes) END AS bytes
    INTO held
    FROM unnest(taken.msg_ids, taken.visible_at) t(msg_id, visible_at)
    -- LATERAL: one look-up a message, whatever the planner thinks of a table it saw empty.
    CROSS JOIN LATERAL (
        SELECT c.ctid AS place, c.command_id, c.lease_no, c.attempts, c.timeout_seconds, c.status,
               c.batch_id,
               CASE WHEN large
                    THEN commandbus.json_bytes(c.data) + commandbus.json_bytes(c.headers)
                    END AS bytes
        FROM commandbus.command_metadata c
        WHERE c.msg_id = t.msg_id AND c.domain = receive.domain
          AND (c.status = 'PENDING'
               OR (c.status = 'IN_PROGRESS' AND c.lease_until <= statement_timestamp()
                   AND expires))
          AND c.attempts < coalesce(c.max_attempts, receive.default_max_attempts)
        LIMIT 1 FOR UPDATE OF c SKIP LOCKED
    ) c;
    claimed := coalesce(cardinality(held.places), 0);
    IF large AND (SELECT sum(b) FROM unnest(held.bytes) b) > claim_bytes THEN
        SELECT count(*) FILTER (WHERE b.bytes_before < claim_bytes) INTO claimed
        FROM (SELECT sum(b.bytes) OVER (ORDER BY b.ord) - b.bytes AS bytes_before
              FROM unnest(held.bytes) WITH ORDINALITY b(bytes, ord)) b;
        no_room := held.msg_ids[claimed + 1:];
        no_room_at := held.visible_at[claimed + 1:];
        held.places := held.places[:claimed];
    END IF;

    IF claimed > 0 THEN
        -- Commands that there is no room for have no place any more: unnest() says NULL.
        INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker)
        SELECT h.command_id, h.lease_no, h.attempt, receive.domain, 'RECEIVED', receive.worker
        FROM unnest(held.places, held.command_ids, held.lease_nos, held.attempts)
            h(place, command_id, lease_no, attempt)
        WHERE h.place IS NOT NULL;
        IF known.fleet_limit > 0 THEN
            UPDATE commandbus.fleet_place p
            SET turn = p.turn + 1, command_id = h.command_id, lease_no = h.lease_no,
                worker = receive.worker, timeout_seconds = h.timeout_seconds,
                held_until = lease_end + make_interval(secs => h.timeout_seconds)
            FROM unnest(held.places, spots, held.command_ids, held.lease_nos, held.timeouts)
                h(place, spot, command_id, lease_no, timeout_seconds)
            WHERE p.ctid = h.spot AND h.place IS NOT NULL;
        ELSIF held.taken_over THEN
            -- Under a limit a silent holder has its place. Without one it is remembered, in case
            -- that a limit is set.
            INSERT INTO commandbus.fleet_place (domain, place, command_id, lease_no, worker,
                                                timeout_seconds, held_until)
            SELECT receive.domain, 0, c.command_id, c.lease_no, c.lease_owner, h.timeout_seconds,
                   c.lease_until + make_interval(secs => h.timeout_seconds)
            FROM unnest(held.places, held.timeouts) h(place, timeout_seconds)
            CROSS JOIN LATERAL (
                SELECT c.* FROM commandbus.command_metadata c
                WHERE c.ctid = h.place AND c.status = 'IN_PROGRESS'
            ) c
            WHERE c.lease_until + make_interval(secs => h.timeout_seconds) > statement_timestamp();
        END IF;

        RETURN QUERY
        UPDATE commandbus.command_metadata c
        SET status = 'IN_PROGRESS', attempts = c.attempts + 1, lease_no = c.lease_no + 1,
            lease_owner = receive.worker, lease_until = lease_end,
            updated_at = statement_timestamp(),
            max_attempts = coalesce(c.max_attempts, receive.default_max_attempts),
            timeout_seconds = coalesce(c.timeout_seconds, receive.default_timeout_seconds)
        FROM unnest(held.places, held.visible_at) h(place, visible_at)
        WHERE c.ctid = h.place
        RETURNING NULL::text, c.command_id, c.msg_id, c.lease_no, c.attempts, c.max_attempts,
                  c.timeout_seconds, c.command_type, c.correlation_id, c.reply_to, c.batch_id,
                  CASE WHEN isfinite(h.visible_at)
                       THEN (date_part('epoch', statement_timestamp() - h.visible_at)
                             * 1000000)::bigint
                       ELSE 0 END,
                  h.visible_at, c.headers, c.data;
    END IF;

    IF claimed < cardinality(taken.msg_ids) THEN
        IF cardinality(no_room) > 0 THEN
            -- What the claim had no room for keeps its place in the queue.
            EXECUTE format('UPDATE pgmq.%I q SET vt = t.visible_at, read_ct = q.read_ct - 1 '
                           'FROM unnest($1, $2) t(msg_id, visible_at) WHERE q.msg_id = t.msg_id',
                           'q_' || receive.domain || '__commands')
            USING no_room, no_room_at;
            RETURN QUERY
            SELECT 'MORE', NULL::uuid, NULL::bigint, NULL::bigint, NULL::integer, NULL::integer,
                   NULL::integer, NULL::text, NULL::uuid, NULL::text, NULL::uuid, NULL::bigint,
                   NULL::timestamptz, NULL::jsonb, NULL::jsonb;
        END IF;
        RETURN QUERY
        SELECT s.event, s.command_id, s.msg_id, NULL::bigint, NULL::integer, NULL::integer,
               NULL::integer, NULL::text, NULL::uuid, NULL::text, NULL::uuid, NULL::bigint,
               NULL::timestamptz, NULL::jsonb, NULL::jsonb
        FROM commandbus.sort_out_messages(receive.domain, receive.worker,
            ARRAY(SELECT unnest(taken.msg_ids) EXCEPT SELECT unnest(held.msg_ids) ORDER BY 1),
            vt_seconds, default_max_attempts) s;
    END IF;

    IF held.in_batch AND EXISTS (SELECT FROM commandbus.batch b
                                 WHERE b.status = 'PENDING' AND b.domain = receive.domain) THEN
        PERFORM commandbus.start_batches(receive.domain, taken.msg_ids);
    END IF;
END
$$;
