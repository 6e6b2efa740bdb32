#!/usr/bin/env bash
# The command line of commandbus-worker, and what it says when it does not start.
. "$(dirname "$0")/../cli/lib.sh"
: "${COMMANDBUS_WORKER_BIN:?}" "${COMMANDBUS_MODULES_DIR:?}" "${COMMANDBUS_SOURCE_DIR:?}"

unset "${!COMMANDBUS_DOMAINS_@}" "${!COMMANDBUS_FEATURES_@}" COMMANDBUS_PROFILE
export COMMANDBUS_HTTP_PORT=0 COMMANDBUS_WORKER_MODULES_DIR=$COMMANDBUS_MODULES_DIR
unset COMMANDBUS_MODULES_DIR # no setting: the worker would warn

# One that starts against expectation must not stay.
printf '#!/bin/sh\nexec timeout 20 "%s" "$@"\n' "$COMMANDBUS_WORKER_BIN" >"$work/worker"
chmod +x "$work/worker"

# ends CODE ARGUMENTS...: the worker, served by the sample set.
ends() { COMMANDBUS_BIN=$work/worker exits "$@"; }
serving=(--set domains.sample.enabled=true)

# refused CODE MESSAGE HINT ARGUMENTS...: the message is one line and the hint another; nothing else is
# said, nothing printed.
refused() {
    local code=$1 message=$2 hint=$3
    shift 3
    ends "$code" "$@"
    says "^commandbus-worker: .*$message"
    if [[ -n $hint ]]; then says "^  hint: .*$hint"; fi
    grep -vE '^commandbus-worker: |^  hint: ' "$work/err" && fail "says more: $(cat "$work/err")"
    (($(grep -c '^commandbus-worker: ' "$work/err") == 1)) || fail "$(cat "$work/err")"
    [[ ! -s $work/out ]] || fail "prints: $(output)"
}

test_the_version_is_three_numbers() {
    ends 0 --version
    prints '^commandbus-worker [0-9]+\.[0-9]+\.[0-9]+$'
    is_silent
}

test_help_names_every_option_and_exit_code() {
    ends 0 --help
    for option in --profile --config-dir --set --check-config --replay --all-running --type --json --version --help; do
        prints "^  $option "
    done
    prints '0 drained · 1 .* · 2 configuration'
    prints '3 no database'
    prints '4 a handler'
    is_silent
}

test_an_unknown_option_names_the_nearest() {
    refused 2 "unknown option '--profil'" 'Did you mean --profile\?' --profil x
    refused 2 "unknown option '--frobnicate'" '--help' --frobnicate=1
    refused 2 "unexpected argument 'fx'" '--help' fx
    refused 2 "unexpected argument ''" '--help' ''
}

test_a_value_must_be_there_once_and_only_where_it_belongs() {
    refused 2 '--profile needs a value' '--help' --profile
    refused 2 '--set needs a value: PATH=VALUE' '' --set
    refused 2 '--version takes no value' '' --version=1
    refused 2 '--config-dir is given twice' '' --config-dir a --config-dir=b
    refused 2 '--json goes with --check-config' '' --json
}

test_a_replay_says_what_it_is_about() {
    local id=00000000-0000-0000-0000-000000000001
    refused 2 '--replay needs the id of a process or --all-running$' '--help' --replay
    refused 2 '--replay needs .*, and not both$' '' --replay "$id" --all-running
    refused 2 '--replay is given twice' '' --replay "$id" --replay "$id"
    refused 2 '--all-running goes with --replay' '' --all-running
    refused 2 '--type goes with --replay' '' --type Payment
    refused 2 '--type goes with --all-running' '' --replay "$id" --type Payment
    refused 2 'two things to do' '' --replay --all-running --check-config
    refused 2 'no handler set .* has a process type' 'profile' --replay="$id" "${serving[@]}"
}

test_check_config_prints_every_setting_with_its_origin_and_ends() {
    ends 0 --check-config "${serving[@]}" --set domains.sample.concurrent-messages=7
    prints '^domains\.sample\.concurrent-messages +7 +--set'
    prints '^sample: 7 calls in flight per instance'
    is_silent
    ends 0 --check-config --json "${serving[@]}"
    jq -e . "$work/out" >/dev/null || fail "no JSON: $(output)"
}

test_check_config_needs_no_database_and_no_handler_set() {
    COMMANDBUS_DATABASE_URL=postgresql://u:secret@127.0.0.1:1/none ends 0 --check-config \
        --profile ratelimited-worker --config-dir "$COMMANDBUS_SOURCE_DIR/config"
    lacks secret
}

# The payments set decides about its deadlines itself, by how far a payment is.
test_a_deadline_action_that_the_code_overrules_gets_a_warning() {
    local ignored=(--set domains.payments.enabled=true --set processes.PaymentStep.deadline-action=FAIL)

    ends 0 "${ignored[@]}" --check-config
    prints '^processes\.PaymentStep\.deadline-action  *FAIL  *--set; ignored: the code decides by the state$'
    says 'warning: processes\.PaymentStep\.deadline-action is ignored: the code of PaymentStep decides'
    ends 0 "${ignored[@]}" --check-config --json
    jq -e '.keys[] | select(.key == "processes.PaymentStep.deadline-action") | .ignored == "the code decides by the state"' \
        "$work/out" >/dev/null || fail "$(output)"
    ends 3 "${ignored[@]}" --set handlers.payments.url=http://127.0.0.1:1 --set database.url=host=127.0.0.1\ port=1
    says 'config\.warning .*deadline-action is ignored'
    ends 0 "${serving[@]}" --set processes.Other.deadline-action=FAIL --check-config # not its code
    is_silent
}

test_a_warning_of_the_configuration_does_not_stop_it() {
    COMMANDBUS_HTTP_PROT=1 ends 0 --check-config "${serving[@]}"
    says '^commandbus-worker: warning: .*COMMANDBUS_HTTP_PROT'
    says '^  hint: .*COMMANDBUS_HTTP_PORT'
}

test_a_bad_setting_is_refused() {
    refused 2 'concurrent-messages' '' "${serving[@]}" --set domains.sample.concurrent-messages=0
    refused 2 'no domain is enabled' ''
    refused 2 'nosuch' '' --profile nosuch --config-dir "$COMMANDBUS_SOURCE_DIR/config"
}

# WRK.13
test_a_missing_handler_set_is_refused_naming_those_there() {
    refused 2 "domain 'nosuch'.*nosuch\.so" 'sample' --set domains.nosuch.enabled=true
}

test_an_invalid_address_is_refused() {
    refused 2 "invalid address 'nowhere' in http.bind" '127\.0\.0\.1' "${serving[@]}" \
        --set http.port=1 --set http.bind=nowhere
}

test_a_token_file_that_is_not_there_is_refused() {
    refused 2 'http.token-file' '' "${serving[@]}" --set http.port=1 \
        --set "http.token-file=$work/nothing"
}

# WRK.10
test_without_a_database_it_ends_with_3() {
    COMMANDBUS_DATABASE_URL=postgresql://127.0.0.1:1/none \
        refused 3 'Connection refused' 'server' "${serving[@]}"
    COMMANDBUS_DATABASE_URL=$(url_of no_such_database) \
        refused 3 'no_such_database' '' "${serving[@]}"
}

test_without_a_schema_it_ends_with_3() {
    refused 3 'no commandbus schema' 'commandbus migrate' "${serving[@]}"
}

test_a_schema_that_is_too_new_ends_it_with_3() {
    cb migrate >/dev/null
    sql "UPDATE commandbus.schema_version SET oldest_binary = 1000000 WHERE component = 'commandbus'"
    refused 3 'newer' '' "${serving[@]}"
}

run_tests
