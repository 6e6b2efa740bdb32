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

# WRK.17: what nobody here could run is not taken. 202, and then nothing, would be a promise.
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
422 INVALID_AMOUNT .amount = 100.001
422 INVALID_AMOUNT .amount = -1
422 INVALID_AMOUNT .amount = 0
422 CUTOFF_PAST .cutoffTimestamp = "2020-01-01T00:00:00Z"
422 CUTOFF_PAST .cutoffTimestamp = "1960-01-01T00:00:00.5Z"
422 NO_SIMULATION .behaviour = {"bookFx": {"failTransientPct": 10}}
400 INVALID_TYPE .amount = true
400 INVALID_TYPE .amount = [100]
400 INVALID_TYPE .cutoffTimestamp = "tomorrow"
400 INVALID_TYPE .debitAccount = ["ACC-1"]
400 INVALID_TYPE .valueDate = 20990105
400 INVALID_TYPE .creditCurrency = {"code": "USD"}
CASES
    same "$n" 33 'cases tried'
    submit exponent "$(payment | sed 's/"100.00"/1e2/')" # exact, but not how an amount is written
    expect_http 422 .error INVALID_AMOUNT
    submit "$(printf 'k%.0s' {1..201})"
    expect_http 400 .error INVALID_IDEMPOTENCY_KEY
    submit no-body ' '
    expect_http 400 .error INVALID_JSON
    same "$(processes) $(sql 'SELECT count(*) FROM payments.payment') $(count)" '0 0 0' 'processes, payments, commands'
    stop_worker api
}

# SIM.5, S0's controller: an amount is a number or a text, and the key is a recommendation.
test_a_payment_may_be_a_number_and_needs_no_key() {
    local number
    prepare
    without_simulator
    start_api
    # The last has no double: by way of one it would be 90071992547409.94.
    for number in 100.10 100 90071992547409.93; do
        submit '' "$(payment | sed "s/\"100.00\"/$number/")"
        expect_http 202
        same "$(sql "SELECT p.state ->> 'debitAmount' = '$number' AND m.debit_amount = $number
                     FROM commandbus.process p JOIN payments.payment m USING (process_id) WHERE process_id = '$(field .processId)'")" t "$number"
    done
    same "$(processes)" 3 processes
    submit key "$(payment '.amount = 100')"
    expect_http 202
    submit key "$(payment '.amount = "100.00"')"
    expect_http 202
    same "$(processes)" 4 'a number and a text are one amount'
    stop_worker api
}

# SIM.5
test_where_keys_are_required_a_payment_without_one_is_refused() {
    prepare
    without_simulator
    start_api --set handlers.payments.require-key=true
    submit '' "$(payment)"
    expect_http 400 .error MISSING_IDEMPOTENCY_KEY
    http_ask api POST /api/payments/batch "$(jq -cn --argjson p "$(payment)" '{payments: [$p]}')"
    expect_http 400 .error MISSING_IDEMPOTENCY_KEY
    same "$(processes)" 0 processes
    submit key
    expect_http 202
    stop_worker api
}

# batch JQ [HEADER...]: of a list of N payments, changed.
batch() { http_ask api POST /api/payments/batch "$(jq -cn --argjson p "$(payment)" "$1")" "${@:2}"; }

# SIM.6, S0's startPaymentBatch: name, cut-offs, deferred; all of them or none; once for each key.
test_a_batch_of_payments_is_started_as_a_whole() {
    local three='{name: "salaries", payments: [$p, ($p | .amount = 7.5 | .cutoffTimestamp = "2099-01-05T10:00:00+02:00"), $p]}' ids id
    prepare
    without_simulator
    start_api --set features.process-execution=false
    batch "$three" 'Idempotency-Key: b-1'
    expect_http 202 '[.name, .total, (.processIds | unique | length)] | map(tostring) | join(" ")' 'salaries 3 3'
    ids=$(field '.processIds | join(" ")') id=$(field .batchId)
    same "$(sql "SELECT concat_ws(' ', b.name, (SELECT count(*) FROM commandbus.process WHERE batch_id = b.batch_id AND status = 'PENDING'))
                 FROM commandbus.batch b WHERE batch_id = '$id'")" 'salaries 3'
    same "$(sql "SELECT string_agg(concat_ws(' ', m.status, m.debit_amount, p.deadline_at = m.cutoff_at,
                                             m.cutoff_at = '2099-01-05T08:00:00Z', m.payment_id = p.process_id), ', ' ORDER BY array_position('{${ids// /,}}'::uuid[], process_id))
                 FROM commandbus.process p JOIN payments.payment m USING (process_id)")" \
        'APPROVED 100.00 t f t, APPROVED 7.50 t t t, APPROVED 100.00 t f t'

    batch "$three" 'Idempotency-Key: b-1'
    expect_http 200 '.processIds | join(" ")' "$ids"
    batch "$three | .payments[2].amount = 1" 'Idempotency-Key: b-1'
    expect_http 409 .error IDEMPOTENCY_KEY_REUSED
    batch "$three | .payments |= .[:2]" 'Idempotency-Key: b-1'
    expect_http 409 .error IDEMPOTENCY_KEY_REUSED
    batch "$three | .payments += [\$p]" 'Idempotency-Key: b-1'
    expect_http 409 .error IDEMPOTENCY_KEY_REUSED
    same "$(processes) $(sql 'SELECT count(*) FROM payments.payment')" '3 3' 'processes, payments'
    batch "$three"
    expect_http 202
    batch "$three"
    expect_http 202
    same "$(processes)" 9 'without a key each request is a batch of its own'
    stop_worker api
}

# SIM.6, S0's executeImmediately: they have come to their first wait when the answer comes.
test_a_batch_may_be_executed_at_once() {
    prepare
    without_simulator
    start_api --set features.process-execution=false
    batch '{executeImmediately: true, payments: [range(20) | $p]}'
    expect_http 202 '.processIds | length' 20
    same "$(outcomes)" '20 WAITING_FOR_ASYNC'
    same "$(count "command_type = 'BookRisk'")" 20 'commands sent'
    same "$(sql 'SELECT DISTINCT status FROM payments.payment')" PROCESSING
    # Whoever reads the record finds the instance by its name in `commandbus fleet`.
    http_ask api POST /api/payments "$(payment)"
    expect_http 202
    same "$(sql "SELECT count(*) FROM commandbus.process_audit WHERE worker ~ '^api-http-[0-9a-f]+$' AND event IN ('PROCESS_CREATED', 'STEP_COMPLETED')")" \
        42 'records of what the routes have run'
    stop_worker api
}

# SIM.6
test_a_batch_with_anything_wrong_starts_nothing() {
    local status code change n=0
    prepare
    without_simulator
    start_api
    while read -r status code change; do
        n=$((n + 1))
        batch "{payments: [\$p, \$p]} | $change" "Idempotency-Key: bad-$n"
        [[ $http_status == "$status" ]] || fail "$change: $http_status and not $status: $http_body"
        expect_http "$status" .error "$code"
    done <<'CASES'
400 MISSING_FIELD del(.payments)
400 INVALID_TYPE .payments = {}
400 INVALID_TYPE .payments[1] = 7
400 INVALID_TYPE .payments[1].debitAccount = 7
400 INVALID_TYPE .executeImmediately = "yes"
400 INVALID_TYPE .name = 7
400 MISSING_FIELD del(.payments[1].amount)
422 INVALID_NAME .name = ""
422 INVALID_AMOUNT .payments[1].amount = "1.001"
422 VALUE_DATE_PAST .payments[1].valueDate = "2020-01-01"
422 CUTOFF_PAST .payments[1].cutoffTimestamp = "2020-01-01T00:00:00Z"
422 NO_SIMULATION .behaviour = {"bookFx": {}}
422 BATCH_EMPTY .payments = []
422 BATCH_TOO_LARGE .payments = [range(101) | 1] | .executeImmediately = true
CASES
    same "$n" 14 'cases tried'
    batch '{payments: [$p, ($p | .amount = "x")]}'
    expect_http 422
    field .message | grep -q '^payments\[1\]: ' || fail "it does not say which: $http_body"
    same "$(processes) $(sql 'SELECT count(*) FROM payments.payment') $(sql 'SELECT count(*) FROM commandbus.batch')" '0 0 0' 'processes, payments, batches'
    stop_worker api
}

# WRK.18: a process is answered over HTTP, once for each key, by callers with the token of responders: those who pay do not
# approve.
test_a_process_is_answered_over_http() {
    local id
    answer() { http_ask api POST "/api/processes/$1/responses/$2" "$3" 'Authorization: Bearer answers' "${@:4}"; }
    prepare
    start_simulator
    behave network '{"timeout": 100}'
    echo s3cret >"$work/token"
    echo answers >"$work/responders"
    start_ready api --set "http.token-file=$work/token" --set "http.responder-token-file=$work/responders"
    http_ask api POST /api/payments "$(payment)" 'Authorization: Bearer answers' 'Idempotency-Key: k'
    expect_http 401 .error UNAUTHORIZED
    http_ask api POST /api/payments "$(payment)" 'Authorization: Bearer s3cret' 'Idempotency-Key: k'
    expect_http 202
    id=$(field .processId)
    wait_until "(SELECT current_wait FROM commandbus.process) = 'awaitL1'" 60
    http_ask api POST "/api/processes/$id/responses/L1" '{"reference": "L1-REF-1"}'
    expect_http 401 .error UNAUTHORIZED
    http_ask api POST "/api/processes/$id/responses/L1" '{"reference": "L1-REF-1"}' 'Authorization: Bearer s3cret'
    expect_http 403 .error TOKEN_REQUIRED
    answer "$id" L5 '{"reference": "L5-REF-1"}'
    expect_http 422 .error INVALID_NAME
    field .message | grep -q "PaymentStep takes no response 'L5'. It takes L1, L2, L3, L4, riskApproval" || fail "$http_body"
    answer "$id" L1 '{"reference": 7}'
    expect_http 422 .message "field 'reference' of response L1 must be text. Nothing changed."
    answer "$id" L1 '{}'
    expect_http 422 .message 'response L1 needs reference or error. Nothing changed.'
    answer "$id" riskApproval '{"status": "NONE"}'
    expect_http 422 .error INVALID_DATA
    answer 00000000-0000-7000-8000-000000000000 L1 '{"reference": "x"}'
    expect_http 404 .error PROCESS_NOT_FOUND
    answer nobody L1 '{"reference": "x"}'
    expect_http 404 .error PROCESS_NOT_FOUND
    answer "$id" L1 '{"reference": "x"}' "Idempotency-Key: $(printf 'k%.0s' {1..201})"
    expect_http 400 .error INVALID_IDEMPOTENCY_KEY
    same "$(sql "SELECT count(*) FROM commandbus.process_inbox WHERE kind = 'RESPONSE'")" 0 responses

    answer "$id" L1 '{"reference": "L1-REF-1", "settledBy": "T2"}' 'Idempotency-Key: first' # an unknown field is not refused
    expect_http 202 '[.processId, .response, .accepted] | map(tostring) | join(" ")' "$id L1 true"
    answer "$id" L1 '{"reference": "L1-REF-2"}' 'Idempotency-Key: first'
    expect_http 200 .accepted false
    answer "$id" L2 '{"reference": "L2-REF-1"}' 'Idempotency-Key: first' # the same key, but another response
    expect_http 202
    for level in L3 L4; do
        answer "$id" "$level" "{\"reference\": \"$level-REF-1\"}" "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)"
        expect_http 202
    done
    wait_until "(SELECT status FROM payments.payment) = 'COMPLETE'" 60
    same "$(sql "SELECT state ->> 'l1Reference' FROM commandbus.process")" L1-REF-1
    same "$(sql "SELECT result ->> 'settledBy' FROM commandbus.process_history WHERE kind = 'RESPONSE' AND name = 'L1'")" T2
    stop_worker api
}

# WRK.18: the route acts with the worker's rights, so nobody is let in without a token, on loopback neither.
test_without_a_token_nobody_answers_a_process_over_http() {
    prepare
    without_simulator
    start_api
    submit k
    expect_http 202
    http_ask api POST "/api/processes/$(field .processId)/responses/riskApproval" '{"status": "APPROVED"}'
    expect_http 403 .error TOKEN_REQUIRED
    same "$(sql "SELECT count(*) FROM commandbus.process_inbox")" 0 responses
    stop_worker api
}

# SIM.5
test_the_status_of_an_unknown_payment_is_404() {
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
