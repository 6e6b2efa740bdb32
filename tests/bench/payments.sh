#!/usr/bin/env bash
# Payments end to end on the demo's fleet: six workers, the simulator without any latency, all on this machine. JSON on
# stdout, progress on stderr. Started by tests/bench/run payments.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD bin=$PWD/build/release/bin work=$PWD/build/bench-payments
chaos=no limit=6 payments=2000 rounds=3
if [[ ${1:-} == --quick ]]; then payments=200 rounds=1; fi
# shellcheck source=deploy/local/common.sh
. deploy/local/common.sh
# shellcheck source=deploy/local/demo/fleet.sh
. deploy/local/demo/fleet.sh
# shellcheck source=deploy/local/demo/view.sh
. deploy/local/demo/view.sh
rm -rf "$work" && mkdir -p "$work/logs"
trap 'stop_members' EXIT

url=$COMMANDBUS_TEST_URL
export COMMANDBUS_DATABASE_URL=$url
"$bin/commandbus" migrate >/dev/null
"$bin/commandbus" migrate --set payments >/dev/null
start_simulator
start_members
for api_name in fx risk gateway network; do behave "$api_name" '{"minMs": 0, "maxMs": 0}'; done

# Started as a batch: what is measured is the fleet and not how fast somebody submits.
tomorrow=$(date -u -d '+1 day' +%F)
for ((i = 1; i <= payments; i++)); do
    printf '{"debitAccount":"DE%d","creditAccount":"GB%d","debitAmount":"%d.00","debitCurrency":"EUR","creditCurrency":"%s","valueDate":"%s"}\n' \
        "$i" "$i" $((10 + i % 500)) "$([[ $((i % 3)) == 0 ]] && echo EUR || echo USD)" "$tomorrow"
done >"$work/payments.jsonl"

total=0 rates=()
for ((round = 0; round <= rounds; round++)); do
    from=${EPOCHREALTIME/[.,]/}
    "$bin/commandbus" process start PaymentStep --file "$work/payments.jsonl" --wait >/dev/null 2>&1
    took=$((${EPOCHREALTIME/[.,]/} - from))
    echo "  $payments payments in $((took / 1000)) ms" >&2
    ((round == 0)) || { total=$((total + took)) && rates+=($((payments * 1000000 / took))); } # the first warms up
done
figures
completed=$(psql -XqAt -d "$url" -c "SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED'")
((completed == payments * (rounds + 1))) || die 1 "$completed of $((payments * (rounds + 1))) payments are complete"
printf '{\n  "payments, end to end": %d,\n  "each round": [%s],\n  "most in flight": {"fx": %d, "risk": %d, "limit": %d}\n}\n' \
    $((payments * rounds * 1000000 / total)) "$(IFS=,; echo "${rates[*]}")" "$f_most_fx" "$f_most_risk" "$limit"
