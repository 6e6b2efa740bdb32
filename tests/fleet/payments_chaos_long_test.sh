#!/usr/bin/env bash
# The same as payments_chaos_test.sh with 2,000 payments. SIM.10
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/payments.sh
. "$(dirname "$0")/payments.sh"
# shellcheck source=tests/fleet/payments_chaos.sh
. "$(dirname "$0")/payments_chaos.sh"

test_two_thousand_payments_with_chaos_and_killed_workers() { pay_with_chaos 2000; }

run_tests "$@"
