#!/usr/bin/env bash
# Who is woken: one of those that sleep, and another if that one does not come.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

newest="(SELECT w.details ->> 'name' FROM commandbus.sleeper s JOIN commandbus.worker w USING (worker)
         WHERE s.queue_name = '${domain}__commands' AND s.expires_at > now() ORDER BY s.expires_at DESC LIMIT 1)"

# DESIGN 2 "Wake-up", section 8.7. Nobody looks by itself for minutes: whatever is found was found because a sender
# called somebody.
test_what_a_paused_worker_is_called_for_others_take() {
    local name paused i from took most=0
    unhurried_settings
    for name in a b c; do start_ready "$name" --set "domains.$domain.poll-interval=10m"; done
    wait_until "(SELECT count(*) = 3 FROM commandbus.sleeper WHERE queue_name = '${domain}__commands')" 60

    for i in 1 2 3; do
        paused=$(sql "SELECT $newest")
        kill_worker "$paused" STOP
        for ((n = 1; n <= 10; n++)); do
            from=${EPOCHREALTIME/[.,]/}
            send_commands 1 Noop '{}'
            wait_until "$all_done" 60
            took=$(((${EPOCHREALTIME/[.,]/} - from) / 1000))
            ((took <= most)) || most=$took
        done
        [[ $(sql "SELECT $newest") != "$paused" ]] || fail "whoever sends still calls $paused"
        kill_worker "$paused" CONT
    done
    note "at most $most ms"
    # A look by itself would have come after minutes.
    at_most "$most" $((200 * $(slowness))) 'the longest wait in ms'
    for name in a b c; do stop_worker "$name"; done
    check_ledger 30
}

# Everybody dies but one, and none of them says so.
test_who_is_left_takes_what_the_dead_are_called_for() {
    local name left
    unhurried_settings
    for name in a b c; do start_ready "$name" --set "domains.$domain.poll-interval=10m"; done
    wait_until "(SELECT count(*) = 3 FROM commandbus.sleeper WHERE queue_name = '${domain}__commands')" 60
    left=$(sql "SELECT w.details ->> 'name' FROM commandbus.sleeper s JOIN commandbus.worker w USING (worker)
                WHERE s.queue_name = '${domain}__commands' ORDER BY s.expires_at LIMIT 1")
    for name in a b c; do [[ $name == "$left" ]] || kill_worker "$name"; done

    send_commands 1 Noop '{}'
    wait_until "$all_done" 20
    send_commands 5 Noop '{}'
    wait_until "$all_done" 20

    same "$(sql "SELECT $newest")" "$left" 'whom senders call'
    stop_worker "$left"
    check_ledger 6
}

run_tests "$@"
