#!/usr/bin/env bash
# `commandbus migrate` on a database with work in it, while a fleet works on it.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"

recorded() { sql "COPY (SELECT component, version, oldest_binary, name, checksum FROM commandbus.schema_version
    WHERE component ^@ 'commandbus') TO STDOUT"; }
# record FILE: as recorded has written it.
record() {
    psql -Xq -v ON_ERROR_STOP=1 -d "$url" -c BEGIN -c "DELETE FROM commandbus.schema_version WHERE component ^@ 'commandbus'" \
        -c "\\copy commandbus.schema_version (component, version, oldest_binary, name, checksum) from '$1'" -c COMMIT
}

# A database with the tables and functions of the last commit before 0.1.0, and what today's workers need beside them.
# Its bookkeeping claims to be of today, for today's workers would not start on another: $work/former is what was really
# recorded.
former_database() {
    recorded >"$work/today"
    server -c "DROP DATABASE $database WITH (FORCE)" -c "CREATE DATABASE $database TEMPLATE template0"
    gunzip -c "$fleet_dir/former_schema.sql.gz" | psql -Xq -v ON_ERROR_STOP=1 -d "$url" >/dev/null
    psql -Xq -v ON_ERROR_STOP=1 -d "$url" -f "$fleet_dir/former_bridge.sql"
    sql "$waiting_procedure" >/dev/null
    recorded >"$work/former"
    record "$work/today"
}
completed() { echo "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED') >= $1"; }

# BUS.11, issue 16: nothing is lost, and every payment is made once.
test_the_schema_of_before_is_brought_over_while_a_fleet_pays() {
    local payments=120
    former_database
    fleet_lease=2m
    prepare_fleet
    start_fleet
    submit_all "$payments"
    wait_until "$(completed 10)" 60
    record "$work/former"
    "$COMMANDBUS_BIN" migrate --status >"$work/status"
    grep -q '^schema .*before release 0.1.0' "$work/status" || fail "status: $(cat "$work/status")"

    "$COMMANDBUS_BIN" migrate >"$work/migrated"

    grep -q 'functions and views replaced' "$work/migrated" || fail "migrate: $(cat "$work/migrated")"
    recorded | sort | diff - <(sort "$work/today") || fail 'what is recorded is not what is recorded in a new database'
    same "$("$COMMANDBUS_BIN" migrate --status | grep -c 'nothing to do')" 2 'lines of migrate --status'
    wait_until "$(completed "$payments")" 180
    stop_fleet
    check_payments "$payments"
}

# BUS.11: functions are replaced as a whole while workers call them.
test_functions_are_replaced_again_and_again_while_a_fleet_pays() {
    local payments=60 times=0
    fleet_lease=2m
    prepare_fleet
    start_fleet
    submit_all "$payments"
    until [[ $(sql "SELECT $(completed "$payments")") == t ]]; do
        sql "UPDATE commandbus.schema_version SET name = '0.0.1', checksum = 'x' WHERE component = 'commandbus.functions'"
        "$COMMANDBUS_BIN" migrate --quiet >/dev/null
        times=$((times + 1))
        ((SECONDS < 600)) || fail "not all are completed: $(summary)"
    done
    note "replaced $times times"
    stop_fleet
    check_payments "$payments"
}

run_tests "$@"
