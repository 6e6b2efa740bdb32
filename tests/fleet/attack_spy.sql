-- Writes down every reply that is committed to payments__replies, in attack.reply: replies that
-- were delivered are gone from their queue. What a delivery puts back has the number that it had.
CREATE SCHEMA attack;
CREATE TABLE attack.reply (msg_id bigint PRIMARY KEY, command_id uuid NOT NULL,
                           final boolean NOT NULL, outcome text NOT NULL);
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
CREATE TRIGGER attack_spy AFTER INSERT ON pgmq.q_payments__replies
FOR EACH ROW EXECUTE FUNCTION attack.see_reply();
