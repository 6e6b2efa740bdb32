#!/usr/bin/env bash
# What the shared libraries export is what the lists in tests/bus/symbols say: a symbol that comes or goes is seen in a
# review, and none is exported by accident. A new one is a line in its list, in the order of `LC_ALL=C sort`.
set -euo pipefail
: "${COMMANDBUS_BUILD_DIR:?start the tests with tests/run}" "${COMMANDBUS_SOURCE_DIR:?}"
lists=$COMMANDBUS_SOURCE_DIR/tests/bus/symbols

# exported LIBRARY: its symbols with their version.
exported() {
    # Versions are symbols of type A; sanitizers may add some of their own.
    nm -D --defined-only "$COMMANDBUS_BUILD_DIR/lib/$1.so" |
        awk '$2 != "A" && $3 !~ /^(_*(odr_)?asan|_*gcov|mangle_path)/ { print $3 }' | LC_ALL=C sort
}

passed=0 failed=0
for library in libcommandbus libcommandbus-process libcommandbus-worker; do
    if diff "$lists/$library.txt" <(exported "$library"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $library exports something else than tests/bus/symbols/$library.txt says"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
