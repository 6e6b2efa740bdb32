-- $1 role, $2 process types, $3 responses, both separated by commas. How many of these rights are new.
SELECT count(*) FILTER (WHERE commandbus.allow_response(t, r, $1::text))
FROM unnest(string_to_array($2::text, ',')) t CROSS JOIN unnest(string_to_array($3::text, ',')) r
