-- To come.
SELECT 1;
