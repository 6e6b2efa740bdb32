# Sourced by fleet tests that need a server of their own: they stop and kill it.
#
#   with_server ARGUMENTS...     run_tests on such a server, which is gone afterwards
#   server_stop fast|immediate   as an operator does, or as a machine that dies
#   server_start                 the same data, the same port
#   server_copy DIR              what a standby is started from
#   server_crash                 the kernel kills one of its processes; it comes back by itself

# shellcheck shell=bash disable=SC2154 # sourced after lib.sh, whose variables these are
# shellcheck source=tests/support/server_folder.sh
. "$fleet_dir/../support/server_folder.sh"
server_control=${COMMANDBUS_TEST_SERVER:-$fleet_dir/../../deploy/local/postgres}

server_pid() { "$server_control" status --dir "$server_dir" | sed -n 's/.*pid \([0-9]*\),.*/\1/p'; }
server_start() { "$server_control" start --dir "$server_dir" >/dev/null 2>&1; }

server_stop() {
    local -A signals=([fast]=INT [immediate]=QUIT)
    local pid
    pid=$(server_pid)
    kill -s "${signals[$1]}" "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}

# Any process of it will do: the postmaster ends all others and goes through recovery. In a container it has two numbers.
server_crash() {
    local number pid
    number=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'")
    for pid in $(pgrep -P "$(server_pid)"); do
        if [[ $(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status") == "$number" ]]; then kill -KILL "$pid" && return; fi
    done
    fail "there is no process $number of the server"
}

# server_copy DIR: a base backup in DIR, from which a server that follows this one can be started. Made by the programs of the
# server itself, as the owner of its data, which is not root.
server_copy() {
    local arguments=(--checkpoint=fast --write-recovery-conf --dbname "$(url_of postgres)") as=()
    install -d -m 700 ${COMMANDBUS_TEST_SERVER:+-o 10002} "$1/data"
    cp "$server_dir/password" "$1/password"
    if [[ -n ${COMMANDBUS_TEST_SERVER:-} ]]; then
        # shellcheck disable=SC2016 # for the shell in the container
        "$COMMANDBUS_TEST_ENGINE" run --rm --network host -v "$1/data:/var/lib/postgresql/data" --entrypoint bash \
            "$COMMANDBUS_TEST_IMAGE" -c 'exec /usr/lib/postgresql/*/bin/pg_basebackup --pgdata /var/lib/postgresql/data/cluster "$@"' \
            copy "${arguments[@]}"
        return
    fi
    if [[ $EUID -eq 0 ]]; then
        chown -R postgres: "$1"
        as=(runuser -u postgres --)
    fi
    (cd / && "${as[@]}" pg_basebackup --pgdata "$1/data" "${arguments[@]}")
}

# guard_server DIR: whatever becomes of this script, its server ends with it.
guard_server() {
    local script=$$
    # shellcheck disable=SC2016 # for the inner shell
    setsid bash -c 'while kill -0 "$0"; do sleep 1; done; "$1" destroy --dir "$2"' \
        "$script" "$server_control" "$1" >/dev/null 2>&1 </dev/null &
}

with_server() {
    local code=0
    server_dir=$(server_folder "${TMPDIR:-/tmp}/fleet.XXXXXX")
    if ! COMMANDBUS_TEST_URL=$("$server_control" start --dir "$server_dir" 2>"$server_dir.log"); then
        echo "SKIPPED: all of it: no server of the test's own can be started here: $(tail -n 1 "$server_dir.log")"
        rm -rf "$server_dir" "$server_dir.log"
        count_line 0 0 "$(test_names "$@" | wc -l)"
        return
    fi
    rm -f "$server_dir.log"
    guard_server "$server_dir"
    (run_tests "$@") || code=$?
    "$server_control" destroy --dir "$server_dir" >/dev/null
    return "$code"
}
