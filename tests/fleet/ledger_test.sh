#!/usr/bin/env bash
# The check at the end of every fleet test finds what it is there for: each thing is done to a good
# ledger and found.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

one="(SELECT command_id FROM commandbus.command_metadata WHERE status = 'COMPLETED' ORDER BY 1 LIMIT 1)"
again="INSERT INTO commandbus.audit (command_id, domain, lease_no, attempt, event_type)
       SELECT command_id, domain, lease_no, attempt"

# What is done | what is said of it.
deeds=(
    "SELECT|^$"
    "DELETE FROM commandbus.command_metadata WHERE command_id = $one|commands: 4, not 5"
    "UPDATE commandbus.command_metadata SET status = 'FAILED' WHERE command_id = $one|statuses: COMPLETED 2, FAILED 2"
    "$again, 'COMPLETED' FROM commandbus.audit WHERE event_type = 'COMPLETED' AND command_id = $one|2 final events"
    "DELETE FROM commandbus.audit WHERE event_type = 'BUSINESS_RULE_FAILED'|FAILED and has 0 final events"
    "$again, 'RECEIVED' FROM commandbus.audit WHERE event_type = 'RECEIVED' AND command_id = $one|claimed 2 times, with 1 fences"
    "UPDATE commandbus.command_metadata SET lease_no = 7 WHERE command_id = $one|the row says 7"
    "UPDATE commandbus.audit SET lease_no = 0 WHERE event_type = 'COMPLETED'|finished under fence 0, but claimed up to 1"
    "INSERT INTO pgmq.q_${domain}__replies (vt, message) SELECT vt, message FROM pgmq.q_${domain}__replies|has 2 final replies"
    "DELETE FROM pgmq.q_${domain}__replies|has 0 final replies"
    "SELECT pgmq.send('${domain}__replies', '{\"command_id\": \"7e57ab1e-0000-4000-8000-000000000000\"}')|which is no command here"
    "SELECT pgmq.send('${domain}__commands', '{}')|is still in the queue"
    "INSERT INTO commandbus.fleet_place (place, command_id, lease_no, held_until, timeout_seconds, domain, worker)
     VALUES (1, $one, 1, 'infinity', 1, '$domain', 'x')|holds a place under fence 1"
    "UPDATE commandbus.audit SET event_type = 'POISON_ARCHIVED' WHERE event_type = 'SENT'|POISON_ARCHIVED"
)

test_the_ledger_says_what_is_wrong() {
    local deed said
    start_ready a
    send_commands 3 Noop '{}'
    send_commands 1 Fail '{"outcome": "BUSINESS_RULE"}'
    send_commands 1 Fail '{"outcome": "PERMANENT"}'
    wait_until "$all_done" 60
    stop_worker a
    check_ledger 5 'COMPLETED 3, FAILED 1, IN_TROUBLESHOOTING_QUEUE 1'

    for deed in "${deeds[@]}"; do
        said=$(ledger 5 'COMPLETED 3, FAILED 1, IN_TROUBLESHOOTING_QUEUE 1' "${deed%|*}")
        grep -Eq -- "${deed##*|}" <<<"$said" || fail "after ${deed%|*} it says: $said"
    done
}

# A report of a sanitizer is found whatever else went well.
test_a_report_in_a_log_fails_a_test() {
    echo 'WARNING: ThreadSanitize''r: data race' >"$work/a.log"
    if (check_logs) >/dev/null 2>&1; then fail 'it was not found'; fi
    : >"$work/a.log"
}

run_tests "$@"
