-- No parameters. For the rest of this transaction names mean the server's own; remembers what they meant.
SELECT pg_catalog.set_config('commandbus.search_path', pg_catalog.current_setting('search_path'), true),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
