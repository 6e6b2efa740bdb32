-- Writes down every reply that is committed, in attack.reply: in payments__replies or in an inbox,
-- from which it is soon gone. What a delivery puts back has the number that it had, and what it
-- brings to an inbox was written down when it was sent; what comes there by itself gets a number
-- below 0.
CREATE SCHEMA attack;
CREATE TABLE attack.reply (msg_id bigint PRIMARY KEY, command_id uuid NOT NULL,
                           final boolean NOT NULL, outcome text NOT NULL,
                           arrived boolean NOT NULL DEFAULT false);
CREATE SEQUENCE attack.direct INCREMENT -1 START -2;
CREATE FUNCTION attack.see_reply() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO attack.reply
    VALUES (NEW.msg_id, (NEW.message ->> 'command_id')::uuid, (NEW.message ->> 'final')::boolean,
            NEW.message ->> 'outcome')
    ON CONFLICT DO NOTHING;
    RETURN NEW;
END
$$;
CREATE FUNCTION attack.see_arrival() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id uuid := (NEW.payload ->> 'command_id')::uuid;
BEGIN
    UPDATE attack.reply SET arrived = true
    WHERE msg_id = (SELECT min(r.msg_id) FROM attack.reply r
                    WHERE r.command_id = id AND NOT r.arrived AND r.outcome = NEW.name
                      AND r.final = (NEW.payload ->> 'final')::boolean);
    IF NOT FOUND AND id IS NOT NULL THEN
        INSERT INTO attack.reply
        VALUES (nextval('attack.direct'), id, (NEW.payload ->> 'final')::boolean, NEW.name, true);
    END IF;
    RETURN NEW;
END
$$;
CREATE INDEX ON attack.reply (command_id);
CREATE TRIGGER attack_spy AFTER INSERT ON pgmq.q_payments__replies
FOR EACH ROW EXECUTE FUNCTION attack.see_reply();
CREATE TRIGGER attack_spy AFTER INSERT ON commandbus.process_inbox
FOR EACH ROW WHEN (NEW.kind = 'REPLY') EXECUTE FUNCTION attack.see_arrival();
