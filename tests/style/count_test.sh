#!/usr/bin/env bash
# The last line of tests/run: what passed, what failed, what was skipped. A skipped test has not
# passed.
set -euo pipefail
count=$(dirname "$0")/../support/count.awk
passed=0 failed=0

# counts EXPECTED: of a ctest log on stdin.
counts() {
    local found
    found=$(awk -f "$count")
    if [[ $found == "$1" ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: '$found' is not '$1'"
    fi
}

counts '9 passed, 0 failed' <<'LOG'
1/2 Testing: bus/a
[====] Synthesis: Tested: 8 | Passing: 8 | Failing: 0 | Crashing: 0 
Test Passed.
2/2 Testing: style/format
Test Passed.
LOG

counts '7 passed, 4 failed' <<'LOG'
1/3 Testing: bus/a
[====] Synthesis: Tested: 9 | Passing: 6 | Failing: 1 | Crashing: 2 
Test Failed.
2/3 Testing: bus/b
Test timeout computed to be: 300
3/3 Testing: cli/c
1 passed, 0 failed
Test Passed.
LOG

# Criterion tests that call test_skip, a shell test that counts its own, and a program that is skipped as a whole.
counts '10 passed, 1 failed, 6 skipped' <<'LOG'
1/4 Testing: bus/restart
SKIPPED: no server can be started here
SKIPPED: no server can be started here
[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0 
Test Passed.
2/4 Testing: fleet/cuts
SKIPPED: lost answers to claims: no breaker
3 passed, 1 failed, 1 skipped
Test Failed.
3/4 Testing: fleet/failover
SKIPPED: no server of the test's own
4 passed, 0 failed, 2 skipped
Test Passed.
4/4 Testing: deploy/image_long
SKIPPED: only root can build containers
Test Passed.
LOG

echo "$passed passed, $failed failed"
((failed == 0))
