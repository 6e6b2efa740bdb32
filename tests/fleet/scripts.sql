-- What the world outside does to scripts (../toys/script.h): responses at any moment, decisions
-- about whatever waits for one. Each call of public.tick is a transaction of its own.

CREATE TABLE public.heard (process_id uuid PRIMARY KEY, n integer NOT NULL);

-- The next numbered response, and that it was sent: both or neither.
CREATE FUNCTION public.say(id uuid, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    no integer;
    response uuid := CASE WHEN random() < 0.5 THEN gen_random_uuid() END;
BEGIN
    INSERT INTO public.heard VALUES (id, 1)
    ON CONFLICT (process_id) DO UPDATE SET n = heard.n + 1
    RETURNING n INTO no;
    PERFORM commandbus.respond(id, name, jsonb_build_object('no', no), response);
    IF response IS NOT NULL
       AND commandbus.respond(id, name, jsonb_build_object('no', no), response) THEN
        RAISE EXCEPTION 'response % was taken twice', response;
    END IF;
END
$$;

-- Decides about a process. After some decisions somebody ends it.
CREATE FUNCTION public.decide(id uuid, kind double precision) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM commandbus.process_event
        WHERE process_id = decide.id AND operator IS NOT NULL) > 4 THEN
        kind := 0.6 + kind * 0.4;
    END IF;
    IF kind < 0.6 THEN
        PERFORM commandbus.process_retry(id, 'olga', 'again',
                                         CASE WHEN kind < 0.1 THEN timestamptz '2100-01-01' END);
    ELSIF kind < 0.8 THEN
        PERFORM commandbus.process_cancel(id, 'olga', 'no more', true);
    ELSIF kind < 0.9 THEN
        PERFORM commandbus.process_cancel(id, 'olga', 'enough', false);
    ELSE
        PERFORM commandbus.process_complete(id, 'olga', 'by hand',
                                            CASE WHEN kind < 0.95 THEN '{"go": 77}'::jsonb END);
    END IF;
EXCEPTION WHEN sqlstate 'CB007' OR serialization_failure OR deadlock_detected THEN
    NULL; -- somebody was faster
END
$$;

-- Decides about a command in the troubleshooting queue.
CREATE FUNCTION public.decide_command(c commandbus.command_metadata, kind double precision)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF kind < 0.6 THEN
        PERFORM commandbus.tsq_retry(c.domain, c.command_id, 'otto', 'again');
    ELSIF kind < 0.8 THEN
        PERFORM commandbus.tsq_cancel(c.domain, c.command_id, 'otto', 'no more');
    ELSE
        PERFORM commandbus.tsq_complete(c.domain, c.command_id, 'otto', 'by hand',
                                        coalesce(c.data -> 'undo', '{}'));
    END IF;
EXCEPTION WHEN sqlstate 'CB007' OR serialization_failure OR deadlock_detected THEN
    NULL;
END
$$;

-- calm: everything that waits is answered, so that all of it ends.
CREATE FUNCTION public.tick(calm boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.say(process_id, CASE WHEN random() < 0.8 THEN 'go' ELSE 'word' END)
    FROM commandbus.process
    WHERE CASE WHEN calm THEN status = 'WAITING_FOR_ASYNC' AND current_wait LIKE 'wait%'
               ELSE random() < 0.05 END;
    BEGIN
        PERFORM commandbus.respond(process_id, 'nobodyKnowsThis', '{}') FROM commandbus.process
        WHERE NOT calm AND random() < 0.01;
    EXCEPTION WHEN sqlstate 'CB010' THEN
        NULL; -- nobody does
    END;
    PERFORM public.decide_command(c, random()) FROM commandbus.command_metadata c
    WHERE status = 'IN_TROUBLESHOOTING_QUEUE' AND random() < 0.1;
    PERFORM public.decide(process_id, random()) FROM commandbus.process
    WHERE status = 'WAITING_FOR_TSQ' AND (calm OR random() < 0.3);
END
$$;
