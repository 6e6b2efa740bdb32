#!/usr/bin/env bash
# A batch of a thousand processes: exact counts and one message at its end, whoever dies on the way. BUS.5, STP.3.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"
hasty_settings

n=1000
# states: of a hundred, two are declined (COMPENSATED), two fail for good (TSQ), one waits for what never comes (its
# deadline: FAILED).
states() {
    local i rest
    for ((i = 1; i <= n; i++)); do
        case $((i % 100)) in
            0 | 50) rest='"decline": true' ;;
            20 | 70) rest='"fails": {"execute": "PERMANENT"}' ;;
            40) rest='"waitFor": true, "waitMs": 86400000, "onDeadline": "FAIL"' ;;
            *) rest='"n": 0' ;;
        esac
        noted '"maxAttempts": 50' '"retryMs": 20' '"sleeps": {"execute": 30, "BookFx": 10}' "$rest"
    done
}
cb() { "$COMMANDBUS_BIN" "$@"; }
ended() { wait_until "(SELECT count(*) >= $1 FROM commandbus.process WHERE commandbus.is_terminal(status))" 120; }
shown() { sql "SELECT concat_ws(' ', status, total, completed, failed, canceled, in_troubleshooting) FROM commandbus.batch_status"; }
told() {
    sql "SELECT (SELECT count(*) FROM pgmq.q_payroll__replies) || ' ' ||
                (SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED')"
}

test_a_thousand_processes_are_counted_exactly_and_reported_once_though_their_worker_dies() {
    local id name
    for name in fx risk; do worker_settings+=("domains.$name.max-attempts=100"); done
    worker_settings+=(domains.payments.concurrent-processes=10)
    stage_flows
    cb queue create payroll >/dev/null
    start_ready a
    states >"$work/states.jsonl"
    id=$(cb process start Five --file "$work/states.jsonl" --name salaries --reply-to payroll__replies --deadline +1h)

    for name in 150 500; do
        ended "$name"
        kill_worker a
        start_ready a
    done
    # Those in the TSQ, and those that wait, keep it open.
    wait_until "(SELECT in_troubleshooting = 20 AND in_progress = 10 AND pending = 0 FROM commandbus.batch_status)" 180
    same "$(shown)" 'IN_PROGRESS 1000 950 20 0 20'
    same "$(told)" '0 0'
    cb process cancel --batch "$id" --reason 'given up' --operator ann --yes >/dev/null
    wait_until "(SELECT canceled = 20 FROM commandbus.batch_status)" 60
    same "$(told)" '0 0'
    sql "UPDATE commandbus.clock SET moved_by = '2 h'"
    ended 995
    kill_worker a
    start_ready a
    timeout 120 "$COMMANDBUS_BIN" batch show "$id" --wait --timeout 90s >/dev/null

    same "$(shown)" 'COMPLETED_WITH_FAILURES 1000 950 30 20 0'
    same "$(told)" '1 1'
    same "$(sql "SELECT message - 'batch_id' = '{\"domain\": \"payments\", \"status\": \"COMPLETED_WITH_FAILURES\", \"total\": 1000,
                     \"completed\": 950, \"failed\": 30, \"canceled\": 20}' AND message ->> 'batch_id' = '$id'
                 FROM pgmq.q_payroll__replies")" t 'the completion message'
    wait_until "$all_settled AND $all_done" 60
    stop_worker a
    # It was worth trying: the kills have hit something.
    at_least "$(sql "SELECT (SELECT count(*) FROM commandbus.process_history WHERE attempts > 1)
                          + (SELECT count(*) FROM commandbus.command_metadata WHERE attempts > 1)")" 1 'runs that were begun again'
    check_processes 'CANCELED 20, COMPENSATED 20, COMPLETED 950, FAILED 10'
}

run_tests "$@"
