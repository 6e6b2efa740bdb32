# Sourced by the fleet tests: the real worker binary, several of it, on a database of their own, and a
# tally that sees from outside how many handlers run.
#
# A test is a function test_<sentence>; run_tests runs each in a subshell with a database, a folder and
# processes of its own, which end with it. What a failing test's workers said is printed.
#
#   start_worker NAME [ARGUMENTS...]    a worker; its log is $work/NAME.log
#   wait_ready NAME                     until /readyz says so
#   stop_worker NAME [CODE]             SIGTERM, and the exit code that is expected (0)
#   http_ask NAME METHOD PATH [BODY [HEADER...]], expect_http STATUS [JQ VALUE]
#   kill_worker NAME [SIGNAL]           SIGKILL, or another one
#   send_commands N TYPE DATA [MORE]    MORE: further arguments of commandbus.send()
#   wait_until CONDITION SECONDS        SQL, looked at every 50 ms
#   tally_start, tally_number NAME      somebody to call for the sample handler Hold
#   send_holds N MS                     commands that call it
#   tally_shut, tally_open              calls that come are counted, and go on only once it is open; $patience is
#                                       for send_holds: they do not time out meanwhile, and their leases are as long
#   check_ledger N [STATUSES]           what must hold at the end, whatever happened before
#   skip WHY                            ends the test: it cannot be run here, and counts as skipped

# shellcheck shell=bash disable=SC2034,SC2119,SC2120 # what is set here is used by the tests
set -euo pipefail
: "${COMMANDBUS_BIN:?start the tests with tests/run}" "${COMMANDBUS_WORKER_BIN:?}"
: "${COMMANDBUS_TEST_URL:?}" "${COMMANDBUS_BUILD_DIR:?}" "${COMMANDBUS_MODULES_DIR:?}"
export -n COMMANDBUS_MODULES_DIR COMMANDBUS_FLEET_SECONDS # no keys of a worker
fleet_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Sanitizers make everything slower: scenarios that take their time take less of it.
instrumented=no
if [[ ${COMMANDBUS_INSTRUMENT:-} == *sanitize* ]]; then instrumented=yes; fi

domain=sample
# For workers of tests in which nobody dies: nothing times out, nothing is taken over on a busy machine.
unhurried_settings() { worker_settings+=("domains.$domain.visibility-timeout=2m" "domains.$domain.handler-timeout=2m"); }
# Of every worker; arguments of start_worker come later and win. Short times, so that what takes a
# visibility timeout takes a moment.
worker_settings=(
    "domains.$domain.handlers=sample,trial"
    "domains.$domain.concurrent-messages=2"
    "domains.$domain.visibility-timeout=2s"
    "domains.$domain.handler-timeout=2s"
    "domains.$domain.poll-interval=100ms"
    "domains.$domain.retry-backoff=200ms"
    "domains.$domain.max-attempts=100"
    worker.kill-grace=30s
)

fail() {
    echo "$*" >&2
    exit 1
}
skip() {
    echo "$*" >"$work/skipped"
    exit 0
}
# What was measured, worth printing also when the test passes.
note() { echo "    $*" | tee -a "$work/notes"; }
same() { [[ $1 == "$2" ]] || fail "${3:-it} is '$1', not '$2'"; }
at_most() { (($1 <= $2)) || fail "${3:-it} is $1, more than $2"; }
at_least() { (($1 >= $2)) || fail "${3:-it} is $1, less than $2"; }

# ---- the database ----

server() { psql -XqAt -v ON_ERROR_STOP=1 -d "$COMMANDBUS_TEST_URL" "$@"; }
sql() { psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }

# url_of DATABASE: the server's URL (or key=value pairs) with another database.
url_of() {
    if [[ $COMMANDBUS_TEST_URL =~ ^(postgres(ql)?://[^/?]*)(/[^?]*)?(\?.*)?$ ]]; then
        echo "${BASH_REMATCH[1]}/$1${BASH_REMATCH[4]}"
    else
        echo "$COMMANDBUS_TEST_URL dbname=$1"
    fi
}

# Looks in a transaction of its own each time: one connection, and nothing held open.
# shellcheck disable=SC2016 # $$ is for the server
waiting_procedure='
    CREATE PROCEDURE public.wait_until(condition text, seconds numeric, INOUT met boolean)
    LANGUAGE plpgsql AS $$
    DECLARE
        deadline timestamptz := clock_timestamp() + make_interval(secs => seconds::float8);
    BEGIN
        LOOP
            EXECUTE format($q$SELECT coalesce((%s), false)$q$, condition) INTO met;
            EXIT WHEN met OR clock_timestamp() > deadline;
            COMMIT;
            PERFORM pg_sleep(0.05);
            COMMIT;
        END LOOP;
    END
    $$'

# A database with the schema and the domain; $url is where.
fleet_database() {
    database=fleet_$$_$RANDOM
    copy_template "$database"
    url=$(url_of "$database")
    export COMMANDBUS_DATABASE_URL=$url
    "$COMMANDBUS_BIN" queue create "$domain" >/dev/null
}

# copy_template DATABASE: migrated once for the server by this very build, then copied. One at a time: a template may
# have no other user.
copy_template() {
    local template new=commandbus_fleet_$$
    template=commandbus_fleet_$(cksum <"$COMMANDBUS_BUILD_DIR/lib/libcommandbus.so" | tr ' ' _)
    {
        flock 7
        if [[ $(server -c "SELECT count(*) FROM pg_database WHERE datname = '$template'") == 0 ]]; then
            server -c "DROP DATABASE IF EXISTS $new WITH (FORCE)" -c "CREATE DATABASE $new TEMPLATE template0" >/dev/null
            "$COMMANDBUS_BIN" migrate --quiet --url "$(url_of "$new")" >/dev/null
            psql -XqAt -v ON_ERROR_STOP=1 -d "$(url_of "$new")" -c "$waiting_procedure"
            server -c "ALTER DATABASE $new RENAME TO $template"
        fi
        # What may be done in a database is not copied with it.
        server -c "CREATE DATABASE $1 TEMPLATE $template" \
            -c "GRANT CREATE, TEMPORARY ON DATABASE $1 TO commandbus_owner" >/dev/null
    } 7>"$COMMANDBUS_BUILD_DIR/tests/template.lock"
}

# Seconds in these tests are those of a machine that has little else to do. Who waits for something waits four times as
# long: that costs only tests that fail.
patient_seconds() { awk -v s="$1" 'BEGIN { print 4 * s }'; }
# slowness: what a test that promises a time multiplies it with, in percent: 100 as long as the machine has no more to do
# than tests/run gives it, more the busier it is (the load of the last minute).
slowness() { awk -v usual=$((3 * $(nproc))) '{ print int($1 > usual ? 100 * $1 / usual : 100) }' /proc/loadavg; }

# is_met CONDITION SECONDS: waits for it; false when its time is over. Survives restarts of the server.
is_met() {
    local until=$((SECONDS + ${2%.*} + 1)) met code
    while :; do
        code=0
        met=$(psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -v condition="$1" -v seconds="$2" \
            <<<"CALL public.wait_until(:'condition', :seconds, false)" 2>"$work/wait") || code=$?
        if ((code == 0)); then [[ $met == t ]] && return || return 1; fi
        ((code == 2 && SECONDS < until)) || fail "waiting for $1: $(cat "$work/wait")"
        sleep 0.2 # the server is away
    done
}
wait_until() {
    local seconds
    seconds=$(patient_seconds "$2")
    is_met "$1" "$seconds" || fail "after $seconds s still not: $1"$'\n'"$(summary)"
}

count() { sql "SELECT count(*) FROM commandbus.command_metadata WHERE ${1:-true}"; }
summary() {
    sql "SELECT status, attempts, lease_owner, count(*), max(lease_until) - now() AS lease_left
         FROM commandbus.command_metadata GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT 40"
}

# busy_worker CONDITION: prints any instance that holds a command of these; waits for one.
busy_worker() {
    local held="status = 'IN_PROGRESS' AND $1" name=
    until [[ -n $name ]]; do
        wait_until "EXISTS (SELECT FROM commandbus.command_metadata WHERE $held)" 120
        name=$(sql "SELECT lease_owner FROM commandbus.command_metadata WHERE $held ORDER BY random() LIMIT 1")
    done
    echo "${name%-*}" # an instance's id is its name and something random
}

# In the data of every command: no log may show it.
payload_marker=this-is-payload

# send_commands N TYPE DATA [ARGUMENTS]: in one transaction, each with a final reply to come.
send_commands() {
    sql "SELECT count(commandbus.send('$domain', '$2', '$3'::jsonb || '{\"memo\": \"$payload_marker\"}', reply_to => '${domain}__replies'${4:+, $4}))
         FROM generate_series(1, $1)" >/dev/null
}
all_done="NOT EXISTS (SELECT FROM commandbus.command_metadata WHERE status IN ('PENDING', 'IN_PROGRESS'))"

# ---- workers ----

declare -A worker_pid=() worker_port=()

# A port below the ephemeral range that nobody uses, and nobody here was given.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        if ! grep -qx "$port" "$work/ports" && ! (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port" | tee -a "$work/ports"
            return
        fi
    done
}

# start_worker NAME [ARGUMENTS...]: does not wait for anything.
start_worker() {
    local name=$1 setting arguments=() port
    shift
    port=$(free_port)
    for setting in "${worker_settings[@]}"; do arguments+=(--set "$setting"); done
    "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${arguments[@]}" \
        --set worker.name="$name" --set worker.modules-dir="$work/modules" \
        --set http.port="$port" "$@" >>"$work/$name.log" 2>&1 </dev/null &
    worker_pid[$name]=$!
    worker_port[$name]=$port
}
start_ready() {
    start_worker "$@"
    wait_ready "$1"
}

worker_url() { echo "http://127.0.0.1:${worker_port[$1]}"; }
is_alive() { kill -0 "${worker_pid[$1]}" 2>/dev/null; }

# http_get NAME PATH: the body on stdout, the status in $http_status; 0: no answer.
http_get() {
    local reply
    http_status=0
    # shellcheck disable=SC2016 # for the inner shell
    reply=$(timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET %s HTTP/1.0\r\n\r\n" "$1" >&3 &&
        exec cat <&3' "${worker_port[$1]}" "$2" 2>/dev/null) || return 0
    if [[ $reply =~ ^HTTP/1\.[01]\ ([0-9]+) ]]; then http_status=${BASH_REMATCH[1]}; fi
    http_body=${reply#*$'\r\n\r\n'}
}

# http_ask NAME METHOD PATH [BODY [HEADER...]]: a JSON body, if any; status and body as http_get gives them. A route may
# take its time: nobody hangs up before half a minute.
http_ask() {
    local name=$1 method=$2 path=$3 body=${4:-} reply request
    shift $(($# < 4 ? $# : 4))
    request="$method $path HTTP/1.1"$'\r\nHost: x\r\nConnection: close\r\n'
    if [[ -n $body ]]; then
        request+=$'Content-Type: application/json\r\nContent-Length: '$(printf %s "$body" | wc -c)$'\r\n'
    fi
    if (($#)); then request+=$(printf '%s\r\n' "$@")$'\n'; fi
    request+=$'\r\n'$body
    http_status=0 http_body='' http_headers=''
    # shellcheck disable=SC2016 # for the inner shell
    reply=$(timeout 30 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf %s "$1" >&3 && cat <&3' \
        "${worker_port[$name]}" "$request" 2>/dev/null) || return 0
    if [[ $reply =~ ^HTTP/1\.[01]\ ([0-9]+) ]]; then http_status=${BASH_REMATCH[1]}; fi
    http_headers=$(sed '/^\r*$/,$d' <<<"$reply" | tr -d '\r')
    http_body=$(sed '1,/^\r*$/d' <<<"$reply")
}
# expect_http STATUS [JQ VALUE]: what the last request came to.
expect_http() {
    same "$http_status" "$1" "the status ($http_body)"
    if (($# > 1)); then same "$(jq -r "$2" <<<"$http_body")" "$3" "$2 of $http_body"; fi
}

# wait_http NAME STATUS [SECONDS]: until /readyz answers so.
wait_http() {
    local until=$((SECONDS + 4 * ${3:-60}))
    while :; do
        http_get "$1" /readyz
        if ((http_status == $2)); then return; fi
        is_alive "$1" || fail "worker $1 has ended"
        ((SECONDS < until)) || fail "worker $1 answers $http_status and not $2: ${http_body:-}"
        sleep 0.05
    done
}
wait_ready() { wait_http "$1" 200 "${2:-60}"; }

# metric NAME SERIES: its value, e.g. commandbus_slots{domain="sample"}.
metric() {
    http_get "$1" /metrics
    awk -v series="$2" '$1 == series { print $2; found = 1 } END { exit !found }' <<<"$http_body" ||
        fail "worker $1 has no metric $2"
}

# wait_metric NAME SERIES VALUE [SECONDS]: until it is that.
wait_metric() {
    local until=$((SECONDS + 4 * ${4:-60}))
    until [[ $(metric "$1" "$2") == "$3" ]]; do
        ((SECONDS < until)) || fail "$2 of $1 is $(metric "$1" "$2") and not $3"
        sleep 0.02
    done
}

# wait_log NAME REGEX [SECONDS]: until its log has such a line.
wait_log() {
    local until=$((SECONDS + 4 * ${3:-60}))
    until grep -Eq -- "$2" "$work/$1.log"; do
        ((SECONDS < until)) || fail "the log of $1 lacks '$2'"
        sleep 0.05
    done
}

# wait_for_lines FILE N [SECONDS]: until the file has so many.
wait_for_lines() {
    local until=$((SECONDS + 4 * ${3:-40}))
    until (($(cat "$1" 2>/dev/null | wc -l) >= $2)); do
        ((SECONDS < until)) || fail "$1 has too few lines: $(cat "$1")"
        sleep 0.05
    done
}

# wait_exit NAME CODE [SECONDS]: the worker ends by itself.
wait_exit() {
    local until=$((SECONDS + 4 * ${3:-60})) code=0
    while is_alive "$1"; do
        ((SECONDS < until)) || fail "worker $1 does not end"
        sleep 0.02
    done
    wait "${worker_pid[$1]}" || code=$?
    unset "worker_pid[$1]"
    ((code == $2)) || fail "worker $1 ended with $code, not $2"
}
stop_worker() {
    kill -TERM "${worker_pid[$1]}"
    wait_exit "$1" "${2:-0}"
}
# After a SIGKILL it is gone when this returns, and its connections with it.
kill_worker() {
    kill -s "${2:-KILL}" "${worker_pid[$1]}"
    if [[ ${2:-KILL} == KILL ]]; then
        wait "${worker_pid[$1]}" 2>/dev/null || true
        unset "worker_pid[$1]"
    fi
}

# ---- the tally ----

tally_start() {
    "$COMMANDBUS_BUILD_DIR/tests/tally" >"$work/tally" 2>&1 &
    tally_pid=$!
    until tally_port=$(sed -n 's/^port //p' "$work/tally") && [[ -n $tally_port ]]; do sleep 0.01; done
}

# tally_stats [RESET|SHUT|OPEN]: its line of JSON; RESET brings max down to what is open now.
tally_stats() {
    local answer
    exec 3<>"/dev/tcp/127.0.0.1/$tally_port"
    echo "${1:-STATS}" >&3
    read -r answer <&3
    exec 3>&-
    echo "$answer"
}
tally_shut() { tally_stats SHUT >/dev/null; }
tally_open() { tally_stats OPEN >/dev/null; }
patience='timeout_seconds => 300'
tally_number() { sed -nE "s/.*\"$1\": ?([0-9]+).*/\1/p" <<<"$(tally_stats)"; }
# tally_wait NAME LEAST [SECONDS]: until that number is at least so much.
tally_wait() {
    local until=$((SECONDS + 4 * ${3:-60}))
    until (($(tally_number "$1") >= $2)); do
        ((SECONDS < until)) || fail "the tally says $(tally_stats), and $1 never became $2"
        sleep 0.02
    done
}

# send_holds N MS [ARGUMENTS]: commands that call the tally.
send_holds() { send_commands "$1" Hold "{\"port\": $tally_port, \"ms\": $2}" "${3:-}"; }

# keep_busy LEAST MS: sends as many more when there are fewer than that to be claimed; $sent counts them.
keep_busy() {
    if (($(count "status = 'PENDING'") < $1)); then
        send_holds "$1" "$2"
        sent=$((sent + $1))
    fi
}

# ---- what must hold at the end ----

# ledger N STATUSES [DEED]: a line for everything that is wrong; a deed is undone afterwards.
ledger() {
    psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -v domain="$domain" -v sent="$1" -v statuses="$2" \
        -v queue="q_${domain}__commands" -v replies="q_${domain}__replies" \
        -v archived_replies="a_${domain}__replies" \
        ${3:+-c BEGIN -c "$3"} -f "$fleet_dir/ledger.sql"
}

# check_ledger N [STATUSES]: N commands were sent, and ended as STATUSES says ("COMPLETED N"): nothing
# lost, nothing settled twice, one final reply each, nothing left behind.
check_ledger() {
    local problems
    problems=$(ledger "$1" "${2:-COMPLETED $1}")
    [[ -z $problems ]] || fail "the ledger is wrong:"$'\n'"$problems"$'\n'"$(summary)"

    # Places of those that fell silent come back when their time is over; all others have.
    wait_until "NOT EXISTS (SELECT FROM commandbus.fleet_lease WHERE held_until > clock_timestamp())" 90
    sql "SELECT commandbus.tidy_fleet()" >/dev/null
    same "$(sql "SELECT count(*) FROM commandbus.fleet_lease")" 0 'rows in fleet_lease'
    check_logs
}

# A sanitizer's report in a worker's log fails the test; printed, so that ctest sees it too. And whatever
# happened, a log shows no payload and no password.
check_logs() {
    local password
    compgen -G "$work/*.log" >/dev/null || return 0
    if grep -HE 'Sanitizer|runtime error:' "$work"/*.log; then fail "a sanitizer has something to say"; fi
    password=$(sed -nE 's|^[a-z]+://[^:/]*:([^@]+)@.*|\1|p' <<<"$COMMANDBUS_TEST_URL")
    if grep -HF -e "$payload_marker" ${password:+-e "$password"} "$work"/*.log; then fail "a log has a secret"; fi
}

# ---- running ----

end_test() {
    local code=$? pid
    trap '' INT TERM
    if ((code == 0)); then (check_logs) || code=1; fi
    if ((code != 0)) && [[ -n ${tally_port:-} ]]; then echo "tally: $(tally_stats)" || true; fi
    for pid in "${worker_pid[@]}" ${tally_pid:-} ${others:-}; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    if ((code != 0)); then show_logs; fi
    [[ -z ${database:-} ]] ||
        server -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" >/dev/null 2>&1 || true
    exit "$code"
}

# The reports of sanitizers whole, of the rest the end.
show_logs() {
    local log
    for log in "$work"/*.log; do
        echo "---- $(basename "$log")"
        sed -n '/WARNING: .*Sanitizer/,/^=====/p;/ERROR: .*Sanitizer/,$p' "$log" | head -n 150
        tail -n 40 "$log"
    done
}

# Everything of one test: in a subshell.
run_test() {
    work=$all_work/$1
    mkdir -p "$work/config" "$work/modules"
    : >"$work/config/commandbus.cfg"
    touch "$work/ports" "$work/notes"
    ln -s "$COMMANDBUS_MODULES_DIR"/*.so "$COMMANDBUS_BUILD_DIR"/tests/modules/*.so "$work/modules/"
    trap end_test EXIT
    trap 'exit 130' INT TERM
    fleet_database
    "$1"
}

# test_names [NAMES...]: these, else all of the script.
test_names() {
    if (($#)); then printf '%s\n' "$@"; else grep -oE '^test_[a-zA-Z0-9_]+' "$0"; fi
}
count_line() { # PASSED FAILED SKIPPED
    echo "$1 passed, $2 failed$( (($3 == 0)) || echo ", $3 skipped")"
}
run_tests() {
    local passed=0 failed=0 skipped=0 name code start names
    all_work=$(mktemp -d)
    trap 'rm -rf "$all_work"' EXIT
    trap 'exit 130' INT TERM
    mapfile -t names < <(test_names "$@")
    for name in "${names[@]}"; do
        start=$SECONDS code=0
        (
            set -e
            run_test "$name"
        ) >"$all_work/log" 2>&1 &
        wait $! || code=$?
        if ((code == 0)) && [[ -e $all_work/$name/skipped ]]; then
            skipped=$((skipped + 1))
            echo "SKIPPED: $(tr _ ' ' <<<"${name#test_}"): $(cat "$all_work/$name/skipped")"
        elif ((code == 0)); then
            passed=$((passed + 1))
            echo "passed: $(tr _ ' ' <<<"${name#test_}") ($((SECONDS - start)) s)"
            cat "$all_work/$name/notes"
        else
            failed=$((failed + 1))
            echo "FAILED: $(tr _ ' ' <<<"${name#test_}") ($((SECONDS - start)) s)"
            sed 's/^/    /' "$all_work/log"
        fi
    done
    count_line "$passed" "$failed" "$skipped"
    ((failed == 0))
}
