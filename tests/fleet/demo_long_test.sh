#!/usr/bin/env bash
# The demo as a visitor runs it, and as one who interrupts it, runs it twice or does not believe it. It reconciles by itself what the
# payments say with what the simulator has booked. SIM.1, SIM.2, RL.1
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

root=$(cd "$fleet_dir/../.." && pwd)
demo=$root/deploy/demo

# What of a demo is still there: its workers and simulator, its server.
left_over() {
    pgrep -f "^($root/build/release/bin/commandbus-(worker|simulator)|curl .*$root/build/demo)" || true
    if "$root/deploy/local/postgres" status --dir "$root/build/demo/postgres" >/dev/null 2>&1; then echo 'the server'; fi
}
nothing_left() { same "$(left_over)" '' 'what the demo left running'; }
# start_on_terminal COLUMNS ARGUMENTS...: on a terminal of its own; what is written to fd 6 is typed there.
start_on_terminal() {
    local columns=$1
    shift
    mkfifo "$work/keyboard"
    # What bash starts in the background ignores Ctrl-C, and so would all below it.
    env --default-signal=INT script -qefc "stty cols $columns; $demo $*" /dev/null <"$work/keyboard" >"$work/screen" 2>&1 &
    terminal=$! others="${others:-} $!"
    exec 6>"$work/keyboard"
}
# wait_screen REGEX [SECONDS]
wait_screen() {
    local until=$((SECONDS + ${2:-120}))
    until grep -Eq -- "$1" "$work/screen"; do
        ((SECONDS < until)) || fail "the screen lacks '$1': $(tail -c 2000 "$work/screen")"
        sleep 0.1
    done
}

test_the_demo_ends_well_and_says_so_in_json() {
    (cd "$work" && "$demo" --payments 60 --report 'a report.json') >"$work/out"
    same "$(jq -r '"\(.payments.completed) \(.lost) \(.duplicates) \(.left_behind) \(.well) \(.problems | length)"' "$work/a report.json")" '60 0 0 0 true 0'
    if grep -q $'\e' "$work/out"; then fail 'it draws where there is no terminal'; fi
    grep -q 'all is well' "$work/out" || fail "$(cat "$work/out")"
    nothing_left
}

test_two_thousand_payments_with_chaos_end_well() {
    note "$("$demo" --payments 2000 --chaos --report "$work/report.json" | tail -5)"
    same "$(jq -r '"\(.payments.started) \(.lost) \(.duplicates) \(.left_behind) \(.well)"' "$work/report.json")" '2000 0 0 0 true'
    nothing_left
}

# Somebody between the demo and the simulator makes 7 of every most_in_flight.
test_a_limit_that_does_not_hold_ends_with_1() {
    local code=0 real
    real=$(command -v curl)
    mkdir "$work/bin"
    cat >"$work/bin/curl" <<SH
#!/bin/sh
case "\$*" in
*/stats) $real "\$@" | sed -E 's/("most_in_flight": *)[0-9]+/\\17/g' ;;
*) exec $real "\$@" ;;
esac
SH
    chmod +x "$work/bin/curl"
    PATH=$work/bin:$PATH "$demo" --payments 5 --report "$work/report.json" >"$work/out" 2>&1 || code=$?
    same "$code" 1 "the exit code ($(cat "$work/out"))"
    same "$(jq .well "$work/report.json")" false
    grep -q 'NOT WELL' "$work/out" || fail "$(cat "$work/out")"
    nothing_left
}

test_a_worker_that_ends_ends_the_demo_with_1() {
    local code=0
    "$demo" --payments 2000 >"$work/out" 2>&1 &
    others="${others:-} $!"
    wait_for_lines "$root/build/demo/pids" 8 60 # the simulator, six workers, who submits
    kill -9 "$(sed -n 7p "$root/build/demo/pids")"
    wait "${others##* }" || code=$?
    same "$code" 1 "the exit code ($(cat "$work/out"))"
    grep -q 'demo: payments-3 has ended' "$work/out" || fail "$(cat "$work/out")"
    nothing_left
}

# On a terminal of 60 columns no line is longer than that: it would take two, and the next picture be drawn elsewhere.
test_control_c_in_the_middle_stops_everything() {
    local code=0
    start_on_terminal 60 --payments 5000
    wait_screen 'complete [1-9]'
    # While it runs a second one refuses to.
    if "$demo" --payments 1 >"$work/second" 2>&1; then fail 'two demos at once'; fi
    grep -q 'a demo is running already' "$work/second" || fail "$(cat "$work/second")"
    printf '\003' >&6
    printf '\003' >&6 # impatient
    exec 6>&-
    wait "$terminal" || code=$?
    same "$code" 130 'the exit code'
    same "$(tr -d '\r' <"$work/screen" | sed -E 's/\x1b\[[0-9]*[A-Z]//g' | LC_ALL=C.UTF-8 grep -E '^  .{59,}' | head -n 3)" '' 'lines that are too long'
    nothing_left
}

test_a_demo_that_was_kept_is_there_until_it_is_ended() {
    local end until
    "$demo" --payments 5 --keep >"$work/out" 2>"$work/err"
    [[ -n $(left_over) ]] || fail 'nothing was kept'
    if "$demo" --payments 1 >"$work/second" 2>&1; then fail 'two demos at once'; fi
    end=$(sed -n 's/^  End it: //p' "$work/second")
    [[ $end == kill* ]] || fail "it does not say how to end it: $(cat "$work/second")"
    (cd "$root" && eval "$end")
    until=$((SECONDS + 40))
    until [[ -z $(left_over) ]]; do
        ((SECONDS < until)) || fail "still there: $(left_over)"
        sleep 0.2
    done
    "$demo" --payments 1 >"$work/third"
    nothing_left
}

run_tests "$@"
