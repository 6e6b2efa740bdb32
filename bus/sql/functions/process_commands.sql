-- Commands of processes: sending them, and leaving them behind.

-- Sends what the settled items of a call ask for: commands[k] is of item commands_of[k], which is
-- of process owners[i], or NULL if it was not settled, whose replies go to queues[i].
CREATE OR REPLACE FUNCTION commandbus.send_for_processes(commands commandbus.new_command[],
    commands_of integer[], owners uuid[], queues text[])
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    c record; -- the commands of one domain, column by column
BEGIN
    FOR c IN
        SELECT n.domain, array_agg(n.command_id) AS command_id,
               array_agg(n.process_id) AS process_id, array_agg(n.command_type) AS command_type,
               array_agg(n.data) AS data, array_agg(n.reply_to) AS reply_to,
               array_agg(n.max_attempts) AS max_attempts, array_agg(statement_timestamp()) AS vt,
               array_agg(n.timeout_seconds) AS timeout_seconds, min(n.problem) AS problem
        FROM (SELECT n.domain, n.command_id, n.command_type, n.max_attempts, n.timeout_seconds,
                     coalesce(n.data, '{}') AS data, owners[o.item] AS process_id,
                     -- '' for none: of one that a process sends with its end.
                     CASE WHEN n.reply_to = '' THEN NULL ELSE queues[o.item] END AS reply_to,
                     CASE WHEN d.payload_limit IS NULL THEN 'UNKNOWN_DOMAIN'
                          -- Derived from the process, as the record beside it says: no id that
                          -- others can have taken.
                          WHEN commandbus.is_derived_id(n.command_id) IS NOT TRUE
                          THEN 'INVALID_DATA: a command of a process needs its command_id, a UUID '
                               'of version 8'
                          ELSE commandbus.command_problem(n.command_type, coalesce(n.data, '{}'),
                                   n.max_attempts, 0, n.timeout_seconds, NULL, d.payload_limit)
                     END AS problem
              FROM unnest(commands) WITH ORDINALITY n
              CROSS JOIN LATERAL (SELECT commands_of[n.ordinality::integer] AS item) o
              LEFT JOIN LATERAL (SELECT d.payload_limit FROM commandbus.domain d
                                 WHERE d.domain = n.domain LIMIT 1) d ON true
              WHERE owners[o.item] IS NOT NULL) n
        GROUP BY n.domain ORDER BY n.domain
    LOOP
        IF c.problem = 'UNKNOWN_DOMAIN' THEN
            PERFORM commandbus.known_domain(c.domain);
            -- It was registered just now, and nothing has been checked by its limits.
            RAISE EXCEPTION 'domain % was registered just now', c.domain
                USING ERRCODE = 'serialization_failure',
                      HINT = 'Bring it again; nothing was settled.';
        ELSIF c.problem IS NOT NULL THEN
            PERFORM commandbus.refuse_problem(c.problem);
        END IF;
        PERFORM commandbus.put_commands(c.domain, c.command_id, c.process_id, c.command_type,
            c.data, c.reply_to, c.max_attempts, c.vt, c.timeout_seconds, NULL, NULL, c.process_id);
    END LOOP;
END
$$;

-- Takes back commands that nobody has ever received, with their final reply. One that was received,
-- or whose row or message somebody has locked at this moment, is left alone: its own end will tell.
CREATE OR REPLACE FUNCTION commandbus.cancel_unreceived(worker text, cancels jsonb[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    name   text;
    held   record; -- the commands of one domain, column by column
    locked bigint[];
BEGIN
    FOR name IN SELECT DISTINCT e ->> 'domain'
                FROM unnest(cancels) l(list), jsonb_array_elements(l.list) e
                ORDER BY 1 LOOP
        SELECT array_agg(c.command_id ORDER BY c.msg_id) AS ids,
               array_agg(c.msg_id ORDER BY c.msg_id) AS msg_ids,
               array_agg(e ->> 'reason' ORDER BY c.msg_id) AS reasons
        INTO held
        FROM unnest(cancels) l(list) CROSS JOIN LATERAL jsonb_array_elements(l.list) e
        CROSS JOIN LATERAL (
            SELECT c.command_id, c.msg_id FROM commandbus.command_metadata c
            WHERE c.command_id = (e ->> 'command_id')::uuid AND c.domain = name
              AND c.status = 'PENDING' AND c.lease_no = 0
            FOR UPDATE OF c SKIP LOCKED
        ) c
        WHERE e ->> 'domain' = name;
        CONTINUE WHEN held.ids IS NULL;

        -- Archives nothing when one is locked; the others are ours by then.
        locked := commandbus.move_messages(name || '__commands', NULL, held.msg_ids, NULL, NULL);
        IF locked IS NOT NULL THEN
            PERFORM commandbus.move_messages(name || '__commands', NULL,
                ARRAY(SELECT m FROM unnest(held.msg_ids) m WHERE m <> ALL (locked)), NULL, NULL);
        END IF;

        WITH canceled AS (
            UPDATE commandbus.command_metadata c
            SET status = 'CANCELED', completed_at = statement_timestamp(),
                updated_at = statement_timestamp()
            FROM unnest(held.ids, held.msg_ids, held.reasons) h(command_id, msg_id, reason)
            WHERE c.command_id = h.command_id AND c.domain = name
              AND h.msg_id <> ALL (coalesce(locked, '{}'))
            RETURNING c.command_id, c.correlation_id, c.process_id, c.reply_to, c.lease_no,
                      c.attempts, h.reason
        ), audited AS (
            INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker,
                                          details)
            SELECT c.command_id, c.lease_no, c.attempts, name, 'OPERATOR_CANCEL',
                   cancel_unreceived.worker, jsonb_build_object('reason', c.reason)
            FROM canceled c
        )
        SELECT array_agg(c.reply_to) AS queues, array_agg(c.process_id) AS process_ids,
               array_agg(commandbus.reply_message(c.command_id, c.correlation_id, 'CANCELED', NULL,
                                                  NULL, NULL, NULL, c.reason, true)) AS messages
        INTO held FROM canceled c WHERE c.reply_to IS NOT NULL;
        IF held.queues IS NOT NULL THEN
            PERFORM commandbus.give_replies(name, held.queues, held.messages, held.process_ids,
                                            cancel_unreceived.worker);
        END IF;
    END LOOP;
END
$$;

-- Ends commands in the troubleshooting queue whose failure their process goes on with ("failed":
-- true), with their final reply, which says what the failure was. An operator who was faster, or
-- who has one locked at this moment, decides: it is left alone. So is one that was retried and is
-- there again with another failure, of which its process has not judged: perhaps its outcome is not
-- known this time. The reply that tells of it is on its way.
CREATE OR REPLACE FUNCTION commandbus.end_failed(worker text, cancels jsonb[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    replies record; -- of one domain, column by column
BEGIN
    FOR replies IN
        WITH held AS MATERIALIZED (
            SELECT c.command_id, c.domain, e ->> 'reason' AS reason
            FROM unnest(cancels) l(list) CROSS JOIN LATERAL jsonb_array_elements(l.list) e
            CROSS JOIN LATERAL (
                SELECT c.command_id, c.domain FROM commandbus.command_metadata c
                WHERE c.command_id = (e ->> 'command_id')::uuid AND c.domain = e ->> 'domain'
                  AND c.status = 'IN_TROUBLESHOOTING_QUEUE'
                  AND (c.error_type::text, c.error_code)
                      IS NOT DISTINCT FROM (e ->> 'error_type', e ->> 'error_code')
                FOR UPDATE OF c SKIP LOCKED
            ) c
            WHERE (e ->> 'failed')::boolean
        ), ended AS (
            UPDATE commandbus.command_metadata c
            SET status = 'CANCELED', tsq_at = NULL, completed_at = statement_timestamp(),
                updated_at = statement_timestamp()
            FROM held h WHERE c.command_id = h.command_id AND c.domain = h.domain
            RETURNING c.*, h.reason
        ), audited AS (
            INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, worker,
                                          details)
            SELECT c.command_id, c.lease_no, c.attempts, c.domain, 'OPERATOR_CANCEL',
                   end_failed.worker,
                   jsonb_strip_nulls(jsonb_build_object('reason', c.reason,
                                                        'error_code', c.error_code, 'failed', true))
            FROM ended c
        )
        SELECT c.domain, array_agg(c.reply_to) AS queues, array_agg(c.process_id) AS process_ids,
               array_agg(commandbus.reply_message(c.command_id, c.correlation_id, 'CANCELED', NULL,
                                                  c.error_type, c.error_code, c.error_message,
                                                  c.reason, true)) AS messages
        FROM ended c WHERE c.reply_to IS NOT NULL GROUP BY c.domain ORDER BY c.domain
    LOOP
        PERFORM commandbus.give_replies(replies.domain, replies.queues, replies.messages,
                                        replies.process_ids, end_failed.worker);
    END LOOP;
END
$$;

-- Takes back, ends or asks after what the processes name: one that has ended cannot be canceled, so
-- who asks has not got its reply.
CREATE OR REPLACE FUNCTION commandbus.leave_commands(worker text, cancels jsonb[],
    process_ids uuid[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM commandbus.cancel_unreceived(worker, cancels);
    PERFORM commandbus.end_failed(worker, cancels);
    PERFORM commandbus.restore_replies(process_ids);
END
$$;
