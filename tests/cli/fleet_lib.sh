# Sourced by the tests of fleet and top, after lib.sh: instances that say what they are told to.

# shellcheck shell=bash

# beat NAME DOMAIN SLOTS IN_FLIGHT [FLEET_LIMIT] [STATE]: a heartbeat as a worker writes it.
beat() {
    sql "SELECT commandbus.heartbeat('$1', jsonb_build_object('name', '$1', 'host', 'node-1', 'pid', 7,
             'version', '1.2.3', 'profile', 'ratelimited-worker', 'state', '${6:-running}', 'uptime_seconds', 3700,
             'domains', jsonb_build_object('$2', jsonb_build_object('slots', $3, 'in_flight', $4, 'running', $4,
                 'prefetch', 0, 'fleet_limit', ${5:-NULL}::int, 'visibility_timeout', 30, 'settled', 123))))" >/dev/null
}

silence() { sql "UPDATE commandbus.worker SET heartbeat_at = now() - interval '75 seconds' WHERE worker = '$1'"; }
retire_all() { sql "SELECT commandbus.retire(worker) FROM commandbus.worker" >/dev/null; }
claim() { sql "SELECT count(*) FROM commandbus.receive('$1', 'tester', $2, 3600)" >/dev/null; }
limit() { sql "SELECT commandbus.set_fleet_limit('$1', $2)" >/dev/null; }
