#!/usr/bin/env bash
# The network between one worker and its server swallows everything and closes nothing, while the rest of
# the fleet goes on: DESIGN "Leases" and "The limit, exactly".
#
# Where it may (root on most machines), this runs in a network namespace of its own and nft drops the
# packets. Elsewhere a proxy between the two is stopped (SIGSTOP): the kernel then takes the bytes and
# nobody reads them. The line "network:" says which one it was.

can_drop_packets() {
    PATH=$PATH:/usr/sbin:/sbin
    [[ $EUID -eq 0 ]] && command -v ip nft >/dev/null 2>&1 &&
        unshare --net -- sh -c 'ip link set lo up && nft add table ip probe' >/dev/null 2>&1
}
if [[ -z ${IN_NETWORK_NAMESPACE:-} ]] && can_drop_packets; then
    exec env IN_NETWORK_NAMESPACE=yes unshare --net -- "$BASH" "$0" "$@"
fi

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/server.sh"

# network_start: $far_url leads to the database through a network that can be cut.
network_start() {
    [[ $url =~ ^(.*@)127\.0\.0\.1:([0-9]+)/(.*)$ ]] || fail "the server is not at 127.0.0.1"
    local before=${BASH_REMATCH[1]} port=${BASH_REMATCH[2]} name=${BASH_REMATCH[3]}
    if [[ -n ${IN_NETWORK_NAMESPACE:-} ]]; then
        server -c "ALTER SYSTEM SET listen_addresses = '127.0.0.1, 127.0.0.2'"
        server_stop fast
        server_start
        far_url="${before}127.0.0.2:$port/$name"
        return
    fi
    "$COMMANDBUS_BUILD_DIR/tests/breaker" "$port" >"$work/breaker" 2>&1 &
    breaker_pid=$! others="${others:-} $!"
    until port=$(sed -n 's/^port //p' "$work/breaker") && [[ -n $port ]]; do sleep 0.01; done
    far_url="${before}127.0.0.1:$port/$name?sslmode=disable&gssencmode=disable"
}
network_cut() {
    if [[ -z ${IN_NETWORK_NAMESPACE:-} ]]; then
        kill -STOP "$breaker_pid"
        return
    fi
    nft add table ip cut
    nft 'add chain ip cut in { type filter hook input priority 0; }'
    nft add rule ip cut in ip daddr 127.0.0.2 drop
    nft add rule ip cut in ip saddr 127.0.0.2 drop
}
network_mend() {
    if [[ -n ${IN_NETWORK_NAMESPACE:-} ]]; then nft delete table ip cut; else kill -CONT "$breaker_pid"; fi
}

test_a_worker_cut_off_by_dropped_packets_is_replaced_and_changes_nothing_when_it_is_back() {
    local from
    tally_start
    network_start
    start_ready far --set database.url="$far_url" --set domains.$domain.fleet-limit=4
    start_ready near --set domains.$domain.fleet-limit=4
    send_holds 40 300
    tally_wait open 4

    network_cut
    from=$SECONDS
    # What it held is run by the other one, without waiting for the network.
    wait_until "$all_done" 60
    at_most "$(tally_number max)" 4 'most calls at once'
    is_alive far || fail 'it has ended'
    if [[ -n ${IN_NETWORK_NAMESPACE:-} ]]; then
        # WRK.10: nothing comes back and nothing says so, yet it finds out.
        wait_http far 503 40
        note "network: packets dropped by nft; found out within $((SECONDS - from)) s"
    else
        note "network: a stopped proxy, because packets cannot be dropped here"
    fi

    network_mend
    wait_ready far 90
    send_holds 8 300
    wait_until "$all_done" 60
    stop_worker far
    stop_worker near
    check_ledger 48
}

if [[ -n ${IN_NETWORK_NAMESPACE:-} ]]; then
    ip link set lo up
    with_server "$@"
else
    run_tests "$@"
fi
