#!/usr/bin/env bash
# Routes that wait, for the database or for ever: what that costs callers, the rest of the
# worker, and its shutdown.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/../fleet/lib.sh"
# shellcheck source=tests/fleet/pooler.sh
. "$(dirname "$0")/../fleet/pooler.sh"

serving=(--set "domains.$domain.handlers=desk" --set features.http-api=true)

# take_lock, give_lock: of /desk/hold, by somebody with psql.
take_lock() {
    psql -XqAt -d "$url" -c 'SELECT pg_advisory_lock(4711)' -c '\echo locked' -c 'SELECT pg_sleep(600)' >"$work/locker" 2>&1 &
    others="${others:-} $!"
    until grep -q locked "$work/locker"; do sleep 0.02; done
}
give_lock() { sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep(600)%'" >/dev/null; }
waiting="(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')"

# ask_later PATH: in the background; the answer becomes a line of $work/answers.
ask_later() { (http_ask a GET "$1" && echo "$http_status $(jq -r .error <<<"$http_body")" >>"$work/answers") & }
# took_ms COMMAND...: runs it, and how long that took.
took_ms() {
    local began=${EPOCHREALTIME/./}
    "$@"
    took=$(((${EPOCHREALTIME/./} - began) / 1000))
}

# Who waits in the queue behind them has their time running too: all are answered when the first are.
test_a_route_that_the_database_keeps_waiting_is_a_503_in_time() {
    local i
    start_ready a "${serving[@]}" --set http.route-timeout=1500ms
    take_lock
    for i in {1..12}; do ask_later /desk/hold; done
    took_ms wait_for_lines "$work/answers" 12
    note "12 routes of at most 1500 ms each, on 4 threads, answered after $took ms"
    same "$(sort -u "$work/answers")" '503 TIMEOUT' 'the answers'
    at_least "$took" 1000
    at_most "$took" 8000
    same "$(sql "SELECT $waiting")" 0 'backends that wait on'
    give_lock
    for i in {1..4}; do
        http_ask a GET /desk/hold
        expect_http 200
    done
    stop_worker a
}

# One that makes the same statement again is cancelled again; one that leaves a transaction open leaves it to nobody.
test_a_late_route_costs_its_thread_nothing_whatever_it_does() {
    local i
    start_ready a "${serving[@]}" --set http.route-timeout=300ms
    take_lock
    http_ask a GET /desk/insist
    expect_http 503 .error TIMEOUT
    for i in {1..4}; do
        http_ask a GET /desk/forget
        expect_http 503 .error TIMEOUT
    done
    same "$(sql "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'")" 0 'transactions left open'
    give_lock
    for i in {1..8}; do
        http_ask a GET /desk/forget
        expect_http 200
    done
    stop_worker a
}

# STP.3: what a route starts runs to its end however long its steps take, each of them once.
test_a_process_that_a_route_starts_takes_its_time() {
    start_ready a "${serving[@]}" --set http.route-timeout=1s
    http_ask a POST /desk/jobs '{"ms": 1500}'
    expect_http 200 .status COMPLETED
    same "$(sql "SELECT string_agg(concat_ws(' ', step_name, step_status, attempt_number), ', ' ORDER BY step_name)
                 FROM commandbus.process_audit WHERE entry_type = 'STEP' AND step_status = 'COMPLETED'")" 'first COMPLETED 1, second COMPLETED 1'
    same "$(sql 'SELECT status FROM commandbus.process')" COMPLETED
    stop_worker a
}

# DESIGN "Connections": no session setting is needed for it, so a pool in transaction mode will do.
test_a_late_route_is_ended_through_a_pooler_too() {
    pooler_start
    start_ready a "${serving[@]}" --set http.route-timeout=500ms --set database.url="$pooled_url" --set database.listen-url="$url"
    take_lock
    http_ask a GET /desk/hold
    expect_http 503 .error TIMEOUT
    wait_until "$waiting = 0" 10
    give_lock
    http_ask a GET /desk/hold
    expect_http 200
    stop_worker a
}

# WRK.11: shutdown is bounded by shutdown-timeout, and waiting callers get an answer.
test_a_route_that_waits_for_a_lock_does_not_hold_up_the_end() {
    start_ready a "${serving[@]}" --set worker.shutdown-timeout=2s --set http.route-timeout=10m
    take_lock
    ask_later /desk/hold
    wait_until "$waiting = 1" 30
    took_ms stop_worker a
    note "ended $took ms after SIGTERM, shutdown-timeout 2 s"
    at_least "$took" 1500
    at_most "$took" 8000
    wait_for_lines "$work/answers" 1
    same "$(cat "$work/answers")" '503 STOPPING'
    same "$(sql "SELECT $waiting")" 0 'backends that wait on'
}

test_a_second_signal_ends_routes_at_once() {
    start_ready a "${serving[@]}" --set worker.shutdown-timeout=10m --set http.route-timeout=10m
    take_lock
    ask_later /desk/hold
    wait_until "$waiting = 1" 30
    kill -TERM "${worker_pid[a]}"
    wait_log a worker.stopped
    took_ms stop_worker a
    at_most "$took" 6000
    wait_for_lines "$work/answers" 1
    same "$(cat "$work/answers")" '503 STOPPING'
}

# Nothing can end a thread that hangs elsewhere: the process ends with it.
test_a_route_that_does_not_return_is_left_behind() {
    start_ready a "${serving[@]}" --set worker.shutdown-timeout=1s
    ask_later /desk/stay
    wait_until "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4712 AND granted)" 30
    took_ms stop_worker a 1
    at_most "$took" 12000
    grep -q 'level=error event=worker.abandoned' "$work/a.log" || fail 'it does not say so'
}

# All threads of the routes hang, and as many requests wait as may; further ones are refused with
# the reason.
test_slow_routes_stop_no_probe_and_no_handler() {
    local i asked=80
    start_ready a "${serving[@]}" --set http.route-timeout=60s
    take_lock
    for ((i = 0; i < asked; i++)); do ask_later /desk/hold; done
    wait_until "$waiting = 4" 30
    wait_for_lines "$work/answers" $((asked - 4 - 64))
    same "$(sort -u "$work/answers")" '503 BUSY' 'the answer to those beyond'

    http_get a /livez
    same "$http_status" 200 /livez
    http_get a /readyz
    same "$http_status" 200 /readyz
    sql "SELECT count(commandbus.send('$domain', 'Desk')) FROM generate_series(1, 3)" >/dev/null
    wait_until "$all_done" 20

    give_lock
    wait_for_lines "$work/answers" "$asked"
    same "$(sort "$work/answers" | uniq -c | tr -s ' ' | paste -sd,)" " 68 200 null, 12 503 BUSY" 'the answers'
    stop_worker a
}

test_a_worker_that_stops_answers_what_it_has_begun_and_takes_no_more() {
    start_ready a "${serving[@]}" --set worker.shutdown-timeout=60s --set http.route-timeout=60s
    take_lock
    (http_ask a GET /desk/hold && echo "$http_status" >"$work/answers") &
    wait_until "$waiting = 1" 30
    kill -TERM "${worker_pid[a]}"
    wait_log a worker.stopped
    is_alive a || fail 'it left a route behind'
    give_lock
    wait_exit a 0
    wait_for_lines "$work/answers" 1
    same "$(cat "$work/answers")" 200 'the answer'
}

run_tests "$@"
