-- What statements are made of: accounts and what was booked on them. The amount of a transaction is
-- signed: money that comes in is above zero.
CREATE SCHEMA reporting;

CREATE TABLE reporting.account (
    account_id text PRIMARY KEY CHECK (account_id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,33}$'),
    holder     text NOT NULL,
    currency   text NOT NULL CHECK (currency ~ '^[A-Z]{3}$')
);

CREATE TABLE reporting.transaction (
    transaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id     text NOT NULL REFERENCES reporting.account,
    booked_on      date NOT NULL,
    amount         numeric(18, 3) NOT NULL CHECK (amount <> 0),
    description    text NOT NULL
);
CREATE INDEX transaction_by_day ON reporting.transaction (account_id, booked_on) INCLUDE (amount);

-- The transactions of some accounts in a period (both days are in it), with the balance before it,
-- as one JSON text in the order of the list. STABLE: everything in it sees one snapshot. data is
-- NULL when an account is unknown or there are more than `most` transactions; transactions then
-- stops counting at one more.
CREATE FUNCTION reporting.statement_data(
    accounts text[], from_date date, to_date date, most bigint,
    OUT unknown bigint, OUT transactions bigint, OUT data text
) LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    unknown := (
        SELECT count(*) FROM unnest(accounts) AS listed (account_id)
        WHERE NOT EXISTS (SELECT FROM reporting.account a WHERE a.account_id = listed.account_id)
    );
    transactions := (
        SELECT count(*) FROM (
            SELECT FROM reporting.transaction t
            WHERE t.account_id = ANY (accounts) AND t.booked_on BETWEEN from_date AND to_date
            LIMIT most + 1
        ) AS enough
    );
    IF unknown > 0 OR transactions > most THEN
        RETURN;
    END IF;

    data := (
        SELECT json_build_object(
            'from_date', to_char(from_date, 'YYYY-MM-DD'),
            'to_date', to_char(to_date, 'YYYY-MM-DD'),
            'accounts', json_agg(json_build_object(
                'account_id', a.account_id,
                'holder', a.holder,
                'currency', a.currency,
                'opening_balance', trim_scale(coalesce(before.balance, 0))::text,
                'transactions', coalesce(inside.list, '[]')
            ) ORDER BY listed.place)
        )
        FROM unnest(accounts) WITH ORDINALITY AS listed (account_id, place)
        JOIN reporting.account a USING (account_id)
        CROSS JOIN LATERAL (
            SELECT sum(t.amount) AS balance FROM reporting.transaction t
            WHERE t.account_id = a.account_id AND t.booked_on < from_date
        ) AS before
        CROSS JOIN LATERAL (
            SELECT json_agg(json_build_object(
                'transaction_id', t.transaction_id,
                'booked_on', to_char(t.booked_on, 'YYYY-MM-DD'),
                'amount', trim_scale(t.amount)::text,
                'description', t.description
            ) ORDER BY t.booked_on, t.transaction_id) AS list
            FROM reporting.transaction t
            WHERE t.account_id = a.account_id AND t.booked_on BETWEEN from_date AND to_date
        ) AS inside
    );
END
$$;
REVOKE ALL ON FUNCTION reporting.statement_data FROM PUBLIC;

-- The handlers look, and change nothing.
GRANT USAGE ON SCHEMA reporting TO commandbus_worker;
GRANT SELECT ON reporting.account, reporting.transaction TO commandbus_worker;
GRANT EXECUTE ON FUNCTION reporting.statement_data TO commandbus_worker;
