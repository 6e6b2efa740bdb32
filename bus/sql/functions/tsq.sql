-- The troubleshooting queue. Each decision is one guarded transition: of two clicks the second
-- finds the command elsewhere and is refused.

-- Locks the command, or refuses.
CREATE OR REPLACE FUNCTION commandbus.in_tsq(domain text, command_id uuid, operator text)
RETURNS commandbus.command_metadata LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held commandbus.command_metadata;
BEGIN
    IF coalesce(btrim(operator), '') = '' THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'who decides? operator is empty',
                                  'Give the operator''s name.');
    END IF;
    SELECT * INTO held FROM commandbus.command_metadata c
    WHERE c.command_id = in_tsq.command_id AND c.domain = in_tsq.domain FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('COMMAND_NOT_FOUND',
                                  format('domain ''%s'' has no command %s', domain, command_id),
                                  'Check domain and id: commandbus tsq list.');
    ELSIF held.status <> 'IN_TROUBLESHOOTING_QUEUE' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('command %s is %s, not in the troubleshooting queue', command_id, held.status),
            'Somebody may have been faster: commandbus command show ' || command_id
            || '. Nothing changed.');
    END IF;
    RETURN held;
END
$$;

CREATE OR REPLACE FUNCTION commandbus.audit_decision(held commandbus.command_metadata,
    event_type text, operator text, reason text)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO commandbus.audit (command_id, lease_no, attempt, domain, event_type, operator,
                                  db_user, details)
    VALUES (held.command_id, held.lease_no, held.attempts, held.domain, audit_decision.event_type,
            audit_decision.operator, session_user,
            jsonb_strip_nulls(jsonb_build_object('reason', audit_decision.reason,
                                                 'error_code', held.error_code)))
$$;

-- Back to PENDING with a new message and attempts counted anew. No reply: the final one is to come.
CREATE OR REPLACE FUNCTION commandbus.tsq_retry(domain text, command_id uuid, operator text,
    reason text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held       commandbus.command_metadata
                   := commandbus.in_tsq(tsq_retry.domain, tsq_retry.command_id, tsq_retry.operator);
    new_msg_id bigint;
BEGIN
    EXECUTE format('INSERT INTO pgmq.%I (vt, message, headers) '
                   'VALUES (statement_timestamp(), $1, $2) RETURNING msg_id',
                   'q_' || held.domain || '__commands')
    INTO new_msg_id
    USING commandbus.command_message(held.domain, held.command_type, held.command_id,
                                     held.correlation_id, held.data, held.reply_to), held.headers;
    UPDATE commandbus.command_metadata c
    SET status = 'PENDING', attempts = 0, msg_id = new_msg_id, tsq_at = NULL, error_type = NULL,
        error_code = NULL, error_message = NULL, updated_at = statement_timestamp()
    WHERE c.command_id = held.command_id AND c.domain = held.domain;
    PERFORM commandbus.audit_decision(held, 'OPERATOR_RETRY', tsq_retry.operator, tsq_retry.reason);
    PERFORM commandbus.wake(held.domain || '__commands');
END
$$;

-- The end of a command by an operator's decision, with its final reply. Its batch is closed after
-- the commit, by the caller or by housekeeping: see close_batch.
CREATE OR REPLACE FUNCTION commandbus.end_by_operator(held commandbus.command_metadata,
    status commandbus.command_status, event_type text, operator text, reason text, result jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE commandbus.command_metadata c
    SET status = end_by_operator.status, result = end_by_operator.result, tsq_at = NULL,
        error_type = CASE end_by_operator.status WHEN 'CANCELED' THEN c.error_type END,
        error_code = CASE end_by_operator.status WHEN 'CANCELED' THEN c.error_code END,
        error_message = CASE end_by_operator.status WHEN 'CANCELED' THEN c.error_message END,
        completed_at = statement_timestamp(), updated_at = statement_timestamp()
    WHERE c.command_id = held.command_id AND c.domain = held.domain;
    PERFORM commandbus.audit_decision(held, end_by_operator.event_type, end_by_operator.operator,
                                      end_by_operator.reason);
    IF held.reply_to IS NOT NULL THEN
        PERFORM commandbus.give_replies(held.domain, ARRAY[held.reply_to],
            ARRAY[commandbus.reply_message(held.command_id, held.correlation_id,
                  CASE end_by_operator.status WHEN 'COMPLETED' THEN 'SUCCESS' ELSE 'CANCELED' END,
                  end_by_operator.result, NULL, NULL, NULL, end_by_operator.reason, true)],
            ARRAY[held.process_id]);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION commandbus.tsq_cancel(domain text, command_id uuid, operator text,
    reason text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(btrim(reason), '') = '' THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a cancel needs a reason',
                                  'The sender gets it with the reply; nothing changed.');
    END IF;
    PERFORM commandbus.end_by_operator(
        commandbus.in_tsq(tsq_cancel.domain, tsq_cancel.command_id, tsq_cancel.operator),
        'CANCELED', 'OPERATOR_CANCEL', operator, reason, NULL);
END
$$;

CREATE OR REPLACE FUNCTION commandbus.tsq_complete(domain text, command_id uuid, operator text,
    reason text DEFAULT NULL, result jsonb DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    payload_limit integer := (commandbus.known_domain(tsq_complete.domain)).payload_limit;
BEGIN
    IF octet_length(result::text) > payload_limit THEN
        PERFORM commandbus.refuse('PAYLOAD_TOO_LARGE',
            format('the result has %s bytes, the limit is %s', octet_length(result::text),
                   payload_limit),
            'Give a shorter one; nothing changed.');
    ELSIF commandbus.is_too_deep(result) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'the result is nested deeper than 32 levels',
                                  'Flatten it; nothing changed.');
    END IF;
    PERFORM commandbus.end_by_operator(
        commandbus.in_tsq(tsq_complete.domain, tsq_complete.command_id, tsq_complete.operator),
        'COMPLETED', 'OPERATOR_COMPLETE', operator, reason, result);
END
$$;
