-- No parameters. Processes that have not ended, by type, status, error code and what they wait for.
SELECT process_type, status, error_code, current_wait, processes, oldest_due_seconds, oldest_reply_seconds, oldest_seconds
FROM commandbus.process_figures()
