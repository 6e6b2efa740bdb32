#!/usr/bin/env bash
# The demo as a visitor runs it, with trouble: 2,000 payments, APIs that fail, workers killed, the database restarted. It
# reconciles by itself what the payments say with what the simulator has booked. SIM.1, SIM.2, RL.1
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

test_two_thousand_payments_with_chaos_end_well() {
    note "$("$fleet_dir/../../deploy/demo" --payments 2000 --chaos --report "$work/report.json" | tail -5)"
    same "$(jq -r '"\(.payments.started) \(.lost) \(.duplicates) \(.left_behind) \(.well)"' "$work/report.json")" '2000 0 0 0 true'
}

run_tests "$@"
