#!/usr/bin/env bash
# What deploy/demo says to those who ask wrongly; nothing is built or started for them. What it does: demo_long_test.sh.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

demo=$fleet_dir/../../deploy/demo

test_wrong_usage_is_refused_with_2() {
    local words arguments code n=0
    while IFS='|' read -r arguments words; do
        code=0 n=$((n + 1))
        # shellcheck disable=SC2086 # several arguments
        "$demo" $arguments >"$work/out" 2>"$work/err" || code=$?
        same "$code" 2 "the code of '$arguments'"
        same "$(wc -c <"$work/out")" 0 "stdout of '$arguments'"
        grep -qF -- "demo: $words" "$work/err" || fail "'$arguments' is told: $(cat "$work/err")"
    done <<'CASES'
--payments 0|--payments must be a number from 1 to 999999
--payments -1|--payments must be
--payments 1e3|--payments must be
--payments 1000000|--payments must be
--payments|--payments needs a value
--fx-latency|--fx-latency needs a value
--fx-latency fast|--fx-latency must be milliseconds
--fx-latency 1.5|--fx-latency must be milliseconds
--fx-latency 20001|--fx-latency must be milliseconds
--report|--report needs a value
--chaos --adaptive|--chaos and --adaptive are two demonstrations
--adaptive --payments 5|--payments does not go with --adaptive
--bogus|unknown argument '--bogus'
200|unknown argument '200'
CASES
    same "$n" 14 'cases tried'
}

test_help_names_every_option() {
    local option
    "$demo" --help >"$work/help"
    for option in --payments --fx-latency --chaos --adaptive --keep --report --help 'exit codes: 0'; do
        grep -qF -- "$option" "$work/help" || fail "help lacks $option"
    done
}

run_tests "$@"
