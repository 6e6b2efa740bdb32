-- $1 domains. One row each, in their order; whole microseconds, which no locale writes differently.
SELECT depth, (oldest_due_seconds * 1000000)::bigint AS oldest_due_us FROM commandbus.queue_samples($1::text[])
