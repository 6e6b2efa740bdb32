#!/usr/bin/env bash
# A worker whose login is a member of commandbus_worker and nothing more: DESIGN 3, "Roles".
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# Roles are of the whole server: this one goes before its database does.
drop_login() {
    sql "DROP OWNED BY $login" 2>/dev/null || true
    sql "DROP ROLE IF EXISTS $login"
}
# make_login: $role_url is the database as that user.
make_login() {
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_worker"
    trap 'code=$?; set +e; drop_login; (exit "$code"); end_test' EXIT
    role_url="postgresql://$login:of-the-test@${BASH_REMATCH[1]}"
}

test_the_role_of_workers_is_enough_for_everything_a_worker_does() {
    "$COMMANDBUS_BIN" migrate --quiet --set sample="$COMMANDBUS_SOURCE_DIR/handlers/sample/sql" >/dev/null
    make_login
    tally_start
    # A domain that nobody has registered, a limit to set, and leases short enough to be renewed.
    start_ready a --set database.url="$role_url" --set domains.$domain.fleet-limit=2 --set domains.fresh.handlers=sample
    wait_log a event=listen.ready
    send_holds 4 1800 "$patience"
    send_commands 2 Record '{"account": "A-1", "amount": "1.00"}'
    send_commands 1 Fail '{"outcome": "PERMANENT"}'
    send_commands 1 Fail '{"outcome": "TRANSIENT", "until_attempt": 1}'
    sql "SELECT pgmq.send('${domain}__commands', '[]')" >/dev/null
    wait_until "$all_done" 60

    at_least "$(sql "SELECT count(*) FROM pg_stat_activity WHERE usename = '$login'")" 5 'connections of that user'
    at_least "$(metric a "commandbus_renewals_total{domain=\"$domain\"}")" 1 renewals
    same "$(metric a "commandbus_poison_archived_total{domain=\"$domain\"}")" 1 'poison archived'
    same "$(sql "SELECT count(*) FROM sample.ledger")" 2 bookings
    same "$(sql "SELECT string_agg(domain, ' ' ORDER BY domain) FROM commandbus.domain")" "fresh $domain" domains
    stop_worker a
    # Nothing was refused.
    if grep -E 'level=(warn|error)' "$work/a.log" | grep -v event=message.poisoned; then fail 'it has complaints'; fi
    same "$(count "status = 'COMPLETED'") $(count "status = 'IN_TROUBLESHOOTING_QUEUE'")" '7 1' 'completed, and in the TSQ'
}

# BUS.15: whatever the defaults of its role are, a worker claims, renews, settles with and without effects.
test_defaults_of_the_role_for_transactions_change_nothing() {
    local defaults
    "$COMMANDBUS_BIN" migrate --quiet --set sample="$COMMANDBUS_SOURCE_DIR/handlers/sample/sql" >/dev/null
    make_login
    tally_start
    for defaults in "default_transaction_isolation = 'repeatable read'" "default_transaction_isolation = 'serializable'" \
        'default_transaction_read_only = on' 'default_transaction_deferrable = on'; do
        sql "ALTER ROLE $login RESET ALL; ALTER ROLE $login SET $defaults; DELETE FROM commandbus.command_metadata; DELETE FROM sample.ledger"
        start_ready a --set database.url="$role_url" --set domains.$domain.fleet-limit=2
        wait_log a event=listen.ready
        send_holds 2 700 "$patience"
        send_commands 2 Record '{"account": "A-1", "amount": "1.00"}'
        send_commands 1 Fail '{"outcome": "TRANSIENT", "until_attempt": 1}'
        wait_until "$all_done" 60
        same "$(sql "SELECT count(*) FROM sample.ledger")" 2 "bookings with $defaults"
        same "$(count "status = 'COMPLETED'")" 5 "completed with $defaults"
        stop_worker a
        if grep -E 'level=(warn|error)' "$work/a.log" | grep -vE 'event=command\.(timeout|late)'; then fail "with $defaults it has complaints"; fi
        rm "$work/a.log"
    done
}

# WRK.15: an instance that may not claim is not ready, says why once, and goes on by itself when it may again.
test_a_right_that_is_taken_away_makes_the_worker_unready_until_it_is_back() {
    make_login
    start_ready a --set database.url="$role_url"
    wait_log a event=listen.ready
    sql "REVOKE EXECUTE ON FUNCTION commandbus.receive FROM commandbus_worker"
    wait_http a 503 30
    grep -q "cannot claim in domain $domain: permission denied" <<<"$http_body" || fail "/readyz says: $http_body"
    send_commands 20 Echo '{"secret": "payload-marker"}'
    sleep 3 # three times a second's notifications and polls would be sixty lines
    same "$(grep -c event=claim.refused "$work/a.log")" 1 'times it is told'
    wait_http a 503 1
    sql "GRANT EXECUTE ON FUNCTION commandbus.receive TO commandbus_worker"
    wait_until "$all_done" 60
    wait_ready a
    same "$(grep -c event=database.accepts "$work/a.log")" 1 'times that it is over is told'
    stop_worker a
}

# A stolen password of a worker opens no more than what workers do.
test_the_role_of_workers_cannot_reach_around_the_functions() {
    local statement
    make_login
    send_commands 1 Echo '{"secret": "payload-marker"}'
    for statement in 'SELECT data FROM commandbus.command_metadata' "SELECT message FROM pgmq.q_${domain}__commands" \
        'UPDATE commandbus.command_metadata SET status = status' 'DELETE FROM commandbus.audit' \
        "SELECT commandbus.tsq_cancel('$domain', gen_random_uuid(), 'me', 'why')" 'CREATE TABLE commandbus.mine ()'; do
        if psql -XqAt -d "$role_url" -c "$statement" >"$work/said" 2>&1; then fail "it may: $statement"; fi
        grep -q 'permission denied' "$work/said" || fail "$statement: $(cat "$work/said")"
    done
}

run_tests "$@"
