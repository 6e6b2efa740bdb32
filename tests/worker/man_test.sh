#!/usr/bin/env bash
# commandbus-worker(1) has the options of --help and every setting: it is made from the same tables.
. "$(dirname "$0")/../cli/lib.sh"
page=$COMMANDBUS_BUILD_DIR/share/man/man1/commandbus-worker.1
groff -man -Tutf8 -P-cbou -rLL=1000n "$page" | sed 's/^ *//' | tr -s ' ' >"$work/page"
"$COMMANDBUS_WORKER_BIN" --help >"$work/help"

# has LINE: without counting spaces.
has() { grep -qxF -- "$1" "$work/page" || fail "the page lacks '$1'"; }

test_the_page_has_every_option() {
    local option n=0
    for option in $(grep -oE '^  --[a-z-]+' "$work/help"); do
        grep -qE -- "^$option( |\$)" "$work/page" || fail "the page lacks $option"
        n=$((n + 1))
    done
    ((n >= 10)) || fail "only $n options were found"
}

test_the_page_has_every_setting_with_its_default() {
    local key keys
    mapfile -t keys < <(cat "$COMMANDBUS_SOURCE_DIR"/worker/config/*.c |
        grep -oE '\{ "[a-z]+[a-zA-Z.<>-]+", KEY_' | cut -d'"' -f2)
    ((${#keys[@]} >= 40)) || fail "only ${#keys[@]} settings were found"
    for key in "${keys[@]}"; do
        grep -qE -- "^$key [A-Za-z]" "$work/page" || fail "the page lacks $key"
    done
    has '0: no HTTP [9464]'
}

test_the_page_has_the_exit_codes_signals_and_examples() {
    local line signals lines
    has '0 drained'
    has '4 a handler did not return'
    has '0 nothing would diverge'
    signals=$(sed -n '/^SIGTERM/,/^$/p' "$work/help" | paste -sd' ' | sed 's/ $//')
    [[ $signals == SIGTERM* ]] || fail 'no signals in the help'
    has "$signals"
    mapfile -t lines < <(sed -n '/^examples:/,$ s/^  //p' "$work/help")
    ((${#lines[@]} > 0)) || fail 'no examples in the help'
    for line in "${lines[@]}"; do has "$line"; done
}

test_roff_takes_the_page_without_a_warning() {
    same "$(groff -man -Tutf8 -ww -z "$page" 2>&1)" ''
}

run_tests
