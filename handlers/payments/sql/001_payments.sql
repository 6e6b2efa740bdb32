-- Payments as their owners see them, and what waits for a person. How far the process of a payment
-- has come is the bus's to know: commandbus.process.
CREATE SCHEMA payments;

CREATE TABLE payments.payment (
    payment_id      uuid PRIMARY KEY,
    process_id      uuid NOT NULL UNIQUE,
    status          text NOT NULL
                    CHECK (status IN ('DRAFT', 'APPROVED', 'PROCESSING', 'COMPLETE', 'FAILED',
                                      'CANCELLED')),
    debit_account   text NOT NULL,
    credit_account  text NOT NULL CHECK (credit_account <> debit_account),
    debit_amount    numeric NOT NULL CHECK (debit_amount > 0),
    debit_currency  text NOT NULL CHECK (debit_currency ~ '^[A-Z]{3}$'),
    credit_currency text NOT NULL CHECK (credit_currency ~ '^[A-Z]{3}$'),
    value_date      date NOT NULL,
    cutoff_at       timestamptz, -- the deadline of the process; NULL: it has none
    -- The status of the process at its end, for when retention has taken it.
    ended_as        text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_by_status ON payments.payment (status);

-- Which status may follow which, step by step. Nothing follows an end.
CREATE FUNCTION payments.may_become(was text, becomes text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (was, becomes) IN (
        ('DRAFT', 'APPROVED'), ('DRAFT', 'PROCESSING'), ('APPROVED', 'PROCESSING'),
        ('DRAFT', 'FAILED'), ('APPROVED', 'FAILED'), ('PROCESSING', 'FAILED'),
        ('PROCESSING', 'COMPLETE'), ('PROCESSING', 'CANCELLED')
    )
$$;

-- Moves a payment of this process, if it is there and may move so: asking twice changes nothing the
-- second time, and nobody moves the payment of somebody else.
CREATE FUNCTION payments.mark(payment_id uuid, process_id uuid, status text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE payments.payment p SET status = mark.status, updated_at = clock_timestamp()
    WHERE p.payment_id = mark.payment_id AND p.process_id = mark.process_id
      AND payments.may_become(p.status, mark.status)
$$;

-- When a process is at its end, so is its payment, in the same transaction: whoever ended it, and
-- however little of it had run. Mostly its steps have said so before, and nothing is left to do
-- here. Where they said otherwise, such as COMPLETE in a step whose worker was lost, and an
-- operator then gave the payment up, the process is right.
CREATE FUNCTION payments.end_with_process() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE payments.payment p
    SET status = CASE WHEN NEW.status = 'COMPLETED' THEN 'COMPLETE'
                      WHEN NEW.status = 'FAILED' AND p.status <> 'CANCELLED' THEN 'FAILED'
                      WHEN p.status = 'FAILED' THEN 'FAILED' -- never a payment: workflow.c
                      ELSE 'CANCELLED' END,
        ended_as = NEW.status, updated_at = clock_timestamp()
    WHERE p.process_id = NEW.process_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER payments_end AFTER UPDATE OF status ON commandbus.process
FOR EACH ROW WHEN (NEW.domain = 'payments' AND commandbus.is_terminal(NEW.status)
                   AND NOT commandbus.is_terminal(OLD.status))
EXECUTE FUNCTION payments.end_with_process();

-- A process takes a payment up: PROCESSING. Who starts a process without submitting a payment first
-- gets its row now. A payment belongs to the process of the same id, which pays what was submitted
-- and nothing else: whoever starts a process chooses its state, and would take another payment's id
-- before that one begins. One whose process is at its end is taken up by nobody, also not by a step
-- that was slow and is repeated elsewhere: the lock keeps the process from ending meanwhile.
CREATE FUNCTION payments.begin(
    payment_id uuid, process_id uuid, debit_account text, credit_account text, debit_amount numeric,
    debit_currency text, credit_currency text, value_date date
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found payments.payment;
    ended boolean;
BEGIN
    IF begin.payment_id <> begin.process_id THEN
        RAISE EXCEPTION 'the payment belongs to another process' USING ERRCODE = 'unique_violation';
    END IF;
    SELECT commandbus.is_terminal(p.status) INTO ended
    FROM commandbus.process p WHERE p.process_id = begin.process_id FOR SHARE;
    IF ended THEN
        RAISE EXCEPTION 'the process has ended' USING ERRCODE = 'unique_violation';
    END IF;
    INSERT INTO payments.payment (payment_id, process_id, status, debit_account, credit_account,
                                  debit_amount, debit_currency, credit_currency, value_date)
    VALUES (begin.payment_id, begin.process_id, 'PROCESSING', begin.debit_account,
            begin.credit_account, begin.debit_amount, begin.debit_currency, begin.credit_currency,
            begin.value_date)
    ON CONFLICT (payment_id) DO UPDATE
    SET status = CASE WHEN payments.may_become(payment.status, 'PROCESSING') THEN 'PROCESSING'
                      ELSE payment.status END,
        updated_at = clock_timestamp()
    RETURNING payment.* INTO found;
    IF found.process_id <> begin.process_id THEN
        RAISE EXCEPTION 'the payment belongs to another process' USING ERRCODE = 'unique_violation';
    ELSIF found.status <> 'PROCESSING' THEN
        RAISE EXCEPTION 'the payment is %', found.status USING ERRCODE = 'unique_violation';
    ELSIF (found.debit_account, found.credit_account, found.debit_amount, found.debit_currency,
           found.credit_currency, found.value_date)
          IS DISTINCT FROM (begin.debit_account, begin.credit_account, begin.debit_amount,
                            begin.debit_currency, begin.credit_currency, begin.value_date) THEN
        RAISE EXCEPTION 'the payment has other facts' USING ERRCODE = 'unique_violation';
    END IF;
END
$$;

-- Submitting, first half: a DRAFT, once for each process_id. verdict: NEW; SAME, it was there
-- already, with these facts; ENDED, likewise, and it is at its end: its process may be gone, and no
-- other is to be started; OTHER, with other facts; PAST, the value date is (a day by UTC); LATE,
-- the cut-off is. Without a cut-off it is four hours from now.
CREATE FUNCTION payments.draft(
    process_id uuid, debit_account text, credit_account text, debit_amount numeric,
    debit_currency text, credit_currency text, value_date date, cutoff timestamptz,
    OUT verdict text, OUT cutoff_at timestamptz
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found payments.payment;
BEGIN
    SELECT * INTO found FROM payments.payment p WHERE p.process_id = draft.process_id;
    IF found.payment_id IS NULL
       AND draft.value_date < (commandbus.now() AT TIME ZONE 'UTC')::date THEN
        verdict := 'PAST';
        RETURN;
    ELSIF found.payment_id IS NULL AND draft.cutoff <= commandbus.now() THEN
        verdict := 'LATE';
        RETURN;
    END IF;
    IF found.payment_id IS NULL THEN
        INSERT INTO payments.payment AS p (payment_id, process_id, status, debit_account,
                                           credit_account, debit_amount, debit_currency,
                                           credit_currency, value_date, cutoff_at)
        VALUES (draft.process_id, draft.process_id, 'DRAFT', draft.debit_account,
                draft.credit_account, draft.debit_amount, draft.debit_currency,
                draft.credit_currency, draft.value_date,
                coalesce(draft.cutoff, commandbus.now() + interval '4 hours'))
        ON CONFLICT DO NOTHING
        RETURNING 'NEW', p.cutoff_at INTO verdict, cutoff_at;
        IF verdict = 'NEW' THEN
            RETURN;
        END IF;
        -- Somebody was faster.
        SELECT * INTO found FROM payments.payment p WHERE p.process_id = draft.process_id;
    END IF;
    cutoff_at := found.cutoff_at;
    verdict := CASE
        WHEN (found.debit_account, found.credit_account, found.debit_amount, found.debit_currency,
              found.credit_currency, found.value_date)
             IS NOT DISTINCT FROM (draft.debit_account, draft.credit_account, draft.debit_amount,
                                   draft.debit_currency, draft.credit_currency, draft.value_date)
             AND (draft.cutoff IS NULL OR found.cutoff_at IS NOT DISTINCT FROM draft.cutoff)
        THEN CASE WHEN found.status IN ('COMPLETE', 'FAILED', 'CANCELLED') THEN 'ENDED'
                  ELSE 'SAME' END
        ELSE 'OTHER'
    END;
END
$$;

-- The same for a list, in its order, and those that are new are APPROVED at once: their processes
-- are started in this very transaction. {"processId", "debitAccount", …, "cutoff"} each.
CREATE FUNCTION payments.draft_all(list jsonb) RETURNS TABLE (verdict text, cutoff_at timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    one jsonb;
BEGIN
    FOR one IN SELECT p FROM jsonb_array_elements(draft_all.list) WITH ORDINALITY i(p, ord)
               ORDER BY ord LOOP
        SELECT d.verdict, d.cutoff_at INTO verdict, cutoff_at
        FROM payments.draft((one ->> 'processId')::uuid, one ->> 'debitAccount',
                            one ->> 'creditAccount', (one ->> 'debitAmount')::numeric,
                            one ->> 'debitCurrency', one ->> 'creditCurrency',
                            (one ->> 'valueDate')::date, (one ->> 'cutoff')::timestamptz) d;
        IF verdict = 'NEW' THEN
            PERFORM payments.mark((one ->> 'processId')::uuid, (one ->> 'processId')::uuid,
                                  'APPROVED');
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- What GET …/status says. No row: nobody knows such a payment. A process that retention has taken
-- is told from its payment.
CREATE FUNCTION payments.status_of(wanted uuid) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'processId', coalesce(p.process_id, m.process_id),
        'status', coalesce(p.status::text, m.ended_as, 'PENDING'),
        'paymentStatus', m.status,
        'riskApproved', coalesce((p.state ->> 'riskApproved')::boolean, false),
        'l1Received', coalesce((p.state ->> 'l1Received')::boolean, false),
        'l2Received', coalesce((p.state ->> 'l2Received')::boolean, false),
        'l3Received', coalesce((p.state ->> 'l3Received')::boolean, false),
        'l4Received', coalesce((p.state ->> 'l4Received')::boolean, false),
        'errorCode', p.error_code,
        'errorMessage', p.error_message
    )
    FROM (SELECT * FROM commandbus.process WHERE process_id = wanted AND domain = 'payments') AS p
    FULL JOIN (SELECT * FROM payments.payment WHERE process_id = wanted) AS m ON true
$$;

-- Whether the process of a payment was started: its row is there.
CREATE FUNCTION payments.is_started(wanted uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM commandbus.process WHERE process_id = wanted AND domain = 'payments')
$$;

-- What waits for a person: the simulator, or whoever really decides, writes it. One row for each
-- command and level.
CREATE TABLE payments.pending_approval (
    process_id      uuid NOT NULL,
    command_id      uuid PRIMARY KEY,
    level           text NOT NULL DEFAULT 'RISK',
    execution_model text,
    status          text NOT NULL DEFAULT 'PENDING'
                    CHECK (status IN ('PENDING', 'APPROVED', 'DECLINED')),
    resolved_by     text,
    resolved_at     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pending_approval_open ON payments.pending_approval (process_id)
    WHERE status = 'PENDING';

CREATE TABLE payments.pending_network_response (
    process_id      uuid NOT NULL,
    command_id      uuid NOT NULL,
    level           text NOT NULL CHECK (level IN ('L1', 'L2', 'L3', 'L4')),
    execution_model text,
    status          text NOT NULL DEFAULT 'PENDING'
                    CHECK (status IN ('PENDING', 'CONFIRMED', 'REFUSED')),
    resolved_by     text,
    resolved_at     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (command_id, level)
);
CREATE INDEX pending_network_response_open ON payments.pending_network_response (process_id)
    WHERE status = 'PENDING';

-- A person decides: the row and the answer to the process, both or neither. False: nothing of that
-- kind waits.
CREATE FUNCTION payments.resolve_approval(process_id uuid, approved boolean, operator text,
    reason text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    verdict text := CASE WHEN resolve_approval.approved THEN 'APPROVED' ELSE 'DECLINED' END;
    command uuid;
BEGIN
    UPDATE payments.pending_approval a
    SET status = verdict, resolved_by = resolve_approval.operator, resolved_at = clock_timestamp()
    WHERE a.process_id = resolve_approval.process_id AND a.status = 'PENDING'
    RETURNING a.command_id INTO command;
    IF command IS NULL THEN
        RETURN false;
    END IF;
    PERFORM commandbus.respond(resolve_approval.process_id, 'riskApproval',
                               jsonb_build_object('status', verdict,
                                                  'reason', resolve_approval.reason),
                               command);
    RETURN true;
END
$$;

CREATE FUNCTION payments.resolve_network_response(
    process_id uuid, level text, operator text, error text DEFAULT NULL, message text DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    asked   text := resolve_network_response.level;
    command uuid;
BEGIN
    UPDATE payments.pending_network_response r
    SET status = CASE WHEN resolve_network_response.error IS NULL THEN 'CONFIRMED'
                      ELSE 'REFUSED' END,
        resolved_by = resolve_network_response.operator, resolved_at = clock_timestamp()
    WHERE r.process_id = resolve_network_response.process_id AND r.level = asked
      AND r.status = 'PENDING'
    RETURNING r.command_id INTO command;
    IF command IS NULL THEN
        RETURN false;
    END IF;
    PERFORM commandbus.respond(
        resolve_network_response.process_id, asked,
        CASE WHEN resolve_network_response.error IS NULL
             THEN jsonb_build_object('reference',
                      asked || '-REF-' || upper(left(md5(command::text || asked), 8)))
             ELSE jsonb_build_object('error', resolve_network_response.error,
                                     'message', resolve_network_response.message)
        END,
        md5(command::text || asked)::uuid);
    RETURN true;
END
$$;

REVOKE ALL ON FUNCTION payments.may_become, payments.mark, payments.end_with_process,
    payments.begin, payments.draft, payments.draft_all, payments.status_of, payments.is_started,
    payments.resolve_approval, payments.resolve_network_response FROM PUBLIC;

GRANT USAGE ON SCHEMA payments TO commandbus_worker, commandbus_operator, commandbus_monitor;
GRANT SELECT, INSERT, UPDATE ON payments.payment TO commandbus_worker;
GRANT SELECT, INSERT ON payments.pending_approval, payments.pending_network_response
    TO commandbus_worker;
GRANT SELECT ON payments.payment, payments.pending_approval, payments.pending_network_response
    TO commandbus_operator, commandbus_monitor;
GRANT EXECUTE ON FUNCTION payments.may_become, payments.mark, payments.begin, payments.draft,
    payments.draft_all, payments.status_of, payments.is_started TO commandbus_worker;
GRANT EXECUTE ON FUNCTION payments.resolve_approval, payments.resolve_network_response
    TO commandbus_operator;
