-- $1 component, $2 version, $3 oldest_binary, $4 name of the file, $5 SHA-256 of its bytes in hex
INSERT INTO commandbus.schema_version (component, version, oldest_binary, name, checksum)
VALUES ($1::text, $2::integer, $3::integer, $4::text, $5::text)
