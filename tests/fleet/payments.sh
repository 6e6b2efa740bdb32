# Sourced by fleet tests of payments, after lib.sh: workers with the sets payments, fx and risk, the simulator for them to call, and
# payments to submit.
#
#   prepare, start_simulator [ARGUMENTS...]    then workers by start_ready NAME: each does everything
#   prepare_fleet [ARGUMENTS...], start_fleet  or S4's fleet: 3 x ratelimited-worker, 3 x payments-worker, by their profiles
#   submit KEY [BODY [WORKER]]                 one payment, as payment [JQ] says
#   submit_all N                               many, in the background, to all payments-workers in turn
#   check_payments N                           what must hold at the end, whatever happened before

# shellcheck shell=bash disable=SC2034,SC2154 # from lib.sh, and for the tests
# shellcheck source=tests/fleet/simulator.sh
. "$fleet_dir/simulator.sh"
demo_dir=$fleet_dir/../../deploy/local/demo
# shellcheck source=deploy/local/demo/submit.sh
. "$demo_dir/submit.sh"

domain=payments

# ---- workers that do everything ----

prepare() {
    local name
    worker_settings=(features.http-api=true)
    for name in fx risk payments; do
        worker_settings+=("domains.$name.concurrent-messages=2" "domains.$name.poll-interval=100ms"
            "domains.$name.retry-backoff=200ms" "domains.$name.visibility-timeout=10s" "domains.$name.handler-timeout=5s")
    done
    "$COMMANDBUS_BIN" migrate --quiet --set payments="$COMMANDBUS_SOURCE_DIR/handlers/payments/sql" >/dev/null
}
call_at() { for name in fx risk payments; do worker_settings+=("handlers.$name.url=http://127.0.0.1:$1"); done; }
# start_simulator [ARGUMENTS...]: everybody downstream; instant and friendly, unless told otherwise.
start_simulator() {
    simulator_start --fx-capacity 30 --risk-capacity 30 "$@"
    call_at "$simulator_port"
}
# Nobody downstream: what is started waits for its first command.
without_simulator() { call_at 9; }
# Starts a worker that runs payments but sends nothing anywhere: its commands stay in their queues.
start_api() { start_ready api --set domains.payments.handlers=payments --set features.command-handlers=false "$@"; }

# ---- the fleet of S4 ----

callers=(ratelimited-1 ratelimited-2 ratelimited-3)
payers=(payments-1 payments-2 payments-3)

# prepare_fleet [ARGUMENTS...]: of the simulator, whose capacities are the fleet's limits. What the profiles say about slots is
# theirs. Leases and timeouts last fleet_lease: short where workers are killed; where every payment must complete, so long that
# no call times out on a busy machine (a submission has one attempt).
fleet_lease=2s
prepare_fleet() {
    local name
    prepare
    cp "$COMMANDBUS_SOURCE_DIR"/config/*.cfg "$work/config/"
    worker_settings=()
    for name in fx risk payments; do
        worker_settings+=("domains.$name.poll-interval=200ms" "domains.$name.visibility-timeout=$fleet_lease"
            "domains.$name.handler-timeout=$fleet_lease" "domains.$name.retry-backoff=200ms")
    done
    simulator_start "$@"
    call_at "$simulator_port"
}
# start_member NAME: on the port it had before, for those who ask it again.
start_member() {
    local port=${worker_port[$1]:-$(free_port)}
    start_worker "$1" --profile "${1%-*}-worker" "${fleet[@]}" --set "http.port=$port"
    worker_port[$1]=$port
}
# start_fleet [ARGUMENTS...]
start_fleet() {
    local name
    fleet=("$@")
    for name in "${callers[@]}" "${payers[@]}"; do start_member "$name"; done
    for name in "${callers[@]}" "${payers[@]}"; do wait_ready "$name"; done
}
stop_fleet() {
    local name
    for name in "${callers[@]}" "${payers[@]}"; do wait_ready "$name"; done
    for name in "${callers[@]}" "${payers[@]}"; do stop_worker "$name"; done
}
# kill_one NAME...: any of them, and starts it again.
kill_one() {
    local name=${*:RANDOM % $# + 1:1}
    kill_worker "$name"
    start_member "$name"
    kills=$((${kills:-0} + 1))
}

# ---- payments ----

# payment [JQ]: a body, changed.
payment() {
    jq -cn '{debitAccount: "ACC-1", creditAccount: "ACC-2", amount: "100.00", debitCurrency: "EUR", creditCurrency: "USD",
             valueDate: "2099-01-05"}'"${1:+ | $1}"
}
# submit KEY [BODY [WORKER]]
submit() { http_ask "${3:-api}" POST /api/payments "${2:-$(payment)}" ${1:+"Idempotency-Key: $1"}; }
# submit_all N: $work/submitted gets the status of each.
submit_all() {
    local name urls=()
    for name in "${payers[@]}"; do urls+=("$(worker_url "$name")/api/payments"); done
    write_payments "$1" "${urls[@]}" >"$work/payments.curl"
    curl -s --parallel --parallel-max 6 -K "$work/payments.curl" >"$work/submitted" 2>"$work/submit.log" &
    submitter=$! others="${others:-} $!"
}
is_submitting() { kill -0 "$submitter" 2>/dev/null; }

field() { jq -r "$1" <<<"$http_body"; }
processes() { sql 'SELECT count(*) FROM commandbus.process'; }
# How many are neither at their end nor with an operator.
open_payments() { sql "SELECT count(*) FROM commandbus.process WHERE status NOT IN ('COMPLETED', 'COMPENSATED', 'FAILED', 'CANCELED', 'WAITING_FOR_TSQ')"; }
outcomes() { sql "SELECT string_agg(n || ' ' || status, ', ' ORDER BY status) FROM (SELECT status, count(*) AS n FROM commandbus.process GROUP BY 1) AS s"; }
# Somebody who decides what has waited for a person for a second.
play_person() { psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -f "$demo_dir/person.sql" >/dev/null; }
summary() {
    sql "SELECT process_type, status, current_step, current_wait, error_code, error_message, count(*) FROM commandbus.process GROUP BY 1, 2, 3, 4, 5, 6"
    sql "SELECT command_type, status, attempts, error_code, error_message, count(*) FROM commandbus.command_metadata
         WHERE status <> 'COMPLETED' GROUP BY 1, 2, 3, 4, 5"
}

# ---- what must hold at the end ----

# fetch_bookings: what the simulator has, for the ledger.
fetch_bookings() {
    local api
    for api in fx risk gateway; do simulator GET "/bookings/$api" >"$work/$api.json"; done
}
# payment_problems N [DEED]: a line for everything that is wrong with N payments; a deed is undone afterwards.
payment_problems() {
    BOOKINGS=$work psql -XqAt -F ' ' -v ON_ERROR_STOP=1 -d "$url" -v asked="$1" -c BEGIN ${2:+-c "$2"} -f "$demo_dir/ledger.sql" \
        -c 'SELECT kind, what FROM problem ORDER BY 1, 2 LIMIT 20'
}
# check_payments N: each is at its end or with an operator, and what the simulator has booked is what they say.
check_payments() {
    local problems
    fetch_bookings
    problems=$(payment_problems "$1")
    [[ -z $problems ]] || fail "payments and bookings do not fit:"$'\n'"$problems"$'\n'"$(summary)"
}
# check_limits FX RISK: most calls at once, as the simulator saw it.
check_limits() {
    at_most "$(seen .fx.most_in_flight)" "$1" 'most calls to fx at once'
    at_most "$(seen .risk.most_in_flight)" "$2" 'most calls to risk at once'
    same "$(seen '.fx.rejected_429 + .risk.rejected_429 + .gateway.rejected_429')" 0 'calls over capacity'
}
