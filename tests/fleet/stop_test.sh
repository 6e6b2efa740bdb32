#!/usr/bin/env bash
# How a worker ends, and what becomes of what it held: WRK.11.
. "$(dirname "$0")/lib.sh"

running() { wait_metric "$1" "commandbus_running{domain=\"$domain\"}" "$2"; }
events() { sql "SELECT count(*) FROM commandbus.audit WHERE event_type = '$1'"; }

# WRK.11: b, which comes meanwhile, has a free slot for each command that runs in a, and may not take one.
test_a_drain_lets_every_domain_finish_what_runs_longer_than_a_visibility_timeout() {
    local long='{"ms": 2000, "times": 6, "sleep_ms": 1000}' # asks for more time again and again
    "$COMMANDBUS_BIN" queue create other >/dev/null
    start_ready a --set domains.other.handlers=sample,trial --set domains.other.concurrent-messages=2 \
        --set domains.other.visibility-timeout=2s --set domains.other.handler-timeout=2s
    send_commands 2 Extend "$long"
    domain=other send_commands 2 Extend "$long"
    running a 2
    domain=other running a 2

    kill -TERM "${worker_pid[a]}"
    wait_http a 503
    [[ $http_body == *draining* ]] || fail "/readyz says '$http_body'"
    domain=other send_commands 3 Echo '{}'
    start_ready b --set domains.$domain.concurrent-messages=4
    send_commands 3 Echo '{}'
    wait_exit a 0

    wait_until "(SELECT count(*) = 7 FROM commandbus.command_metadata WHERE status = 'COMPLETED')" 60
    same "$(count "lease_no = 1 AND status = 'COMPLETED'")" 7 'commands run once'
    same "$(count "command_type = 'Extend' AND result ->> 'lost' = 'false'")" 4 'commands that kept their leases'
    same "$(count "lease_no = 0 AND domain = 'other' AND status = 'PENDING'")" 3 'commands never claimed'
    stop_worker b
    check_ledger 5
}

# WRK.11
test_what_was_claimed_ahead_is_given_back_uncharged() {
    tally_start
    start_ready a --set domains.$domain.prefetch=6
    tally_shut
    send_holds 8 1 "$patience"
    tally_wait open 2
    wait_metric a "commandbus_in_flight{domain=\"$domain\"}" 8

    kill_worker a TERM
    wait_http a 503
    tally_open
    wait_exit a 0

    same "$(count "status = 'COMPLETED' AND attempts = 1")" 2 'commands finished'
    same "$(count "status = 'PENDING' AND attempts = 0 AND lease_no = 1 AND lease_owner IS NULL")" 6 'commands given back'
    same "$(events RELEASED)" 6 'RELEASED events'
    same "$(tally_number total)" 2 calls

    start_ready b --set domains.$domain.concurrent-messages=6
    wait_until "$all_done" 30
    stop_worker b
    check_ledger 8
    same "$(count 'attempts <> 1')" 0 'commands charged for it'
}

# WRK.11
test_a_handler_that_says_interrupted_is_refunded() {
    start_ready a
    send_commands 2 Sleep '{"ms": 60000, "interruptible": true}' 'timeout_seconds => 120'
    running a 2

    kill -INT "${worker_pid[a]}"
    wait_exit a 0

    same "$(count "status = 'PENDING' AND attempts = 0 AND lease_no = 1")" 2 'commands given back'
    same "$(events RELEASED)" 2 'RELEASED events'
    # At once, and not after its lease: the handover of a rolling update.
    same "$(sql "SELECT count(*) FROM pgmq.q_${domain}__commands WHERE vt > now()")" 0 'messages put off'
    start_ready b
    wait_until "(SELECT bool_and(lease_no = 2 AND attempts = 1) FROM commandbus.command_metadata)" 30
    running b 2
    stop_worker b
}

# Calls that do not end before leave_behind.
two_calls() {
    tally_shut
    send_holds 2 1 'timeout_seconds => 10' # and so long are their leases
    tally_wait open 2
}
# leave_behind CODE: a has two calls open and ends with CODE; they are redelivered after their lease, charged.
leave_behind() {
    local lease_end
    wait_exit a "$1"
    tally_open
    lease_end=$(sql "SELECT max(lease_until) FROM commandbus.command_metadata")
    same "$(count "status = 'IN_PROGRESS' AND attempts = 1")" 2 'commands left behind'

    start_ready b
    wait_until "$all_done" 60
    stop_worker b
    check_ledger 2
    same "$(count 'attempts = 2 AND lease_no = 2')" 2 'commands charged twice'
    same "$(sql "SELECT count(*) FROM commandbus.audit WHERE event_type = 'RECEIVED' AND lease_no = 2
                 AND at < '$lease_end'")" 0 'commands redelivered too early'
    same "$(tally_number commands_repeated)" 2 'commands called twice'
}

# WRK.11
test_what_outlasts_the_shutdown_timeout_is_redelivered_after_its_lease_and_charged() {
    tally_start
    start_ready a --set worker.shutdown-timeout=500ms
    two_calls
    kill -TERM "${worker_pid[a]}"
    leave_behind 1
}

# WRK.11
test_a_second_signal_stops_now_and_what_ran_is_redelivered_and_charged() {
    tally_start
    start_ready a
    two_calls
    kill -INT "${worker_pid[a]}"
    wait_http a 503
    kill -TERM "${worker_pid[a]}"
    leave_behind 1
}

# WRK.11
test_a_killed_worker_is_replaced_after_one_visibility_timeout() {
    tally_start
    start_ready a
    two_calls
    kill -KILL "${worker_pid[a]}"
    leave_behind 137
}

# WRK.6: and the others are served meanwhile.
test_a_command_that_kills_its_workers_goes_to_the_tsq_after_max_attempts() {
    local attempt
    ulimit -c 0
    send_commands 1 Crash '{}' 'max_attempts => 3'
    for attempt in 1 2 3; do
        start_worker a
        wait_exit a 134
        same "$(count "command_type = 'Crash' AND status = 'IN_PROGRESS' AND attempts = $attempt")" 1 "runs ($attempt)"
    done

    send_commands 5 Echo '{"any": "thing"}'
    start_ready a
    wait_until "$all_done" 60
    same "$(count "error_code = 'LEASE_EXHAUSTED' AND status = 'IN_TROUBLESHOOTING_QUEUE'")" 1 'commands in the TSQ'
    same "$(metric a "commandbus_lease_exhausted_total{domain=\"$domain\"}")" 1 'leases exhausted'
    same "$(sql "SELECT message ->> 'error_code' FROM pgmq.q_${domain}__replies
                 WHERE NOT (message ->> 'final')::boolean")" LEASE_EXHAUSTED 'its reply'
    stop_worker a
    check_ledger 6 'COMPLETED 5, IN_TROUBLESHOOTING_QUEUE 1'
}

run_tests "$@"
