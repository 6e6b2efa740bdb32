# Sourced behind lib.sh by the fleet tests of processes: workers that have the set flows (tests/modules/flows/flow.h)
# for domain payments, and books for the domains it sends to.
#
#   release_is SET           flows, flows2 or flows_broken: what workers have from here on
#   start TYPE STATE         prints the process's id; STATE may refer to "$log" and "$marks"
#   gated NAME               a member of the state: what has that name waits behind its line until open_gate NAME;
#                            unhurried is for the workers of such tests: nothing times out meanwhile
#   respond ID NAME          {"reference": "r"}
#   status_is ID STATUS      waits for it; STATUS may be "WAITING_FOR_TSQ CODE"
#   waits_at ID NAME         waits until it is suspended there
#   effects ID [NAME]        how often an outside effect was made, keys ID [NAME] the different keys it was made with

# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used by the tests
domain=payments
settings() {
    local d
    worker_settings=("domains.payments.handlers=$release" domains.fx.handlers=books domains.risk.handlers=books)
    for d in payments fx risk; do
        worker_settings+=("domains.$d.visibility-timeout=2s" "domains.$d.handler-timeout=2s"
            "domains.$d.poll-interval=100ms" "domains.$d.retry-backoff=200ms")
    done
}
release_is() {
    release=$1
    settings
}
release_is flows
unhurried() {
    local d
    for d in payments fx risk; do
        worker_settings+=("domains.$d.visibility-timeout=10m" "domains.$d.handler-timeout=10m")
    done
}

# stage_flows: before the first process. Workers register queues and types when they start.
stage_flows() {
    log=$work/effects marks=$work/marks
    mkdir "$marks"
    : >"$log"
}

start() { sql "SELECT commandbus.start_process('$1', '$2')"; }
# noted MEMBERS...: a state with the log and the marks, e.g. noted '"n": 3'.
noted() {
    local member
    printf '{"log": "%s", "marks": "%s"' "$log" "$marks"
    for member in "$@"; do printf ', %s' "$member"; done
    echo '}'
}
gated() { printf '"gates": {"%s": "%s"}' "$1" "$marks/open.$1"; }
open_gate() { : >"$marks/open.$1"; }
respond() { sql "SELECT commandbus.respond('$1', '$2', '{\"reference\": \"r\"}')" >/dev/null; }
status_is() {
    wait_until "(SELECT concat_ws(' ', status, CASE WHEN '$2' LIKE '% %' THEN error_code END)
                 FROM commandbus.process WHERE process_id = '$1' AND lease_owner IS NULL) = '$2'" "${3:-30}"
}
waits_at() {
    wait_until "(SELECT current_wait FROM commandbus.process WHERE process_id = '$1'
                 AND lease_owner IS NULL) = '$2'" "${3:-30}"
}
state_of() { sql "SELECT state ->> '$2' FROM commandbus.process WHERE process_id = '$1'"; }

effects() { awk -v id="$1" -v name="${2:-}" '$1 == id && (name == "" || $2 == name)' "$log" | wc -l; }
keys() { awk -v id="$1" -v name="${2:-}" '$1 == id && (name == "" || $2 == name) { print $4 }' "$log" | sort -u | wc -l; }
