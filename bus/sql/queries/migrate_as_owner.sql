-- No parameters. Numbered files run as the schema's owner, whoever migrates.
SET LOCAL ROLE commandbus_owner
