#!/usr/bin/env bash
# What a worker refuses to start with, while there is work to claim: it says in a line what is wrong and
# what to do, ends with 2 or 3, and nothing is claimed. CFG.4, WRK.10, WRK.13.
. "$(dirname "$0")/lib.sh"

work_there_is() { send_commands 3 Echo '{"secret": "payload-marker"}'; }

# refused CODE REGEX [ARGUMENTS...]: what it says must match, all of it.
refused() {
    local wanted=$1 pattern=$2 code=0 setting arguments=()
    shift 2
    for setting in "${worker_settings[@]}"; do arguments+=(--set "$setting"); done
    timeout 60 "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${arguments[@]}" --set http.port=0 \
        --set worker.modules-dir="$work/modules" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?

    # One line for the problem, and one for what to do unless that is clear.
    [[ $code == "$wanted" && ! -s $work/out && $(<"$work/err") =~ $pattern &&
        $(<"$work/err") =~ ^commandbus-worker:\ [^$'\n']+($'\n'\ \ hint:\ [^$'\n']+)?$ ]] ||
        fail "with $*: exit code $code, and not $wanted and '$pattern': $(cat "$work/out" "$work/err")"
    if grep -qF -e "$password" -e payload-marker "$work/err"; then fail "a secret: $(cat "$work/err")"; fi
    nothing_claimed "$@"
}
nothing_claimed() {
    same "$(sql "SELECT (SELECT count(*) FROM commandbus.command_metadata WHERE lease_no <> 0 OR status <> 'PENDING')
                 + (SELECT count(*) FROM pgmq.q_${domain}__commands WHERE read_ct > 0)
                 + (SELECT count(*) FROM commandbus.worker)")" 0 "what is claimed with $*"
}
password_of() { sed -nE 's|^[a-z]+://[^:]*:([^@]*)@.*|\1|p' <<<"$1"; }

test_bad_settings_are_refused_with_2() {
    local set="domains.$domain"
    password=$(password_of "$url")
    work_there_is
    echo 'worker = { shutdown-timeuot = "1s"; };' >"$work/config/misspelt.cfg"
    echo 'domains = { sample = { concurrent-messages = "two"; }; };' >"$work/config/typed.cfg"
    echo 'domains = { sample = ' >"$work/config/torn.cfg"

    refused 2 "profile 'nosuch'" --profile nosuch
    refused 2 'misspelt\.cfg:1: .*shutdown-timeuot.*shutdown-timeout' --profile misspelt
    refused 2 'typed\.cfg:1: .*concurrent-messages' --profile typed
    refused 2 'torn\.cfg:[0-9]+' --profile torn
    refused 2 'concurrent-mesages.*concurrent-messages' --set $set.concurrent-mesages=2
    refused 2 'concurrent-messages.*1' --set $set.concurrent-messages=0
    refused 2 'concurrent-messages.*1' --set $set.concurrent-messages=-3
    refused 2 'concurrent-messages.*10000' --set $set.concurrent-messages=1000000
    refused 2 'concurrent-messages' --set $set.concurrent-messages=many
    refused 2 'handler-timeout.*visibility-timeout' --set $set.handler-timeout=10s
    refused 2 'visibility-timeout' --set $set.visibility-timeout=soon
    refused 2 'enabled' --set $set.enabled=perhaps
    refused 2 'Fx' --set domains.Fx.concurrent-messages=2
    refused 2 'log.level' --set log.level=loud
    refused 2 'database URL' --set database.url=postgresql://u:p@ss@127.0.0.1/x
}

test_a_handler_set_that_cannot_be_used_is_refused_with_2() {
    local set file
    password=$(password_of "$url")
    work_there_is
    refused 2 "nosuch.*sample" --set domains.nosuch.concurrent-messages=2
    refused 2 "nosuch.*sample" --set domains.$domain.handlers=sample,nosuch
    for file in "$COMMANDBUS_BUILD_DIR"/tests/modules/broken/*.so; do
        set=$(basename "$file" .so)
        cp "$file" "$work/modules/"
        refused 2 "$set" --set domains.$domain.handlers="sample,$set"
        rm "$work/modules/$set.so"
    done
    echo 'no ELF file' >"$work/modules/text.so"
    refused 2 'text' --set domains.$domain.handlers=sample,text
    # Two sets that handle one type: both are named.
    refused 2 'Echo.*sample.*sample|twice' --set domains.$domain.handlers=sample,sample
    refused 2 'modules-dir|nosuch' --set worker.modules-dir="$work/nosuch"
}

test_a_database_that_cannot_be_worked_on_is_refused_with_3() {
    local other newest
    password=$(password_of "$url")
    work_there_is
    refused 3 'refused|running' --set database.url=postgresql://x:pw-marker@127.0.0.1:1/x
    refused 3 'password authentication' --set database.url="${url/:$password@/:pw-marker@}"
    if grep -q pw-marker "$work/err"; then fail 'the wrong password is printed'; fi
    refused 3 'does not exist' --set database.url="$(url_of no_such_database)"
    other=$(url_of "${database}_empty")
    server -c "CREATE DATABASE ${database}_empty TEMPLATE template0"
    refused 3 'schema.*commandbus migrate' --set database.url="$other"
    server -c "DROP DATABASE ${database}_empty WITH (FORCE)"

    # A release that this binary is too old for, and back again.
    newest=$(sql "SELECT max(version) FROM commandbus.schema_version WHERE component = 'commandbus'")
    sql "UPDATE commandbus.schema_version SET oldest_binary = version + 1000, version = version + 1000
        WHERE component = 'commandbus' AND version = $newest"
    refused 3 'newer|too new|older' --set log.level=info
    sql "UPDATE commandbus.schema_version SET oldest_binary = 1, version = $newest WHERE version > $newest"
    # Literals would mean something else. BUS.15.
    refused 3 'standard_conforming_strings is off.*ALTER ROLE' --set database.url="$url?options=-c%20standard_conforming_strings%3Doff"
    # A database of another build: which file it is, once, and nothing is touched. BUS.12.
    sql "UPDATE commandbus.schema_version SET checksum = repeat('0', 64) WHERE component = 'commandbus' AND version = 2"
    refused 3 'another build.* 002_[a-z_]+\.sql' --set log.level=info
    same "$(grep -c 'another build' "$work/err")" 1 'times it is said'
    if "$COMMANDBUS_BIN" migrate >"$work/out" 2>"$work/err"; then fail 'another build migrates'; else same $? 1 'exit code of migrate'; fi
    grep -qE ' 002_[a-z_]+\.sql' "$work/err" || fail "migrate: $(cat "$work/err")"
    if "$COMMANDBUS_BIN" doctor >"$work/out"; then fail 'doctor is content'; fi
    grep -qE '^fail +schema .* 002_[a-z_]+\.sql' "$work/out" || fail "doctor: $(cat "$work/out")"
    # What a build from before checksums has left.
    sql "ALTER TABLE commandbus.schema_version RENAME COLUMN checksum TO kept"
    refused 3 'keeps no checksums' --set log.level=info
    sql "ALTER TABLE commandbus.schema_version RENAME COLUMN kept TO checksum"
    sql "UPDATE commandbus.schema_version SET checksum = '$(sha256sum <"$(echo "$COMMANDBUS_SOURCE_DIR"/bus/sql/schema/002_*.sql)" | cut -d' ' -f1)'
        WHERE component = 'commandbus' AND version = 2"
    # A user who may not.
    sql "CREATE ROLE ${database}_guest LOGIN PASSWORD 'guest-marker'"
    refused 3 'permission denied|role' --set database.url="$(sed -E 's|//[^@]*@|//'"${database}"'_guest:guest-marker@|' <<<"$url")"
    sql "DROP ROLE ${database}_guest"
}

test_what_the_machine_cannot_give_is_refused_with_2() {
    password=$(password_of "$url")
    work_there_is
    tally_start
    refused 2 "$tally_port.*in use" --set http.port="$tally_port"
    refused 2 '203\.0\.113\.1' --set http.port="$tally_port" --set http.bind=203.0.113.1
}

test_more_slots_than_the_machine_can_give_are_refused_with_2() {
    if [[ $instrumented == yes ]]; then skip 'sanitizers need the address space'; fi
    password=$(password_of "$url")
    work_there_is
    (
        ulimit -v 1000000
        refused 2 'only [0-9]+ of 10000 slots.*concurrent-messages' --set domains.$domain.concurrent-messages=10000
    )
}

run_tests "$@"
