-- No parameters.
BEGIN
