#!/usr/bin/env bash
# What a log never shows, whatever goes wrong: payloads and passwords. WRK.21
#
# Every fleet test looks for them in its logs (check_logs); here each kind of failure says the marker as
# loudly as it can, with every event logged.
. "$(dirname "$0")/lib.sh"

# provoke FORMAT: everything that can go wrong with a command.
provoke() {
    local m=$payload_marker kind
    "$COMMANDBUS_BIN" migrate --quiet --set sample="$COMMANDBUS_SOURCE_DIR/handlers/sample/sql" >/dev/null
    # Somebody's trigger, for example, that says what it was given.
    # What may pass does, after some times: a sequence does not roll back.
    sql "CREATE SEQUENCE public.shouts; GRANT USAGE ON SEQUENCE public.shouts TO PUBLIC;
         CREATE FUNCTION public.shout(code text, what text) RETURNS text LANGUAGE plpgsql AS
         \$f\$ BEGIN IF code IN ('40001', '55P03') AND nextval('public.shouts') > 20 THEN RETURN what; END IF;
                     RAISE EXCEPTION '%', what USING ERRCODE = code, HINT = what; END \$f\$"
    start_ready a --set log.level=debug --set log.format="$1" --set worker.unknown-type-grace=0s \
        --set domains.$domain.concurrent-messages=8 --set domains.$domain.handler-timeout=1s --set domains.$domain.max-attempts=2
    send_commands 2 Echo "{\"text\": \"$m\"}"
    for kind in TRANSIENT PERMANENT BUSINESS_RULE; do
        send_commands 1 Fail "{\"outcome\": \"$kind\", \"code\": \"SAID_SO\", \"message\": \"$m\"}"
    done
    for kind in nan infinity deep utf8 nul large "$m"; do send_commands 1 BadResult "{\"kind\": \"$kind\"}"; done
    for kind in null type table "$m"; do send_commands 1 BadEffect "{\"kind\": \"$kind\"}"; done
    for kind in "SELECT public.shout(''P0001'', ''$m''), \$1::text" "SELECT public.shout(''40001'', ''$m''), \$1::text" \
        "SELECT public.shout(''55P03'', ''$m''), \$1::text" "SELECT public.shout(''42501'', ''$m''), \$1::text" \
        "SELECT ''$m''::int, \$1::text" "SELECT ''$m'' FROM \$1" \
        "SELECT 1 / 0, ''$m'', \$1::text" "INSERT INTO sample.ledger (command_id, account, amount) VALUES (\$1, repeat(''$m'', 1000), ''x'')"; do
        send_commands 1 BadEffect "{\"kind\": \"sql\", \"sql\": \"$kind\"}"
    done
    send_commands 1 Record "{\"account\": \"$m\", \"amount\": \"$m\"}"
    send_commands 2 Record "{\"account\": \"$m\", \"amount\": \"12.50\"}"
    send_commands 1 Hang '{"ms": 1500}'
    send_commands 1 BadOutcome '{}'
    send_commands 1 NoSuchType '{}'
    # A message that is not a command, and one that no longer is.
    sql "SELECT pgmq.send('${domain}__commands', jsonb_build_object('who', '$m')),
                pgmq.send('${domain}__commands', to_jsonb('$m'::text)),
                pgmq.send('${domain}__commands', jsonb_build_array('$m'))" >/dev/null
    wait_until "$all_done" 60
    wait_until "(SELECT count(*) = 3 FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED')" 60
    # And the server says good-bye, which is an error with a text.
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()" >/dev/null
    wait_log a connection.restored
    stop_worker a
}

# That the events were logged, and so could have shown something.
check_events() {
    local event
    for event in command.completed command.failed command.declined command.timeout message.poisoned connection.lost; do
        grep -q "$event" "$work/a.log" || fail "no $event in the log"
    done
    check_logs
}

test_logfmt_shows_no_payload_and_no_password() {
    provoke logfmt
    check_events
}

test_json_shows_no_payload_and_no_password() {
    provoke json
    check_events
    jq -es 'all(type == "object")' "$work/a.log" >/dev/null || fail 'a line is not a JSON object'
}

run_tests "$@"
