# Sourced behind flows.sh by the fleet tests of the process runtime: what must hold of processes at the end of
# a scenario, and workers that do only a part of the work.
#
#   check_processes STATUSES      how processes ended ("COMPENSATED 1, COMPLETED 2"), and process_ledger.sql
#   process_ledger STATUSES [DEED]  a line for everything that is wrong; a deed is undone afterwards
#   only FEATURE                  arguments of a worker that has this feature and no other
#   is_paused NAME                by SIGSTOP
#   order ID                      the different effects of a process, in the order of their first
#   commands_of ID                "BookFx 1, BookRisk 1": what it has sent

# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used by the tests

# A second is the shortest lease there is: what died with its worker soon comes back.
hasty_settings() {
    local d
    settings
    for d in payments fx risk; do
        worker_settings+=("domains.$d.visibility-timeout=1s" "domains.$d.handler-timeout=1s")
    done
}

process_ledger() {
    psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -v statuses="$1" \
        -c 'CREATE TEMP TABLE effect (process_id uuid, name text, attempt integer, key text)' \
        -c "COPY effect FROM STDIN DELIMITER ' '" \
        ${2:+-c BEGIN -c "$2"} -f "$fleet_dir/process_ledger.sql" <"$log"
}
check_processes() {
    local problems
    problems=$(process_ledger "$1")
    [[ -z $problems ]] || fail "the process ledger is wrong:"$'\n'"$problems"$'\n'"$(summary)"
}

# Instead of commands: processes, when a test has waited in vain.
summary() {
    sql "SELECT process_id, process_type, status, phase, current_step, current_wait, error_code, error_message, lease_no,
                settle_no, unsettled, lease_owner, wake_at - commandbus.now() AS due_in, inbox_seq, leaving
         FROM commandbus.process ORDER BY status IN ('COMPLETED', 'COMPENSATED'), process_id LIMIT 8"
    sql "SELECT process_id, ordinal, kind, status, name, attempts, error_code FROM commandbus.process_history
         WHERE process_id IN (SELECT process_id FROM commandbus.process
                              ORDER BY status IN ('COMPLETED', 'COMPENSATED'), process_id LIMIT 2) ORDER BY 1, 2"
    sql "SELECT correlation_id, domain, command_type, status, attempts, lease_owner, error_code
         FROM commandbus.command_metadata WHERE status <> 'COMPLETED' ORDER BY 1, 2 LIMIT 20"
}

all_settled="NOT EXISTS (SELECT FROM commandbus.process WHERE lease_owner IS NOT NULL
    OR status NOT IN ('COMPLETED', 'COMPENSATED', 'CANCELED', 'FAILED', 'WAITING_FOR_TSQ'))"

# only FEATURE: --set arguments in $role.
only() {
    local feature
    role=()
    for feature in command-handlers process-execution reply-processing; do
        role+=(--set "features.$feature=$([[ $feature == "$1" ]] && echo true || echo false)")
    done
}

order() { awk -v id="$1" '$1 == id && !seen[$2]++ { print $2 }' "$log" | paste -sd ' '; }
commands_of() {
    sql "SELECT string_agg(c.command_type || ' ' || c.n, ', ' ORDER BY c.command_type)
         FROM (SELECT command_type, count(*) AS n FROM commandbus.command_metadata WHERE correlation_id = '$1' GROUP BY 1) c"
}
field() { sql "SELECT $2 FROM commandbus.process WHERE process_id = '$1'"; }
record() { sql "SELECT concat_ws(' ', status, attempts) FROM commandbus.process_history
                WHERE process_id = '$1' AND kind = '$2' AND name = '$3'"; }
events_of() { sql "SELECT count(*) FROM commandbus.process_event WHERE process_id = '$1' AND event = '$2'"; }
is_paused() { [[ $(awk '{ print $3 }' "/proc/${worker_pid[$1]}/stat") == T ]]; }
