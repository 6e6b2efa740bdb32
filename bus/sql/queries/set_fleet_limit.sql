-- $1 domain, $2 the most leases over the fleet, 0 for no limit
SELECT commandbus.set_fleet_limit($1::text, $2::integer)
