# shellcheck shell=bash disable=SC2154 # root, bin, work, chaos, url are the demo's
# The processes of the demo: simulator, six workers, whoever submits payments and, with --chaos, whoever kills.
# Sourced by deploy/demo.

declare -A member_pid=() member_port=()

# free_port: one that nobody listens on just now.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# wait_for WHAT SECONDS COMMAND...: until it succeeds.
wait_for() {
    local what=$1 until=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < until)) || die 1 "$what does not come up" "Its log is in $work/logs."
        sleep 0.1
    done
}

start_simulator() {
    local options=(--seed "${SEED:-1}")
    [[ $chaos == no ]] || options+=(--chaos)
    simulator_port=$(free_port)
    "$bin/commandbus-simulator" --port "$simulator_port" "${options[@]}" >>"$work/logs/simulator.log" 2>&1 &
    member_pid[simulator]=$!
    wait_for "the simulator" 10 curl -sf "http://127.0.0.1:$simulator_port/stats"
}

# behave WHAT JSON: how an API of the simulator behaves from now on.
behave() {
    curl -sf -X PUT "http://127.0.0.1:$simulator_port/behaviour/$1" -d "$2" >/dev/null
}

# start_member NAME PROFILE
start_member() {
    local name=$1 profile=$2 domain settings=()
    for domain in fx risk payments; do
        settings+=(--set "handlers.$domain.url=http://127.0.0.1:$simulator_port")
        # Chaos: who was killed is given up after seconds, and what failed comes soon again. The fleet's own limit counts
        # the calls that a killed worker leaves behind at the API.
        [[ $chaos == no ]] || settings+=(--set "domains.$domain.visibility-timeout=5s"
            --set "domains.$domain.handler-timeout=5s" --set "domains.$domain.retry-backoff=1s")
    done
    [[ $chaos == no ]] || settings+=(--set "domains.fx.fleet-limit=$limit" --set "domains.risk.fleet-limit=$limit")
    COMMANDBUS_PROFILE=$profile COMMANDBUS_CONFIG_DIR=$root/config "$bin/commandbus-worker" \
        --set "worker.name=$name" --set "http.port=${member_port[$name]}" --set log.level=warn \
        --set features.http-api=true "${settings[@]}" >>"$work/logs/$name.log" 2>&1 &
    member_pid[$name]=$!
}

start_members() {
    local profile i name
    for profile in ratelimited-worker payments-worker; do
        for i in 1 2 3; do
            name=${profile%-worker}-$i
            member_port[$name]=$(free_port)
            start_member "$name" "$profile"
        done
    done
    for name in "${!member_port[@]}"; do
        wait_for "$name" 30 curl -sf "http://127.0.0.1:${member_port[$name]}/readyz"
    done
    api=http://127.0.0.1:${member_port[payments-1]}/api/payments
}

stop_fleet() {
    local pids=("${member_pid[@]}")
    member_pid=()
    ((${#pids[@]})) || return 0
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
}

# ---- payments ----

# payment I: what one asks for. Two of three need an exchange.
payment() {
    local currencies=(EUR USD GBP EUR CHF EUR) credit=(USD EUR GBP EUR EUR CHF) k=$(($1 % 6))
    printf '{\\"debitAccount\\":\\"DE%020d\\",\\"creditAccount\\":\\"GB%020d\\",\\"amount\\":\\"%d.%02d\\",' \
        "$1" "$1" $((10 + $1 * 7 % 5000)) $(($1 % 100))
    printf '\\"debitCurrency\\":\\"%s\\",\\"creditCurrency\\":\\"%s\\",\\"valueDate\\":\\"%s\\"}' \
        "${currencies[k]}" "${credit[k]}" "$tomorrow"
}

# submit_payments N CURL-OPTIONS...: one curl for all of them. A worker that was killed comes back on its port; the key
# makes it the same payment however often it is submitted. Goes on in the background.
submit_payments() {
    local n=$1 i tomorrow
    shift
    tomorrow=$(date -u -d '+1 day' +%F)
    for ((i = 1; i <= n; i++)); do
        ((i == 1)) || echo next
        printf 'url = "%s"\nheader = "Content-Type: application/json"\nheader = "Idempotency-Key: demo-%d"\n' "$api" "$i"
        printf 'data = "%s"\noutput = "/dev/null"\nwrite-out = "%%{http_code}\\n"\n' "$(payment "$i")"
        printf 'retry = 100\nretry-delay = 1\nretry-all-errors\nfail\n' # of this one: "next" begins anew
    done >"$work/payments.curl"
    curl -s "$@" -K "$work/payments.curl" >"$work/logs/submitted" 2>"$work/logs/submit.log" &
    member_pid[submitter]=$!
}

# ---- chaos ----

chaos_at=0 chaos_round=0

# chaos_tick: kills a worker with SIGKILL every two seconds or so and starts it again; the database goes away twice.
chaos_tick() {
    local names=("${!member_port[@]}") name
    ((chaos_at)) || chaos_at=$((SECONDS + 3))
    ((SECONDS >= chaos_at)) || return 0
    chaos_at=$((SECONDS + 1 + RANDOM % 3)) chaos_round=$((chaos_round + 1))
    if ((chaos_round == 4 || chaos_round == 9)); then
        view_note "the database restarts"
        deploy/local/postgres stop --dir "$work/postgres" >/dev/null 2>&1 || true
        start_database
        return
    fi
    name=${names[RANDOM % ${#names[@]}]}
    view_note "kill -9 $name"
    kill -9 "${member_pid[$name]}" 2>/dev/null || true
    wait "${member_pid[$name]}" 2>/dev/null || true
    start_member "$name" "${name%-*}-worker"
}

# play_person: somebody who decides what waits for a person. Approves nearly everything.
play_person() {
    psql -XqAt -d "$url" -f "$root/deploy/local/demo/person.sql" >/dev/null 2>&1 || true
}
