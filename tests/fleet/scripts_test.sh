#!/usr/bin/env bash
# Random processes (tests/toys/script.h) on real workers that are killed, told to end and kill themselves,
# on a server that is restarted: DESIGN 4 and 8. What each did is compared with a model in the end.
# COMMANDBUS_TEST_SEED replays the scripts (not the moments), COMMANDBUS_FLEET_SECONDS says for how long.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/server.sh
. "$(dirname "$0")/server.sh"

domain=payments
seconds=${COMMANDBUS_FLEET_SECONDS:-8}
tool=$COMMANDBUS_BUILD_DIR/tests/scripts
workers=(a b c)
worker_settings=(domains.payments.handlers=script domains.fx.handlers=serve domains.risk.handlers=serve)
for d in payments fx risk; do
    worker_settings+=("domains.$d.visibility-timeout=2s" "domains.$d.handler-timeout=2s"
        "domains.$d.poll-interval=100ms" "domains.$d.retry-backoff=50ms" "domains.$d.max-attempts=3"
        "domains.$d.concurrent-messages=4")
done

# Scripts kill their workers: those that are gone are restarted.
revive() {
    local name
    for name in "${workers[@]}"; do
        if is_alive "$name"; then continue; fi
        wait "${worker_pid[$name]}" 2>/dev/null || true
        start_worker "$name"
    done
}

# start_scripts N: a quarter of them with a deadline.
start_scripts() {
    "$tool" make "$seed" "$1" "$log" 3000 >"$work/states"
    seed=$((seed + 1)) started=$((started + $1))
    sql "CREATE TEMP TABLE new (state jsonb)" -c "\\copy new FROM '$work/states' CSV QUOTE E'\\x01' DELIMITER E'\\x02'" \
        -c "SELECT count(commandbus.start_process('Script', state,
                deadline => CASE WHEN random() < 0.25 THEN now() + random() * interval '20 seconds' END)) FROM new" >/dev/null
}
# Several of them on one connection.
sql() {
    local first=$1
    shift
    psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -c "$first" "$@"
}

# The server may be away just now, nothing else may be wrong.
tick() {
    local code=0
    sql "SELECT public.tick($1)" >/dev/null 2>"$work/tick" || code=$?
    ((code == 0 || code == 2)) || grep -qE 'terminating connection|deadlock' "$work/tick" || fail "$(cat "$work/tick")"
}

restart_server() {
    case $((RANDOM % 3)) in
    0) server_stop fast && server_start ;;
    1) server_stop immediate && server_start ;;
    *) server_crash ;;
    esac
    until sql 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
}

trouble() {
    local name=${workers[RANDOM % ${#workers[@]}]}
    case $((RANDOM % 12)) in
    0 | 1) kill -KILL "${worker_pid[$name]}" 2>/dev/null || true ;;
    2) kill -TERM "${worker_pid[$name]}" 2>/dev/null || true ;;
    3) restart_server ;;
    *) ;;
    esac
}

all_over="NOT EXISTS (SELECT FROM commandbus.process p WHERE NOT commandbus.is_terminal(status)
    OR EXISTS (SELECT FROM commandbus.process_inbox i WHERE i.process_id = p.process_id))
    AND NOT EXISTS (SELECT FROM commandbus.command_metadata WHERE status IN ('PENDING', 'IN_PROGRESS'))"
stuck() {
    sql "SELECT process_id, status, error_code, error_message, current_wait, wake_at - now(), lease_owner, unsettled
         FROM commandbus.process p WHERE NOT commandbus.is_terminal(status)
         OR EXISTS (SELECT FROM commandbus.process_inbox i WHERE i.process_id = p.process_id)"
}

bring_to_an_end() {
    local until=$((SECONDS + 480))
    until is_met "$all_over" 0.2; do
        revive
        tick true
        ((SECONDS < until)) || fail "seed $first: these never end:"$'\n'"$(stuck)"
    done
}

# DESIGN 4, 8.1, 8.3, 8.4, 8.6; STP.6 to STP.12
test_whatever_is_killed_a_process_does_what_its_script_and_its_operators_allow() {
    local name until seed=${COMMANDBUS_TEST_SEED:-$RANDOM} first started=0 log
    first=$seed RANDOM=$seed log=$work/effects
    mkdir "$log"
    sql '' -f "$fleet_dir/scripts.sql"
    for name in "${workers[@]}"; do start_worker "$name"; done
    wait_until "EXISTS (SELECT FROM commandbus.process_type)" 60

    until=$((SECONDS + seconds))
    while ((SECONDS < until)); do
        if ((started < 8 * seconds)); then start_scripts 16 || true; fi
        tick false
        trouble
        revive
        sleep 0.2 # not a wait for anything: trouble comes at any moment
    done
    bring_to_an_end

    "$tool" check "$url" "$log" || fail "seed $first"
    note "seed $first: $(sql "SELECT string_agg(concat(status, ' ', n), ', ') FROM (SELECT status, count(*) AS n
        FROM commandbus.process GROUP BY 1) s"); $(cat "$log"/* | wc -l) effects"
    for name in "${workers[@]}"; do
        revive
        wait_ready "$name"
    done
    for name in "${workers[@]}"; do stop_worker "$name"; done
}

with_server "$@"
