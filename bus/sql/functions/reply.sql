-- Replies: what a sender hears of its command.

-- The wire format. `final` is false while an operator has still to decide.
CREATE OR REPLACE FUNCTION commandbus.reply_message(command_id uuid, correlation_id uuid,
    outcome text, result jsonb, error_type text, error_code text, error_message text, reason text,
    final boolean)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN outcome = 'SUCCESS' THEN
        -- As command_message is made: cheaper than jsonb_build_object.
        jsonb_set(jsonb_object('{command_id,correlation_id,outcome}'::text[],
                               ARRAY[command_id::text, correlation_id::text, outcome])
                  || CASE WHEN final THEN '{"final": true}'::jsonb ELSE '{"final": false}' END,
                  '{result}', coalesce(result, 'null'))
    ELSE jsonb_strip_nulls(
        jsonb_build_object('command_id', command_id, 'correlation_id', correlation_id,
                           'outcome', outcome, 'error_type', error_type, 'error_code', error_code,
                           'error_message', error_message, 'reason', reason, 'final', final))
    END
$$;

-- Puts messages into one queue and wakes who sleeps on it. False when the queue is gone.
CREATE OR REPLACE FUNCTION commandbus.enqueue(queue_name text, messages jsonb[]) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF has_table_privilege(to_regclass(format('pgmq.%I', 'q_' || queue_name)), 'INSERT')
       IS NOT TRUE THEN
        RETURN false;
    END IF;
    PERFORM commandbus.put_into(queue_name, messages, NULL, NULL);
    PERFORM commandbus.wake(queue_name, cardinality(messages));
    RETURN true;
END
$$;

-- Each reply to where its sender reads it. That of a process's command goes straight into the
-- process's inbox; where that cannot be done at once (somebody has the process locked, or it has
-- ended) it goes to the queue like all others, and deliver_replies finds out what becomes of it. A
-- reply that has nowhere to go is recorded, and spoils nothing.
-- process_ids: which process sent each command, as the command's row says; NULL for others'. A
-- command of a process replies to a queue of processes, or to none.
CREATE OR REPLACE FUNCTION commandbus.give_replies(domain text, queue_names text[],
    messages jsonb[], process_ids uuid[] DEFAULT NULL, worker text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queues text[] := queue_names; -- NULL: it is in an inbox
    put    integer[];
    i      integer;
    one    record;
BEGIN
    -- In an older snapshot a process that has moved is an error, and not one to skip.
    IF array_remove(process_ids, NULL) <> '{}'
       AND current_setting('transaction_isolation') = 'read committed' THEN
        put := commandbus.put_replies(give_replies.worker, process_ids,
                                      array_fill(give_replies.domain,
                                                 ARRAY[cardinality(process_ids)]), messages);
        IF cardinality(put) = cardinality(queues) THEN
            RETURN;
        END IF;
        FOREACH i IN ARRAY coalesce(put, '{}') LOOP
            queues[i] := NULL;
        END LOOP;
    -- Nearly every other call, and then there is nothing to sort.
    ELSIF queue_names[1] = ALL (queue_names)
          AND commandbus.enqueue(queue_names[1], give_replies.messages) THEN
        RETURN;
    END IF;
    FOR one IN SELECT r.queue_name, array_agg(r.message) AS messages
               FROM unnest(queues, messages) r(queue_name, message)
               WHERE r.queue_name IS NOT NULL
               GROUP BY r.queue_name ORDER BY 1 LOOP
        IF NOT commandbus.enqueue(one.queue_name, one.messages) THEN
            INSERT INTO commandbus.audit (command_id, domain, event_type, details)
            SELECT (m ->> 'command_id')::uuid, give_replies.domain, 'REPLY_UNDELIVERABLE',
                   jsonb_build_object('reply_to', one.queue_name, 'outcome', m -> 'outcome')
            FROM unnest(one.messages) m;
        END IF;
    END LOOP;
END
$$;
