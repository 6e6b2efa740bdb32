-- No parameters.
COMMIT
