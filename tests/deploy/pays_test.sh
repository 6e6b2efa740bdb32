#!/usr/bin/env bash
# Pods of the manifests without Kubernetes: the programs of their containers with exactly their environment and their files, on a
# database whose logins are those of deploy/README.md.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/../fleet/lib.sh"
# shellcheck source=tests/fleet/simulator.sh
. "$(dirname "$0")/../fleet/simulator.sh"
# shellcheck source=tests/deploy/render.sh
. "$(dirname "$0")/render.sh"

drop_logins() {
    local name
    for name in "$login" "$login"_network; do
        sql "DROP OWNED BY $name" 2>/dev/null || true
        sql "DROP ROLE IF EXISTS $name"
    done
}
# make_logins: $worker_login and $simulator_login are the database as these users.
make_logins() {
    [[ $url =~ ^postgres(ql)?://[^@/]*@(.*)$ ]] || fail "this test needs COMMANDBUS_TEST_URL as a URL with a user"
    login=${database}_login
    sql "CREATE ROLE $login LOGIN PASSWORD 'of-the-test' IN ROLE commandbus_worker"
    trap 'code=$?; set +e; drop_logins; (exit "$code"); end_test' EXIT
    worker_login="postgresql://$login:of-the-test@${BASH_REMATCH[2]}"
    simulator_login="postgresql://${login}_network:of-the-test@${BASH_REMATCH[2]}"
    psql -Xq -d "$url" -v login="$login"_network -v password=of-the-test -f "$COMMANDBUS_SOURCE_DIR/handlers/simulator/login.sql" >/dev/null
}

# The schema, the simulator, a login for workers, and a token: what the Secrets hold.
# shellcheck disable=SC2086,SC2119 # kustomize is two words; the simulator has its defaults
prepare() {
    (cd "$COMMANDBUS_SOURCE_DIR" && "$COMMANDBUS_BIN" migrate --set payments >/dev/null)
    make_logins
    COMMANDBUS_DATABASE_URL=$simulator_login simulator_start
    behave network '{"minMs": 0, "maxMs": 10}'
    echo a-token >"$work/token"
    $kustomize "$COMMANDBUS_SOURCE_DIR/deploy/k8s/overlays/$1" | yaml_to_json | jq -s . >"$work/manifests"
}

# pod NAME: its variables in $environment, its configuration in $work/config; addresses are those of this machine.
pod() {
    jq -L "$COMMANDBUS_SOURCE_DIR/deploy/local" --arg name "$1" 'include "workloads"; [workloads | select(.name == $name)] | first' \
        "$work/manifests" >"$work/pod"
    for file in $(jq -r '.files | keys[]' "$work/pod"); do
        jq -j --arg file "$file" '.files[$file]' "$work/pod" >"$work/config/$file"
    done
    mapfile -d '' -t environment < <(jq -j --arg simulator "http://127.0.0.1:$simulator_port" --arg token "$work/token" \
        '.environment | with_entries(if .key | test("_HANDLERS_.*_URL$") then .value = $simulator
             elif .key == "COMMANDBUS_HTTP_TOKEN_FILE" then .value = $token else . end)
         | to_entries[] | .key + "=" + .value + "\u0000"' "$work/pod")
}

start_pod() {
    pod "$1"
    worker_port[$1]=$(free_port)
    api_port[$1]=${worker_port[$1]}
    mapfile -d '' -t environment < <(for variable in "${environment[@]}"; do
        if [[ $variable == COMMANDBUS_HTTP_API_PORT=* ]]; then continue; fi
        printf '%s\0' "$variable"
    done)
    if jq -e '.environment.COMMANDBUS_HTTP_API_PORT' "$work/pod" >/dev/null; then
        api_port[$1]=$(free_port)
        environment+=("COMMANDBUS_HTTP_API_PORT=${api_port[$1]}")
    fi
    env -i "${environment[@]}" COMMANDBUS_DATABASE_URL="$worker_login" COMMANDBUS_WORKER_MODULES_DIR="$work/modules" \
        COMMANDBUS_HTTP_PORT="${worker_port[$1]}" "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" >"$work/$1.log" 2>&1 </dev/null &
    worker_pid[$1]=$!
    wait_ready "$1"
}

declare -A api_port=()
pay() { # POD
    local -A worker_port=([$1]=${api_port[$1]})
    http_ask "$1" POST /api/payments '{"debitAccount": "ACC-1", "creditAccount": "ACC-2", "amount": "100.00", "debitCurrency": "EUR",
        "creditCurrency": "USD", "valueDate": "2099-01-05"}' 'Idempotency-Key: first' "${@:2}"
}
is_paid="(SELECT status = 'COMPLETE' FROM payments.payment)"

end_pods() {
    for name in "${!worker_pid[@]}"; do stop_worker "$name"; done
    if grep -H 'config.warning' "$work"/*.log; then fail 'a pod is warned of its configuration'; fi
}

test_the_pod_of_dev_pays() {
    prepare dev
    start_pod multipurpose-worker

    http_get multipurpose-worker /api/payments/00000000-0000-0000-0000-000000000000/status
    same "$http_status" 401 'the answer without the token'
    pay multipurpose-worker 'Authorization: Bearer a-token'
    same "${http_status:0:2}" 20 "the answer ($http_body)"

    wait_until "$is_paid" 60
    end_pods
}

test_the_pods_of_production_pay_together_and_keep_their_roles() {
    prepare production
    start_pod ratelimited-worker
    start_pod payments-worker

    http_get payments-worker /api/payments/00000000-0000-0000-0000-000000000000/status
    same "$http_status" 404 'the answer where probes are'
    pay payments-worker 'Authorization: Bearer a-token'
    same "${http_status:0:2}" 20 "the answer ($http_body)"

    wait_until "$is_paid" 60
    same "$(sql "SELECT string_agg(domain || ' ' || fleet_limit, ', ' ORDER BY domain) FROM commandbus.domain WHERE domain <> 'sample'")" \
        'fx 6, payments 0, risk 6' 'the limits in the database'
    same "$("$COMMANDBUS_BIN" fleet --json | jq -r '[.instances[] | .profile + ": " + ([.domains | keys[]] | join(" "))] | sort | join(", ")')" \
        'payments-worker: payments, ratelimited-worker: fx risk' 'who serves what'
    end_pods
}

# What the Job runs, with what it has.
test_the_replay_gate_lets_this_code_through() {
    prepare production/replay-gate
    mapfile -t words < <(jq -r '.[] | select(.kind == "Job").spec.template.spec.containers[0].command[1:][]' "$work/manifests")
    jq '.[] |= if .kind == "Job" then .kind = "Deployment" else . end' "$work/manifests" >"$work/as" && mv "$work/as" "$work/manifests"
    pod commandbus-replay-gate
    sql "SELECT commandbus.register_domain('payments')" >/dev/null
    env -i "${environment[@]}" COMMANDBUS_DATABASE_URL="$worker_login" COMMANDBUS_WORKER_MODULES_DIR="$work/modules" \
        "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" "${words[@]}"
    end_pods
}

run_tests "$@"
