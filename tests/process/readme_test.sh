#!/usr/bin/env bash
# The process of process/README.md, with what REFERENCE.md adds to it: built against the installed package, and it does what
# the page says.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/../fleet/lib.sh"
: "${COMMANDBUS_SOURCE_DIR:?}" "${CC:?}"

domain=transfers
worker_settings=(domains.transfers.handlers=transfers domains.fx.handlers=sample)
for d in transfers fx; do worker_settings+=("domains.$d.poll-interval=100ms"); done
read -ra instrument <<<"${COMMANDBUS_INSTRUMENT:-}"

build() {
    local flags
    cmake --install "$COMMANDBUS_BUILD_DIR" --prefix "$work/prefix" >/dev/null
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name commandbus-process.pc)")
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags --libs commandbus-process)
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$COMMANDBUS_SOURCE_DIR"/process/{README,REFERENCE}.md >"$work/transfers.c"
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden \
        -o "$work/modules/transfers.so" "$work/transfers.c" $flags
}

# The test of the page, beside the process it includes.
build_test() {
    local flags
    flags=$(pkg-config --cflags --libs commandbus-test)
    awk '/^```c test$/ { on = 1; next } /^```$/ { on = 0 } on' "$COMMANDBUS_SOURCE_DIR/process/README.md" >"$work/transfers_test.c"
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -std=c11 -Wall -Wextra -Werror -o "$work/transfers_test" "$work/transfers_test.c" $flags \
        "-Wl,-rpath,$(dirname "$PKG_CONFIG_PATH")"
}

transfer() { sql "SELECT commandbus.start_process('Transfer', '{\"account\": \"DE1\", \"amount\": {\"amount\": \"$1\", \"currency\": \"EUR\"}}')"; }
answer() { sql "SELECT commandbus.respond('$1', 'approval', '{\"approved\": $2}')" >/dev/null; }
of() { sql "SELECT $2 FROM commandbus.process WHERE process_id = '$1'"; }
wait_for() { wait_until "(SELECT $2 FROM commandbus.process WHERE process_id = '$1' AND lease_owner IS NULL) = '$3'" 30; }

# STP.1, STP.6, STP.8, STP.11, RL.2
test_the_process_of_the_page_builds_and_does_what_it_says() {
    build
    start_ready a
    yes=$(transfer 1250.00) no=$(transfer 10.00) wrong=$(transfer -1.00)

    wait_for "$yes" current_wait awaitApproval
    kill_worker a
    start_ready b
    answer "$yes" true
    wait_for "$yes" status COMPLETED
    [[ $(of "$yes" "state->>'receipt'") =~ ^paid-[0-9a-f]{8}$ ]] || fail "$(of "$yes" state)"
    same "$(of "$yes" "state->>'quote'")" Q-4711 'the quote'

    wait_for "$no" current_wait awaitApproval
    answer "$no" false
    wait_for "$no" status COMPENSATED
    same "$(of "$no" error_code)" NOT_APPROVED 'its reason'
    same "$(count "correlation_id = '$no' AND status = 'COMPLETED'")" 2 'the rate booked and given back'

    wait_for "$wrong" status COMPENSATED
    same "$(of "$wrong" error_code)" INVALID_TRANSFER 'its reason'
    same "$(count "correlation_id = '$wrong'")" 0 'commands'
    stop_worker b
}

# S1 12.1, 12.2
test_the_test_of_the_page_builds_and_passes() {
    build
    build_test
    "$work/transfers_test" || fail 'the test of the page'
}

run_tests "$@"
