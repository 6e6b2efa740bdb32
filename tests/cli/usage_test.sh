#!/usr/bin/env bash
# What the CLI says about itself, and about mistakes on its command line. BUS.18
. "$(dirname "$0")/lib.sh"

commands=(migrate send 'command list' 'command show' 'tsq list' 'tsq retry' 'tsq cancel'
    'tsq complete' 'batch create' 'batch show' 'batch list' 'process start' 'process list' 'process show'
    'process respond' 'process retry' 'process cancel' 'process complete' 'responder list' 'responder allow' 'responder forbid' 'queue list' 'queue create' plan purge doctor)
id=0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e

test_the_version_is_three_numbers() {
    exits 0 --version
    prints '^commandbus [0-9]+\.[0-9]+\.[0-9]+$'
}

test_help_names_every_command() {
    exits 0 --help
    for command in "${commands[@]}"; do prints "^  $command +[A-Z]"; done
    prints 'COMMANDBUS_DATABASE_URL'
    prints 'passwords out of --url'
    exits 0 help
    prints '^usage: commandbus'
}

test_every_command_has_help_with_an_example() {
    for command in "${commands[@]}"; do
        read -ra words <<<"$command"
        exits 0 "${words[@]}" --help
        prints "^usage: commandbus $command"
        prints '^example:'
        grep -A1 '^example:' "$work/out" | grep -q "^  commandbus $command" || fail "no example: $command"
        exits 0 help "${words[@]}"
        prints "^usage: commandbus $command"
    done
    exits 0 tsq --help
    prints '^  tsq cancel'
}

test_help_needs_no_database() {
    COMMANDBUS_DATABASE_URL=postgresql://127.0.0.1:1/none exits 0 send --help
}

test_no_command_is_a_mistake() {
    exits 2
    says 'say what to do'
    exits 2 tsq
    says 'hint: See commandbus'
}

test_an_unknown_command_names_the_nearest() {
    exits 2 sned
    says "^commandbus: unknown command 'sned'$"
    says '^  hint: Did you mean send\?'
    exits 2 tsq rety
    says 'Did you mean tsq retry\?'
    exits 2 frobnicate
    says "unknown command 'frobnicate'"
}

test_an_unknown_option_names_the_nearest() {
    exits 2 send fx BookFx --max-atempts 3
    says "unknown option '--max-atempts'"
    says 'Did you mean --max-attempts\?'
    exits 2 send fx BookFx --max-atempts=3
    says 'Did you mean --max-attempts\?'
}

test_options_without_or_with_wrong_values_are_refused() {
    exits 2 send fx BookFx --data
    says '--data needs a value'
    exits 2 send fx BookFx --reply-to --json
    says '--reply-to needs a value'
    exits 2 send fx BookFx --id 17
    says '--id must be a UUID'
    exits 2 send fx BookFx --ids=yes
    says '--ids takes no value'
    exits 2 send fx BookFx --id $id --id $id
    says '--id is given twice'
    exits 2 command list --status BROKEN
    says '--status must be one of PENDING, IN_PROGRESS'
    exits 2 command list --limit 0
    says '--limit must be a whole number from 1'
    exits 2 command list --from yesterday
    says "--from: invalid time 'yesterday'; use 2026-03-01T08:00:00Z, or an age such as 2h"
    exits 2 queue create
    says 'DOMAIN is missing'
    exits 2 queue create one two
    says "unexpected argument 'two'"
    exits 2 send fx
    says 'DOMAIN and TYPE'
}

# An unset variable in a script must not turn a filter into "everything".
test_an_empty_value_is_refused() {
    exits 2 tsq retry --domain '' --yes
    says '--domain needs a value, not an empty text'
}

# BUS.3: negative attempts or delays never reach the database.
test_negative_attempts_timeouts_and_delays_are_refused() {
    exits 2 send fx BookFx --max-attempts -1
    says '--max-attempts must be a whole number from 1 to 1000'
    exits 2 send fx BookFx --max-attempts=0
    exits 2 send fx BookFx --delay -5s
    says "--delay: invalid duration '-5s'; use 500ms, 30s, 5m, 2h or 30d"
    exits 2 send fx BookFx --timeout 0s
    says '--timeout must be 1s to 1d'
    exits 2 send fx BookFx --timeout 1500ms
    says 'whole seconds'
}

test_durations_are_plain_or_iso_8601() {
    for good in 1ms 30s 5m 2h 30d PT1H PT1H30M P1DT12H P2W PT0.5S 1.5h; do
        COMMANDBUS_DATABASE_URL=postgresql://127.0.0.1:1/none exits 3 purge --all $good
    done
    for bad in 30 5x P1Y P1M PT P 1h30 -1s s 1..5s 1e3s 99999999d PT1M1W; do
        exits 2 purge --all $bad
    done
    exits 2 purge --all 0s
    says '--all must be 1ms to'
}

test_broken_utf8_is_refused() {
    exits 2 send fx BookFx --data $'{"a": "\xff"}'
    says '--data is not valid UTF-8'
}

test_mistakes_are_json_with_json() {
    exits 2 sned --json
    same "$(jq -c .error.code "$work/err")" '"USAGE"'
    same "$(jq -r .error.message "$work/err")" "unknown command 'sned'"
    jq -er .error.hint "$work/err" | grep -q 'Did you mean send'
}

test_tsq_decisions_need_a_choice_of_commands() {
    exits 2 tsq retry
    says 'say which'
    exits 2 tsq retry fx
    says 'DOMAIN wants an ID'
    exits 2 tsq retry fx $id --domain fx
    says 'leave the filters out'
    exits 2 tsq retry --all --domain fx
    exits 2 tsq cancel fx $id
    says '--reason is missing'
}

test_purge_needs_a_choice_of_what_to_remove() {
    exits 2 purge
    says 'say what may go'
}

# CONTRACT, exit codes.
test_no_database_is_exit_3() {
    exits 3 queue list --url postgresql://127.0.0.1:1/none
    says '^commandbus: '
    says '^  hint: '
    exits 3 --url postgresql://127.0.0.1:1/none doctor --json
    same "$(jq -r .error.code "$work/err")" LOST
}

test_a_password_is_never_printed() {
    local host=${COMMANDBUS_TEST_URL#*@}
    for bad in "postgresql://postgres:s3cr3t-word@127.0.0.1:1/x" \
        "postgresql://postgres:s3cr3t-word@$host" \
        "postgresql://postgres:s3cr3t-word@127.0.0.1:port/x" \
        "postgresql://postgres:p@s3cr3t-word/x@127.0.0.1:1/x" \
        "postgresql://postgres:%zzs3cr3t-word@127.0.0.1/x" \
        "host=127.0.0.1 port=1 password=s3cr3t-word frob=1" \
        "host=127.0.0.1 password='s3cr3t-word" "s3cr3t-word"; do
        for json in '' --json; do
            code=0
            # shellcheck disable=SC2086 # nothing or an option
            cb queue list --url "$bad" $json >"$work/out" 2>"$work/err" </dev/null || code=$?
            ((code == 2 || code == 3)) || fail "exit $code for $bad"
            [[ -s $work/err ]]
            lacks s3cr3t
            does_not_say s3cr3t
        done
    done
}

test_a_refused_login_is_exit_3() {
    [[ $COMMANDBUS_TEST_URL == postgres*@* ]] || return 0
    local host=${COMMANDBUS_TEST_URL#*@}
    exits 3 queue list --url "postgresql://nobody_of_that_name:wrong@$host" --json
    same "$(jq -r .error.code "$work/err")" DENIED
}

test_the_url_may_come_first_last_and_with_equals_sign() {
    exits 3 --url=postgresql://127.0.0.1:1/none queue list
    exits 3 queue --url postgresql://127.0.0.1:1/none list
    exits 3 queue list --url postgresql://127.0.0.1:1/none
}

complete_to() { # EXPECTED WORDS...
    local expected=$1
    shift
    same "$(cb __complete "$@" | tr '\n' ' ')" "$expected"
}

test_completion_offers_commands_verbs_options_and_choices() {
    complete_to 'migrate send command tsq batch process responder queue fleet top plan purge doctor help ' ''
    complete_to 'batch ' ba
    complete_to 'retry ' tsq re
    complete_to '--max-attempts ' send fx BookFx --max
    complete_to 'FAILED ' command list --status F
    complete_to '' send --file ''
    complete_to '--json ' --url x queue list --js
}

test_completion_works_in_bash() {
    PATH=$(dirname "$COMMANDBUS_BIN"):$PATH
    # shellcheck source=/dev/null
    . "$(dirname "$0")/../../bus/cli/completion.bash"
    COMP_WORDS=(commandbus tsq ca) COMP_CWORD=2
    _commandbus
    same "${COMPREPLY[*]}" cancel
}

test_a_full_disk_is_noticed_and_a_closed_pipe_is_not() {
    local code=0
    cb --help >/dev/full 2>"$work/err" || code=$?
    same "$code" 1
    says 'could not be written'
    for _ in {1..5}; do cb --help 2>"$work/err" | true; done
    is_silent
}

run_tests
