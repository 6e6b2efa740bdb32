#!/usr/bin/env bash
# Workers behind a PgBouncer in transaction mode: WRK.22, DESIGN 2 "Connections" and "Wake-up".
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pooler.sh"

# Whoever waits for this interval has not been woken.
long_poll="domains.$domain.poll-interval=1h"

# What would follow a client to the next one on the same connection of the pool.
session_state="
    (SELECT count(*) FROM pg_prepared_statements)
    + (SELECT count(*) FROM pg_listening_channels())
    + (SELECT count(*) FROM pg_cursors)
    + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    + (SELECT count(*) FROM pg_class WHERE relpersistence = 't')
    + (SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding'))"

# check_pool: each connection of the pool, all taken at once, is as a new one would be.
check_pool() {
    local i told
    : >"$work/pool"
    for i in 1 2 3 4 5; do
        psql -XqAt -d "$pooled_url" -c "SELECT pg_backend_pid() || ' ' || ($session_state); SELECT pg_sleep(1)" >>"$work/pool" &
        told+=" $!"
    done
    # shellcheck disable=SC2086 # one process each
    wait $told
    same "$(grep -oE '^[0-9]+ [0-9]+' "$work/pool" | cut -d' ' -f1 | sort -u | wc -l)" 5 'connections looked at'
    same "$(grep -cE '^[0-9]+ [1-9]' "$work/pool")" 0 'connections with something left behind'
}

# Three workers have twelve connections and more; the pool gives five.
test_three_workers_share_five_connections_and_leave_nothing_on_them() {
    local name
    tally_start
    pooler_start
    for name in a b c; do
        start_worker "$name" --set database.url="$pooled_url" --set database.listen-url="$url"
    done
    for name in a b c; do wait_ready "$name"; done
    "$COMMANDBUS_BIN" migrate --quiet --set sample="$COMMANDBUS_SOURCE_DIR/handlers/sample/sql" >/dev/null
    "$COMMANDBUS_BIN" --url "$pooled_url" send "$domain" Echo --data '{"by": "the pooler"}' >/dev/null

    send_holds 60 200
    send_commands 20 Record '{"account": "DE1", "amount": "1.00"}'
    # The pool's and three listeners'; a client of this test that has just ended may still be there.
    wait_until "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                 AND client_port IS NOT NULL) <= 8" 30
    wait_until "$all_done" 60
    at_most "$(tally_number max)" 6 'most calls at once'
    same "$(tally_number commands_repeated)" 0 'commands called twice'

    for name in a b c; do stop_worker "$name"; done
    check_ledger 81
    same "$(count 'lease_no <> 1')" 0 'commands claimed twice'
    check_pool
}

test_a_worker_that_listens_past_the_pooler_is_woken() {
    pooler_start
    start_ready a --set database.url="$pooled_url" --set database.listen-url="$url" --set "$long_poll"
    wait_log a event=listen.ready

    # Once it sleeps, only a notification brings it back in time.
    for _ in 1 2 3; do
        wait_until "EXISTS (SELECT FROM commandbus.sleeper)" 30
        send_commands 1 Echo '{}'
        wait_until "$all_done" 15
    done
    at_least "$(metric a commandbus_notifications_total)" 1 wake-ups
    stop_worker a
    check_ledger 3
}

# A pooler in transaction mode passes on what comes with the answer to a statement: the worker could hear
# itself and nobody else, and sleep.
test_a_worker_that_listens_through_the_pooler_finds_out_that_it_hears_nothing_and_polls() {
    pooler_start
    start_ready a --set database.url="$pooled_url"
    wait_log a 'event=listen.failed .*database.listen-url'

    send_commands 20 Echo '{}'
    wait_until "$all_done" 30

    if grep -q listen.ready "$work/a.log"; then fail 'it believes that it hears'; fi
    # So nobody pays for waking it.
    same "$(sql 'SELECT count(*) FROM commandbus.sleeper')" 0 sleepers
    same "$(metric a commandbus_ready)" 1 readiness
    stop_worker a
    check_ledger 20
}

# WRK.10
test_a_pooler_that_is_restarted_is_found_again() {
    tally_start
    pooler_start
    start_ready a --set database.url="$pooled_url" --set database.listen-url="$url"
    send_holds 20 500
    tally_wait total 4

    kill -KILL "$pooler_pid"
    wait_http a 503
    pooler_restart
    wait_ready a
    wait_until "$all_done" 60
    at_most "$(tally_number max)" 2 'most calls at once'
    stop_worker a
    check_ledger 20
}

run_tests "$@"
