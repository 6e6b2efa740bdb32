#!/usr/bin/env bash
# The payments API: what it takes, what it refuses, and what asking again does. SIM.5
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"

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
    start_api --set http.route-timeout=60s
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

# Issue 14.5: what nobody here could run is not taken. 202, and then nothing, would be a promise.
test_an_instance_that_cannot_claim_takes_no_payments() {
    prepare
    without_simulator
    start_api
    sql "ALTER FUNCTION commandbus.claim_processes RENAME TO claim_processes_away"
    wait_http api 503 30
    submit key-1
    expect_http 503 .error NOT_READY
    field .message | grep -q 'cannot claim in domain payments' || fail "it says: $http_body"
    same "$(processes)" 0 'processes'
    sql "ALTER FUNCTION commandbus.claim_processes_away RENAME TO claim_processes"
    wait_ready api
    submit key-1
    expect_http 202
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

run_tests "$@"
