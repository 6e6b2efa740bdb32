# Sourced by the tests of the CLI: a database of their own, and what a test says.
#
# A test is a function test_<sentence>; run_tests runs each of them in a subshell of its own, in
# the order in which the file has them, and prints the last line.

# shellcheck shell=bash disable=SC2034 # what is set here is used by the tests
set -euo pipefail
: "${COMMANDBUS_BIN:?start the tests with tests/run}" "${COMMANDBUS_TEST_URL:?}"
unset COMMANDBUS_OPERATOR COMMANDBUS_SETS_DIR NO_COLOR

work=$(mktemp -d)
database=cli_$$_$RANDOM
server() { psql -XqAt -v ON_ERROR_STOP=1 -d "$COMMANDBUS_TEST_URL" "$@"; }

# url_of DATABASE: the server's URL (or key=value pairs) with another database.
url_of() {
    if [[ $COMMANDBUS_TEST_URL =~ ^(postgres(ql)?://[^/?]*)(/[^?]*)?(\?.*)?$ ]]; then
        echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[4]}"
    else
        echo "$COMMANDBUS_TEST_URL dbname=$1"
    fi
}

clean_up() {
    server -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

server -c "CREATE DATABASE $database TEMPLATE template0" >/dev/null
url=$(url_of "$database")
export COMMANDBUS_DATABASE_URL=$url

cb() { "$COMMANDBUS_BIN" "$@"; }
sql() { psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }

fail() {
    echo "$*" >&2
    exit 1
}

# exits CODE ARGUMENTS...: runs the CLI, keeps what it said in $work/out and $work/err.
exits() {
    local expected=$1 code=0
    shift
    "$COMMANDBUS_BIN" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    # A sanitizer's report must reach ctest, which looks for it.
    if grep -E 'Sanitizer|runtime error' "$work/err" >&2; then fail "commandbus $*"; fi
    ((code == expected)) ||
        fail "exit $code, not $expected: commandbus $*"$'\n'"$(cat "$work/out" "$work/err")"
}

# What the last command printed, and what it said on stderr. Extended regular expressions.
prints() { grep -Eq -- "$1" "$work/out" || fail "stdout lacks '$1': $(cat "$work/out")"; }
says() { grep -Eq -- "$1" "$work/err" || fail "stderr lacks '$1': $(cat "$work/err")"; }
lacks() { if grep -E -- "$1" "$work/out"; then fail "stdout has '$1'"; fi; }
does_not_say() { if grep -E -- "$1" "$work/err"; then fail "stderr has '$1'"; fi; }
is_silent() { [[ ! -s $work/err ]] || fail "stderr is not empty: $(cat "$work/err")"; }
output() { cat "$work/out"; }

# json FILTER EXPECTED: what jq finds in the last output.
json() {
    local found
    found=$(jq -ec "$1" "$work/out") || fail "jq '$1' finds nothing in: $(cat "$work/out")"
    [[ $found == "$2" ]] || fail "jq '$1' is $found, not $2"
}

same() { [[ $1 == "$2" ]] || fail "'$1' is not '$2'"; }

# count [CONDITION]: commands in the database.
count() { sql "SELECT count(*) FROM commandbus.command_metadata WHERE ${1:-true}"; }

new_id() { sql "SELECT gen_random_uuid()"; }

# settle DOMAIN OUTCOME [ERROR_CODE]: what a worker would do with everything that is due.
settle() {
    sql "WITH claimed AS (SELECT * FROM commandbus.receive('$1', 'tester', 1000) WHERE event IS NULL),
              all_of_them AS (SELECT array_agg(command_id) AS ids, array_agg(lease_no) AS fences,
                                     count(*)::int AS n FROM claimed)
         SELECT (commandbus.settle('$1', 'tester', ids, fences, array_fill('$2'::text, ARRAY[n]),
                 error_codes => array_fill('${3:-BROKEN}'::text, ARRAY[n]),
                 error_messages => array_fill('it broke'::text, ARRAY[n]))).verdicts
         FROM all_of_them WHERE n > 0" >/dev/null
    sql "SELECT commandbus.close_batches()" >/dev/null
}

# A command in the troubleshooting queue; prints its id.
broken_command() { # DOMAIN TYPE ERROR_CODE
    local id
    id=$(cb send "$1" "$2")
    settle "$1" PERMANENT "$3"
    echo "$id"
}

run_tests() {
    local passed=0 failed=0 name code
    local names
    mapfile -t names < <(grep -oE '^test_[a-zA-Z0-9_]+' "$0")
    for name in "${names[@]}"; do
        set +e
        (
            set -e
            "$name"
        ) >"$work/log" 2>&1
        code=$?
        set -e
        if ((code == 0)); then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED: $(tr _ ' ' <<<"${name#test_}")"
            sed 's/^/    /' "$work/log"
        fi
    done
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
