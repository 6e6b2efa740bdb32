#!/usr/bin/env bash
# What a payment costs on the demo's fleet: six workers, the simulator without any latency, all on this machine. JSON on
# stdout, progress on stderr. Started by tests/bench/run fleet, on a server of its own.
#
# usage: tests/bench/fleet.sh [--quick] [--against DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD against='' payments=2000 rounds=3
while (($#)); do
    case $1 in
    --quick) payments=200 rounds=1 ;;
    --against) against=${2:?--against needs the folder of another checkout} && shift ;;
    *) echo "fleet.sh: unknown argument '$1': see tests/bench/run --help" >&2 && exit 2 ;;
    esac
    shift
done
# shellcheck source=deploy/local/common.sh
. deploy/local/common.sh
if [[ -n $against ]]; then
    against=$(cd "$against" && pwd) || die 2 "there is no folder '$against'"
    [[ -x $against/build/release/bin/commandbus-worker ]] ||
        die 2 "$against is not built" "Build it there: cmake --preset release && cmake --build --preset release"
fi
server_url=$COMMANDBUS_TEST_URL
scratch=$here/build/bench-fleet
rm -rf "$scratch" && mkdir -p "$scratch"

ask() { PGOPTIONS='-c client_min_messages=warning' psql -XqAt -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }
url=$server_url

# The server's processes are the postmaster, which sums up those that have ended, and its children.
read_postmaster() {
    # shellcheck disable=SC2016 # $f is PostgreSQL's
    postmaster=$(ask 'SELECT split_part(pg_read_file($f$postmaster.pid$f$), chr(10), 1)')
    [[ $(cat "/proc/$postmaster/comm" 2>/dev/null) == postgres ]] ||
        die 1 "the server does not run on this machine: its processor time cannot be read"
}

# ticks WHICH PID...: processor time of these processes in clock ticks; WHICH says of themselves (own) or with the
# children that they have waited for (all).
ticks() {
    local which=$1 pid stat fields sum=0
    shift
    for pid; do
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue # a backend that has just ended
        read -ra fields <<<"${stat##*) }"                    # from the third field on: the second may have blanks
        sum=$((sum + fields[11] + fields[12]))
        if [[ $which == all ]]; then sum=$((sum + fields[13] + fields[14])); fi
    done
    echo "$sum"
}

server_ticks() {
    local children
    mapfile -t children < <(pgrep -P "$postmaster")
    echo $(($(ticks all "$postmaster") + $(ticks own "${children[@]}")))
}

worker_ticks() {
    local name pids=()
    for name in "${!member_pid[@]}"; do
        [[ $name == simulator ]] || pids+=("${member_pid[$name]}")
    done
    ticks own "${pids[@]}"
}

# calls: statements that clients have sent to this database; where they cannot be counted, calls of functions.
choose_calls() {
    if [[ $(ask 'SHOW shared_preload_libraries') == *pg_stat_statements* ]]; then
        calls_name='statements'
        calls_sql='SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
                   WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())'
        ask 'CREATE EXTENSION IF NOT EXISTS pg_stat_statements'
    else
        calls_name='calls of functions'
        calls_sql='SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions'
        ask "DO \$\$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_functions = ''all''', current_database()); END \$\$"
    fi
}

# counters: server, workers, simulator (ticks), calls, commits, WAL (bytes).
counters() {
    echo "$(server_ticks) $(worker_ticks) $(ticks own "${member_pid[simulator]}")" \
        "$(ask "$calls_sql") $(ask "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")" \
        "$(ask "SELECT pg_current_wal_lsn() - '0/0'")"
}

write_batch() {
    local i tomorrow
    tomorrow=$(date -u -d '+1 day' +%F)
    for ((i = 1; i <= payments; i++)); do
        printf '{"debitAccount":"DE%d","creditAccount":"GB%d","debitAmount":"%d.00","debitCurrency":"EUR","creditCurrency":"%s","valueDate":"%s"}\n' \
            "$i" "$i" $((10 + i % 500)) "$([[ $((i % 3)) == 0 ]] && echo EUR || echo USD)" "$tomorrow"
    done
}

# Started as a batch: what is measured is the fleet and not how fast somebody submits.
run_batch() { # FILE
    "$bin/commandbus" process start PaymentStep --file "$1" --wait >/dev/null 2>&1 ||
        die 1 "the payments could not be started or did not end" "Logs are in $work/logs."
}

# slice: the fleet of $root is started, warmed up and measured over one batch. One line of JSON.
slice() {
    local hertz from before after took name
    local -a b a
    export COMMANDBUS_DATABASE_URL=$url
    choose_calls
    start_simulator
    start_members
    for name in fx risk gateway network; do behave "$name" '{"minMs": 0, "maxMs": 0}'; done
    head -n $((payments / 4)) "$scratch/payments.jsonl" >"$work/warm-up.jsonl"
    run_batch "$work/warm-up.jsonl"

    before=$(counters)
    from=${EPOCHREALTIME/[.,]/}
    run_batch "$scratch/payments.jsonl"
    took=$((${EPOCHREALTIME/[.,]/} - from))
    after=$(counters)
    check_members
    figures || die 1 "there are no figures of the fleet"
    [[ $(ask "SELECT count(*) FROM commandbus.process WHERE status <> 'COMPLETED'") == 0 ]] ||
        die 1 "not all payments are complete"

    hertz=$(getconf CLK_TCK)
    read -ra b <<<"$before" && read -ra a <<<"$after"
    jq -nc --arg tree "$tree" --arg calls "$calls_name" --argjson n "$payments" --argjson us "$took" \
        --argjson hertz "$hertz" --argjson most "{\"fx\": $f_most_fx, \"risk\": $f_most_risk, \"limit\": $limit}" \
        --argjson server $((a[0] - b[0])) --argjson workers $((a[1] - b[1])) --argjson simulator $((a[2] - b[2])) \
        --argjson calls_n $((a[3] - b[3])) --argjson commits $((a[4] - b[4])) --argjson wal $((a[5] - b[5])) \
        '{tree: $tree, most: $most, rate: ($n * 1e6 / $us), server: ($server * 1000 / $hertz / $n),
          workers: ($workers * 1000 / $hertz / $n), simulator: ($simulator * 1000 / $hertz / $n),
          calls_name: $calls, calls: ($calls_n / $n), commits: ($commits / $n), wal: ($wal / $n)}'
}

# prepare TREE NAME: a database of its own, as that tree makes it.
prepare() {
    local bin=$1/build/release/bin
    ask "DROP DATABASE IF EXISTS bench_$2"
    ask "CREATE DATABASE bench_$2"
    COMMANDBUS_DATABASE_URL=${server_url%/*}/bench_$2 "$bin/commandbus" migrate >/dev/null
    COMMANDBUS_DATABASE_URL=${server_url%/*}/bench_$2 "$bin/commandbus" migrate --set payments >/dev/null
}

read_postmaster
write_batch >"$scratch/payments.jsonl"
prepare "$here" ours
[[ -z $against ]] || prepare "$against" against
# The first round warms up the database and is not counted.
for ((round = 0; round <= rounds; round++)); do
    for tree in ours ${against:+against}; do
        # A subshell: the scripts of the other tree have the same names. They are not sourced in a function, which
        # would keep their variables, and with them the processes to be ended, to itself.
        # shellcheck disable=SC2030,SC2034 # what the demo's scripts expect
        (
            root=$here work=$scratch/$tree url=${server_url%/*}/bench_$tree chaos=no limit=6
            [[ $tree == ours ]] || root=$against
            bin=$root/build/release/bin
            cd "$root"
            # shellcheck source=deploy/local/demo/fleet.sh
            . deploy/local/demo/fleet.sh
            # shellcheck source=deploy/local/demo/view.sh
            . deploy/local/demo/view.sh
            mkdir -p "$work/logs"
            trap 'stop_members' EXIT
            slice
        ) >"$scratch/slice.json"
        jq -r '"  \(.tree): \(.rate | round) payments/s, \(.server * 100 | round / 100) + \(.workers * 100 | round / 100) ms"' \
            "$scratch/slice.json" >&2
        ((round == 0)) || cat "$scratch/slice.json" >>"$scratch/slices.jsonl"
    done
done
jq -s -f "$here/tests/bench/fleet.jq" "$scratch/slices.jsonl"
