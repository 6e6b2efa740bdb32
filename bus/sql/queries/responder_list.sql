-- No parameters. Who beside operators and workers may bring which response.
SELECT r.process_type, r.response, coalesce(o.rolname::text, 'dropped role ' || r.role::oid) AS role, r.allowed_by,
       r.allowed_at
FROM commandbus.responder r LEFT JOIN pg_catalog.pg_roles o ON o.oid = r.role
ORDER BY 1, 2, 3
