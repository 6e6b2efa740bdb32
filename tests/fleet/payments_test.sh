#!/usr/bin/env bash
# Payments from the HTTP API to their end, with real workers and the simulator of everybody downstream. SIM.3, SIM.4
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"

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
    same "$(simulator GET /bookings/risk | jq length)" 20 'bookings at the risk API'
    stop_worker api
}

# SIM.1, SIM.7: how the world behaves is said for each batch, or payment, and reaches the simulator with it.
test_two_batches_with_different_behaviours_run_side_by_side() {
    local good bad
    ask_batch() { http_ask api POST /api/payments/batch "$(jq -cn --argjson p "$(payment)" "$1")"; expect_http 202; }
    prepare
    start_simulator
    start_ready api --set handlers.payments.simulation=true
    ask_batch '{payments: [range(8) | $p], behaviour: {awaitL3: {failBusinessRulePct: 100}}}'
    bad=$(field .batchId)
    ask_batch '{behaviour: {bookRisk: {pendingPct: 100}, awaitRiskApproval: {maxDurationMs: 50}}, payments: ([range(6) | $p] +
        [$p | .behaviour = {bookFx: {failBusinessRulePct: 100}}] + [$p | .behaviour = {bookRisk: {pendingPct: 100}, awaitRiskApproval: {failBusinessRulePct: 100}}])}'
    good=$(field .batchId)
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status IN ('COMPLETED', 'COMPENSATED')) = 16" 90
    same "$(sql "SELECT string_agg(n || ' ' || status || coalesce(' ' || error_code, ''), ', ' ORDER BY status, error_code)
                 FROM (SELECT status, error_code, count(*) AS n FROM commandbus.process WHERE batch_id = '$bad' GROUP BY 1, 2) s")" '8 COMPENSATED L3_ERROR'
    same "$(sql "SELECT string_agg(n || ' ' || status || coalesce(' ' || error_code, ''), ', ' ORDER BY status, error_code)
                 FROM (SELECT status, error_code, count(*) AS n FROM commandbus.process WHERE batch_id = '$good' GROUP BY 1, 2) s")" \
        '1 COMPENSATED BIZ_ERROR, 1 COMPENSATED RISK_DECLINED, 6 COMPLETED'
    same "$(sql "SELECT count(*) FROM commandbus.process WHERE state ->> 'riskDecision' = 'APPROVED'")" 6 'simulated approvals'
    same "$(sql 'SELECT count(*) FROM payments.pending_approval')" 0 'approvals for persons'
    http_ask api POST /api/payments "$(payment '.behaviour = {bookRsk: {}}')"
    expect_http 422 .error INVALID_BEHAVIOUR
    http_ask api POST /api/payments "$(payment '.behaviour = {bookFx: {failTransientPct: 60, timeoutPct: 50}}')"
    expect_http 422 .message 'the percentages of bookFx add up to 110'
    http_ask api POST /api/payments "$(payment '.behaviour = {bookFx: {minDurationMs: 5}}')"
    expect_http 422 .error INVALID_BEHAVIOUR
    stop_worker api
}

# SIM.3: the wait for L4 is the one that says nothing, so the deployment decides.
test_the_wait_for_l4_is_the_types_default_and_can_be_configured() {
    prepare
    start_simulator
    behave network-L4 '{"timeout": 100}'
    start_ready api --set processes.PaymentStep.default-wait-timeout=10h
    submit slow
    expect_http 202
    wait_until "(SELECT current_wait FROM commandbus.process) = 'awaitL4'" 60
    same "$(sql "SELECT next_wait_timeout_at - now() BETWEEN '9h' AND '10h' FROM commandbus.process")" t 'times out in 10 hours'
    stop_worker api
}

# SIM.9: what S4 sends, to the letter.
test_the_commands_of_s4_are_taken_as_they_are_written() {
    prepare
    start_simulator
    start_ready api
    "$COMMANDBUS_BIN" send fx BookFx --quiet --data '{"processId": "00000000-0000-4000-8000-000000000001", "stepName": "bookFx",
        "amount": 1250.10, "fromCurrency": "EUR", "toCurrency": "USD"}' >/dev/null
    "$COMMANDBUS_BIN" send risk BookRisk --quiet --data '{"processId": "00000000-0000-4000-8000-000000000001", "stepName": "bookRisk",
        "amount": 1250.10, "currency": "EUR", "debitAccount": "ACC-1", "creditAccount": "ACC-2"}' >/dev/null
    wait_until "(SELECT count(*) FROM commandbus.command_metadata WHERE status NOT IN ('PENDING', 'IN_PROGRESS')) = 2" 60
    same "$(sql "SELECT string_agg(command_type || ' ' || status, ', ' ORDER BY command_type) FROM commandbus.command_metadata")" \
        'BookFx COMPLETED, BookRisk COMPLETED'
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
    sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'commandbus-payments'" >/dev/null
    same "$(sql "SELECT payments.resolve_approval('$id', true, 'ada')")" t
    wait_until "(SELECT status FROM payments.payment) = 'COMPLETE'" 30
    stop_worker api
}

# DESIGN 8.8: a sender who knows every id plays risk, a person and the network for a payment that risk declines.
test_a_sender_completes_no_payment_that_risk_declines() {
    local id command forged
    prepare
    start_simulator
    behave risk '{"declined": 100}'
    "$COMMANDBUS_BIN" queue create risk >/dev/null
    start_ready api --set domains.risk.enabled=false --set domains.sample.enabled=true
    submit forged
    id=$(field .processId)
    wait_until "(SELECT count(*) FROM commandbus.command_metadata WHERE command_type = 'BookRisk' AND status = 'PENDING') = 1" 30
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_sender"
    trap 'code=$?; set +e; sql "DROP OWNED BY $login"; sql "DROP ROLE IF EXISTS $login"; (exit "$code"); end_test' EXIT

    command=$(sql "SELECT command_id FROM commandbus.command_metadata WHERE command_type = 'BookRisk'")
    forged="'sample', 'Echo', '{\"reference\": \"X\", \"status\": \"APPROVED\", \"score\": 1}'"
    for attack in "send($forged, '$command', '$id', 'payments__replies')" "send($forged, '$command', '$id')" \
        "send($forged, gen_random_uuid(), '$id', 'payments__replies')" "respond('$id', 'riskApproval', '{\"status\": \"APPROVED\"}')" \
        "respond('$id', 'L1', '{\"reference\": \"L1-REF-1\"}')"; do
        if psql -XqAt -d "postgresql://$login:of-the-test@${BASH_REMATCH[1]}" -c "SELECT commandbus.$attack" >/dev/null 2>>"$work/refused"; then
            echo "a sender may call $attack" >&2
        fi
    done
    wait_until "(SELECT count(*) FROM commandbus.command_metadata WHERE domain = 'sample' AND status <> 'COMPLETED') = 0" 30
    start_ready risk
    wait_until "(SELECT completed_at IS NOT NULL FROM commandbus.process)" 60

    same "$(sql "SELECT concat_ws(' ', p.status, p.error_code, m.status) FROM commandbus.process p JOIN payments.payment m USING (process_id)")" \
        'COMPENSATED RISK_DECLINED CANCELLED' 'the payment'
    same "$(simulator GET /bookings/gateway | jq length)" 0 'bookings at the gateway'
    same "$(grep -c '^ERROR' "$work/refused")" 5 'refusals'
    stop_worker api
    stop_worker risk
}

run_tests "$@"
