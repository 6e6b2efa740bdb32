-- Data to try statements with: the same for the same numbers, whoever calls it. Accounts that are
-- there already are left as they are. Returns how many transactions it has made. Nobody but the
-- owner may.
--
-- Each account has a salary a month and payments on the other days, from 2023 on; some holders have
-- names that a careless report would stumble over.
CREATE FUNCTION reporting.seed(accounts integer DEFAULT 5, transactions integer DEFAULT 2000)
RETURNS bigint LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH made AS (
        INSERT INTO reporting.account (account_id, holder, currency)
        SELECT 'ACC-' || lpad(n::text, 3, '0'),
               (ARRAY['Ada Lovelace', 'Müller & Söhne <GmbH>', '=SUM(A1:A9)', 'O''Neill, "Ed"',
                      'Ōe 健三郎'])[1 + (n - 1) % 5],
               (ARRAY['EUR', 'EUR', 'USD', 'JPY', 'KWD'])[1 + (n - 1) % 5]
        FROM generate_series(1, accounts) AS n
        ON CONFLICT DO NOTHING
        RETURNING account_id, currency
    ), minor AS (
        SELECT account_id, i,
               ('x' || left(md5(account_id || ':' || i), 7))::bit(28)::integer AS chance,
               CASE currency WHEN 'JPY' THEN 0 WHEN 'KWD' THEN 3 ELSE 2 END AS digits
        FROM made, generate_series(0, transactions - 1) AS i
    ), booked AS (
        INSERT INTO reporting.transaction (account_id, booked_on, amount, description)
        SELECT account_id,
               date '2023-01-01' + (i::bigint * 730 / transactions)::integer,
               CASE WHEN i % 30 = 0 THEN 400000 + chance % 100000
                    ELSE -(1 + chance % 30000) END / 10::numeric ^ digits,
               CASE WHEN i % 30 = 0 THEN 'Salary' ELSE 'Payment ' || i END
        FROM minor
        ORDER BY account_id, i
        RETURNING 1
    )
    SELECT count(*) FROM booked
$$;
REVOKE ALL ON FUNCTION reporting.seed FROM PUBLIC;
