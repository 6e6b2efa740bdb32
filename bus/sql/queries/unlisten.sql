-- No parameters.
UNLISTEN *
