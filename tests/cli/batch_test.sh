#!/usr/bin/env bash
# commandbus batch.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
for domain in fx payments; do cb queue create $domain >/dev/null; done
lines() { printf '%s\n' "$@" >"$work/lines"; }

# BUS.5
test_a_batch_is_created_shown_listed_and_closed() {
    lines '{"command_type": "A", "data": {"n": 1}}' '{"data": {"n": 2}}' '{"data": {"n": 3}}'
    exits 0 batch create fx --file "$work/lines" --type B --name 'März' --reply-to fx__replies \
        --custom-data '{"k": [1]}'
    local id
    id=$(output)
    exits 0 batch show "$id" --json
    json '[.status, .total, .completed, .name]' '["PENDING",3,0,"März"]'
    json .custom_data '{"k":[1]}'
    exits 0 batch list --domain fx --json
    json 'map(.batch_id)' "[\"$id\"]"
    exits 0 command list --batch "$id" --type B --json
    json length 2

    settle fx SUCCESS
    exits 0 batch show "$id" --wait --timeout 30s
    prints '^status +COMPLETED$'
    exits 0 batch list --status completed
    prints "$id"
    exits 0 batch list --domain payments --json
    json . '[]'
}

test_waiting_ends_when_the_last_command_does() {
    lines '{"command_type": "A"}' '{"command_type": "B"}'
    local id
    id=$(cb batch create payments --file "$work/lines")
    cb batch show "$id" --wait --json >"$work/waited" &
    local waiter=$!
    settle payments BUSINESS_RULE
    wait $waiter
    same "$(jq -c '[.status, .failed]' "$work/waited")" '["COMPLETED_WITH_FAILURES",2]'
}

# BUS.5: a command in the TSQ is not done.
test_waiting_is_bounded() {
    lines '{"command_type": "A"}'
    local id
    id=$(cb batch create fx --file "$work/lines")
    settle fx PERMANENT
    exits 1 batch show "$id" --wait --timeout 200ms
    says 'the batch is still open: 0 of 1 done, 1 in the TSQ'
    prints '^status +IN_PROGRESS$'
    exits 2 batch show "$id" --timeout 1s
    exits 0 tsq cancel --batch "$id" --reason 'given up'
    exits 0 batch show "$id" --wait --json
    json '[.status, .canceled]' '["COMPLETED_WITH_FAILURES",1]'
}

# BUS.5: empty and closed ones are refused.
test_empty_closed_and_unknown_batches_are_refused() {
    : >"$work/lines"
    exits 1 batch create fx --file "$work/lines" --json
    same "$(jq -r .error.code "$work/err")" BATCH_EMPTY
    lines '{"command_type": "A"}'
    local id
    id=$(cb batch create fx --file "$work/lines")
    exits 0 send fx More --batch "$id"
    settle fx SUCCESS
    exits 0 batch show "$id" --wait
    exits 1 send fx More --batch "$id" --json
    same "$(jq -r .error.code "$work/err")" BATCH_CLOSED
    exits 1 send fx More --batch 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --json
    same "$(jq -r .error.code "$work/err")" BATCH_NOT_FOUND
    exits 1 batch show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --json
    same "$(jq -r .error.code "$work/err")" BATCH_NOT_FOUND
}

test_bad_members_leave_no_batch_behind() {
    local before
    before=$(sql 'SELECT count(*) FROM commandbus.batch')
    lines '{"command_type": "A"}' '{"command_type": "A", "domain": "payments"}'
    exits 1 batch create fx --file "$work/lines"
    says "line 2: domain is payments, the batch's is fx"
    lines '{"command_type": "A", "batch_id": "0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e"}'
    exits 1 batch create fx --file "$work/lines"
    says "line 1: batch_id is the new batch's"
    lines '{"command_type": "A", "data": 7}'
    exits 1 batch create fx --file "$work/lines"
    says 'line 1: '
    lines '{"command_type": "A"}'
    exits 1 batch create nowhere --file "$work/lines"
    exits 1 batch create fx --file "$work/lines" --reply-to fx__commands
    says 'unknown reply queue'
    exits 1 batch create fx --file "$work/lines" --custom-data '{'
    exits 2 batch create fx
    says '--file is missing'
    same "$(sql 'SELECT count(*) FROM commandbus.batch')" "$before"
}

run_tests
