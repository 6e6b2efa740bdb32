-- No parameters.
ROLLBACK
