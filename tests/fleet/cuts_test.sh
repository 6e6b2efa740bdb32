#!/usr/bin/env bash
# Connections are cut under load, at any moment: before the server knows, and after it has committed.
. "$(dirname "$0")/lib.sh"

# breaker_start: $broken_url leads to the database through tests/tools/breaker.c.
breaker_start() {
    local port seed=${COMMANDBUS_TEST_SEED:-$RANDOM}
    [[ $url =~ ^(.*@)127\.0\.0\.1:([0-9]+)/([^?]*)$ ]] || return 1
    "$COMMANDBUS_BUILD_DIR/tests/breaker" "${BASH_REMATCH[2]}" "$seed" >"$work/breaker" 2>&1 &
    breaker_pid=$! others="${others:-} $!"
    until port=$(sed -n 's/^port //p' "$work/breaker") && [[ -n $port ]]; do sleep 0.01; done
    broken_url="${BASH_REMATCH[1]}127.0.0.1:$port/${BASH_REMATCH[3]}?sslmode=disable&gssencmode=disable"
    echo "seed $seed"
}
total() { # METRIC NAME...
    local name sum=0 series=$1
    shift
    for name; do sum=$((sum + $(metric "$name" "$series"))); done
    echo "$sum"
}

# WRK.14, DESIGN "Connections": the leases are long, so whatever is run or charged twice is our mistake.
test_lost_answers_to_claims_are_given_back_uncharged_and_lost_commits_are_sent_again() {
    local name cuts
    breaker_start || skip 'only a server at 127.0.0.1 can be put behind a breaker'
    tally_start
    for name in a b; do
        start_worker "$name" --set database.url="$broken_url" --set log.level=debug \
            --set domains.$domain.visibility-timeout=30s --set domains.$domain.handler-timeout=30s \
            --set domains.$domain.concurrent-messages=4
    done
    for name in a b; do wait_ready "$name"; done

    kill -USR1 "$breaker_pid"
    send_holds 150 20
    wait_until "$all_done" 100
    kill -USR2 "$breaker_pid"
    for name in a b; do wait_ready "$name"; done

    check_ledger 150
    same "$(tally_number total)" 150 calls
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    same "$(count 'attempts <> 1')" 0 'commands charged for a lost answer'
    at_least "$(sql "SELECT count(*) FROM commandbus.audit WHERE event_type = 'RELEASED' AND details ->> 'reason' LIKE '%answer%'")" \
        1 'claims given back'
    at_least "$(total "commandbus_released_unknown_total{domain=\"$domain\"}" a b)" 1 'claims given back'
    at_least "$(cat "$work"/[ab].log | grep -c 'verdict=ALREADY')" 1 'commits sent again'
    kill -TERM "$breaker_pid"
    wait "$breaker_pid" || true
    cuts=$(sed -n 's/^cut //p' "$work/breaker")
    at_least "$cuts" 4 'connections cut'
    # Their connections are gone for good now: nothing is in flight, so they end all the same.
    for name in a b; do stop_worker "$name"; done
}

# cut KIND: true when there was one.
cut() {
    [[ -n $(sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'commandbus-$1'") ]]
}

# WRK.10
test_every_kind_of_connection_that_is_cut_under_load_comes_back() {
    local kind before name end
    tally_start
    for name in a b; do start_worker "$name"; done
    for name in a b; do wait_ready "$name"; done
    send_holds 50 1500

    for kind in claim settle renew listen keep; do
        before=$(total "commandbus_reconnects_total{connection=\"$kind\"}" a b)
        end=$((SECONDS + 60))
        until cut $kind; do ((SECONDS < end)) || fail "no connection looks like $kind"; done
        until (($(total "commandbus_reconnects_total{connection=\"$kind\"}" a b) > before)); do
            ((SECONDS < end)) || fail "nobody missed the connection $kind"
            sleep 0.05
        done
    done
    # And all of them at once, again and again.
    for _ in {1..20}; do
        sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5" >/dev/null
        sleep 0.1
    done

    for name in a b; do wait_ready "$name"; done
    wait_until "$all_done" 100
    at_most "$(tally_number max)" 4 'most calls at once'
    for name in a b; do stop_worker "$name"; done
    check_ledger 50
}

# WRK.11: the kernel takes what is sent to a stopped process, so nobody is told that it will not be read.
test_a_worker_whose_database_hangs_ends_in_time_all_the_same() {
    local name
    breaker_start || skip 'only a server at 127.0.0.1 can be put behind a breaker'
    tally_start
    start_ready idle --set database.url="$broken_url" --set worker.shutdown-timeout=1s \
        --set domains.$domain.poll-interval=60s
    start_ready busy --set database.url="$broken_url" --set worker.shutdown-timeout=1s
    start_ready hasty --set database.url="$broken_url" --set worker.shutdown-timeout=60s
    send_holds 4 1500
    tally_wait open 4

    kill -STOP "$breaker_pid"
    for name in idle busy hasty; do kill -TERM "${worker_pid[$name]}"; done
    wait_log hasty event=worker.draining
    kill -TERM "${worker_pid[hasty]}"
    for name in idle busy hasty; do wait_exit "$name" 1 30; done
    kill -KILL "$breaker_pid"

    start_ready b
    wait_until "$all_done" 60
    stop_worker b
    check_ledger 4
}

run_tests "$@"
