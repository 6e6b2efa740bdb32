#!/usr/bin/env bash
# worker/README.md tells all: every metric and event is in it, and its example compiles.
set -uo pipefail

source_dir=${COMMANDBUS_SOURCE_DIR:?}
readme=$source_dir/worker/README.md
passed=0 failed=0

check() # sentence command…
{
    local sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n' "$sentence"
    fi
}

each_is_named() # names on stdin; at least $1 of them
{
    local name n=0 missing=0
    while read -r name; do
        n=$((n + 1))
        grep -qF "\`$name\`" "$readme" || { printf 'not in README: %s\n' "$name"; missing=1; }
    done
    [ "$n" -ge "$1" ] && [ "$missing" = 0 ]
}

metrics()
{
    sed -n 's/^    { "\([a-z_]*\)", "\(counter\|gauge\|histogram\)".*/\1/p' "$source_dir"/worker/src/metrics*_render.c
}

# A noun and a verb in quotes; the rest of what looks like that are files and settings.
events()
{
    grep -rhoE '"[a-z]+\.[a-z_]+"' "$source_dir"/worker/src "$source_dir"/worker/app --include=*.c --exclude='keys*.c' |
        tr -d '"' | grep -vE '\.(h|c|cfg)$|^http\.|^database\.url$|^worker\.name$' | sort -u
}

example_compiles()
{
    sed -n '/^```c$/,/^```$/p' "$readme" | grep -v '^```' |
        ${CC:-cc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c - \
            -I"$source_dir/bus/include" -I"$source_dir/process/include" -I"$source_dir/worker/include" $(pkg-config --cflags json-c libpq)
}

check "every metric is in the list" each_is_named 20 < <(metrics)
check "every event is in the list" each_is_named 25 < <(events)
check "the example compiles" example_compiles

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
