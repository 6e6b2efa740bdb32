-- Who may bring which response.

--: responder_allow
-- $1 role, $2 process types, $3 responses, both separated by commas. How many of these rights are
-- new.
SELECT count(*) FILTER (WHERE commandbus.allow_response(t, r, $1::text))
FROM unnest(string_to_array($2::text, ',')) t CROSS JOIN unnest(string_to_array($3::text, ',')) r

--: responder_forbid
-- $1 role, $2 process types, $3 responses, both separated by commas. How many rights were taken
-- back.
SELECT coalesce(sum(commandbus.forbid_response(t, r, $1::text)), 0)
FROM unnest(string_to_array($2::text, ',')) t CROSS JOIN unnest(string_to_array($3::text, ',')) r

--: responder_list
-- No parameters. Who beside operators and workers may bring which response.
SELECT r.process_type, r.response,
       coalesce(o.rolname::text, 'dropped role ' || r.role::oid) AS role, r.allowed_by, r.allowed_at
FROM commandbus.responder r LEFT JOIN pg_catalog.pg_roles o ON o.oid = r.role
ORDER BY 1, 2, 3
