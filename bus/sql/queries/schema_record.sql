-- $1 component, $2 version, $3 oldest_binary, $4 name of the file
INSERT INTO commandbus.schema_version (component, version, oldest_binary, name)
VALUES ($1::text, $2::integer, $3::integer, $4::text)
