-- $1 domain, $2 further reply queue or NULL
SELECT commandbus.register_domain($1::text, $2::text)
