#!/usr/bin/env bash
# A handler set outside this tree builds against the installed package, by CMake and by pkg-config, and
# is loaded by the installed library. WRK.23
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
read -ra instrument <<<"$COMMANDBUS_INSTRUMENT"
export LD_LIBRARY_PATH=

cmake --install "$COMMANDBUS_BUILD_DIR" --prefix "$prefix" >/dev/null
cp -R "$here/outside" "$work/source"
libdir=$(dirname "$(find "$prefix" -name libcommandbus.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
passed=0 failed=0

# check WHAT COMMAND...: one counted test.
check() {
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what" && cat "$work/log"
    fi
}

# greets LOADER FOLDER: the set in FOLDER does its work.
greets() {
    "$1" "$2" greetings Hello '{"name": "Ada"}' | tee "$work/answer" &&
        grep -qxF 'SUCCESS {"greeting":"Hello, Ada"}' "$work/answer" &&
        "$1" "$2" greetings Hello '{}' | grep -qxF 'PERMANENT "name" must be a text'
}
by_cmake() {
    cmake -G Ninja -S "$work/source" -B "$work/by-cmake" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$COMMANDBUS_INSTRUMENT" &&
        cmake --build "$work/by-cmake" && greets "$work/by-cmake/loader" "$work/by-cmake"
}
set_by_pkg_config() {
    local flags
    mkdir "$work/by-pc"
    flags=$(pkg-config --cflags --libs commandbus) || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -shared -fPIC -fvisibility=hidden -o "$work/by-pc/greetings.so" \
        "$work/source/greetings.c" "$work/source/hello.c" $flags
}
loader_by_pkg_config() {
    local flags
    flags=$(pkg-config --cflags --libs commandbus-worker) || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -o "$work/by-pc/loader" "$work/source/loader.c" $flags \
        "-Wl,-rpath,$libdir" && greets "$work/by-pc/loader" "$work/by-pc"
}
# What a newcomer would type from handlers/README.md.
set_of_the_tutorial() {
    local flags
    mkdir "$work/tutorial"
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$here/../../handlers/README.md" \
        >"$work/tutorial/rates.c"
    flags=$(pkg-config --cflags --libs commandbus) || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden \
        -o "$work/tutorial/rates.so" "$work/tutorial/rates.c" $flags || return
    quotes '{"pair": "EURUSD"}' 'SUCCESS {"rate":"1.0842"}' &&
        quotes '{"pair": "EURXXX"}' 'BUSINESS_RULE nobody trades EURXXX' &&
        quotes '{"pair": 7}' 'PERMANENT "pair" must be a text'
}
# quotes DATA ANSWER
quotes() {
    [[ $("$work/by-cmake/loader" "$work/tutorial" rates Quote "$1") == "$2" ]]
}
ours_is_installed() {
    "$work/by-cmake/loader" "$libdir/commandbus/handlers" sample Echo '{"a":1}' |
        grep -qxF 'SUCCESS {"a":1}'
}
its_sql_is_installed() {
    diff -r "$prefix/share/commandbus/sets/sample/sql" "$here/../../handlers/sample/sql"
}
it_exports_its_manifest_only() {
    nm -D --defined-only "$libdir/commandbus/handlers/sample.so" | awk '{ print $NF }' |
        grep -Ev '^(_*(odr_)?asan|_*gcov|mangle_path$)' >"$work/symbols"
    [[ $(<"$work/symbols") == cb_module_manifest ]]
}
none_of_the_tests_is_installed() {
    [[ -z $(find "$prefix" -name 'trial*' -o -name 'tally*' -o -name 'wrong_abi*') ]]
}

check "a set built by CMake against the package is loaded and runs" by_cmake
check "cc with pkg-config builds the same set" set_by_pkg_config
check "a loader built by pkg-config loads it and it runs" loader_by_pkg_config
check "the set of the tutorial builds and does what it says" set_of_the_tutorial
check "the sample set is installed and loads" ours_is_installed
check "its SQL lies where migrate --set looks" its_sql_is_installed
check "a set exports nothing but its manifest" it_exports_its_manifest_only
check "what is only for tests is not installed" none_of_the_tests_is_installed

echo "$passed passed, $failed failed"
((failed == 0))
