-- $1 role, $2 process types, $3 responses, both separated by commas. How many rights were taken back.
SELECT coalesce(sum(commandbus.forbid_response(t, r, $1::text)), 0)
FROM unnest(string_to_array($2::text, ',')) t CROSS JOIN unnest(string_to_array($3::text, ',')) r
