# Sourced by fleet tests that need a server of their own: they stop and kill it.
#
#   with_server ARGUMENTS...     run_tests on such a server, which is gone afterwards
#   server_stop fast|immediate   as an operator does, or as a machine that dies
#   server_start                 the same data, the same port
#   server_crash                 the kernel kills one of its processes; it comes back by itself

# shellcheck shell=bash disable=SC2154 # sourced after lib.sh, whose variables these are
# shellcheck source=tests/support/server_folder.sh
. "$fleet_dir/../support/server_folder.sh"
server_control=$fleet_dir/../../deploy/local/postgres

server_pid() { "$server_control" status --dir "$server_dir" | sed -n 's/.*pid \([0-9]*\),.*/\1/p'; }
server_start() { "$server_control" start --dir "$server_dir" >/dev/null 2>&1; }

server_stop() {
    local -A signals=([fast]=INT [immediate]=QUIT)
    local pid
    pid=$(server_pid)
    kill -s "${signals[$1]}" "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}

# Any process of it will do: the postmaster ends all others and goes through recovery.
server_crash() {
    local pid
    pid=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'")
    kill -KILL "$pid"
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
        echo "SKIPPED, all of it: no server of the test's own can be started here: $(tail -n 1 "$server_dir.log")"
        rm -rf "$server_dir" "$server_dir.log"
        echo '0 passed, 0 failed'
        return
    fi
    rm -f "$server_dir.log"
    guard_server "$server_dir"
    (run_tests "$@") || code=$?
    "$server_control" destroy --dir "$server_dir" >/dev/null
    return "$code"
}
