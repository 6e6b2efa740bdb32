-- No parameters. Names mean again what they meant before search_path_ours.sql.
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('commandbus.search_path'), true)
