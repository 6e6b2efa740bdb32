#!/usr/bin/env bash
# commandbus fleet, and what the doctor says about it: BUS.20.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"

test_an_empty_database_is_told_to_migrate() {
    exits 1 fleet
    says 'hint: .*commandbus migrate'
}

test_an_empty_fleet_says_so() {
    cb migrate >/dev/null
    exits 0 fleet
    says 'no instances'
    cb queue create fx >/dev/null
    cb queue create risk >/dev/null
    exits 0 fleet
    prints '^fx +0 +0 +0 +0 +none +0 +0 +-$'
    exits 0 fleet --json
    json '[.instances, .problems, (.domains | length)]' '[[],[],2]'
}

test_instances_show_what_their_heartbeats_say() {
    beat w-1 fx 2 1 6
    beat w-2 fx 2 2 6 draining
    exits 0 fleet
    prints '^INSTANCE +HOST +PROFILE +STATE +VERSION +UPTIME +HEARTBEAT +IN FLIGHT/SLOTS$'
    prints '^w-1 +node-1 +ratelimited-worker +running +1\.2\.3 +62m +[0-9]+s ago +fx 1/2$'
    prints '^w-2 +node-1 +ratelimited-worker +draining .* fx 2/2$'
    lacks $'\033'
    exits 0 fleet --json
    json '[.instances[0] | .worker, .pid, .state, .domains.fx.settled]' '["w-1",7,"running",123]'
}

# RL.1: replicas x concurrent-messages.
test_domains_show_slots_leases_and_limit() {
    beat w-1 fx 2 1 6
    beat w-2 fx 2 2 6 draining
    cb send fx T --count 5 --quiet
    claim fx 3
    limit fx 4
    exits 0 fleet
    prints '^fx +2 +2 x 2 = 4 +3 +3 +4 +5 +2 +[0-9]+s$'
    lacks '^!'
    beat w-2 fx 3 2 6
    exits 0 fleet
    prints '^fx +2 +5 +3 +3 +4 +5 +2 +[0-9]+s$'
    exits 0 fleet --json
    json '[.domains[0] | .slots, .slots_each, .live_leases, .fleet_limit]' '[5,null,3,4]'
}

test_more_leases_than_the_limit_or_than_slots_are_marked() {
    limit fx 2
    exits 0 fleet
    prints '^! fx: 3 live leases, more than the fleet-limit 2$'
    lacks 'slots of'
    beat w-1 fx 1 1
    beat w-2 fx 1 1
    exits 0 fleet
    prints '^! fx: 3 live leases, more than the 2 slots of 2 live instances$'
    json_is='["LEASES_OVER_LIMIT","LEASES_OVER_SLOTS"]'
    exits 0 fleet --json
    json '.domains[0].problems' "$json_is"
    json '[.problems[].problem]' "$json_is"
    exits 0 doctor
    prints '^warn +live leases +fx: 3, more than the fleet-limit 2$'
    limit fx 0
    beat w-1 fx 1 1
    beat w-2 fx 1 1
    exits 0 doctor
    prints '^warn +live leases +fx: 3, more than the 2 slots of 2 live instances$'
}

test_a_silent_instance_is_marked_and_does_not_count() {
    beat w-1 fx 4 0
    beat w-2 fx 4 0
    silence w-2
    exits 0 fleet
    lacks '^w-2 '
    prints '^! w-2: silent for [0-9]+s$'
    prints '^fx +1 +1 x 4 = 4 '
    exits 0 doctor
    prints '^warn +instances +w-2 on node-1 has been silent for [0-9]+ (s|min.*)$'
    prints '^ok +instances +1 alive$'
    beat w-2 fx 4 0
    exits 0 doctor
    prints '^ok +instances +2 alive$'
}

# After a crash of the machine: six that nobody stopped, and six new ones.
test_the_dead_of_a_restart_are_one_line() {
    local i
    retire_all
    for i in {1..6}; do
        beat "old-$i" fx 4 0
        silence "old-$i"
        beat "new-$i" fx 4 0
    done
    # However slow this machine is.
    sql "UPDATE commandbus.worker SET heartbeat_at = now() + interval '10 minutes' WHERE worker LIKE 'new-%'"
    exits 0 fleet
    same "$(grep -c '^new-' "$work/out")" 6
    lacks '^old-'
    prints '^! 6 of ratelimited-worker: silent for [0-9]+[sm]( to [0-9]+[sm])?: old-1, old-2, old-3, old-4, old-5 and 1 more$'
    same "$(grep -c silent "$work/out")" 1
    exits 0 fleet --json
    json '[.instances[] | select(.state == "silent")] | length' 6
    json '[.problems[] | select(.problem == "SILENT")] | length' 6
    exits 0 top --once
    same "$(grep -c silent "$work/out")" 1
    lacks '^old-'
    exits 0 doctor
    prints '^warn +instances +6 of ratelimited-worker have been silent for [0-9]+( to [0-9]+)? s: old-1, .* and 1 more$'
    lacks 'silent for ([0-9]+) to \1 s'
    prints '^ok +instances +6 alive$'
    same "$(grep -c silent "$work/out")" 1
    retire_all
}

test_work_that_nobody_serves_is_marked() {
    retire_all
    cb send risk T --quiet >/dev/null
    exits 0 fleet
    prints '^! risk: 1 messages are due and no live instance serves this domain$'
    exits 0 doctor
    prints '^warn +served domains +risk: 1 messages are due, the first for [0-9]+ s, and no live instance serves it$'
    prints '-> Start a worker whose profile enables domains\.risk\.'
    beat w-1 risk 1 0
    exits 0 doctor
    lacks 'served domains +risk'
    settle risk SUCCESS
}

test_the_doctor_finds_limits_that_disagree() {
    settle fx SUCCESS
    sql "UPDATE commandbus.command_metadata SET lease_until = now() - interval '1 h' WHERE status = 'IN_PROGRESS'"
    retire_all
    exits 0 doctor
    prints '^ok +fleet limits +none is set$'
    limit fx 6
    beat w-1 fx 2 0 6
    exits 0 doctor
    prints '^ok +fleet limits +fx 6$'
    beat w-2 fx 2 0 8
    beat w-3 fx 2 0 8
    exits 0 doctor
    prints '^warn +fleet limits +fx: 6 is in force, but w-1 says 6; w-2, w-3 says 8$'
    prints '-> The last to start wins: give domains\.fx\.fleet-limit one value'
    silence w-2
    silence w-3
    exits 0 doctor
    prints '^ok +fleet limits +fx 6$'
}

test_the_doctor_finds_a_limit_that_nobody_configures() {
    retire_all
    beat w-1 fx 2 0
    exits 0 doctor
    prints '^warn +fleet limits +fx: the limit 6 is in force, but no live instance configures it$'
    prints "set_fleet_limit\('fx', 0\)"
    limit fx 0
    exits 0 doctor
    prints '^ok +fleet limits +none is set$'
}

test_a_queue_that_is_missing_is_marked() {
    sql "SELECT pgmq.drop_queue('risk__commands')" >/dev/null
    exits 0 fleet
    prints '^! risk: the queue is missing: commandbus queue create risk$'
    cb queue create risk >/dev/null
}

# What an instance calls itself reaches a terminal as text.
test_control_characters_of_a_heartbeat_are_shown_not_obeyed() {
    sql "SELECT commandbus.heartbeat('evil', '{\"name\": \"a\\u001b[2Jb\", \"domains\": {\"\\u0007\": {}}}')" >/dev/null
    exits 0 fleet
    lacks $'[\033\a]'
    prints 'a\\x1b\[2Jb'
}

test_colours_are_for_terminals_only() {
    command -v script >/dev/null || return 0
    silence evil
    script -qec "'$COMMANDBUS_BIN' fleet" "$work/typescript" >"$work/out" </dev/null
    prints $'\033\\[31m! '
}

run_tests
