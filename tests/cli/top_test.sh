#!/usr/bin/env bash
# commandbus top: BUS.20.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"

cb migrate >/dev/null
cb queue create fx >/dev/null
beat w-1 fx 2 1

# until_true SECONDS COMMAND...: asks until it succeeds.
until_true() {
    local end=$((SECONDS + 4 * $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || fail "did not happen: $*"
        read -rt 0.05 <> <(:) || true
    done
}
has() { grep -aq -- "$2" "$1" 2>/dev/null; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

test_once_prints_one_block_with_rates() {
    exits 0 top --once --interval 100ms
    prints '^commandbus top  [0-9: -]+  every 0\.1s$'
    prints '^DOMAIN +IN/S +OUT/S +DEPTH +TREND +DUE +WAITING +LIVE LEASES +INSTANCES$'
    prints '^fx +0\.0 +0\.0 +0 .* \[\.{10}\] 0/2 slots +1$'
    prints '^w-1 +node-1 '
    lacks $'\033'
    same "$(grep -c '^DOMAIN' "$work/out")" 1
}

# in/s from what was sent, out/s from what is no longer there.
test_rates_are_what_happened_between_two_looks() {
    cb send fx T --count 40 --quiet
    "$COMMANDBUS_BIN" top --json --interval 1s >"$work/lines" 2>"$work/err" &
    local pid=$!
    until_true 10 has "$work/lines" '"depth":40'
    # In one transaction, so that both fall between the same two looks.
    sql "DELETE FROM pgmq.q_fx__commands WHERE msg_id <= 30;
         SELECT count(*) FROM commandbus.send_many((
             SELECT jsonb_agg('{\"domain\": \"fx\", \"command_type\": \"T\"}'::jsonb) FROM generate_series(1, 60)))" >/dev/null
    until_true 10 has "$work/lines" '"depth":70'
    kill "$pid"
    wait "$pid" || true
    # How long a look takes is the machine's affair: two came in for each that went out.
    jq -es 'map(.domains[0]) | (map(.in_per_second) | add) as $in | (map(.out_per_second) | add) as $out |
            $in > 10 and $in < 61 and $in / $out > 1.8 and $in / $out < 2.2' "$work/lines" >/dev/null ||
        fail "$(jq -c '.domains[0] | [.in_per_second, .out_per_second, .depth]' "$work/lines")"
}

test_the_bar_is_leases_of_the_limit() {
    limit fx 4
    claim fx 3
    exits 0 top --once --interval 100ms
    prints ' \[########\.\.\] 3/4 limit '
    limit fx 1
    exits 0 top --once --interval 100ms --json
    json '[.problems[].problem]' '["LEASES_OVER_LIMIT","LEASES_OVER_SLOTS"]'
}

test_it_ends_when_nobody_reads_any_more() {
    "$COMMANDBUS_BIN" top --interval 100ms 2>"$work/err" | head -n 1 >"$work/out"
    prints '^commandbus top'
    is_silent
}

test_an_interval_too_short_or_none_is_refused() {
    exits 2 top --interval 1ms
    exits 2 top --interval soon
}

test_no_database_is_exit_3() {
    exits 3 top --once --url 'postgresql://127.0.0.1:1/none'
}

test_completion_knows_fleet_and_top() {
    same "$("$COMMANDBUS_BIN" __complete fl)" fleet
    same "$("$COMMANDBUS_BIN" __complete top --on)" --once
}

# start_on_terminal SETUP [TEXT]: waits until it has drawn the text. top in a terminal of its own, its keys from descriptor 5, its screen in $work/screen.
start_on_terminal() {
    rm -f "$work/keys" "$work/screen" "$work/code"
    mkfifo "$work/keys"
    (
        code=0
        TERM=xterm LC_ALL=C.UTF-8 script -qefc "$1 echo \$\$ >'$work/pid'; exec '$COMMANDBUS_BIN' top --interval 100ms" \
            "$work/screen" <"$work/keys" >/dev/null 2>&1 || code=$?
        echo "$code" >"$work/code"
    ) &
    exec 5>"$work/keys"
    until_true 10 has "$work/screen" "${2:-w-1}"
}

ends_with() { # CODE
    until_true 10 test -s "$work/code"
    same "$(cat "$work/code")" "$1"
    # The other screen was entered once and left once, last; the cursor is back.
    same "$(grep -ao $'\033\\[?1049[hl]' "$work/screen" | tr -d '\033\n')" '[?1049h[?1049l'
    same "$(grep -ao $'\033\\[?25[hl]' "$work/screen" | tail -n 1 | tr -d '\033')" '[?25h'
}

test_q_ends_it_and_gives_the_terminal_back() {
    command -v script >/dev/null || return 0
    start_on_terminal ''
    printf xq >&5
    ends_with 0
    has "$work/screen" 'q ends' || fail 'it does not say how to end it'
}

test_ctrl_c_ends_it_and_gives_the_terminal_back() {
    command -v script >/dev/null || return 0
    start_on_terminal ''
    printf '\003' >&5
    ends_with 0
}

test_a_signal_ends_it_and_gives_the_terminal_back() {
    command -v script >/dev/null || return 0
    start_on_terminal ''
    kill -TERM "$(cat "$work/pid")"
    ends_with 0
}

test_the_picture_fits_the_terminal() {
    command -v script >/dev/null || return 0
    start_on_terminal 'stty rows 6 cols 30; export LC_ALL=C;' DOMAIN
    printf q >&5
    ends_with 0
    # Between two homes of the cursor there are at most six lines, none wider than thirty columns.
    tr -d '\r' <"$work/screen" | sed -E $'s/\033\\[[0-9;?]*[mKJhl]//g; s/\033\\[H/\\nHOME\\n/g' >"$work/out"
    awk '/^Script/ { next } /^HOME$/ { n = 0; next } { n++; if (n > 6 || length($0) > 30) { print NR ": " $0; bad = 1 } }
         END { exit bad }' "$work/out" || fail 'it is larger than the terminal'
}

test_a_lost_connection_is_reported_and_tried_again() {
    command -v script >/dev/null || return 0
    start_on_terminal ''
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()" >/dev/null
    until_true 10 has "$work/screen" '^! \|! terminating\|! the conn\|! server'
    beat w-back fx 2 0
    until_true 10 has "$work/screen" 'w-back'
    printf q >&5
    ends_with 0
}

run_tests
