#!/usr/bin/env bash
# What release 0.1.0 was to reach: runs the benchmarks that have the figures, one after the other, and puts each beside
# what it must be and what it aims at. JSON on stdout, progress and a table on stderr. Started by tests/bench/run goals.
#
# usage: tests/bench/goals.sh [--quick] [--against DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/local/common.sh
. deploy/local/common.sh
quick=() against=()
while (($#)); do
    case $1 in
    --quick) quick=(--quick) ;;
    --against) against=(--against "${2:?--against needs the folder of another checkout}") && shift ;;
    *) die 2 "unknown argument '$1'" "See tests/bench/run --help." ;;
    esac
    shift
done
scratch=$PWD/build/bench-goals
rm -rf "$scratch" && mkdir -p "$scratch"

# figures NAME COMMAND...: what it prints becomes the member NAME of what goals.jq reads.
figures() {
    local name=$1
    shift
    say "goals: $name" >&2
    "$@" >"$scratch/figures" 2> >(tee -a "$scratch/log" >&2) ||
        die 1 "measuring '$name' has failed" "Its output is in $scratch/log."
    jq -c --arg name "$name" '{($name): .}' "$scratch/figures" >>"$scratch/all"
}

figures send build/release/tests/bench/bench-bus send
((${#quick[@]})) || figures history build/release/tests/bench/bench-bus history
figures latency build/release/tests/bench/bench-process latency "${quick[@]}"
figures peers tests/bench/peers.sh "${quick[@]}"
((${#against[@]} == 0)) || figures fleet tests/bench/fleet.sh "${quick[@]}" "${against[@]}"

jq -s -f tests/bench/goals.jq "$scratch/all" >"$scratch/goals.json"
printf '%-64s %8s %6s %6s  %s\n' figure is must aim met >&2
jq -r 'to_entries[] | [.key, .value.value, .value.must, .value.aim, .value.met] | @tsv' "$scratch/goals.json" |
    while IFS=$'\t' read -r name is must aim met; do
        printf '%-64s %8s %6s %6s  %s\n' "$name" "$is" "$must" "$aim" "$met" >&2
    done
cat "$scratch/goals.json"
