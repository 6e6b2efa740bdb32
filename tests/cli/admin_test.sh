#!/usr/bin/env bash
# commandbus migrate, doctor and purge.
. "$(dirname "$0")/lib.sh"

test_an_empty_database_is_told_to_migrate() {
    exits 1 queue list
    says 'hint: .*commandbus migrate'
    exits 1 send fx BookFx --json
    same "$(jq -r .error.code "$work/err")" SCHEMA
}

# BUS.11
test_migrate_prints_the_version_before_and_after() {
    exits 0 migrate --status
    prints '^schema +version 0; migrate applies [0-9]+ files'
    prints '^functions +none; migrate applies'
    exits 0 migrate
    prints '^commandbus: version 0 -> [0-9]+, [0-9]+ files applied$'
    exits 0 migrate
    prints '^commandbus: already at version [0-9]+$'
    exits 0 migrate --json
    json '[.component, .applied, .functions, .found == .now]' '["commandbus",0,false,true]'
    exits 0 migrate --status
    prints '^schema +version [0-9]+; nothing to do$'
    prints '^functions +of release [0-9.]+; nothing to do$'
    exits 0 migrate --status --json
    json '[.missing, .functions_differ, .found == .brings]' '[0,false,true]'
}

make_set() { # FOLDER
    mkdir -p "$1"
    echo 'CREATE SCHEMA shop; CREATE TABLE shop.item (id int);' >"$1/001_item.sql"
    echo 'ALTER TABLE shop.item ADD COLUMN name text;' >"$1/002_name.sql"
}

# BUS.11: handler sets' SQL by --set.
test_a_handler_set_is_found_by_folder_name_and_environment() {
    make_set "$work/sets/shop/sql"
    exits 1 migrate --set shop
    says "there is no handler set 'shop'"
    says 'hint: .*--set shop=FOLDER'
    exits 1 migrate --set "$work/nothing/sql"
    exits 0 migrate --set "$work/sets/shop/sql"
    prints '^shop: version 0 -> 2, 2 files applied$'
    sql 'SELECT name FROM shop.item' >/dev/null
    exits 0 migrate --set "shop=$work/sets/shop/sql" --json
    same "$(jq -sc 'map([.component, .now, .applied])[1]' "$work/out")" '["shop",2,0]'
    COMMANDBUS_SETS_DIR=$work/sets exits 0 migrate --set shop
    prints '^shop: already at version 2$'
    mkdir "$work/tree" && mkdir "$work/tree/handlers" && mv "$work/sets/shop" "$work/tree/handlers"
    cd "$work/tree"
    exits 0 migrate --set shop
    prints '^shop: already at version 2$'
}

test_the_doctor_checks_and_says_so() {
    exits 0 doctor
    prints '^ok  '
    says '^[0-9]+ checks: [0-9]+ warn, 0 fail$'
    lacks $'\033'
    exits 0 doctor --json
    json 'map(.status) | inside(["ok", "warn"])' true
    json 'length >= 5' true
}

test_the_doctor_has_colours_on_a_terminal_only() {
    command -v script >/dev/null || return 0
    script -qec "'$COMMANDBUS_BIN' doctor" "$work/typescript" >"$work/out" </dev/null
    prints $'\033\\[32mok'
    NO_COLOR=1 script -qec "'$COMMANDBUS_BIN' doctor" "$work/typescript" >"$work/out" </dev/null
    lacks $'\033'
}

test_a_progress_bar_is_on_a_terminal_only() {
    command -v script >/dev/null || return 0
    cb queue create bar >/dev/null
    script -qec "'$COMMANDBUS_BIN' send bar T --count 3000" "$work/typescript" >"$work/out" </dev/null
    prints 'sending \[#.*\] 100%  3000/3000  [0-9]+/s'
    exits 0 send bar T --count 3000
    does_not_say '%'
    script -qec "'$COMMANDBUS_BIN' send bar T --count 3000 --quiet" "$work/typescript" >"$work/out" </dev/null
    lacks '%'
}

# BUS.10: only finished ones, in small batches, until nothing is left.
test_purge_removes_what_is_finished_and_old() {
    cb queue create fx >/dev/null
    cb send fx Done --count 25 --quiet
    settle fx SUCCESS
    cb send fx Open --quiet >/dev/null
    exits 0 purge --all 30d --json
    json . '{"commands":0,"batches":0,"audit":0,"archives":0,"processes":0}'
    same "$(count "domain = 'fx'")" 26
    exits 0 purge --commands 1ms --batch-size 10
    prints '^removed 25 commands, 0 batches, 0 audit records, 0 archived messages, 0 processes$'
    same "$(count "command_type = 'Done'") $(count "command_type = 'Open'")" '0 1'
    exits 0 purge --audit PT0.001S --json
    json '.audit >= 75' true
    same "$(sql "SELECT count(*) > 0 FROM commandbus.audit a JOIN commandbus.command_metadata c USING (command_id)
                 WHERE c.command_type = 'Open'")" t
}

run_tests
