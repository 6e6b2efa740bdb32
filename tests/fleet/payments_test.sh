#!/usr/bin/env bash
# Payments from the HTTP API to their end, with real workers and the simulator of everybody downstream. SIM.3, SIM.4, SIM.5.
. "$(dirname "$0")/lib.sh"

domain=payments
prepare() {
    local name
    worker_settings=(features.http-api=true)
    for name in fx risk payments; do
        worker_settings+=("domains.$name.concurrent-messages=2" "domains.$name.poll-interval=100ms"
            "domains.$name.retry-backoff=200ms" "domains.$name.visibility-timeout=10s" "domains.$name.handler-timeout=5s")
    done
    "$COMMANDBUS_BIN" migrate --quiet --set payments="$COMMANDBUS_SOURCE_DIR/handlers/payments/sql" >/dev/null
}

# start_simulator [ARGUMENTS...]: everybody downstream; instant and friendly, unless told otherwise.
start_simulator() {
    local port until=$((SECONDS + 30))
    port=$(free_port)
    "$COMMANDBUS_BUILD_DIR/bin/commandbus-simulator" --port "$port" --fx-capacity 30 --risk-capacity 30 "$@" >"$work/simulator.log" 2>&1 &
    others=$!
    worker_port[simulator]=$port
    for name in fx risk payments; do worker_settings+=("handlers.$name.url=http://127.0.0.1:$port"); done
    until http_ask simulator GET /stats && ((http_status == 200)); do
        ((SECONDS < until)) || fail "no simulator: $(cat "$work/simulator.log")"
        sleep 0.05
    done
}
# behave API JSON
behave() {
    http_ask simulator PUT "/behaviour/$1" "$2"
    same "$http_status" 200 "PUT /behaviour/$1 ($http_body)"
}
# Nobody downstream: what is started waits for its first command.
without_simulator() {
    for name in fx risk payments; do worker_settings+=("handlers.$name.url=http://127.0.0.1:9"); done
}
# Starts a worker that runs payments but sends nothing anywhere: its commands stay in their queues.
start_api() { start_ready api --set domains.payments.handlers=payments --set features.command-handlers=false "$@"; }

# payment [JQ]: a body, changed.
payment() {
    jq -cn '{debitAccount: "ACC-1", creditAccount: "ACC-2", amount: "100.00", debitCurrency: "EUR", creditCurrency: "USD",
             valueDate: "2099-01-05"}'"${1:+ | $1}"
}
# submit KEY [BODY [WORKER]]
submit() { http_ask "${3:-api}" POST /api/payments "${2:-$(payment)}" ${1:+"Idempotency-Key: $1"}; }
field() { jq -r "$1" <<<"$http_body"; }
processes() { sql 'SELECT count(*) FROM commandbus.process'; }
summary() {
    sql "SELECT process_type, status, current_step, current_wait, error_code, error_message, count(*) FROM commandbus.process GROUP BY 1, 2, 3, 4, 5, 6"
    sql "SELECT command_type, status, attempts, error_code, error_message, count(*) FROM commandbus.command_metadata
         WHERE status <> 'COMPLETED' GROUP BY 1, 2, 3, 4, 5"
}

# SIM.5
test_a_payment_is_started_at_once_with_its_cut_off_as_deadline() {
    prepare
    without_simulator
    start_api
    submit key-1
    expect_http 202 .message 'Awaiting confirmations'
    same "$(field .status)" WAITING_FOR_ASYNC
    same "$(sql "SELECT concat_ws(' ', p.process_type, p.status, m.status, p.deadline_at = m.cutoff_at,
                        p.deadline_at - p.created_at BETWEEN '3h 59m' AND '4h')
                 FROM commandbus.process p JOIN payments.payment m USING (process_id) WHERE process_id = '$(field .processId)'")" \
        'PaymentStep WAITING_FOR_ASYNC PROCESSING t t'
    same "$(count "command_type = 'BookRisk'")" 1 'commands sent when the answer comes'
    stop_worker api
}

# SIM.5: a connection that breaks under a request costs that request, and not the thread that served it.
test_the_api_gets_over_connections_that_break_under_requests() {
    local i locker blocked="SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    prepare
    without_simulator
    start_api
    mkfifo "$work/locker"
    psql -XqAt -d "$url" <"$work/locker" >"$work/locked" &
    locker=$!
    exec 5>"$work/locker"
    echo 'BEGIN; LOCK TABLE payments.payment; SELECT 1;' >&5
    until [[ -s $work/locked ]]; do sleep 0.05; done
    for i in {1..4}; do # as many as there are threads
        curl -s -o /dev/null -X POST "http://127.0.0.1:${worker_port[api]}/api/payments" -H 'Content-Type: application/json' \
            -H "Idempotency-Key: broken-$i" -d "$(payment)" &
    done
    wait_until "($blocked) = 4" 30
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'" >/dev/null
    wait_until "($blocked) = 0" 30
    echo 'ROLLBACK;' >&5
    exec 5>&-
    wait "$locker"
    for i in {1..12}; do
        submit "after-$i"
        expect_http 202
    done
    stop_worker api
}

# SIM.5: the key is the payment's also when retention has taken its process.
test_a_payment_that_is_complete_is_never_started_again() {
    prepare
    start_simulator
    start_ready api
    submit once
    expect_http 202
    wait_until "(SELECT status FROM payments.payment) = 'COMPLETE'" 60
    sql "DELETE FROM commandbus.process; DELETE FROM commandbus.process_history"
    submit once
    expect_http 200 .status COMPLETED
    same "$(processes)" 0 'processes started by asking again'
    stop_worker api
}

# SIM.5: a repeat, also at the same time, starts nothing new.
test_the_same_idempotency_key_is_the_same_payment() {
    local first i
    prepare
    without_simulator
    start_api
    for i in {1..12}; do (submit same && echo "$http_status $(field .processId)" >>"$work/answers") & done
    wait_for_lines "$work/answers" 12
    same "$(sort -u "$work/answers" | wc -l)" 1 "different answers: $(sort "$work/answers" | uniq -c)"
    submit same "$(payment '{valueDate, creditCurrency, debitCurrency, amount: "100", creditAccount, debitAccount}')"
    first=$(field .processId)
    expect_http 202 .processId "$(head -n 1 "$work/answers" | cut -d' ' -f2)"
    same "$(processes)" 1 processes
    same "$(count)" 1 'commands sent'

    submit same "$(payment '.amount = "100.01"')"
    expect_http 409 .error IDEMPOTENCY_KEY_REUSED
    submit other
    expect_http 202
    [[ $(field .processId) != "$first" ]] || fail 'two keys are one payment'
    same "$(processes)" 2 processes
    stop_worker api
}
wait_for_lines() {
    local until=$((SECONDS + 40))
    until (($(cat "$1" 2>/dev/null | wc -l) >= $2)); do
        ((SECONDS < until)) || fail "$1 has too few lines: $(cat "$1")"
        sleep 0.05
    done
}

# A crash after the payment's row and before its process: asking again goes on.
test_a_payment_whose_process_was_never_started_is_started_by_asking_again() {
    prepare
    without_simulator
    start_api
    sql 'CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN RAISE EXCEPTION $$not now$$; END $f$;
         CREATE TRIGGER refuse BEFORE INSERT ON commandbus.process FOR EACH ROW EXECUTE FUNCTION public.refuse()' >/dev/null
    submit half
    expect_http 503 .error NOT_STARTED
    same "$(processes) $(sql 'SELECT string_agg(status, $$ $$) FROM payments.payment')" '0 APPROVED'
    sql 'DROP TRIGGER refuse ON commandbus.process' >/dev/null
    submit half
    expect_http 202 .status WAITING_FOR_ASYNC
    same "$(sql 'SELECT string_agg(status, $$ $$) FROM payments.payment')" PROCESSING
    stop_worker api
}

# SIM.5, "What bad input gets": 4xx with a reason, nothing started.
test_bad_input_is_refused_with_a_reason_and_starts_nothing() {
    local change status code n=0
    prepare
    without_simulator
    start_api
    while read -r status code change; do
        n=$((n + 1))
        submit "bad-$n" "$(payment "$change")"
        [[ $http_status == "$status" ]] || fail "$change: $http_status and not $status: $http_body"
        expect_http "$status" .error "$code"
        [[ -n $(field .message) ]] || fail "no message: $http_body"
    done <<'CASES'
422 UNKNOWN_CURRENCY .debitCurrency = "EUX"
422 UNKNOWN_CURRENCY .creditCurrency = "usd"
422 UNKNOWN_CURRENCY .creditCurrency = ""
422 INVALID_AMOUNT .amount = "-1.00"
422 INVALID_AMOUNT .amount = "0.00"
422 INVALID_AMOUNT .amount = "1.001"
422 INVALID_AMOUNT .amount = "1e3"
422 INVALID_AMOUNT .amount = "99999999999999999999"
422 INVALID_AMOUNT .amount = "100" | .amount = "ten"
422 INVALID_AMOUNT .debitCurrency = "JPY" | .amount = "1.5"
422 SAME_ACCOUNT .creditAccount = "ACC-1"
422 INVALID_ACCOUNT .creditAccount = "A'; DROP TABLE payments.payment; --"
422 INVALID_ACCOUNT .debitAccount = ""
422 VALUE_DATE_PAST .valueDate = "2020-01-01"
422 INVALID_DATE .valueDate = "2099-02-29"
422 INVALID_DATE .valueDate = "tomorrow"
400 MISSING_FIELD del(.amount)
400 MISSING_FIELD del(.debitAccount)
400 MISSING_FIELD del(.creditCurrency)
400 MISSING_FIELD .valueDate = null
400 MISSING_FIELD {}
400 INVALID_TYPE .amount = 100
400 INVALID_TYPE .debitAccount = ["ACC-1"]
400 INVALID_TYPE .valueDate = 20990105
400 INVALID_TYPE .creditCurrency = {"code": "USD"}
CASES
    same "$n" 25 'cases tried'
    submit '' "$(payment)"
    expect_http 400 .error MISSING_IDEMPOTENCY_KEY
    submit "$(printf 'k%.0s' {1..201})"
    expect_http 400 .error MISSING_IDEMPOTENCY_KEY
    submit no-body ' '
    expect_http 400 .error INVALID_JSON
    same "$(processes) $(sql 'SELECT count(*) FROM payments.payment') $(count)" '0 0 0' 'processes, payments, commands'
    stop_worker api
}

# SIM.5
test_the_status_of_nobodys_payment_is_404() {
    prepare
    without_simulator
    start_api
    for id in 00000000-0000-7000-8000-000000000000 no-uuid "x'"; do
        http_ask api GET "/api/payments/$id/status"
        expect_http 404 .error NOT_FOUND
    done
    stop_worker api
}

# SIM.3, SIM.5: by the API, through fx, risk, gateway and network, to the end.
test_payments_go_from_the_api_to_complete() {
    local i id
    prepare
    start_simulator
    start_ready api
    for i in {1..20}; do submit "p-$i" "$(payment "$( ((i % 2)) && echo . || echo '.creditCurrency = "EUR"')")"; expect_http 202; done
    id=$(field .processId)
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED') = 20" 60
    same "$(sql 'SELECT string_agg(DISTINCT status, $$ $$) FROM payments.payment')" COMPLETE
    http_ask api GET "/api/payments/$id/status"
    expect_http 200 '[.processId, .status, .riskApproved, .l1Received, .l2Received, .l3Received, .l4Received, .errorCode, .errorMessage] | map(tostring) | join(" ")' \
        "$id COMPLETED true true true true true null null"
    submit p-20 "$(payment '.creditCurrency = "EUR"')"
    expect_http 200 '.status + " " + .message' 'COMPLETED Completed'
    same "$(count "command_type = 'BookFx'") $(count "command_type = 'BookRisk'")" '10 20' bookings
    http_ask simulator GET /bookings/risk
    same "$(jq '[.. | objects | select(has("key"))] | length' <<<"$http_body")" 20 "bookings at the risk API ($http_body)"
    stop_worker api
}

# SIM.3: the two other ways to pay, as real.
test_the_workflow_and_the_manager_pay_too() {
    local state
    prepare
    start_simulator
    start_ready api
    state='{"debitAccount": "ACC-1", "creditAccount": "ACC-2", "debitAmount": "100.00", "debitCurrency": "EUR",
            "creditCurrency": "JPY", "valueDate": "2099-01-05"}'
    for type in PaymentWorkflow PaymentManager PaymentStep; do
        "$COMMANDBUS_BIN" process start "$type" --quiet --state "$state" >/dev/null
    done
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED') = 3" 60
    same "$(sql "SELECT string_agg(p.process_type || ' ' || m.status, ', ' ORDER BY p.process_type)
                 FROM commandbus.process p JOIN payments.payment m USING (process_id)")" \
        'PaymentManager COMPLETE, PaymentStep COMPLETE, PaymentWorkflow COMPLETE'
    same "$(sql "SELECT count(*) FROM commandbus.process WHERE state ->> 'submissionReference' LIKE 'PAY-%'")" 3 'submitted'
    stop_worker api
}

# SIM.3: what the gateway declines is released once, by all three.
test_a_payment_that_the_gateway_declines_is_released() {
    prepare
    start_simulator
    behave gateway '{"failBusinessRule": 100}'
    start_ready api
    submit declined
    expect_http 202
    for type in PaymentWorkflow PaymentManager; do
        "$COMMANDBUS_BIN" process start "$type" --quiet --state '{"debitAccount": "ACC-1", "creditAccount": "ACC-2",
            "debitAmount": "100.00", "debitCurrency": "EUR", "creditCurrency": "USD", "valueDate": "2099-01-05"}' >/dev/null
    done
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPENSATED' AND error_code = 'BIZ_ERROR') = 3" 60
    same "$(sql 'SELECT string_agg(DISTINCT status, $$ $$) FROM payments.payment')" CANCELLED
    same "$(count "command_type = 'ReleaseRisk' AND status = 'COMPLETED'") $(count "command_type = 'ReleaseFx' AND status = 'COMPLETED'")" '3 3' releases
    stop_worker api
}

# "The simulator or API away: transient, queue grows, nothing lost."
test_when_nobody_answers_downstream_nothing_is_lost() {
    prepare
    start_simulator
    start_ready api --set domains.risk.max-attempts=3 --set domains.risk.retry-backoff=60s --set handlers.risk.url=http://127.0.0.1:9
    submit away
    expect_http 202
    wait_until "(SELECT count(*) FROM commandbus.command_metadata WHERE command_type = 'BookRisk' AND status = 'PENDING' AND attempts = 1) = 1" 30
    same "$(sql 'SELECT status FROM commandbus.process')" WAITING_FOR_ASYNC
    stop_worker api
}

# bookings API: a table of that name, from what the simulator has: key, released.
bookings() {
    http_ask simulator GET "/bookings/$1"
    same "$http_status" 200 "GET /bookings/$1"
    psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -v list="$(jq -c '[.. | objects | select(has("key"))]' <<<"$http_body")" <<SQL
        CREATE TABLE public.booked_$1 AS
        SELECT key::uuid AS command_id, released FROM jsonb_to_recordset(:'list'::jsonb) AS b (key text, released integer)
SQL
}

# "Bookings at the simulator equal to what the payments say", with trouble everywhere and workers that are killed. What the gateway
# leaves without an answer is in the TSQ; what waits for a person is approved.
test_with_chaos_and_killed_workers_nothing_is_lost_and_nothing_left_behind() {
    local i until=$((SECONDS + 150)) open
    prepare
    start_simulator --chaos --seed 11
    behave network '{"timeout": 0}' # nobody here has the hours that a confirmation may take to be missed
    start_ready api
    start_ready b
    for i in {1..60}; do
        submit "c-$i" "$(payment "$( ((i % 2)) && echo . || echo '.creditCurrency = "EUR"')")" "$( ((i % 3)) && echo api || echo b)" || true
        if ((http_status != 202)); then submit "c-$i" "$(payment "$( ((i % 2)) && echo . || echo '.creditCurrency = "EUR"')")"; fi
        expect_http 202
        if ((i % 20 == 10)); then kill_worker b && start_ready b; fi
    done
    kill_worker b
    open="SELECT count(*) FROM commandbus.process WHERE status NOT IN ('COMPLETED', 'COMPENSATED', 'WAITING_FOR_TSQ')"
    while (($(sql "$open") > 0)); do
        ((SECONDS < until)) || fail "they do not end: $(summary)"
        sql "SELECT count(payments.resolve_approval(process_id, true, 'ada')) FROM payments.pending_approval WHERE status = 'PENDING'" >/dev/null
        sql "SELECT count(payments.resolve_network_response(process_id, level, 'ada')) FROM payments.pending_network_response WHERE status = 'PENDING'" >/dev/null
        sleep 0.2
    done
    same "$(processes)" 60 processes
    bookings risk
    bookings fx
    same "$(sql "
        WITH booked AS (SELECT * FROM booked_risk UNION ALL SELECT * FROM booked_fx)
        SELECT string_agg(concat_ws(' ', p.process_id, p.status, c.command_type, b.released), ', ')
        FROM booked b LEFT JOIN commandbus.command_metadata c USING (command_id)
        LEFT JOIN commandbus.process p ON p.process_id = c.correlation_id
        WHERE p.status IS NULL
              OR p.status <> 'WAITING_FOR_TSQ' AND b.released IS DISTINCT FROM CASE p.status WHEN 'COMPENSATED' THEN 1 ELSE 0 END")" '' 'bookings that are not as the payments say'
    same "$(sql "SELECT count(*) FROM commandbus.command_metadata c WHERE command_type IN ('BookRisk', 'BookFx') AND status = 'COMPLETED'
                 AND NOT EXISTS (SELECT FROM booked_risk b WHERE b.command_id = c.command_id)
                 AND NOT EXISTS (SELECT FROM booked_fx b WHERE b.command_id = c.command_id)")" 0 'commands that booked nothing'
    same "$(sql "SELECT count(*) FROM commandbus.process p JOIN payments.payment m USING (process_id)
                 WHERE m.status <> CASE p.status WHEN 'COMPLETED' THEN 'COMPLETE' WHEN 'COMPENSATED' THEN 'CANCELLED' ELSE 'PROCESSING' END")" 0 'payments that are not as their processes'
    note "$(sql "SELECT string_agg(n || ' ' || status, ', ' ORDER BY status) FROM (SELECT status, count(*) AS n FROM commandbus.process GROUP BY 1) AS s")"
    stop_worker api
}

# DESIGN 3, "Roles": the login of a worker that pays is a worker's, and no more than that.
test_the_role_of_workers_is_enough_to_pay() {
    prepare
    start_simulator
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_worker"
    trap 'code=$?; set +e; sql "DROP OWNED BY $login"; sql "DROP ROLE IF EXISTS $login"; (exit "$code"); end_test' EXIT
    start_ready api --set database.url="postgresql://$login:of-the-test@${BASH_REMATCH[1]}"
    submit as-worker
    expect_http 202
    "$COMMANDBUS_BIN" process start PaymentManager --quiet --state '{"debitAccount": "ACC-1", "creditAccount": "ACC-2",
        "debitAmount": "100.00", "debitCurrency": "EUR", "creditCurrency": "USD", "valueDate": "2099-01-05"}' >/dev/null
    wait_until "(SELECT count(*) FROM payments.payment WHERE status = 'COMPLETE') = 2" 60
    http_ask api GET "/api/payments/$(sql "SELECT process_id FROM commandbus.process WHERE process_type = 'PaymentStep'")/status"
    expect_http 200 .status COMPLETED
    stop_worker api
    if grep -E 'level=(warn|error)' "$work/api.log"; then fail 'it has complaints'; fi
    if psql -XqAt -d "postgresql://$login:of-the-test@${BASH_REMATCH[1]}" -c "SELECT payments.resolve_approval(gen_random_uuid(), true, 'me')" 2>/dev/null; then
        fail 'a worker may approve'
    fi
}

# SIM.2, SIM.3: what waits for a person, resolved as people do; a restart of the database in between.
test_a_pending_payment_is_resolved_by_a_person() {
    local id
    prepare
    start_simulator
    behave risk '{"pending": 100}'
    start_ready api
    submit pending
    id=$(field .processId)
    wait_until "(SELECT current_wait FROM commandbus.process) = 'awaitRiskApproval'" 30
    same "$(sql 'SELECT concat_ws($$ $$, process_id, level, execution_model, status) FROM payments.pending_approval')" "$id RISK PROCESS_STEP PENDING"
    sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'commandbus-payments'" >/dev/null
    same "$(sql "SELECT payments.resolve_approval('$id', true, 'ada')")" t
    wait_until "(SELECT status FROM payments.payment) = 'COMPLETE'" 30
    stop_worker api
}

run_tests "$@"
