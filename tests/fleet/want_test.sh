#!/usr/bin/env bash
# A server that answers, but has no room: a full disk, for example.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

# fill_disk EVENT: such audit records cannot be written any more. mend_disk: now they can.
fill_disk() {
    sql "CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS
         \$f\$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END \$f\$;
         CREATE TRIGGER full_disk BEFORE INSERT ON commandbus.audit FOR EACH ROW
         WHEN (NEW.event_type = '$1') EXECUTE FUNCTION public.full_disk()"
}
mend_disk() { sql "DROP TRIGGER full_disk ON commandbus.audit"; }

# WRK.10: the outcome waits for room, and so does whoever asks for it; nothing is run twice.
a_full_disk_at() {
    tally_start
    fill_disk "$1"
    start_ready a --set log.level=debug
    send_holds 2 100
    wait_log a 'event=database\.refused .*error_code=53100'
    wait_http a 503
    # A moment of hope first, then one try a second and fewer.
    at_most "$(grep -c 'event=database.again' "$work/a.log")" 20 'tries in a hurry'

    mend_disk
    wait_until "$all_done" 60
    wait_ready a
    same "$(tally_number total)" 2 calls
    stop_worker a
    check_ledger 2
    same "$(count 'attempts <> 1')" 0 'commands charged for it'
}

test_outcomes_that_find_no_room_are_reported_and_settled_later() { a_full_disk_at COMPLETED; }
test_claims_that_find_no_room_are_reported_and_made_later() { a_full_disk_at RECEIVED; }

run_tests "$@"
