#!/usr/bin/env bash
# A dump that was taken while the fleet worked, restored elsewhere, is a bus that works: deploy/RUNBOOK.md, Backup.
# WRK.22
. "$(dirname "$0")/lib.sh"

# release_of_server PROGRAM ARGUMENTS...: pg_dump or pg_restore as the server has it, since they refuse
# one that is newer than they are. Dumps come out of it and go into it: a container sees none of our files.
release_of_server() {
    if [[ -z ${COMMANDBUS_TEST_SERVER:-} ]]; then
        "$@"
    else
        # shellcheck disable=SC2016 # for the shell in the container
        "$COMMANDBUS_TEST_ENGINE" run --rm -i --network host --entrypoint bash "$COMMANDBUS_TEST_IMAGE" \
            -c 'exec /usr/lib/postgresql/*/bin/"$0" "$@"' "$@"
    fi
}
dump() { release_of_server pg_dump --format=custom "$url" >"$work/dump"; }

# restore FROM: the dump becomes a database of its own, and the one that the rest of the test means.
restore() {
    local copy=${database}_copy
    server -c "CREATE DATABASE $copy TEMPLATE template0" >/dev/null
    release_of_server pg_restore --exit-on-error --dbname "$(url_of "$copy")" <"$1"
    server -c "DROP DATABASE $database WITH (FORCE)" >/dev/null
    database=$copy
    url=$(url_of "$copy")
    export COMMANDBUS_DATABASE_URL=$url
}

# Section 8, 1: what was committed when the dump began ends in the copy, whoever ran it then.
test_what_ran_during_a_dump_ends_in_the_restored_database() {
    local unfinished dumper dumped sent=60
    tally_start
    start_ready a
    start_ready b
    send_holds 60 100
    wait_until "(SELECT count(*) FILTER (WHERE status = 'COMPLETED') >= 5 FROM commandbus.command_metadata)" 30
    dump &
    dumper=$!
    while kill -0 "$dumper" 2>/dev/null; do keep_busy 60 100; done # it begins when it likes
    wait "$dumper"
    kill_worker a
    kill_worker b
    restore "$work/dump"

    # The dump was taken in the middle of it: some had ended, some ran, some waited.
    dumped=$(count)
    at_least "$dumped" 60 'commands in the dump'
    unfinished=$(count "status IN ('PENDING', 'IN_PROGRESS')")
    at_most "$unfinished" $((dumped - 5)) 'commands to be done after the restore'
    at_least "$unfinished" 1 'commands to be done after the restore'
    at_least "$(count "status = 'IN_PROGRESS'")" 1 'commands that ran when the dump was taken'
    "$COMMANDBUS_BIN" migrate --quiet >/dev/null
    "$COMMANDBUS_BIN" doctor >"$work/doctor" || fail "doctor: $(cat "$work/doctor")"
    start_ready c
    send_holds 5 1
    wait_until "$all_done" 60
    stop_worker c
    check_ledger $((dumped + 5))
    note "$unfinished of $dumped were done after the restore"
}

# Roles belong to the server and rights to the database: a login of the old one works on the copy.
test_rights_come_back_with_the_dump() {
    local login="restore_$$" login_url
    server -c "CREATE ROLE $login LOGIN PASSWORD 'restored' IN ROLE commandbus_worker" >/dev/null
    dump
    restore "$work/dump"
    login_url="$url"
    [[ $login_url =~ ^(postgres(ql)?://)([^/@]*@)?(.*)$ ]] || fail "this test needs a URL"
    login_url="${BASH_REMATCH[1]}$login:restored@${BASH_REMATCH[4]}"
    start_ready a --set database.url="$login_url"
    send_commands 3 Echo '{}'
    wait_until "$all_done" 30
    stop_worker a
    check_ledger 3
    server -c "DROP OWNED BY $login" -c "DROP ROLE $login" >/dev/null
}

# As a managed service has it, which gives nobody a superuser: the database's owner restores. PGMQ's schema is the
# extension's, so queues are their own until somebody gives them back; doctor says how.
test_the_owner_of_the_database_restores_without_a_superuser() {
    local owner="${database}_owner" copy="${database}_copy" advice
    dump
    server -c "CREATE ROLE $owner LOGIN PASSWORD 'owning' IN ROLE commandbus_owner" -c "DROP DATABASE $database WITH (FORCE)" \
        -c "CREATE DATABASE $copy TEMPLATE template0 OWNER $owner" >/dev/null
    database=$copy url=$(url_of "$copy")
    # shellcheck disable=SC2064 # the names of now
    trap "code=\$?; set +e; server -c 'DROP DATABASE $copy WITH (FORCE)' -c 'DROP ROLE $owner'; (exit \$code); end_test" EXIT
    [[ $url =~ ^(postgres(ql)?://)([^/@]*@)?(.*)$ ]] || fail 'this test needs a URL'
    owner_url="${BASH_REMATCH[1]}$owner:owning@${BASH_REMATCH[4]}"
    export COMMANDBUS_DATABASE_URL=$url
    release_of_server pg_restore --dbname "$owner_url" <"$work/dump" 2>"$work/restore.log" || true

    if "$COMMANDBUS_BIN" doctor >"$work/doctor"; then fail 'doctor finds nothing to say of queues that cannot be used'; fi
    grep -q "the queue belongs to $owner" "$work/doctor" || fail "doctor: $(cat "$work/doctor")"
    advice=$(grep -oE 'ALTER TABLE [^;.]*\.[^;.]* OWNER TO commandbus_owner' "$work/doctor")
    same "$(wc -l <<<"$advice")" 4 'tables to give back'
    psql -Xq -v ON_ERROR_STOP=1 -d "$owner_url" -f <(sed 's/$/;/' <<<"$advice")
    "$COMMANDBUS_BIN" doctor >"$work/doctor" || fail "doctor: $(cat "$work/doctor")"

    start_ready a
    send_commands 3 Echo '{}'
    wait_until "$all_done" 30
    stop_worker a
    check_ledger 3
}

run_tests "$@"
