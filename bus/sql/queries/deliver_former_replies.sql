-- $1 worker, $2 process types, $3 grace_seconds
SELECT commandbus.deliver_former_replies($1::text, $2::text[], $3::double precision)
