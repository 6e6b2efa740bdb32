#!/usr/bin/env bash
# commandbus responder: who may bring responses to processes.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
network=${database}_network
server -c "CREATE ROLE $network LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_sender"
trap 'server -c "DROP ROLE IF EXISTS $network"; clean_up' EXIT

rights() { sql "SELECT string_agg(process_type || '/' || response, ' ' ORDER BY process_type, response) FROM commandbus.responder"; }

test_nobody_is_allowed_at_first() {
    exits 0 responder list
    says 'operators and workers only'
    exits 0 responder list --json
    json . '[]'
}

test_several_are_allowed_at_once_and_once() {
    exits 0 responder allow "$network" PaymentStep,PaymentManager L1,L2
    prints "^$network: 4 allowed$"
    exits 0 responder allow "$network" PaymentStep L1,L3 --json
    json '[.role, .changed]' "[\"$network\",1]"
    exits 0 responder allow "$network" PaymentStep L1
    prints '^nothing changed$'
    same "$(rights)" 'PaymentManager/L1 PaymentManager/L2 PaymentStep/L1 PaymentStep/L2 PaymentStep/L3'
    exits 0 responder list
    prints "PaymentStep +L3 +$network"
}

test_all_of_a_call_or_none_are_allowed() {
    exits 1 responder allow "$network" 'Payment,not a type' riskApproval --json
    says 'INVALID_NAME'
    exits 1 responder allow nobody_at_all PaymentStep riskApproval
    says "there is no role 'nobody_at_all'"
    exits 2 responder allow "$network" PaymentStep
    says 'RESPONSES is missing'
    same "$(sql "SELECT count(*) FROM commandbus.responder WHERE response = 'riskApproval'")" 0
}

# DESIGN 8.8: rights are given by who owns the schema.
test_a_sender_cannot_allow_itself_anything() {
    exits 1 responder allow "$network" PaymentStep riskApproval \
        --url "postgresql://$network:of-the-test@${url#*@}"
    says 'permission denied'
    same "$(sql "SELECT count(*) FROM commandbus.responder WHERE response = 'riskApproval'")" 0
}

test_what_was_allowed_is_taken_back() {
    exits 0 responder forbid "$network" PaymentStep,PaymentManager L1,L2,L4
    prints "^$network: 4 taken back$"
    same "$(rights)" PaymentStep/L3
    exits 0 responder forbid "$network" PaymentStep '*'
    prints '^nothing changed$'
    exits 0 responder forbid "$network" PaymentStep L3 --json
    json .changed 1
}

# A login that is gone is shown until the next change, and may nothing.
test_a_role_that_was_dropped_is_named() {
    local gone=${database}_gone
    server -c "CREATE ROLE $gone"
    exits 0 responder allow "$gone" PaymentStep L1
    server -c "DROP ROLE $gone"
    exits 0 responder list
    prints 'PaymentStep +L1 +dropped role [0-9]+'
    exits 0 responder allow "$network" PaymentStep L2
    same "$(rights)" PaymentStep/L2
}

run_tests "$@"
