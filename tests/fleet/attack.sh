# Sourced by tests of payments under attack, after lib.sh, payments.sh and server.sh: six workers, an API that fails as the simulator's
# chaos preset says, workers that are killed or stopped beyond their lease, and a postmaster that is killed.

# shellcheck shell=bash disable=SC2154,SC2034 # from the others

# attack_problems N [DEED]: a line for everything that is wrong with N payments; a deed is undone afterwards.
attack_problems() {
    BOOKINGS=$work psql -XqAt -F ' ' -v ON_ERROR_STOP=1 -d "$url" -v asked="$1" -v deed="${2:-SELECT WHERE false}" \
        -f "$fleet_dir/attack_ledger.sql"
}
# check_attack N
check_attack() {
    local problems
    fetch_bookings
    problems=$(attack_problems "$1")
    [[ -z $problems ]] || fail "the ledger is wrong:"$'\n'"$problems"$'\n'"$(summary)"
}
prepare_attack() {
    prepare_fleet --chaos --seed 11
    for name in fx risk; do "$COMMANDBUS_BIN" queue create "$name" >/dev/null; done
    psql -Xq -v ON_ERROR_STOP=1 -d "$url" -f "$fleet_dir/attack_spy.sql"
    for name in fx risk; do behave "$name" '{"minMs": 50, "maxMs": 400}'; done # so that the limit is met
    behave network '{"timeout": 0}' # nobody here has the hours that a confirmation may take to be missed
}
is_up() { psql -XqAt -d "$url" -c 'SELECT' >/dev/null 2>&1; }

# ---- what is done to them ----

# Each deed with its time, and when the simulator first saw more calls than the limit: it says which of them it was.
diary() { echo "$(date +%T.%3N) $*" >>"$work/diary"; }
look_for_breach() {
    local rejected
    if grep -q breach "$work/diary"; then return; fi
    rejected=$(seen '.fx.rejected_429 + .risk.rejected_429')
    ((rejected == 0)) || diary "breach: $(simulator GET /stats | jq -c '[.fx, .risk | {calls, most_in_flight, rejected_429}]')"
}

# The others of the server end when they see that it is gone, and until then nobody else can start.
kill_postmaster() {
    local until=$((SECONDS + 120))
    diary postmaster
    kill -KILL "$(server_pid)"
    postmasters=$((postmasters + 1))
    until server_start && is_up; do
        ((SECONDS < until)) || fail 'the server does not come back'
        sleep 0.2
    done
    diary 'the server is back'
}
# stop_one: for longer than its lease and its timeout, 2 s each; the others go on meanwhile.
declare -A stopped_until=()
stop_one() {
    local members=() name
    for name in "${callers[@]}" "${payers[@]}"; do
        if [[ -z ${stopped_until[$name]:-} ]]; then members+=("$name"); fi
    done
    ((${#members[@]})) || return 0
    name=${members[RANDOM % ${#members[@]}]}
    diary "stop $name"
    kill_worker "$name" STOP
    stopped_until[$name]=$((SECONDS + 6))
    stops=$((stops + 1))
}
# wake_stopped [now]: those whose time is over, or all.
wake_stopped() {
    local name
    for name in "${!stopped_until[@]}"; do
        if [[ ${1:-} == now ]] || ((SECONDS >= stopped_until[$name])); then
            diary "continue $name"
            kill_worker "$name" CONT
            unset "stopped_until[$name]"
        fi
    done
}
kill_any() {
    local members=("${callers[@]}" "${payers[@]}") name
    name=${members[RANDOM % ${#members[@]}]}
    unset "stopped_until[$name]"
    diary "kill $name"
    kill_worker "$name"
    start_member "$name"
    kills=$((kills + 1))
}
# As Kubernetes does with a worker that found no database when it started. One that ends otherwise has failed.
revive() {
    local name code
    for name in "${callers[@]}" "${payers[@]}"; do
        if is_alive "$name"; then continue; fi
        code=0
        wait "${worker_pid[$name]}" || code=$?
        ((code == 3)) || fail "worker $name ended with $code"
        start_member "$name"
        revived=$((revived + 1))
    done
}

# attack N KILLS STOPS POSTMASTERS: N payments while all that happens, spread over the time that they take.
attack() {
    local n=$1 schedule i fired=0 due open=$1 began=${EPOCHREALTIME/./} until=$((SECONDS + 900 + $1))
    kills=0 stops=0 postmasters=0 revived=0
    : >"$work/diary"
    RANDOM=${COMMANDBUS_TEST_SEED:-$RANDOM}
    schedule=$({
        for ((i = 0; i < $2; i++)); do echo kill_any; done
        for ((i = 0; i < $3; i++)); do echo stop_one; done
        for ((i = 0; i < $4; i++)); do echo kill_postmaster; done
    } | shuf --random-source=<(yes "$RANDOM"))
    mapfile -t schedule <<<"$schedule"
    submit_all "$n"
    while is_submitting || ((open > 0 || fired < ${#schedule[@]})); do
        ((SECONDS < until)) || fail "they do not end: $(summary)"
        sleep 0.3 # not a wait for anything: trouble comes at any moment
        wake_stopped
        revive
        look_for_breach
        if ! is_up; then continue; fi
        play_person || true
        open=$(sql "SELECT $n - count(*) FROM commandbus.process WHERE status IN ('COMPLETED', 'COMPENSATED', 'FAILED', 'CANCELED', 'WAITING_FOR_TSQ')")
        due=$(((n - open) * (${#schedule[@]} + 1) * 10 / (9 * n) + 1))
        if ((fired < due && fired < ${#schedule[@]})); then
            "${schedule[fired]}"
            fired=$((fired + 1))
        fi
    done
    wake_stopped now
    took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
    wait "$submitter" || fail "not all were submitted: $(sort "$work/submitted" | uniq -c)"
    note "$n payments in $((took_ms / 1000)) s: $(outcomes)"
    note "$kills workers killed, $stops stopped beyond their lease, $postmasters postmasters killed, $revived workers started again without a database"
}
