-- No parameters. For look-ups, which also a standby answers.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY
