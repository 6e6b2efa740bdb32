#!/usr/bin/env bash
# A transaction that stays open for minutes keeps every dead row of the server: rates before, while and after somebody
# holds a snapshot, in a domain with a fleet limit and in one without. COMMANDBUS_SNAPSHOT_SECONDS: how long.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

hold_seconds=${COMMANDBUS_SNAPSHOT_SECONDS:-300}
export -n COMMANDBUS_SNAPSHOT_SECONDS # no key of a worker
window=25
workers=(a b c)
declare -A sent=([sample]=0 [unlimited]=0) rate=()

# claimed DOMAIN: how many commands of it were.
claimed() {
    local name n=0 each
    for name in "${workers[@]}"; do
        each=$(metric "$name" "commandbus_claimed_total{domain=\"$1\"}")
        n=$((n + each))
    done
    echo "$n"
}

# Some hundred commands wait in both domains, always.
feed() {
    local d n
    for d in sample unlimited; do
        n=$(claimed "$d")
        if ((sent[$d] - n < 1500)); then
            (domain=$d && send_commands 1000 Sleep '{"ms": 25}')
            sent[$d]=$((sent[$d] + 1000))
        fi
    done
}

# measure WHAT: commands a second of both domains, for one window.
measure() {
    local d until=$((SECONDS + window)) began=$EPOCHREALTIME took
    local -A first=([sample]=$(claimed sample) [unlimited]=$(claimed unlimited))
    while ((SECONDS < until)); do
        feed
        sleep 1
    done
    took=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
    for d in sample unlimited; do rate[$1 $d]=$((($(claimed "$d") - first[$d]) * 1000 / took)); done
    note "$1: limited ${rate[$1 sample]}/s, unlimited ${rate[$1 unlimited]}/s"
}

test_a_snapshot_that_somebody_holds_slows_nobody_down() {
    local name d until
    "$COMMANDBUS_BIN" queue create unlimited >/dev/null
    worker_settings+=("domains.$domain.fleet-limit=6" "domains.$domain.concurrent-messages=4"
        domains.unlimited.handlers=sample domains.unlimited.concurrent-messages=3
        domains.unlimited.poll-interval=100ms)
    for name in "${workers[@]}"; do start_worker "$name"; done
    for name in "${workers[@]}"; do wait_ready "$name"; done
    feed
    feed
    sleep 3
    measure before

    mkfifo "$work/holder"
    psql -XqAt -d "$url" <"$work/holder" >/dev/null 2>&1 &
    others=$!
    exec 4>"$work/holder"
    echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM commandbus.domain;" >&4
    wait_until "EXISTS (SELECT FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND state = 'idle in transaction')" 20
    until=$((SECONDS + hold_seconds - window))
    while ((SECONDS < until)); do
        feed
        sleep 1
    done
    measure during
    note "dead rows: $(sql "SELECT string_agg(relname || ' ' || n_dead_tup, ', ' ORDER BY n_dead_tup DESC) FROM
        (SELECT * FROM pg_stat_user_tables WHERE n_dead_tup > 0 ORDER BY n_dead_tup DESC LIMIT 6) t")"

    echo "COMMIT;" >&4
    exec 4>&-
    for ((until = SECONDS + 10; SECONDS < until; )); do
        feed
        sleep 1
    done
    measure after
    for d in sample unlimited; do
        at_least "${rate[before $d]}" 5 "the rate of $d before"
        at_least $((10 * rate[during $d])) $((8 * rate[before $d])) "ten times the rate of $d during"
        at_least $((10 * rate[after $d])) $((8 * rate[before $d])) "ten times the rate of $d afterwards"
    done
    for name in "${workers[@]}"; do kill_worker "$name"; done
}

run_tests "$@"
