-- No parameters. How many rows went.
SELECT commandbus.tidy_fleet()
