#!/usr/bin/env bash
# Whatever a stranger sends to a process, the smallest worker that deploy/k8s ships survives it: WRK.20, DESIGN 8.10. The
# workers run with that memory, in a cgroup where one can be made; elsewhere the most that they ever had is looked at.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

memory_mib=$(sed -nE 's/.*limits: \{memory: ([0-9]+)Mi\}.*/\1/p' "$COMMANDBUS_SOURCE_DIR/deploy/k8s/base/worker/deployment.yaml")

# make_cgroup NAME: prints its folder; nothing where none can be made (version 2, or the memory of version 1).
make_cgroup() {
    local at=/sys/fs/cgroup limit=memory.max folder
    if [[ -w $at/memory ]]; then at=$at/memory limit=memory.limit_in_bytes; fi
    folder=$at/commandbus_${database}_$1
    mkdir "$folder" 2>/dev/null || return 0
    if [[ -e $folder/$limit ]] && echo "${memory_mib}M" 2>/dev/null >"$folder/$limit"; then
        echo 0 2>/dev/null >"$folder/memory.swap.max" || true
        echo "$folder"
    else
        rmdir "$folder"
    fi
}

# small_worker NAME: one with ten slots and the memory that we ship.
small_worker() {
    cgroup=
    if [[ $instrumented == no ]]; then cgroup=$(make_cgroup "$1"); fi
    [[ -n $cgroup ]] || note "$1: no cgroup"
    trap 'code=$?; set +e; end_cgroup; (exit "$code"); end_test' EXIT
    # shellcheck disable=SC2016 # for the inner shell
    printf '#!/bin/bash\n[[ -z "%s" ]] || echo $$ >"%s/cgroup.procs"\nexec "%s" "$@"\n' "$cgroup" "$cgroup" \
        "$COMMANDBUS_WORKER_BIN" >"$work/limited"
    chmod +x "$work/limited"
    COMMANDBUS_WORKER_BIN=$work/limited start_ready "$1" --set domains.payments.concurrent-processes=10
}
end_cgroup() {
    local pid
    for pid in "${worker_pid[@]}"; do kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    [[ -z $cgroup ]] || rmdir "$cgroup"
}
# still_lives NAME: it was never killed, and never had more memory than it may have.
still_lives() {
    is_alive "$1" || fail "worker $1 was killed"
    local most
    most=$(awk '$1 == "VmHWM:" { print int($2 / 1024) }' "/proc/${worker_pid[$1]}/status")
    note "$1 had $most of $memory_mib MiB at most"
    if [[ $instrumented == no ]]; then at_most "$most" "$memory_mib" 'its memory in MiB'; fi
}

# A login with the roles of those who send and who respond, and no more.
make_login() {
    [[ $url =~ ^postgresql://[^@]*@(.*)$ ]] || fail 'the server has no URL with a user'
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_sender, commandbus_operator"
    login_url="postgresql://$login:of-the-test@${BASH_REMATCH[1]}"
}
# flood ID N PAYLOAD: so many responses, each in a transaction of its own; prints how many were taken.
flood() {
    local i
    sql 'UPDATE commandbus.process_type SET responses = NULL' # any is kept
    for ((i = 0; i < $2; i++)); do echo "SELECT commandbus.respond('$1', 'junk', $3);"; done |
        psql -XqAt -d "$login_url" 2>>"$work/refusals" | grep -c '^t$' || true
}
megabyte="jsonb_build_object('x', repeat('m', 1000000))"
# A megabyte of text, and two hundred in memory.
objects="jsonb_build_object('x', (SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 250000)))"

letters() { for ((i = 0; i < $1; i++)); do start Letters "$(noted)"; done; }
# They go on and end, all of them.
letters_end() {
    local id l
    for id in "$@"; do for l in 1 2 3 4; do respond "$id" "L$l"; done; done
    wait_until "NOT EXISTS (SELECT FROM commandbus.process WHERE process_id IN ($(printf "'%s'," "$@" | sed 's/,$//'))
                AND status <> 'COMPLETED')" 120
}

test_a_flood_of_large_responses_ends_no_worker() {
    local victim others taken
    stage_flows
    small_worker a
    make_login
    victim=$(letters 1)
    mapfile -t others < <(letters 20)
    waits_at "$victim" awaitL1

    taken=$(flood "$victim" 120 "$megabyte")
    note "$taken of 120 responses were taken"
    at_most "$taken" 6 'responses that were taken'
    grep -q 'takes responses up to 6291456' "$work/refusals" || fail "refused as: $(head -3 "$work/refusals")"

    letters_end "${others[@]}" "$victim"
    same "$(field "$victim" unsettled)" 0 'its unsettled claims'
    still_lives a
}

# Ten at a time, all as large as they may be.
test_processes_as_large_as_they_may_be_complete() {
    local ids id
    stage_flows
    small_worker a
    make_login
    mapfile -t ids < <(letters 20)
    for id in "${ids[@]}"; do waits_at "$id" awaitL1; done
    for id in "${ids[@]}"; do
        same "$(flood "$id" 3 "$megabyte")" 3 'responses that were taken'
    done
    sql "SELECT commandbus.respond('${ids[0]}', 'L1', jsonb_build_object('reference', repeat('r', 900000)))" >/dev/null
    letters_end "${ids[@]}"
    still_lives a
}

test_responses_that_grow_in_memory_end_no_worker() {
    local victims others id
    stage_flows
    small_worker a
    make_login
    mapfile -t victims < <(letters 10)
    mapfile -t others < <(letters 20)
    for id in "${victims[@]}"; do waits_at "$id" awaitL1; done
    for id in "${victims[@]}"; do flood "$id" 1 "$objects" >/dev/null; done
    letters_end "${others[@]}"
    for id in "${victims[@]}"; do status_is "$id" 'WAITING_FOR_TSQ PROCESS_TOO_LARGE' 60; done
    same "$(sql "SELECT max(unsettled) FROM commandbus.process")" 0 'unsettled claims'
    # A person can end it.
    sql "SELECT commandbus.process_cancel('${victims[0]}', 'eve', 'too large', false)" >/dev/null
    status_is "${victims[0]}" CANCELED
    still_lives a
}

# However it came to be so large: what is there is not loaded, and it is parked, not tried again and again.
test_a_process_beyond_its_limit_is_parked_without_being_loaded() {
    local id others
    stage_flows
    small_worker a
    id=$(letters 1)
    mapfile -t others < <(letters 20)
    waits_at "$id" awaitL1
    sql "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload)
         SELECT '$id', n, 'RESPONSE', 'junk', $megabyte FROM generate_series(1, 120) n;
         UPDATE commandbus.process SET inbox_seq = 120, content_bytes = 120000000, wake_at = commandbus.now()
         WHERE process_id = '$id'" >/dev/null
    letters_end "${others[@]}"
    status_is "$id" 'WAITING_FOR_TSQ PROCESS_TOO_LARGE' 60
    same "$(field "$id" unsettled)" 0 'its unsettled claims'
    [[ $(field "$id" error_message) == *'cancel it without compensations'* ]] ||
        fail "it does not say what to do: $(field "$id" error_message)"

    # A retry parks it again, and whoever looks at it or replays it copes.
    sql "SELECT commandbus.process_retry('$id', 'eve', 'again')" >/dev/null
    status_is "$id" 'WAITING_FOR_TSQ PROCESS_TOO_LARGE' 60
    "$COMMANDBUS_BIN" process show "$id" >"$work/shown"
    grep -q PROCESS_TOO_LARGE "$work/shown" || fail "process show: $(cat "$work/shown")"
    replay_all >"$work/replayed"
    grep -q '1 too large' "$work/replayed" || fail "replay: $(cat "$work/replayed")"

    sql "SELECT commandbus.process_cancel('$id', 'eve', 'too large', false)" >/dev/null
    status_is "$id" CANCELED
    still_lives a
}
replay_all() {
    local setting arguments=()
    for setting in "${worker_settings[@]}"; do arguments+=(--set "$setting"); done
    "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${arguments[@]}" --set worker.modules-dir="$work/modules" \
        --replay --all-running
}

run_tests "$@"
