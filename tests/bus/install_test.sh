#!/usr/bin/env bash
# A program outside this tree builds against the installed library, by CMake and by pkg-config, with the front doors
# alone; what only our own worker needs is not installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
read -ra instrument <<<"$COMMANDBUS_INSTRUMENT"
export LD_LIBRARY_PATH=

cmake --install "$COMMANDBUS_BUILD_DIR" --prefix "$prefix" >/dev/null
cp -R "$here/install" "$work/program"
library=$(find "$prefix" -name libcommandbus.so)
libdir=$(dirname "$library")
doors=(client handler host process worker test commandbus)
passed=0 failed=0 skipped=

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

by_cmake() {
    cmake -G Ninja -S "$work/program" -B "$work/by-cmake" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_FLAGS="$COMMANDBUS_INSTRUMENT" && cmake --build "$work/by-cmake" &&
        "$work/by-cmake/program" && "$work/by-cmake/process" && "$work/by-cmake/embedding" &&
        "$work/by-cmake/process_test"
}
# by_pkg_config PACKAGE SOURCE...
by_pkg_config() {
    local package=$1 flags
    shift
    flags=$(flags_of "$package") || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -o "$work/by-$package" "$@" $flags "-Wl,-rpath,$libdir" &&
        "$work/by-$package"
}
# only_cb_symbols_are_exported LIBRARY ONE_OF_THEM
only_cb_symbols_are_exported() {
    # Without their versions, which are symbols of type A.
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $NF); print $NF }' >"$work/symbols" &&
        grep -qx "$2" "$work/symbols" &&
        ! grep -Ev '^(cb_|_*(odr_)?asan|_*gcov|mangle_path$)' "$work/symbols"
}

# flags_of PACKAGE: what a compiler needs to find its headers and libraries.
flags_of() { PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs "$1"; }

# compiles LANGUAGE STANDARD HEADER: alone, and without a warning.
compiles() {
    local flags
    flags=$(flags_of commandbus-worker) || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" -x "$1" -std="$2" -Wall -Wextra -Werror -fsyntax-only -c $flags - <<<"#include <commandbus/$3.h>"
}
in_cxx() {
    local flags
    flags=$(flags_of commandbus-worker) || return
    # shellcheck disable=SC2086 # flags are words
    "$CC" "${instrument[@]}" -x c++ -std=c++20 -Wall -Werror -o "$work/plus" "$work/program/plus.cc" \
        -x none $flags -lstdc++ "-Wl,-rpath,$libdir" && "$work/plus"
}
# programs_use_front_doors: and nothing else of ours, or they would prove nothing.
programs_use_front_doors() {
    local found
    found=$(grep -rhoE '<commandbus/[^>]+>' "$work/program" | sort -u)
    [[ -n $found ]] && ! grep -vxFf <(printf '<commandbus/%s.h>\n' "${doors[@]}") <<<"$found"
}
# What only our own worker, process runtime and tests use.
private_headers_stay_at_home() {
    local header
    (cd "$COMMANDBUS_SOURCE_DIR" && find bus/internal process/internal -name '*.h' -printf '%f\n') >"$work/private"
    for header in receive settle lease listen process_row run; do
        grep -qx "$header.h" "$work/private" || { echo "$header.h is not private" && return 1; }
    done
    ! find "$prefix" -name '*.h' -printf '%f\n' | grep -xFf "$work/private"
}
# no_header_has_private_symbols: what is exported for our own libraries is declared by no installed header.
no_header_has_private_symbols() {
    cat "$here"/symbols/*.txt | sed -n 's/@@COMMANDBUS_PRIVATE$//p' >"$work/private"
    [[ -s $work/private ]] && ! grep -rnwFf "$work/private" "$prefix/include"
}

the_manual_is_installed() {
    local program
    for program in commandbus commandbus-worker; do
        grep -q "^\.TH .*commandbus [0-9.]*" "$prefix/share/man/man1/$program.1" || return
    done
}

no_product_has_the_kit() {
    ! grep -rlF cb_test_open "$prefix/bin" "$libdir"/*.so "$libdir/commandbus"
}

check "the installed CLI finds its library" "$prefix/bin/commandbus" --version
check "the manual pages are where man looks" the_manual_is_installed
check "a CMake project finds the package" by_cmake
check "cc with pkg-config finds the library" by_pkg_config commandbus "$work/program"/*.c
check "cc with pkg-config finds the worker's engine" \
    by_pkg_config commandbus-worker "$work/program/worker"/*.c
check "cc with pkg-config finds the process runtime" \
    by_pkg_config commandbus-process "$work/program/process"/*.c
check "cc with pkg-config finds the kit for tests of processes, and it runs one" \
    by_pkg_config commandbus-test "$work/program/test"/*.c
check "no product is linked with the kit" no_product_has_the_kit
check "the programs include front doors only" programs_use_front_doors
for door in "${doors[@]}"; do check "$door.h compiles alone as C" compiles c c11 "$door"; done
if echo 'int main() {}' | "$CC" -x c++ -o "$work/cxx" - -lstdc++ 2>/dev/null; then
    for door in "${doors[@]}"; do check "$door.h compiles alone as C++" compiles c++ c++17 "$door"; done
    check "a C++ program links and runs" in_cxx
else
    echo 'SKIPPED: the front doors in C++: no C++ compiler'
    skipped=1
fi
check "private headers are not installed" private_headers_stay_at_home
check "installed headers declare nothing private" no_header_has_private_symbols
check "the library exports cb_ symbols only" \
    only_cb_symbols_are_exported "$library" cb_version_string
check "the worker's engine exports cb_ symbols only" \
    only_cb_symbols_are_exported "$libdir/libcommandbus-worker.so" cb_level_name
check "the process runtime exports cb_ symbols only" \
    only_cb_symbols_are_exported "$libdir/libcommandbus-process.so" cb_fields_new

echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
((failed == 0))
