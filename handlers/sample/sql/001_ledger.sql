-- What Record writes. The key makes visible what the bus promises: a command is booked once.
CREATE SCHEMA sample;

CREATE TABLE sample.ledger (
    command_id uuid PRIMARY KEY,
    account    text NOT NULL,
    amount     numeric NOT NULL,
    at         timestamptz NOT NULL DEFAULT now()
);

-- Effects run as the worker's role.
GRANT USAGE ON SCHEMA sample TO commandbus_worker;
GRANT SELECT, INSERT ON sample.ledger TO commandbus_worker;
