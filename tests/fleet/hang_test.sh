#!/usr/bin/env bash
# A handler that does not return: its command is not lost, its slot is, and then its worker.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# WRK.8, DESIGN 2 "Slots"
test_a_hanging_handler_is_timed_out_at_once_and_ends_its_worker_after_the_grace() {
    local hung="SELECT * FROM commandbus.command_metadata WHERE command_type = 'Hang'"
    tally_start
    start_ready a --set worker.kill-grace=2s --set worker.shutdown-timeout=10m
    # One slot makes a long call, the other one gets what hangs, in its first attempt only.
    tally_shut
    send_holds 1 1 "$patience"
    tally_wait open 1
    send_commands 1 Hang '{"ms": 600000, "until_attempt": 1}' 'timeout_seconds => 1'
    send_holds 20 100

    # The command is free again while its handler still has the slot: nothing else gets it.
    wait_until "(SELECT status = 'PENDING' AND error_code = 'HANDLER_TIMEOUT' FROM ($hung) h)" 60
    same "$(metric a "commandbus_in_flight{domain=\"$domain\"}")" 2 'commands in flight'

    # Not back after the grace: unready, what runs is finished, and the end.
    wait_http a 503
    [[ $http_body == *"a handler does not return"* ]] || fail "/readyz does not say why: $http_body"
    wait_log a event=worker.draining # nothing more is claimed
    tally_open
    wait_exit a 4
    wait_log a 'event=handler\.stuck'
    same "$(count "status = 'COMPLETED'")" 1 'commands completed by the worker that hung'
    same "$(tally_number total)" 1 'calls of the worker that hung'
    same "$(count "status = 'IN_PROGRESS'")" 0 'commands that were left in the middle'

    # Elsewhere it is run again.
    start_ready b
    wait_until "$all_done" 60
    same "$(sql "SELECT attempts FROM ($hung) h")" 2 'attempts of the hanging one'
    stop_worker b
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    check_ledger 22
}

run_tests "$@"
