-- $1 milliseconds, as text. For the rest of this transaction.
SELECT pg_catalog.set_config('lock_timeout', $1::text, true)
