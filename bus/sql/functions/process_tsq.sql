-- Operators' decisions about processes that wait for one. Each is a durable request in the inbox,
-- which a worker that has the type acts on; what only SQL can do about the command behind it
-- happens here and now.

-- The command that the process still waits for; no row when there is none.
CREATE OR REPLACE FUNCTION commandbus.awaited_command(process_id uuid)
RETURNS TABLE (domain text, command_id uuid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT h.domain, h.command_id FROM commandbus.process_history h
    WHERE h.process_id = awaited_command.process_id AND h.status = 'WAITING'
      AND h.command_id IS NOT NULL
    ORDER BY h.ordinal DESC LIMIT 1
$$;

-- Locks the process, and before it the command that it waits for; or refuses. in_tsq says whether
-- that command is in the troubleshooting queue.
CREATE OR REPLACE FUNCTION commandbus.parked_process(process_id uuid, operator text,
    OUT held commandbus.process, OUT command_domain text, OUT command_id uuid,
    OUT command_in_tsq boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(btrim(operator), '') = '' THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'who decides? operator is empty',
                                  'Give the operator''s name.');
    END IF;
    SELECT a.domain, a.command_id INTO command_domain, command_id
    FROM commandbus.awaited_command(parked_process.process_id) a;
    SELECT c.status = 'IN_TROUBLESHOOTING_QUEUE' INTO command_in_tsq
    FROM commandbus.command_metadata c
    WHERE c.command_id = parked_process.command_id AND c.domain = command_domain FOR UPDATE;

    SELECT * INTO held FROM commandbus.process p WHERE p.process_id = parked_process.process_id
    FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM commandbus.refuse('PROCESS_NOT_FOUND', format('there is no process %s', process_id),
            'Check the id: commandbus process list --status WAITING_FOR_TSQ.');
    ELSIF held.status <> 'WAITING_FOR_TSQ' THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process %s is %s, it does not wait for an operator', process_id, held.status),
            'Somebody may have been faster: commandbus process show ' || process_id
            || '. Nothing changed.');
    ELSIF held.lease_owner IS NOT NULL AND held.lease_until > statement_timestamp() THEN
        -- That run does not see the decision: it may leave the queue and undo what the decision was
        -- about.
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process %s is being run at this moment', process_id),
            'Something has arrived for it. Look again: commandbus process show ' || process_id
            || '. Nothing changed.');
    ELSIF EXISTS (SELECT FROM commandbus.process_inbox i
                  WHERE i.process_id = parked_process.process_id AND i.kind = 'OPERATOR') THEN
        PERFORM commandbus.refuse('INVALID_OPERATION',
            format('process %s has a decision that no worker has acted on yet', process_id),
            'Is a worker that has its type running? See commandbus doctor. Nothing changed.');
    ELSIF (SELECT a.command_id FROM commandbus.awaited_command(parked_process.process_id) a)
          IS DISTINCT FROM command_id THEN
        -- A run came between the look and the lock; what it waits for now is not locked.
        RAISE EXCEPTION 'process % moved on while the decision was made', process_id
            USING ERRCODE = 'serialization_failure', HINT = 'Call again; nothing changed.';
    END IF;
    command_in_tsq := coalesce(command_in_tsq, false);
END
$$;

-- The request, its record, and the wake-up: nobody runs it now. Numbered by the row as it is, not
-- by what was held: the end of its command may have brought a reply since.
CREATE OR REPLACE FUNCTION commandbus.request_decision(held commandbus.process, name text,
    event text, operator text, reason text, details jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    new_seq integer;
BEGIN
    UPDATE commandbus.process p
    SET inbox_seq = p.inbox_seq + 1,
        content_bytes = p.content_bytes + 500 + commandbus.json_bytes(details),
        updated_at = commandbus.now(), wake_at = commandbus.now()
    WHERE p.process_id = held.process_id
    RETURNING p.inbox_seq INTO new_seq;
    INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload)
    VALUES (held.process_id, new_seq, 'OPERATOR', request_decision.name,
            jsonb_build_object('operator', request_decision.operator, 'reason', reason,
                               'error_code', held.error_code) || details);
    INSERT INTO commandbus.process_event (process_id, event, step_name, operator, db_user, details)
    VALUES (held.process_id, request_decision.event, held.current_step, request_decision.operator,
            session_user,
            jsonb_build_object('reason', reason, 'error_code', held.error_code) || details);
    -- The decision is about what the command has come to, also when its reply was lost.
    PERFORM commandbus.restore_replies(ARRAY[held.process_id]);
    PERFORM commandbus.wake(held.domain || '__processes');
END
$$;

-- Goes on where it stopped, with attempts counted anew.
CREATE OR REPLACE FUNCTION commandbus.process_retry(process_id uuid, operator text,
    reason text DEFAULT NULL, new_deadline timestamptz DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parked record;
    held   commandbus.process;
BEGIN
    IF NOT isfinite(new_deadline) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a deadline is a moment, not infinity',
                                  'Leave it out for none; nothing changed.');
    END IF;
    parked := commandbus.parked_process(process_retry.process_id, process_retry.operator);
    held := parked.held;
    IF parked.command_in_tsq
       AND held.error_code IN ('COMMAND_IN_TSQ', 'COMPENSATION_FAILED', 'OUTCOME_UNKNOWN') THEN
        PERFORM commandbus.tsq_retry(parked.command_domain, parked.command_id,
                                     process_retry.operator, reason);
    END IF;
    UPDATE commandbus.process p
    SET status = 'PENDING', error_code = NULL, error_message = NULL, tsq_at = NULL,
        deadline_at = coalesce(new_deadline, p.deadline_at),
        deadline_spent = CASE WHEN new_deadline IS NOT NULL THEN false
                              ELSE p.deadline_spent
                                   OR held.error_code IS NOT DISTINCT FROM 'DEADLINE_EXCEEDED' END
    WHERE p.process_id = held.process_id;
    PERFORM commandbus.request_decision(held, 'RETRY', 'TSQ_RETRY', process_retry.operator, reason,
        jsonb_build_object('new_deadline', new_deadline IS NOT NULL));
END
$$;

-- Ends it, after undoing what it has done unless told not to. WAITING_FOR_TSQ until a worker has
-- acted.
CREATE OR REPLACE FUNCTION commandbus.process_cancel(process_id uuid, operator text, reason text,
    run_compensations boolean DEFAULT true)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parked record;
BEGIN
    IF coalesce(btrim(reason), '') = '' THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'a cancel needs a reason',
                                  'It is kept with the decision; nothing changed.');
    END IF;
    parked := commandbus.parked_process(process_cancel.process_id, process_cancel.operator);
    IF parked.command_in_tsq THEN
        PERFORM commandbus.tsq_cancel(parked.command_domain, parked.command_id,
                                      process_cancel.operator, reason);
    END IF;
    PERFORM commandbus.request_decision(parked.held, 'CANCEL', 'TSQ_CANCEL',
        process_cancel.operator, reason,
        jsonb_build_object('run_compensations', coalesce(run_compensations, true)));
END
$$;

-- Ends it as a success, with fields of its state set by hand.
CREATE OR REPLACE FUNCTION commandbus.process_complete(process_id uuid, operator text,
    reason text DEFAULT NULL, overrides jsonb DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parked        record;
    payload_limit integer;
BEGIN
    IF jsonb_typeof(overrides) NOT IN ('object', 'null') THEN
        PERFORM commandbus.refuse('INVALID_DATA',
            format('overrides must be a JSON object, not %s', jsonb_typeof(overrides)),
            'Give the fields of the state that change, or nothing; nothing changed.');
    END IF;
    parked := commandbus.parked_process(process_complete.process_id, process_complete.operator);
    payload_limit := (commandbus.known_domain((parked.held).domain)).payload_limit;
    IF octet_length(overrides::text) > payload_limit THEN
        PERFORM commandbus.refuse('PAYLOAD_TOO_LARGE',
            format('the overrides have %s bytes, the limit is %s', octet_length(overrides::text),
                   payload_limit),
            'Give fewer of them; nothing changed.');
    ELSIF commandbus.is_too_deep(overrides) THEN
        PERFORM commandbus.refuse('INVALID_DATA', 'the overrides are nested deeper than 32 levels',
                                  'Flatten them; nothing changed.');
    END IF;
    IF parked.command_in_tsq THEN
        PERFORM commandbus.tsq_cancel(parked.command_domain, parked.command_id,
            process_complete.operator,
            coalesce(nullif(btrim(reason), ''), 'its process was completed by an operator'));
    END IF;
    PERFORM commandbus.request_decision(parked.held, 'COMPLETE', 'TSQ_COMPLETE_OVERRIDE',
                                        process_complete.operator, reason,
                                        jsonb_build_object('overrides', nullif(overrides, 'null')));
END
$$;
