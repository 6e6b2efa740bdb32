#!/usr/bin/env bash
# The life of one commandbus-worker: signals, exit codes, what it logs and what it serves over HTTP.
. "$(dirname "$0")/../fleet/lib.sh"

# Long enough that nothing ends by itself.
patient=(--set "domains.$domain.visibility-timeout=60s" --set "domains.$domain.handler-timeout=60s")
password=not-for-logs
running="EXISTS (SELECT FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS')"

# start_busy NAME MS [ARGUMENTS...]: a worker with a handler that runs this long.
start_busy() {
    local name=$1 ms=$2
    shift 2
    start_ready "$name" "${patient[@]}" "$@"
    send_commands 1 Sleep "{\"ms\": $ms}"
    wait_until "$running" 20
}

# WRK.11
test_sigterm_drains_and_readyz_says_so() {
    start_busy a 1500
    kill -TERM "${worker_pid[a]}"
    wait_http a 503
    same "$http_body" draining /readyz
    wait_exit a 0
    check_ledger 1
    grep -q 'event=signal.received.* signal=15' "$work/a.log" || fail 'the signal is not in the log'
}

test_sigint_and_sighup_drain_too() {
    local signal
    for signal in INT HUP; do
        start_ready "$signal"
        kill -s "$signal" "${worker_pid[$signal]}"
        wait_exit "$signal" 0
    done
}

test_under_nohup_sighup_is_ignored() {
    trap '' HUP
    start_ready a
    trap - HUP
    kill -HUP "${worker_pid[a]}"
    stop_worker a
    if grep 'signal=1$' "$work/a.log"; then fail 'SIGHUP was taken'; fi
}

# WRK.11
test_a_second_signal_stops_now_and_ends_with_1() {
    start_busy a 60000 --set worker.shutdown-timeout=60s
    kill -TERM "${worker_pid[a]}"
    wait_http a 503
    kill -TERM "${worker_pid[a]}"
    wait_exit a 1 10
    same "$(count "status = 'IN_PROGRESS'")" 1 'commands left to their lease'
}

# WRK.11
test_what_does_not_end_within_the_shutdown_timeout_is_left_and_ends_with_1() {
    start_busy a 60000 --set worker.shutdown-timeout=1s
    stop_worker a 1
    same "$(count "status = 'IN_PROGRESS'")" 1 'commands left to their lease'
}

test_a_port_in_use_is_refused_before_anything_is_claimed() {
    start_ready a
    start_worker b --set log.level=error --set http.port="${worker_port[a]}"
    wait_exit b 2
    grep -q "^commandbus-worker: cannot listen .*: Address already in use$" "$work/b.log" || fail 'no reason'
    grep -q '^  hint: .*http.port' "$work/b.log" || fail 'no hint'
    same "$(wc -l <"$work/b.log")" 2 'lines of its log'
    stop_worker a
}

test_without_command_handlers_it_serves_no_commands() {
    start_ready a --set features.command-handlers=false
    send_commands 1 Echo '{}'
    same "$(metric a 'commandbus_slots{domain="sample"}')" 0 'slots for commands'
    stop_worker a
    same "$(count "status = 'PENDING'")" 1 'commands untouched'
}

test_with_every_feature_off_it_is_idle() {
    start_ready a --set features.command-handlers=false --set features.process-execution=false \
        --set features.reply-processing=false
    send_commands 1 Echo '{}'
    grep -q 'event=worker.idle' "$work/a.log" || fail 'it does not say that it is idle'
    stop_worker a
    same "$(count "status = 'PENDING'")" 1 'commands untouched'
}

# WRK.8
test_a_grace_of_zero_means_no_grace_and_not_the_default() {
    start_ready a --set worker.unknown-type-grace=0 --set worker.kill-grace=0
    send_commands 1 Nosuch '{}'
    wait_until "EXISTS (SELECT FROM commandbus.command_metadata WHERE error_code = 'HANDLER_NOT_FOUND'
                        AND status = 'IN_TROUBLESHOOTING_QUEUE')" 20
    send_commands 1 Hang '{"ms": 600000}' 'timeout_seconds => 1'
    wait_exit a 4 20
}

test_the_metrics_of_a_worker_that_has_worked_are_clean() {
    local promtool=$COMMANDBUS_SOURCE_DIR/build/tools/promtool
    [[ -x $promtool ]] || promtool=promtool
    start_ready a
    send_commands 5 Echo '{}'
    send_commands 1 Nosuch '{}'
    wait_until "(SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED') = 5" 20

    same "$(metric a 'commandbus_outcomes_total{domain="sample",command_type="Echo",outcome="success"}')" 5
    http_get a /metrics
    "$promtool" check metrics <<<"$http_body" || fail "promtool has something to say: $http_body"
    stop_worker a
}

test_every_line_of_its_log_is_json_if_so_wanted_and_none_has_the_password() {
    start_ready a --set log.format=json --set log.level=debug --set \
        "database.listen-url=postgresql://nobody:$password@127.0.0.1:1/none"
    send_commands 3 Echo '{"secret": "payload-of-mine"}'
    wait_until "$all_done" 20
    wait_log a 'listen.failed' 20
    stop_worker a

    jq -e '.ts and .level and .event' "$work/a.log" >/dev/null || fail "no JSON: $(cat "$work/a.log")"
    same "$(jq -r 'select(.event == "command.completed") | .domain' "$work/a.log" | sort | uniq -c |
        tr -s ' ')" " 3 $domain" 'completed commands'
    if grep -E "$password|payload-of-mine" "$work/a.log"; then fail 'a secret is in the log'; fi
}

run_tests "$@"
