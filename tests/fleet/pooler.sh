# Sourced by fleet tests that put a PgBouncer between workers and their server.
#
#   pooler_start [SETTING...]    in transaction mode; $pooled_url leads through it, $pooler_pid is it
#   pooler_restart               after somebody killed it

# shellcheck shell=bash disable=SC2154 # sourced after lib.sh, whose variables these are
find_pooler() {
    local place
    for place in "$fleet_dir/../../build/tools/pgbouncer" /usr/sbin/pgbouncer "$(command -v pgbouncer)"; do
        if [[ -x $place ]]; then echo "$place" && return; fi
    done
    return 1
}

pooler_start() {
    local port pair credentials host_port
    find_pooler >/dev/null || fail 'there is no pgbouncer: run deploy/local/deps --tests'
    [[ $url =~ ^postgresql://([^@]*)@([^/]*)/ ]] || fail 'the server has no URL that pgbouncer could use'
    credentials=${BASH_REMATCH[1]} host_port=${BASH_REMATCH[2]}
    port=$(free_port)
    {
        echo '[databases]'
        echo "$database = host=${host_port%:*} port=${host_port#*:} dbname=$database" \
            "user=${credentials%%:*} password=${credentials#*:}"
        echo '[pgbouncer]'
        for pair in listen_addr=127.0.0.1 "listen_port=$port" unix_socket_dir= auth_type=any \
            pool_mode=transaction default_pool_size=5 ignore_startup_parameters=extra_float_digits "$@"; do
            echo "$pair"
        done
    } >"$work/pgbouncer.ini"
    pooled_url="postgresql://anybody@127.0.0.1:$port/$database"
    pooler_restart
}

# With the same settings, at the same port.
pooler_restart() {
    local user=()
    # It refuses to be root, and becomes somebody else once it has read its file.
    if [[ $EUID -eq 0 ]]; then user=(-u nobody); fi
    "$(find_pooler)" "${user[@]}" "$work/pgbouncer.ini" >>"$work/pgbouncer.txt" 2>&1 &
    pooler_pid=$! others="${others:-} $!"
    until psql -XqAt -d "$pooled_url" -c 'SELECT 1' >/dev/null 2>&1; do
        kill -0 "$pooler_pid" 2>/dev/null || fail "pgbouncer does not start: $(cat "$work/pgbouncer.txt")"
        sleep 0.05
    done
}
