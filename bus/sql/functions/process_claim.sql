-- Claiming processes: what is due, with a lease and a fence; and keeping that lease.

-- What happened and what has arrived: JSON arrays of arrays, in the order of cb_record_column and
-- cb_inbox_column. Put together as text: with json_build_array this was most of a claim. Without
-- SET, so that it becomes part of its callers' plans. Of a process that is too large nothing is
-- read but what operators have decided: whoever parks it needs no more, and must survive it.
CREATE OR REPLACE FUNCTION commandbus.process_content(process_id uuid, too_large boolean)
RETURNS TABLE (history text, inbox text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN NOT too_large THEN coalesce((
               SELECT '[' || string_agg('[' || concat_ws(',',
                          h.ordinal, '"' || h.kind || '"', '"' || h.status || '"',
                          commandbus.quoted(h.name), h.attempts, coalesce(h.send_no, 0),
                          coalesce(h.during, 0), coalesce('"' || h.command_id || '"', 'null'),
                          CASE WHEN h.command_id IS NULL THEN 'null,null'
                               ELSE commandbus.quoted(h.domain) || ','
                                    || commandbus.quoted(h.command_type) END,
                          coalesce(commandbus.to_ms(h.timeout_at), 0),
                          CASE WHEN h.error_code IS NULL THEN 'null,null'
                               ELSE commandbus.quoted(h.error_code) || ','
                                    || commandbus.quoted(h.error_message) END,
                          coalesce(h.result::text, 'null'), coalesce(h.opening::text, 'null'),
                          coalesce(h.patch::text, 'null'), coalesce(h.owes::text, 'null'),
                          CASE WHEN h.status = 'WAITING' AND h.command_id IS NOT NULL THEN
                              coalesce((SELECT '"' || c.status || '"'
                                        FROM commandbus.command_metadata c
                                        WHERE c.command_id = h.command_id
                                          AND c.domain = h.domain), 'null')
                          ELSE 'null' END,
                          CASE h.status WHEN 'WAITING'
                               THEN commandbus.to_ms(coalesce(h.begun_at, h.at)) ELSE 0 END,
                          CASE WHEN h.in_doubt THEN 'true' ELSE 'false' END) || ']',
                      ',' ORDER BY h.ordinal) || ']'
               FROM commandbus.process_history h
               WHERE h.process_id = process_content.process_id), '[]') END,
           coalesce((
               SELECT '[' || string_agg('[' || concat_ws(',',
                          i.seq, '"' || i.kind || '"', commandbus.quoted(i.name),
                          coalesce('"' || i.response_id || '"', 'null'), i.payload::text) || ']',
                      ',' ORDER BY i.seq) || ']'
               FROM commandbus.process_inbox i
               WHERE i.process_id = process_content.process_id
                 AND (NOT too_large OR i.kind = 'OPERATOR')), '[]')
$$;

-- The most that processes of this type may hold: its domain's.
CREATE OR REPLACE FUNCTION commandbus.content_limit_of(process_type text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce((SELECT d.content_limit FROM commandbus.process_type t
                     JOIN commandbus.domain d ON d.domain = t.domain
                     WHERE t.process_type = content_limit_of.process_type), 8388608);
END
$$;

-- How many bytes a claim of it reads, for the budget: what the row says, unless that is much. Then
-- it is measured, for the row counts what was replaced and consumed since, too.
CREATE OR REPLACE FUNCTION commandbus.bytes_to_read(process_id uuid, content_bytes bigint)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN content_bytes <= 1048576 THEN content_bytes
                ELSE commandbus.measured_content(process_id) END
$$;

-- Up to `quantity` processes of these types whose rows were written by no newer version than the
-- caller's. First those whose worker has died: they were begun, and a backlog may be older than the
-- ends of their leases. Then the types take turns by chance, so that none with an endless backlog
-- starves the others. Taken are as many as hold claim_bytes together, but at least one; the rest is
-- left as it is, for the next claim.
-- Stages, none if nothing is due:
--   1. rows of dead workers, then rows that are due, are locked; others' locks are skipped
--   2. the budget of bytes says how many are taken
--   3. batches whose first process this was are started
--   4. claimed: lease, fence and status; their content is read
CREATE OR REPLACE FUNCTION commandbus.claim_processes(worker text, process_types text[],
    versions integer[], quantity integer, vt_seconds double precision DEFAULT 30,
    claim_bytes bigint DEFAULT 8388608)
RETURNS SETOF commandbus.process_row LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- One plan for all calls, by index whatever the statistics of an empty table said when it was made.
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz; -- commandbus.now()
    lease    interval;
    look     record;
    -- What expired while the server was away: its holder gets one VT to come back.
    expires  boolean;
    most     bigint; -- of content; all types are of one domain. NULL: nothing here is large
    -- What was found, column by column; it is locked until the end of the transaction.
    places   tid[];
    sizes    bigint[];
    statuses commandbus.process_status[];
    wakes    timestamptz[];
    batches  uuid[];
    fits     integer; -- so many of them are taken
    total    bigint;
    size     bigint;
BEGIN
    IF (quantity > 0 AND vt_seconds > 0 AND vt_seconds <= 86400 AND worker <> ''
        AND cardinality(process_types) = cardinality(versions)) IS NOT TRUE THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            'quantity must be positive, vt_seconds at most a day, worker a name, and there is one '
            'version for each process type',
            'Correct the call; nothing was claimed.');
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            'claims are made in READ COMMITTED only: an older snapshot does not know the leases of '
            'others',
            'Call claim_processes in a transaction of its own with the default isolation.');
    END IF;
    lease := make_interval(secs => vt_seconds);
    -- One look is all that a claim of nothing costs, and those of dead workers, nearly never one,
    -- are looked for only if there are any. now() is read here and not called: a call costs a third
    -- of the look.
    SELECT m.moment,
           EXISTS (SELECT FROM commandbus.process p
                   WHERE p.process_type = ANY (process_types) AND p.wake_at <= m.moment
                     AND p.lease_owner IS NULL) AS is_due,
           EXISTS (SELECT FROM commandbus.process p
                   WHERE p.process_type = ANY (process_types) AND p.wake_at <= m.moment
                     AND p.lease_owner IS NOT NULL) AS is_leased,
           NOT EXISTS (SELECT FROM commandbus.uptime) AS is_back
    INTO look
    FROM (SELECT clock_timestamp() + c.moved_by AS moment FROM commandbus.clock c
          WHERE c.only_row) m;
    moment := look.moment;
    -- The first claim after the server came back notes when that was.
    expires := (look.is_leased OR look.is_back)
               AND statement_timestamp() >= commandbus.reclaims_from(vt_seconds);
    IF NOT (look.is_due OR expires) THEN
        RETURN;
    END IF;

    IF expires AND look.is_leased THEN
        SELECT array_agg(p.place), array_agg(p.bytes), array_agg(p.status), array_agg(p.wake_at),
               array_agg(p.batch_id), sum(p.bytes)
        INTO places, sizes, statuses, wakes, batches, total
        FROM (SELECT p.* FROM unnest(process_types, versions) t(process_type, version)
              CROSS JOIN LATERAL (
                  SELECT p.ctid AS place, p.status, p.wake_at, p.batch_id, p.content_bytes AS bytes
                  FROM commandbus.process p
                  WHERE p.process_type = t.process_type AND p.wake_at <= moment
                    AND p.version <= t.version
                    AND p.lease_owner IS NOT NULL AND p.lease_until <= statement_timestamp()
                  ORDER BY p.wake_at LIMIT claim_processes.quantity FOR UPDATE OF p SKIP LOCKED
              ) p LIMIT claim_processes.quantity) p;
    END IF;
    IF look.is_due AND coalesce(cardinality(places), 0) < quantity THEN
        SELECT places || array_agg(p.place), sizes || array_agg(p.bytes),
               statuses || array_agg(p.status), wakes || array_agg(p.wake_at),
               batches || array_agg(p.batch_id), coalesce(total, 0) + coalesce(sum(p.bytes), 0)
        INTO places, sizes, statuses, wakes, batches, total
        FROM (SELECT p.*
              FROM (SELECT * FROM unnest(process_types, versions) u(process_type, version)
                    ORDER BY random()) t
              CROSS JOIN LATERAL (
                  SELECT p.ctid AS place, p.status, p.wake_at, p.batch_id, p.content_bytes AS bytes
                  FROM commandbus.process p
                  WHERE p.process_type = t.process_type AND p.wake_at <= moment
                    AND p.version <= t.version AND p.lease_owner IS NULL
                  ORDER BY p.wake_at LIMIT claim_processes.quantity FOR UPDATE OF p SKIP LOCKED
              ) p LIMIT claim_processes.quantity - coalesce(cardinality(places), 0)) p;
    END IF;
    IF places IS NULL THEN
        RETURN;
    END IF;
    -- What is large is measured in a statement that began after the locks: it sees every response
    -- that was taken before.
    IF 1048576 < ANY (sizes) THEN
        SELECT array_agg(m.bytes ORDER BY m.ord), sum(m.bytes) INTO sizes, total
        FROM (SELECT d.ord, commandbus.bytes_to_read(p.process_id, p.content_bytes) AS bytes
              FROM unnest(places) WITH ORDINALITY d(place, ord)
              JOIN commandbus.process p ON p.ctid = d.place) m;
    END IF;
    -- Those that the budget has room for. One that is too large costs nothing: its content is not
    -- read.
    fits := cardinality(places);
    IF total > 1048576 THEN -- no limit is less
        most := commandbus.content_limit_of(process_types[1]);
    END IF;
    IF total > claim_bytes THEN
        fits := 0;
        total := 0;
        FOREACH size IN ARRAY sizes LOOP
            total := total + CASE WHEN size > most THEN 0 ELSE size END;
            EXIT WHEN total > claim_bytes AND fits > 0;
            fits := fits + 1;
        END LOOP;
    END IF;

    IF array_remove(batches[:fits], NULL) <> '{}' THEN
        WITH batch AS MATERIALIZED (
            -- The first member claimed starts its batch; one that is locked is started by the next.
            SELECT b.batch_id
            FROM (SELECT DISTINCT id FROM unnest(batches[:fits]) id WHERE id IS NOT NULL
                  ORDER BY id) m
            CROSS JOIN LATERAL (
                SELECT b.batch_id FROM commandbus.batch b
                WHERE b.batch_id = m.id AND b.status = 'PENDING'
                FOR UPDATE OF b SKIP LOCKED
            ) b
        ), started AS (
            UPDATE commandbus.batch b SET status = 'IN_PROGRESS', started_at = statement_timestamp()
            FROM batch WHERE b.batch_id = batch.batch_id
            RETURNING b.batch_id, b.domain
        )
        INSERT INTO commandbus.audit (domain, event_type, details)
        SELECT s.domain, 'BATCH_STARTED', jsonb_build_object('batch_id', s.batch_id) FROM started s;
    END IF;

    RETURN QUERY
    WITH claimed AS (
        UPDATE commandbus.process p
        SET lease_no = p.lease_no + 1, unsettled = p.unsettled + 1,
            lease_owner = claim_processes.worker, lease_until = statement_timestamp() + lease,
            wake_at = moment + lease, updated_at = moment, content_bytes = d.bytes,
            status = CASE WHEN p.status IN ('PENDING', 'WAITING_FOR_ASYNC', 'WAITING_FOR_REPLY',
                                            'WAITING_FOR_RETRY')
                          THEN 'EXECUTING' ELSE p.status END
        FROM unnest(places[:fits], sizes, statuses, wakes) d(place, bytes, status, wake_at)
        WHERE p.ctid = d.place
        RETURNING p.*, (d.bytes > most) IS TRUE AS is_large, d.status AS status_before,
                  d.wake_at AS due_at
    )
    SELECT c.process_id, c.domain, c.process_type, c.reply_queue, c.status_before::text,
           c.phase::text, c.error_code, c.error_message, c.current_step, c.current_wait, c.version,
           c.lease_no, c.settle_no, c.unsettled - 1, c.inbox_seq, commandbus.to_ms(moment),
           commandbus.to_ms(c.created_at), commandbus.to_ms(c.deadline_at),
           commandbus.to_ms(c.next_retry_at), commandbus.to_ms(c.next_wait_timeout_at),
           c.deadline_spent, c.leaving,
           CASE WHEN NOT c.is_large THEN c.initial_state ELSE '{}' END,
           CASE WHEN NOT c.is_large THEN c.state ELSE '{}' END, t.history, t.inbox,
           CASE WHEN isfinite(c.due_at)
                THEN (date_part('epoch', moment - c.due_at) * 1000000)::bigint ELSE 0 END,
           coalesce(most, (SELECT d.content_limit FROM commandbus.process_type t
                           JOIN commandbus.domain d ON d.domain = t.domain
                           WHERE t.process_type = process_types[1]), 8388608),
           CASE WHEN c.is_large THEN c.content_bytes END, fits < cardinality(places)
    FROM claimed c CROSS JOIN LATERAL commandbus.process_content(c.process_id, c.is_large) t;
END
$$;

-- Processes as they are, unclaimed, for reading only.
CREATE OR REPLACE FUNCTION commandbus.read_processes(process_ids uuid[])
RETURNS SETOF commandbus.process_row LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := commandbus.now();
BEGIN
    RETURN QUERY
    SELECT p.process_id, p.domain, p.process_type, p.reply_queue, p.status::text, p.phase::text,
           p.error_code, p.error_message, p.current_step, p.current_wait, p.version, p.lease_no,
           p.settle_no, p.unsettled, p.inbox_seq, commandbus.to_ms(moment),
           commandbus.to_ms(p.created_at), commandbus.to_ms(p.deadline_at),
           commandbus.to_ms(p.next_retry_at), commandbus.to_ms(p.next_wait_timeout_at),
           p.deadline_spent, p.leaving,
           CASE WHEN NOT s.is_large THEN p.initial_state ELSE '{}' END,
           CASE WHEN NOT s.is_large THEN p.state ELSE '{}' END, t.history, t.inbox, 0::bigint,
           s.most, CASE WHEN s.is_large THEN s.bytes END, false
    FROM commandbus.process p
    CROSS JOIN LATERAL (
        SELECT m.bytes, m.most, m.bytes > m.most AS is_large
        FROM (SELECT commandbus.bytes_to_read(p.process_id, p.content_bytes) AS bytes,
                     commandbus.content_limit_of(p.process_type) AS most OFFSET 0) m
    ) s
    CROSS JOIN LATERAL commandbus.process_content(p.process_id, s.is_large) t
    WHERE p.process_id = ANY (process_ids) ORDER BY p.process_id;
END
$$;

-- Ids of processes that have not ended, of one type or all, in order after a given one.
CREATE OR REPLACE FUNCTION commandbus.running_processes(process_type text DEFAULT NULL,
    after uuid DEFAULT NULL, max_processes integer DEFAULT 1000)
RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.process_id FROM commandbus.process p
    WHERE p.process_id > coalesce(running_processes.after, '00000000-0000-0000-0000-000000000000')
      AND (running_processes.process_type IS NULL
           OR p.process_type = running_processes.process_type)
      AND p.status NOT IN ('COMPLETED', 'CANCELED', 'COMPENSATED', 'FAILED')
    ORDER BY p.process_id LIMIT running_processes.max_processes
$$;
