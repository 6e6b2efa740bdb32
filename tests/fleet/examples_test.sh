#!/usr/bin/env bash
# What --help shows as an example works as it stands there: with a worker that has the sets payments and sample, and the
# simulator for it to call. BUS.18
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"

id=0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e # as the examples have it
facts='{"debitAccount": "ACC-1", "creditAccount": "ACC-2", "debitAmount": "10.00", "debitCurrency": "EUR",
        "creditCurrency": "USD", "valueDate": "2099-01-05"}'

# examples: of every command that --help lists, one a line.
examples() {
    local words
    "$COMMANDBUS_BIN" --help | sed -nE 's/^  ([a-z]+( [a-z]+)?) +[A-Z].*/\1/p' | while read -ra words; do
        "$COMMANDBUS_BIN" "${words[@]}" --help | sed -n '/^example:/,$ s/^  //p'
    done
}

# Files and logins that the examples name.
make_world() {
    local role
    mkdir -p "$work/examples/bin"
    ln -sf "$COMMANDBUS_BIN" "$work/examples/bin/commandbus"
    cd "$work/examples"
    PATH=$work/examples/bin:$PATH
    export COMMANDBUS_SETS_DIR=$COMMANDBUS_SOURCE_DIR/handlers
    echo "$facts" >payment.json
    jq -c . payment.json payment.json >salaries.jsonl
    printf '{"command_type": "SubmitPayment", "data": {"n": %d}}\n' 1 2 >payments.jsonl
    for role in payments_network risk_desk; do
        server -c "CREATE ROLE $role" >/dev/null 2>&1 || true # it may be there
    done
}

# Nothing has the id any more. The process is locked first, as the engine does.
forget() {
    sql "SELECT FROM commandbus.process WHERE process_id = '$id' FOR UPDATE;
         DELETE FROM commandbus.command_metadata WHERE '$id' IN (command_id, process_id);
         DELETE FROM commandbus.process_inbox WHERE process_id = '$id';
         DELETE FROM commandbus.process_history WHERE process_id = '$id';
         DELETE FROM commandbus.process WHERE process_id = '$id';
         DELETE FROM payments.pending_approval WHERE process_id = '$id';
         DELETE FROM payments.payment WHERE process_id = '$id'" >/dev/null
}
command_in_tsq() {
    forget
    "$COMMANDBUS_BIN" send payments SubmitPayment --id "$id" --data '{"no": "payment"}' --quiet >/dev/null
    wait_until "(SELECT status FROM commandbus.command_metadata WHERE command_id = '$id') = 'IN_TROUBLESHOOTING_QUEUE'" 60
}
process_in_approval() {
    forget
    behave risk '{"pending": 100}'
    "$COMMANDBUS_BIN" process start PaymentStep --id "$id" --state "$facts" --quiet >/dev/null
    wait_until "(SELECT current_wait FROM commandbus.process WHERE process_id = '$id') = 'awaitRiskApproval'" 60
    behave risk '{"pending": 0}'
}
# As if its time were over.
process_in_tsq() {
    process_in_approval
    sql "UPDATE commandbus.process_history SET timeout_at = commandbus.now() WHERE process_id = '$id' AND status = 'WAITING';
         UPDATE commandbus.process SET wake_at = commandbus.now() WHERE process_id = '$id'"
    wait_until "(SELECT error_code FROM commandbus.process WHERE process_id = '$id') = 'WAIT_TIMEOUT'" 60
}
ended_batch() {
    sql "SELECT commandbus.create_batch('sample', 'b', '[{\"command_type\": \"Echo\"}]', batch_id => '$id')" >/dev/null
}
all_pay="NOT EXISTS (SELECT FROM commandbus.process WHERE process_id <> '$id' AND status <> 'COMPLETED')"

# What must be there for an example, and what has to come of it.
given() {
    case $1 in
    *' tsq '*"$id"* | *'command show '*) command_in_tsq ;;
    *'batch show '*) ended_batch ;;
    *'process respond '*) process_in_approval ;;
    *'process '*"$id"*) process_in_tsq ;;
    esac
}
comes_of() {
    case $1 in
    *'process start '*) wait_until "EXISTS (SELECT FROM commandbus.process) AND $all_pay" 60 ;;
    *'process respond '*) wait_until "(SELECT status FROM commandbus.process WHERE process_id = '$id') = 'COMPLETED'" 60 ;;
    *'send sample '*) wait_until "EXISTS (SELECT FROM commandbus.command_metadata WHERE domain = 'sample' AND status = 'COMPLETED')" 60 ;;
    esac
}

# A live picture has no end of its own: here after its first block. (What runs in the background does not hear SIGINT.)
run_example() {
    if [[ $1 == 'commandbus top' ]]; then
        rm -f out # of the example before: a signal to a shell that is not yet this program is lost
        $1 >out 2>err &
        local top=$!
        await_file out
        kill -TERM "$top"
        wait "$top" || true
        return
    fi
    bash -euo pipefail -c "$1" >out 2>err </dev/null
}
await_file() {
    local until=$((SECONDS + 60))
    until [[ -s $1 ]]; do
        ((SECONDS < until)) || fail "nothing was printed"
        sleep 0.05
    done
}

test_every_example_of_help_works() {
    local example n=0
    prepare
    start_simulator
    start_ready api --set domains.sample.poll-interval=100ms
    make_world
    while IFS= read -r example; do
        given "$example"
        run_example "$example" || fail "does not work: $example"$'\n'"$(cat out err)"
        comes_of "$example"
        n=$((n + 1))
    done < <(examples)
    ((n >= 35)) || fail "only $n examples were found"
    for role in payments_network risk_desk; do server -c "DROP ROLE IF EXISTS $role" >/dev/null 2>&1 || true; done
    stop_worker api
}

run_tests "$@"
