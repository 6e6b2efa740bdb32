# Sourced by fleet tests, after lib.sh: the downstream simulator (handlers/simulator), and asking it what it has seen.

# shellcheck shell=bash disable=SC2034,SC2154 # from lib.sh, and for the tests
# simulator_start [ARGUMENTS...]: on the port it had before, if it had one.
simulator_start() {
    simulator_port=${simulator_port:-$(free_port)}
    : >"$work/simulator"
    "$COMMANDBUS_BUILD_DIR/bin/commandbus-simulator" --port "$simulator_port" "$@" >"$work/simulator" 2>>"$work/simulator.log" &
    simulator_pid=$!
    others="${others:-} $simulator_pid"
    until grep -q '^port ' "$work/simulator"; do
        kill -0 "$simulator_pid" 2>/dev/null || fail "the simulator has ended"
        sleep 0.01
    done
}
# simulator_kill: nothing it was asked is answered any more.
simulator_kill() {
    kill -KILL "$simulator_pid"
    wait "$simulator_pid" 2>/dev/null || true
}
# simulator METHOD PATH [BODY]: the body of its answer, which must be a 2xx.
simulator() {
    local reply
    # shellcheck disable=SC2016 # for the inner shell
    reply=$(timeout 10 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" &&
        printf "%s %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" "$1" "$2" "${#3}" "$3" >&3 && cat <&3' \
        "$simulator_port" "$1" "$2" "${3:-}") || fail "simulator $1 $2: no answer"
    [[ $reply =~ ^HTTP/1\.[01]\ 2 ]] || fail "simulator $1 $2: $reply"
    sed '1,/^\r*$/d' <<<"$reply"
}
behave() { simulator PUT "/behaviour/$1" "$2" >/dev/null; }
# seen PATH: a number of its stats, such as .fx.most_in_flight
seen() { simulator GET /stats | jq -e "$1"; }
# await_seen PATH LEAST [SECONDS]
await_seen() {
    local until=$((SECONDS + 4 * ${3:-60}))
    until (($(seen "$1") >= $2)); do
        ((SECONDS < until)) || fail "$1 of the simulator never became $2: $(simulator GET /stats)"
        sleep 0.02
    done
}
