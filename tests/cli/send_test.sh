#!/usr/bin/env bash
# commandbus send, queue and command: from the command line into the database and back.
. "$(dirname "$0")/lib.sh"
cb migrate --quiet >/dev/null
cb queue create fx --reply-queue fx_desk >/dev/null
cb queue create risk >/dev/null
lines() { printf '%s\n' "$@" >"$work/lines"; }

# BUS.2
test_a_domain_gets_its_queues_once_and_again() {
    exits 0 queue create payments
    prints '^domain payments is registered: payments__commands, payments__replies$'
    exits 0 queue create payments --reply-queue desk --json
    json .domain '"payments"'
    exits 0 queue list --json
    json '[.[].queue_name | select(test("payments|^desk$"))] | sort' \
        '["desk","payments__commands","payments__replies"]'
    exits 0 queue list
    prints '^payments__commands +'
}

test_names_against_the_rules_are_refused() {
    for name in Payments 1fx fx__x fx-x 'fx x' a23456789012345678901234567890123456789x; do
        exits 1 queue create "$name" --json
        same "$(jq -r .error.code "$work/err")" INVALID_NAME
    done
    exits 1 send fx 'Book Fx!'
    says 'hint: '
}

# BUS.2: a typo makes no queue.
test_an_unknown_domain_is_refused() {
    exits 1 send fxx BookFx
    says "domain 'fxx' is not registered"
    says 'hint: .*commandbus queue create'
    exits 0 queue list
    lacks fxx
}

# BUS.3
test_one_command_prints_its_id_and_is_there() {
    exits 0 send fx BookFx --data '{"amount": 12345678901234567890.10, "note": "grün ☂"}'
    prints '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    is_silent
    local id
    id=$(output)
    exits 0 command show "$id" --json
    json .status '"PENDING"'
    json .data.note '"grün ☂"'
    prints '"amount": 12345678901234567890\.10' # no digit is lost
    json '[.audit[].event_type]' '["SENT"]'
    exits 0 command show "$id"
    prints '^command_id +'"$id"
    prints '\+0\.000s  SENT'
    exits 0 send fx BookFx --json
    json '.command_id | length' 36
}

test_every_option_reaches_the_command() {
    local id correlation
    id=$(new_id) correlation=$(new_id)
    exits 0 send fx BookFx --id "$id" --correlation-id "$correlation" --reply-to fx_desk \
        --max-attempts 7 --timeout 2m --delay 1h --header source=desk --header "a=b=c \"ü\""
    exits 0 command show "$id" --json
    json '[.correlation_id, .reply_to, .max_attempts, .timeout_seconds]' \
        "[\"$correlation\",\"fx_desk\",7,120]"
    json .headers '{"a":"b=c \"ü\"","source":"desk"}'
    same "$(sql "SELECT vt > now() + interval '59 minutes' FROM pgmq.q_fx__commands
                 WHERE message ->> 'command_id' = '$id'")" t
    exits 0 send fx BookFx --headers '{"x": 1}'
}

test_data_comes_from_a_file_or_stdin() {
    echo '{"from": "file"}' >"$work/data"
    exits 0 send fx BookFx --data "@$work/data"
    exits 0 command show "$(output)" --json
    json .data '{"from":"file"}'
    echo '{"from": "stdin"}' | cb send fx BookFx --data - >"$work/out"
    exits 0 command show "$(output)" --json
    json .data '{"from":"stdin"}'
    exits 1 send fx BookFx --data "@$work/none"
    says 'cannot open .*none'
    printf '{"a": "\0"}' >"$work/data"
    exits 1 send fx BookFx --data "@$work/data"
    says 'NUL byte'
    printf '{"a": "\xff"}' >"$work/data"
    exits 1 send fx BookFx --data "@$work/data" --json
    same "$(jq -r .error.code "$work/err")" INVALID_DATA
}

# BUS.18, what bad input gets: a clear error, and nothing changed.
test_bad_payloads_are_refused_and_nothing_is_sent() {
    local before
    before=$(count)
    for data in '{' '[1]' '7' 'null' '"x"' '{"a":}' "{'a': 1}" '{"a": NaN}' '{"a": 01}' '{} {}' \
        '{"a": "\u0000"}' '{"a": "\ud800"}'; do
        exits 1 send fx BookFx --data "$data" --json
        same "$(jq -r .error.code "$work/err")" INVALID_DATA
    done
    head -c 1100000 /dev/zero | tr '\0' x | sed 's/^/{"a":"/; s/$/"}/' >"$work/data"
    exits 1 send fx BookFx --data "@$work/data" --json
    same "$(jq -r .error.code "$work/err")" PAYLOAD_TOO_LARGE
    exits 1 send fx BookFx --headers '[]'
    exits 2 send fx BookFx --header nothing
    same "$(count)" "$before"
}

test_a_repeated_id_is_refused() {
    local id
    id=$(new_id)
    exits 0 send fx BookFx --id "$id"
    exits 1 send fx BookFx --id "$id"
    says "command $id was already sent"
    says 'hint: .*command show'
    same "$(count "command_id = '$id'")" 1
}

# CONTRACT: reply_to must be a registered queue and not a __commands one.
test_reply_to_must_be_a_reply_queue() {
    for queue in nowhere fx__commands; do
        exits 1 send fx BookFx --reply-to $queue
        says "unknown reply queue '$queue'"
    done
}

test_copies_are_counted_and_their_ids_printed() {
    exits 0 send risk BookRisk --count 2500 --data '{"copy": true}'
    says '^sent 2500 commands in '
    same "$(count "command_type = 'BookRisk'")" 2500
    exits 0 send risk Other --count 3 --ids --quiet
    same "$(sort -u "$work/out" | wc -l)" 3
    is_silent
    exits 0 send risk Other --count 3 --ids --json
    json '[.sent, (.command_ids | unique | length)]' '[3,3]'
    exits 2 send risk Other --count 2 --id "$(new_id)"
}

# BUS.4
test_a_file_of_json_lines_is_sent() {
    local id
    id=$(new_id)
    printf '%s\r\n\r\n  \n%s\n%s' \
        '{"domain": "fx", "command_type": "FromFile", "data": {"n": 1}, "command_id": "'"$id"'"}' \
        ' { "data" : {"n": 12345678901234567890123, "x": "a\"}{,\\"} , "max_attempts": 5, "reply_to":null }' \
        '{"command_type": "From\u0046ile", "headers": {"h": [1, {"a": "]"}]}, "delay_seconds": 0.5, "timeout_seconds": 60}' \
        >"$work/lines"
    exits 0 send fx FromFile --file "$work/lines" --ids
    same "$(wc -l <"$work/out")" 3
    same "$(head -1 "$work/out")" "$id"
    same "$(sql "SELECT string_agg(data::text, ' ' ORDER BY msg_id) FROM commandbus.command_metadata
                 WHERE command_type = 'FromFile'")" \
        '{"n": 1} {"n": 12345678901234567890123, "x": "a\"}{,\\"} {}'
    same "$(sql "SELECT headers || jsonb_build_object('t', timeout_seconds) FROM commandbus.command_metadata
                 WHERE command_type = 'FromFile' AND headers IS NOT NULL")" '{"h": [1, {"a": "]"}], "t": 60}'
    exits 0 send fx Stdin --file - --json <"$work/lines"
    json .sent 0 # exits gives it an empty stdin
    cb send fx Stdin --file - --quiet < <(tail -n +2 "$work/lines")
    same "$(count "command_type = 'Stdin'")" 1
}

test_each_bad_line_is_named_and_nothing_is_sent() {
    local before good='{"command_type": "T", "data": {}}'
    before=$(count)
    while IFS='|' read -r line problem hint; do
        lines "$good" '' "$line" "$good"
        exits 1 send fx --file "$work/lines"
        says "line 3: .*$problem"
        says "hint: .*$hint"
    done <<'LINES'
{"command_type": "T", "data": {}|unexpected end|Nothing was sent
not json|invalid JSON|Nothing was sent
[1, 2]|not a JSON object|Nothing was sent
{}|an empty object is not a command|Nothing was sent
{"data": {}}|there is no command_type|Nothing was sent
{"amount": 5}|unknown key 'amount'|payload of a command belongs under "data"
{"comand_type": "T"}|unknown key 'comand_type'|Did you mean command_type
{"command_type": "T", "data": [1]}|data must be a JSON object|Nothing was sent
{"command_type": "T", "data": {"a": "\u0000"}}|data.*u0000|Nothing was sent
{"command_type": "T\u0000x"}|command_type must be a text|Nothing was sent
{"command_type": 7}|command_type must be a text|Nothing was sent
{"command_type": ""}|command_type must be a text|Nothing was sent
{"command_type": "T", "command_type": "U"}|is there twice|Nothing was sent
{"command_type": "T", "data": {"amount": "1", "amount": "1000"}}|data has a duplicate key 'amount'|Nothing was sent
{"command_type": "T", "data": {"a": [{"b": 1, "\u0062": 2}]}}|data has a duplicate key|Nothing was sent
{"command_type": "T", "command_id": "17"}|command_id must be a UUID|Nothing was sent
{"command_type": "T", "max_attempts": 0}|max_attempts must be a whole number from 1 to 1000|Nothing was sent
{"command_type": "T", "max_attempts": -1}|max_attempts must be|Nothing was sent
{"command_type": "T", "max_attempts": 1.5}|max_attempts must be|Nothing was sent
{"command_type": "T", "max_attempts": "3"}|max_attempts must be|Nothing was sent
{"command_type": "T", "delay_seconds": -1}|delay_seconds must be|Nothing was sent
{"command_type": "T", "timeout_seconds": 0}|timeout_seconds must be|Nothing was sent
LINES
    printf '%s\n%s\n' "$good" $'{"command_type": "T", "data": {"a": "\xc3\x28"}}' >"$work/lines"
    exits 1 send fx --file "$work/lines"
    says 'line 2: .*UTF-8|line 2: .*utf-8'
    { echo "$good" && head -c 2200000 /dev/zero | tr '\0' ' ' && echo x; } >"$work/lines"
    exits 1 send fx --file "$work/lines"
    says 'line 2 .*longer than 2097152 bytes'
    same "$(count)" "$before"
}

# BUS.4: duplicates are looked for over the whole file.
test_an_id_twice_in_a_file_sends_nothing() {
    local before id
    before=$(count) id=$(new_id)
    { echo "{\"command_id\": \"$id\"}" && for _ in {1..1500}; do echo '{"data": {}}'; done &&
        echo "{\"command_id\": \"${id^^}\"}"; } >"$work/lines"
    exits 1 send fx T --file "$work/lines" --json
    same "$(jq -r .error.code "$work/err")" DUPLICATE_COMMAND
    jq -r .error.message "$work/err" | grep -q "^line 1502: .* is on line 1 already"
    same "$(count)" "$before"
    lines "{\"command_id\": \"$id\"}" "{\"command_id\": \"$id\", \"domain\": \"risk\"}"
    exits 0 send fx T --file "$work/lines" # two domains may know one id
    exits 1 command show "$id"
    says 'Say which with --domain: '
    exits 0 command show "$id" --domain risk
}

# BUS.4: each chunk of 1000 is all or nothing; what is durable is said, and how to go on.
test_a_failure_half_way_says_how_to_go_on() {
    local taken
    taken=$(cb send fx T)
    { for n in {1..2499}; do echo "{\"command_type\": \"Half\", \"data\": {\"n\": $n}}"; done &&
        echo "{\"command_type\": \"Half\", \"command_id\": \"$taken\"}"; } >"$work/lines"
    exits 1 send fx --file "$work/lines" --json
    same "$(jq -r .error.code "$work/err")" DUPLICATE_COMMAND
    jq -r .error.message "$work/err" | grep -q '^2000 of 2500 commands are durable: '
    jq -r .error.hint "$work/err" | grep -q -- '--skip 2000.*safe only with ids in the file'
    same "$(count "command_type = 'Half'")" 2000
    sed -i '$d' "$work/lines"
    exits 0 send fx --file "$work/lines" --skip 2000
    same "$(sql "SELECT count(DISTINCT data) FROM commandbus.command_metadata WHERE command_type = 'Half'")" 2499
}

# BUS.8
test_commands_are_listed_by_what_they_are() {
    exits 0 send risk Listed --data '{"n": 1}'
    local id
    id=$(output)
    exits 0 command list --type Listed --json
    json 'map(.command_id)' "[\"$id\"]"
    json '[.[0] | .attempts, .status]' '[0,"PENDING"]'
    exits 0 command list --domain risk --status pending --from 1h --limit 2 --json
    json length 2
    exits 0 command list --domain risk --type Listed --from 2020-01-01 --to 2099-12-31T23:59:59Z
    prints "$id"
    exits 0 command list --type Listed --to 1h
    says 'nothing matches'
    exits 0 command list --type Listed --from 2099-01-01 --json
    json . '[]'
    exits 0 command list --limit 5 --offset 5
    says 'there may be more: --offset 10'
    same "$(wc -l <"$work/out")" 6
    exits 0 command list --batch "$(new_id)" --error-code X --quiet
    is_silent
}

test_a_command_that_is_not_there_is_exit_1() {
    exits 1 command show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --json
    same "$(jq -r .error.code "$work/err")" COMMAND_NOT_FOUND
}

# A message from a payload must not drive somebody's terminal.
test_control_characters_are_escaped_in_tables() {
    local id
    id=$(cb send risk Escapes)
    sql "UPDATE commandbus.command_metadata SET error_message = E'red \033[31m\nline', error_code = 'E'
         WHERE command_id = '$id'"
    exits 0 command show "$id"
    prints 'red \\x1b\[31m\\nline'
    exits 0 command show "$id" --json
    json .error_message '"red \u001b[31m\nline"'
}

# DESIGN section 2: a lost connection leaves nothing in doubt that can be found out.
test_a_lost_connection_during_a_file_is_survived() {
    for n in {1..60000}; do echo "{\"data\": {\"n\": $n}}"; done >"$work/lines"
    "$COMMANDBUS_BIN" send risk Survivor --file "$work/lines" >"$work/out" 2>"$work/err" &
    local sender=$! killed=0 deadline=$((SECONDS + 120))
    while [[ -n $(jobs -rp) ]] && ((killed < 3 && SECONDS < deadline)); do
        killed=$((killed + $(sql "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
                                  WHERE datname = current_database() AND application_name = 'commandbus'
                                    AND query LIKE '%send_arrays%' AND state = 'active'")))
    done
    wait $sender || fail "$(cat "$work/err")"
    ((killed > 0)) || fail "the sender was faster than we"
    says '^sent 60000 commands'
    same "$(sql "SELECT count(*) = 60000 AND count(DISTINCT data) = 60000
                 FROM commandbus.command_metadata WHERE command_type = 'Survivor'")" t
}

test_ctrl_c_finishes_the_chunk_and_reports() {
    "$COMMANDBUS_BIN" send risk Interrupted --count 100000000 >"$work/out" 2>"$work/err" &
    local sender=$! code=0 deadline=$((SECONDS + 120))
    until (($(count "command_type = 'Interrupted'") > 0)); do ((SECONDS < deadline)); done
    kill -INT $sender
    wait $sender || code=$?
    same "$code" 1
    says '^commandbus: [0-9]+ of 100000000 commands are durable: interrupted'
    says 'hint: For the rest: --count [0-9]+'
    same "$(grep -oE 'commandbus: [0-9]+' "$work/err")" "commandbus: $(count "command_type = 'Interrupted'")"
}

run_tests
