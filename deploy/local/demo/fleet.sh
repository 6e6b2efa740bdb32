# shellcheck shell=bash disable=SC2154,SC2034 # root, bin, work, chaos, url are the demo's
# The processes of the demo: simulator, six workers, whoever submits payments and, with --chaos, whoever kills.
# Sourced by deploy/demo.

declare -A member_pid=() member_port=()

# begin NAME LOG COMMAND...: in the background; its process id is kept, also in a file for a demo after this one. In a session of its
# own: a Ctrl-C is for the demo, which ends the others, and a terminal that is closed is nothing to those that were kept.
begin() {
    local name=$1 log=$2
    shift 2
    setsid "$@" >>"$work/logs/$log" 2>&1 8>&- &
    member_pid[$name]=$!
    echo $! >>"$work/pids"
}

# refuse_leftovers: what a demo before has left running, by --keep or because it was killed with -9.
refuse_leftovers() {
    local pid pids=()
    for pid in $(cat "$work/pids" 2>/dev/null); do
        if [[ $(readlink "/proc/$pid/exe") == "$bin"/* ]]; then pids+=("$pid"); fi
    done
    if ((${#pids[@]})) || deploy/local/postgres status --dir "$work/postgres" >/dev/null 2>&1; then
        die 1 "a demo was kept running, or was killed" "End it: ${pids[*]:+kill ${pids[*]}; }deploy/local/postgres destroy --dir $work/postgres"
    fi
}

# check_members: all of them are to be there until the end.
check_members() {
    local name
    for name in "${!member_pid[@]}"; do
        [[ $name == submitter ]] || kill -0 "${member_pid[$name]}" 2>/dev/null ||
            die 1 "$name has ended: $(tail -n 1 "$work/logs/$name.log")" "Its log is $work/logs/$name.log."
    done
}

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

# start_simulator: under a login of its own, which may confirm payments and do nothing else to them.
start_simulator() {
    local options=(--seed "${SEED:-1}") password
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    psql -Xq -d "$url" -v login=simulator -v password="$password" -f "$root/handlers/simulator/login.sql" >/dev/null
    [[ $chaos == no ]] || options+=(--chaos)
    simulator_port=$(free_port)
    begin simulator simulator.log env "COMMANDBUS_DATABASE_URL=postgresql://simulator:$password@${url#*@}" \
        "$bin/commandbus-simulator" --port "$simulator_port" "${options[@]}"
    wait_for "the simulator" 10 curl -sf "http://127.0.0.1:$simulator_port/stats"
}

# behave WHAT JSON: how an API of the simulator behaves from now on.
behave() {
    curl -sf -X PUT "http://127.0.0.1:$simulator_port/behaviour/$1" -d "$2" >/dev/null ||
        die 1 "the simulator does not take $2 for $1" "Its log is $work/logs/simulator.log."
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
    begin "$name" "$name.log" env "COMMANDBUS_PROFILE=$profile" "COMMANDBUS_CONFIG_DIR=$root/config" "$bin/commandbus-worker" \
        --set "worker.name=$name" --set "http.port=${member_port[$name]}" --set log.level=warn \
        --set features.http-api=true "${settings[@]}"
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

# stop_members: who has not ended after some seconds is not waited for; the database goes with them.
stop_members() {
    local pids=("${member_pid[@]}") until=$((SECONDS + 6))
    member_pid=()
    ((${#pids[@]})) || return 0
    kill "${pids[@]}" 2>/dev/null || true
    while kill -0 "${pids[@]}" 2>/dev/null && ((SECONDS < until)); do sleep 0.1; done
    kill -9 "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
}

# ---- payments ----

# submit_payments N CURL-OPTIONS...: in the background, to the payments-workers in turn.
submit_payments() {
    local n=$1 i urls=()
    shift
    for i in 1 2 3; do urls+=("http://127.0.0.1:${member_port[payments-$i]}/api/payments"); done
    write_payments "$n" "${urls[@]}" >"$work/payments.curl"
    : >"$work/logs/submitted"
    begin submitter submitted curl -sS --stderr "$work/logs/submit.log" "$@" -K "$work/payments.curl"
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
