-- No parameters. Says what our transactions need, whatever role, database and server have for a default.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
