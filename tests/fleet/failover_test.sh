#!/usr/bin/env bash
# The primary dies under load and its standby takes over: DESIGN 7, deploy/RUNBOOK.md "Backup and restore". WRK.22
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/server.sh"

vt=8

# A copy of the server that follows it, in $standby_dir; commits wait for it from now on. $url then has both.
standby_start() {
    local host
    standby_dir=$(server_folder "${TMPDIR:-/tmp}/standby.XXXXXX")
    (guard_server "$standby_dir") # no child of the test, which waits for all of its own
    server_copy "$standby_dir"
    standby_url=$("$server_control" start --dir "$standby_dir" 2>/dev/null)
    server -c "ALTER SYSTEM SET synchronous_standby_names = '*'" -c 'SELECT pg_reload_conf()' >/dev/null
    wait_until "(SELECT sync_state = 'sync' FROM pg_stat_replication)" 30
    host=${standby_url##*@}
    url=${url%/*},${host%%/*}/${url##*/}?target_session_attrs=read-write
    export COMMANDBUS_DATABASE_URL=$url
}

# Section 8, 1 and 6. The leases are over when the standby takes over, and somebody new with room for all comes first: what
# the others hold is theirs for one more visibility timeout, although this server was started long before.
test_a_synchronous_standby_takes_over_and_nothing_is_lost_or_run_twice() {
    local name gone settings=(--set domains.$domain.visibility-timeout=${vt}s --set domains.$domain.handler-timeout=${vt}s
        --set domains.$domain.concurrent-messages=4)
    standby_start
    tally_start
    for name in a b; do start_worker "$name" "${settings[@]}"; done
    for name in a b; do wait_ready "$name"; done
    send_holds 40 1000
    tally_wait total 12

    server_stop immediate
    gone=$SECONDS
    for name in a b; do wait_http "$name" 503; done
    until (($(tally_number open) == 0)); do sleep 0.05; done
    # Every lease must have run out: that time has to pass.
    sleep $((gone + vt + 1 - SECONDS))
    psql -XqAt -d "$standby_url" -c 'SELECT pg_promote()' >/dev/null
    start_worker c "${settings[@]}" --set domains.$domain.concurrent-messages=30

    wait_until "$all_done" 90
    for name in a b c; do wait_ready "$name"; done
    same "$(tally_number total)" 40 calls
    same "$(tally_number commands_repeated)" 0 'commands called twice'
    check_ledger 40
    same "$(count 'attempts <> 1')" 0 'commands charged for the failover'
    for name in a b c; do stop_worker "$name"; done
    "$server_control" destroy --dir "$standby_dir" >/dev/null
}

with_server "$@"
