#!/usr/bin/env bash
# commandbus tsq: the troubleshooting queue.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
for domain in fx risk bulk ask race; do cb queue create $domain >/dev/null; done
status() { sql "SELECT status FROM commandbus.command_metadata WHERE command_id = '$1'"; }
reply() { sql "SELECT message ->> '$2' FROM pgmq.q_fx__replies WHERE message ->> 'command_id' = '$1'
               ORDER BY msg_id DESC LIMIT 1"; }

# BUS.6: lists and counts by domain, type, error code, age.
test_the_tsq_is_listed_and_counted() {
    local a b
    a=$(broken_command fx BookFx GATEWAY_DOWN) b=$(broken_command risk BookRisk NO_LIMIT)
    exits 0 tsq list --json
    json 'map(.command_id) | sort == (["'"$a"'", "'"$b"'"] | sort)' true
    exits 0 tsq list --domain fx --type BookFx --error-code GATEWAY_DOWN
    prints "$a"
    lacks "$b"
    exits 0 tsq list --older-than 1h --json
    json . '[]'
    exits 0 tsq list --counts --json
    json 'map({domain, command_type, error_code, count: ([.count, .commands] | map(numbers) | first)}) | sort' \
        '[{"domain":"fx","command_type":"BookFx","error_code":"GATEWAY_DOWN","count":1},{"domain":"risk","command_type":"BookRisk","error_code":"NO_LIMIT","count":1}]'
    exits 0 tsq cancel risk "$b" --reason settled
    exits 0 tsq cancel fx "$a" --reason settled
}

# BUS.6
test_retry_lets_a_command_run_again() {
    local id
    id=$(broken_command fx BookFx X)
    exits 0 tsq retry fx "$id" --operator alice --reason 'gateway is back'
    prints '^retried 1 command$'
    same "$(status "$id")" PENDING
    exits 0 command show "$id" --json
    json '[.attempts, .error_code]' '[0,null]'
    json '.audit[-1] | [.event_type, .operator, .details.reason]' '["OPERATOR_RETRY","alice","gateway is back"]'
    settle fx SUCCESS
    same "$(status "$id")" COMPLETED
}

# BUS.6: reason required, final reply with it.
test_cancel_gives_up_with_a_reason() {
    local id
    id=$(cb send fx BookFx --reply-to fx__replies)
    settle fx PERMANENT
    exits 2 tsq cancel fx "$id"
    same "$(status "$id")" IN_TROUBLESHOOTING_QUEUE
    COMMANDBUS_OPERATOR=bob exits 0 tsq cancel fx "$id" --reason 'sent by mistake' --json
    json '[.action, .acted, .refused]' '["cancel",1,0]'
    same "$(status "$id")" CANCELED
    same "$(reply "$id" outcome) $(reply "$id" reason)" 'CANCELED sent by mistake'
    same "$(sql "SELECT operator FROM commandbus.audit WHERE command_id = '$id' AND event_type = 'OPERATOR_CANCEL'")" bob
}

test_complete_is_done_by_hand_with_a_result() {
    local id
    id=$(cb send fx BookFx --reply-to fx__replies)
    settle fx PERMANENT
    exits 1 tsq complete fx "$id" --result '{"broken"'
    same "$(status "$id")" IN_TROUBLESHOOTING_QUEUE
    exits 0 tsq complete fx "$id" --result '{"ref": "K-17"}'
    same "$(status "$id")" COMPLETED
    same "$(reply "$id" outcome) $(reply "$id" result)" 'SUCCESS {"ref": "K-17"}'
    same "$(sql "SELECT operator FROM commandbus.audit WHERE command_id = '$id' AND event_type = 'OPERATOR_COMPLETE'")" "$(id -un)"
}

# BUS.6: only from IN_TROUBLESHOOTING_QUEUE; a double click acts once.
test_an_action_in_the_wrong_state_is_refused() {
    local id
    id=$(broken_command fx BookFx X)
    exits 0 tsq retry fx "$id"
    for action in retry "cancel --reason x" complete; do
        read -ra words <<<"$action"
        exits 1 tsq "${words[0]}" fx "$id" "${words[@]:1}" --json
        same "$(jq -r .error.code "$work/err")" INVALID_OPERATION
    done
    same "$(sql "SELECT count(*) FROM commandbus.audit WHERE command_id = '$id' AND event_type LIKE 'OPERATOR%'")" 1
    exits 1 tsq retry fx 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --json
    same "$(jq -r .error.code "$work/err")" COMMAND_NOT_FOUND
    settle fx SUCCESS
}

# BUS.6: bulk by filter.
test_bulk_shows_asks_and_acts() {
    cb send bulk BookA --count 1200 --quiet
    settle bulk PERMANENT DOWN
    settle bulk PERMANENT DOWN
    cb send bulk BookB --count 2 --quiet
    settle bulk PERMANENT OTHER
    in_tsq() { count "domain = 'bulk' AND status = 'IN_TROUBLESHOOTING_QUEUE'"; }
    same "$(in_tsq)" 1202

    exits 0 tsq retry --domain bulk --error-code DOWN --dry-run --json
    json length 1200
    json '[.[] | .error_code] | unique' '["DOWN"]'
    exits 0 tsq retry --domain bulk --error-code OTHER --dry-run
    says '^would retry 2 commands; nothing was changed$'
    same "$(wc -l <"$work/out")" 3
    exits 0 tsq retry --domain bulk --limit 1150 --dry-run
    says '^would retry 1150 '
    same "$(in_tsq)" 1202

    # Nobody is there to ask.
    exits 1 tsq retry --domain bulk
    says 'would retry 1202 commands: nothing was changed'
    says 'hint: .*--yes'
    same "$(in_tsq)" 1202

    exits 0 tsq retry --domain bulk --error-code DOWN --limit 1100 --yes
    prints '^retried 1100 commands$'
    same "$(in_tsq)" 102
    exits 0 tsq cancel --domain bulk --type BookA --reason 'no longer needed' --yes --json
    json '[.acted, .refused]' '[100,0]'
    exits 0 tsq complete --all --yes --quiet
    prints '^completed 2 commands$'
    same "$(in_tsq)" 0
    exits 0 tsq complete --domain bulk
    prints '^completed 0 commands$'
}

test_a_person_is_asked() {
    command -v script >/dev/null || return 0
    cb send ask Ask --count 2 --quiet
    settle ask PERMANENT ASK
    local line="'$COMMANDBUS_BIN' tsq cancel --domain ask --reason x"
    # shellcheck disable=SC2015 # the second only when the first failed as it should
    echo n | script -qec "$line" "$work/typescript" >"$work/out" && fail 'it acted' || true
    prints 'cancel 2 commands\? \[y/N\]'
    same "$(count "domain = 'ask' AND status = 'IN_TROUBLESHOOTING_QUEUE'")" 2
    echo y | script -qec "$line" "$work/typescript" >"$work/out"
    prints 'canceled 2 commands'
}

# Somebody else was faster: counted, no error.
test_what_somebody_else_took_is_counted() {
    cb send race Race --count 600 --quiet
    settle race PERMANENT RACE
    cb tsq retry --error-code RACE --yes --json >"$work/a" 2>&1 &
    local other=$!
    exits 0 tsq cancel --error-code RACE --reason x --yes --json
    wait $other
    local retried canceled
    retried=$(jq .acted "$work/a") canceled=$(jq .acted "$work/out")
    same "$((retried + canceled))" 600
    same "$(count "command_type = 'Race' AND status = 'CANCELED'")" "$canceled"
    same "$(count "command_type = 'Race' AND status = 'PENDING'")" "$retried"
}

run_tests
