#!/usr/bin/env bash
# commandbus process start --file: batches of processes. What a worker would write is written by SQL.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
sql "SELECT commandbus.register_process_type('PaymentStep', 'payments', 2), commandbus.register_domain('payroll')" >/dev/null
lines() { printf '%s\n' "$@" >"$work/lines"; }
refused() { same "$(jq -r .error.code "$work/err")" "$1"; }
nothing_started() { same "$(sql 'SELECT (SELECT count(*) FROM commandbus.process) + (SELECT count(*) FROM commandbus.batch)')" 0; }
rows_of() { sql "SELECT count(*) FROM commandbus.process WHERE batch_id = '$1' AND ${2:-true}"; }

# end_all STATUS [N]: what a worker would do with everything that is due, or with N of them.
end_all() {
    sql "WITH claimed AS (SELECT * FROM commandbus.claim_processes('tester', '{PaymentStep}', '{2}', ${2:-1000}))
         SELECT (commandbus.settle_processes('tester', jsonb_agg(jsonb_build_object('process_id', process_id,
                 'lease_no', lease_no, 'settle_no', settle_no, 'status', '$1', 'wake', 'NEVER', 'error_code', 'BROKEN')))).verdicts
         FROM claimed HAVING count(*) > 0" >/dev/null
    sql "SELECT commandbus.close_batches()" >/dev/null
}

# First: nothing is there yet.
test_a_file_with_a_bad_line_starts_nothing_and_the_line_is_named() {
    lines '{"n": 1}' '' '{"n"'
    exits 1 process start PaymentStep --file "$work/lines"
    says 'reading line 3: invalid JSON'
    lines '{"n": 1}' '[2]'
    exits 1 process start PaymentStep --file "$work/lines" --json
    refused INVALID_DATA
    says 'reading line 2'
    # The domain's limit is known to the database only.
    { echo '{}' && echo && printf '{"x": "%01500000d"}\n' 0; } >"$work/lines"
    exits 1 process start PaymentStep --file "$work/lines" --json
    refused PAYLOAD_TOO_LARGE
    says 'line 3 has 1500[0-9]+ bytes, the limit is 1048576'
    : >"$work/lines"
    exits 1 process start PaymentStep --file "$work/lines" --json
    refused BATCH_EMPTY
    exits 1 process start PaymentStep --file "$work/nowhere"
    says 'cannot open'
    nothing_started
}

test_what_does_not_fit_is_refused() {
    lines '{}'
    exits 1 process start PaymentStop --file "$work/lines" --json
    refused UNKNOWN_PROCESS_TYPE
    exits 1 process start PaymentStep --file "$work/lines" --reply-to nobody__replies
    says 'unknown reply queue'
    exits 1 process start PaymentStep --file "$work/lines" --reply-to payments__replies --json
    refused INVALID_OPERATION
    says 'workers take what is in'
    exits 2 process start PaymentStep --file "$work/lines" --state '{}'
    exits 2 process start PaymentStep --file "$work/lines" --batch 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e
    exits 2 process start PaymentStep --file "$work/lines" --timeout 5s
    exits 2 process start PaymentStep --name x
    says 'go with --file'
    exits 2 process start PaymentStep --wait
    nothing_started
    exits 3 process start PaymentStep --file "$work/lines" --url postgresql://127.0.0.1:1/none
}

# STP.3: start batch, deferred; BUS.5.
test_a_file_is_started_as_one_batch() {
    local id given=0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e
    seq 2500 | sed 's/.*/{"n": &}/' >"$work/lines"
    exits 0 process start PaymentStep --file "$work/lines" --name 'März' --reply-to payroll__replies \
        --custom-data '{"k": [1]}' --deadline 2040-01-01T00:00:00Z
    is_silent
    id=$(output)
    same "$(rows_of "$id" "status = 'PENDING' AND deadline_at = '2040-01-01 00:00:00+00'")" 2500
    exits 0 batch show "$id" --json
    json '[.batch_type, .status, .total, .pending, .name, .custom_data, .reply_to]' \
        '["PROCESS","PENDING",2500,2500,"März",{"k":[1]},"payroll__replies"]'
    exits 0 batch list --domain payments
    prints "$id .*PROCESS +PENDING +2500"
    exits 0 process list --batch "$id" --limit 1 --json
    json length 1

    echo '{}' | cb process start PaymentStep --file - --id "$given" --json >"$work/out"
    json . "{\"batch_id\":\"$given\",\"total\":1}"
    lines '{}'
    exits 1 process start PaymentStep --file "$work/lines" --id "$given" --json
    refused INVALID_OPERATION
    exits 0 process start PaymentStep --batch "$given"
    same "$(rows_of "$given")" 2
    sql "DELETE FROM commandbus.process" # the tests below end what is due
}

# BUS.5: what was undone has not succeeded, what is in the TSQ is not done.
test_waiting_shows_the_batch_when_all_have_ended() {
    local id
    lines '{}' '{}' '{}' '{}'
    cb process start PaymentStep --file "$work/lines" --reply-to payroll__replies --wait >"$work/waited" 2>"$work/told" &
    local waiter=$!
    until id=$(grep -E '^[0-9a-f-]{36}$' "$work/waited"); do sleep 0.02; done
    end_all COMPLETED 1
    end_all COMPENSATED 1
    end_all CANCELED 1
    end_all WAITING_FOR_TSQ
    exits 1 batch show "$id" --wait --timeout 200ms
    says 'the batch is still open: 3 of 4 done, 1 in the TSQ'
    prints '^in_troubleshooting +1$'
    sql "UPDATE commandbus.process SET wake_at = now(), status = 'EXECUTING', tsq_at = NULL WHERE completed_at IS NULL"
    end_all FAILED
    wait $waiter
    grep -Eq '^status +COMPLETED_WITH_FAILURES$' "$work/waited" || fail "$(cat "$work/waited")"
    grep -Eq '^batch [0-3]/4$' "$work/told" || fail "no plain line: $(cat "$work/told")"
    exits 0 batch show "$id" --json
    json '[.total, .completed, .failed, .canceled]' '[4,1,2,1]'
    same "$(sql "SELECT count(*) FROM pgmq.q_payroll__replies WHERE message ->> 'batch_id' = '$id'")" 1
}

test_waiting_is_bounded() {
    lines '{}'
    exits 1 process start PaymentStep --file "$work/lines" --wait --timeout 200ms --json --quiet
    json '[.status, .total, .pending]' '["PENDING",1,1]'
    same "$(jq -r .error.code "$work/err")" AGAIN
    end_all COMPLETED
}

test_progress_is_a_bar_on_a_terminal_only() {
    command -v script >/dev/null || return 0
    seq 3000 | sed 's/.*/{"n": &}/' >"$work/lines"
    script -qec "'$COMMANDBUS_BIN' process start PaymentStep --file '$work/lines' --wait --timeout 300ms" "$work/typescript" \
        >"$work/out" </dev/null || true
    prints 'starting \[#.*\] 100%  3000/3000  [0-9]+/s'
    prints 'batch \[>.*\]   0%  0/3000'
    script -qec "'$COMMANDBUS_BIN' process start PaymentStep --file '$work/lines' --quiet" "$work/typescript" >"$work/out" </dev/null
    lacks '%'
    sql "DELETE FROM commandbus.process"
}

# A Ctrl-C while it is started takes everything back.
test_an_interrupted_start_starts_nothing() {
    local before code=0
    before=$(sql 'SELECT count(*) FROM commandbus.batch')
    seq 3000 | sed 's/.*/{"n": &}/' >"$work/lines"
    # Held up by a lock that its second statement needs.
    sql "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
             PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END \$\$;
         CREATE TRIGGER hold AFTER INSERT ON commandbus.process FOR EACH STATEMENT EXECUTE FUNCTION public.hold()" >/dev/null
    coproc holder { psql -XqAt -d "$url"; }
    echo "SELECT pg_advisory_lock(7);" >&"${holder[1]}"
    read -r _ <&"${holder[0]}"
    # A shell's background job ignores SIGINT; SIGTERM asks the same.
    "$COMMANDBUS_BIN" process start PaymentStep --file "$work/lines" >"$work/out" 2>"$work/err" &
    local starter=$!
    until [[ $(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1 ]]; do sleep 0.02; done
    kill -TERM $starter
    echo "SELECT pg_advisory_unlock(7);" >&"${holder[1]}"
    wait $starter || code=$?
    sql "DROP FUNCTION public.hold CASCADE" 2>/dev/null
    same "$code" 1
    says 'nothing was started'
    same "$(sql 'SELECT count(*) FROM commandbus.batch')" "$before"
}

run_tests
