-- $1 domain, $2 command_id. Closes the command's batch if that was the last one to end.
SELECT commandbus.close_batches(ARRAY(
    SELECT c.batch_id FROM commandbus.command_metadata c
    WHERE c.domain = $1 AND c.command_id = $2::uuid AND c.batch_id IS NOT NULL))
