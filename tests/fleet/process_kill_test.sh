#!/usr/bin/env bash
# Processes under fire: kill -9 of a random worker every second, restarted at once, for
# COMMANDBUS_FLEET_SECONDS. DESIGN 8.1, 8.4.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"
hasty_settings

seconds=${COMMANDBUS_FLEET_SECONDS:-20}
workers=(a b c)

# start_many N: Five that take their time; every tenth is declined at the end, by its state or by a handler.
start_many() {
    sql "SELECT count(commandbus.start_process('Five', '$(noted '"maxAttempts": 50' '"retryMs": 20' \
        '"sleeps": {"BookFx": 300, "BookRisk": 300, "execute": 200, "enrich": 50, "undoExecute": 100, "ReleaseFx": 100}')'::jsonb
             || CASE i % 20 WHEN 0 THEN '{\"decline\": true}'::jsonb
                            WHEN 10 THEN jsonb_set('{\"fails\": {}}', '{fails,BookRisk}', '\"BUSINESS\"') ELSE '{}' END))
         FROM generate_series(1, $1) i" >/dev/null
}
# kill_for SECONDS [COMMAND]: four or more; the command comes before each, with the number of kills so far.
kill_for() {
    local until=$((SECONDS + $1)) name at=${EPOCHREALTIME/./}
    kills=0
    while ((SECONDS < until || kills < 4)); do
        "${2:-:}" "$kills"
        at=$((at + 1000000))
        # Not a wait for anything: kills come at any moment.
        sleep "$(awk -v us=$((at - ${EPOCHREALTIME/./})) 'BEGIN { print (us > 0 ? us / 1e6 : 0) }')"
        name=${workers[RANDOM % ${#workers[@]}]}
        kill_worker "$name"
        start_worker "$name"
        kills=$((kills + 1))
    done
}

# kill_the_busy: a busy machine may have killed its workers before they had begun anything. Then it hits those with a step or a
# command in their hands, until one of each had to be begun again.
kill_the_busy() {
    local name leased="lease_owner IS NOT NULL AND lease_until > clock_timestamp()"
    while [[ $(sql "SELECT ($begun_again) OR ($all_settled AND $all_done)") == f ]]; do
        name=$(sql "SELECT lease_owner FROM (SELECT lease_owner FROM commandbus.process WHERE $leased
                        UNION ALL SELECT lease_owner FROM commandbus.command_metadata WHERE $leased) l ORDER BY random() LIMIT 1")
        name=${name%-*} # an instance's id is its name and something random
        if [[ -n $name ]]; then
            kill_worker "$name"
            start_ready "$name"
            kills=$((kills + 1))
        fi
    done
}
begun_again="EXISTS (SELECT FROM commandbus.process_history WHERE attempts > 1)
    AND EXISTS (SELECT FROM commandbus.command_metadata WHERE attempts > 1)"

test_killed_workers_lose_no_process_and_book_nothing_that_is_not_recorded() {
    local name n=300 statuses
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    # Commands may die with their workers as often as there are kills.
    for name in fx risk; do worker_settings+=("domains.$name.max-attempts=100" "domains.$name.concurrent-messages=2"); done
    worker_settings+=(domains.payments.concurrent-processes=3)
    stage_flows
    for name in "${workers[@]}"; do start_worker "$name"; done
    for name in "${workers[@]}"; do wait_ready "$name"; done
    start_many $n

    kill_for "$seconds"
    for name in "${workers[@]}"; do wait_ready "$name"; done
    kill_the_busy
    wait_until "$all_settled AND $all_done" 180

    for name in "${workers[@]}"; do wait_ready "$name"; done
    for name in "${workers[@]}"; do stop_worker "$name"; done
    statuses=$(sql "SELECT string_agg(s.status || ' ' || s.n, ', ' ORDER BY s.status::text)
                    FROM (SELECT status, count(*) AS n FROM commandbus.process GROUP BY 1) s")
    note "$kills kills, $statuses, $(sql "SELECT count(*) FROM commandbus.process_event WHERE event = 'STALE_OUTCOME'") late outcomes"
    # It was worth trying: processes and commands were claimed again.
    at_least "$(sql "SELECT count(*) FROM commandbus.process_history WHERE attempts > 1")" 1 'steps that were begun again'
    at_least "$(count 'attempts > 1')" 1 'commands that were claimed again'
    check_processes "COMPENSATED $((n / 10)), COMPLETED $((n - n / 10))"
}

# respond_some N: a letter to each process, another one each time; twice under one id.
respond_some() {
    sql "SELECT count(commandbus.respond(process_id, 'L' || l, '{\"reference\": \"r\"}', md5(process_id || 'L' || l)::uuid))
         FROM (SELECT process_id, 1 + (ascii(right(process_id::text, 1)) + $1) % 4 AS l FROM commandbus.process) p
         CROSS JOIN generate_series(1, 2)" >/dev/null
}

# STP.11: whoever dies, each response is applied once
test_responses_that_come_while_workers_die_are_each_applied_once() {
    local name n=150
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    stage_flows
    for name in "${workers[@]}"; do start_worker "$name"; done
    for name in "${workers[@]}"; do wait_ready "$name"; done
    sql "SELECT count(commandbus.start_process('Letters', '{}')) FROM generate_series(1, $n)" >/dev/null

    kill_for 8 respond_some
    wait_until "$all_settled" 60

    same "$(sql "SELECT count(*) FROM commandbus.process p CROSS JOIN LATERAL (
                     SELECT count(*) AS n, string_agg(h.name, ' ' ORDER BY h.ordinal) AS names FROM commandbus.process_history h
                     WHERE h.process_id = p.process_id AND h.kind = 'RESPONSE') r
                 WHERE r.n = 4 AND r.names = p.state ->> 'arrived'")" "$n" 'processes with four letters, each taken once'
    for name in "${workers[@]}"; do wait_ready "$name"; done
    for name in "${workers[@]}"; do stop_worker "$name"; done
    check_processes "COMPLETED $n"
    note "$kills kills"
}

run_tests "$@"
