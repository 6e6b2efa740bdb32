-- No parameters. Processes that have not ended, by type, status and error code.
SELECT process_type, status, error_code, processes, oldest_due_seconds, oldest_reply_seconds FROM commandbus.process_figures()
