#!/usr/bin/env bash
# Fuzzes with one harness: what is in its corpus first, then COMMANDBUS_FUZZ_SECONDS [5] of looking for more.
#
# usage: tests/fuzz/fuzz.sh PROGRAM NAME
#
# Inputs that reach something new are kept in build/fuzz/found/NAME, for the next time; one that breaks something
# in build/fuzz/broken/NAME.
set -euo pipefail
program=$1 name=$2
corpus=$COMMANDBUS_SOURCE_DIR/tests/fuzz/corpus/$name dictionary=$COMMANDBUS_SOURCE_DIR/tests/fuzz/$name.dict
found=$COMMANDBUS_BUILD_DIR/found/$name broken=$COMMANDBUS_BUILD_DIR/broken/$name
log=$COMMANDBUS_BUILD_DIR/tests/fuzz/$name.log
mkdir -p "$found" "$broken"

options=(-timeout=60 -max_len=4096 -print_final_stats=1 "-artifact_prefix=$broken/")
[[ ! -e $dictionary ]] || options+=("-dict=$dictionary")
[[ -z ${COMMANDBUS_TEST_SEED:-} ]] || options+=("-seed=$COMMANDBUS_TEST_SEED")

# Every input of the corpus and found before: libFuzzer would leave out those that reach nothing new.
shopt -s nullglob
inputs=("$corpus"/* "$found"/*)
if ! "$program" -timeout=60 "${inputs[@]}" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "the input is the last one in $log that says Running"
    exit 1
fi
echo "${#inputs[@]} inputs"
if ! "$program" "${options[@]}" -max_total_time="${COMMANDBUS_FUZZ_SECONDS:-5}" "$found" "$corpus" >"$log" 2>&1; then
    grep -aE 'broken:|ERROR:|runtime error:|SUMMARY:|^ +#[0-9]+ ' "$log" | grep -av 'fuzzer::' | head -n 30 || true
    grep -a 'Test unit written to' "$log" || tail -n 5 "$log"
    exit 1
fi
grep -aE '(INITED|DONE) |exec_per_sec' "$log"
