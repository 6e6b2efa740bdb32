#!/usr/bin/env bash
# The page for those who come from token buckets: it is found, and what it shows works.
. "$(dirname "$0")/../cli/lib.sh"
: "${COMMANDBUS_WORKER_BIN:?}" "${COMMANDBUS_SOURCE_DIR:?}"
page=$COMMANDBUS_SOURCE_DIR/deploy/token-buckets.md

test_the_page_is_linked_and_its_links_lead_somewhere() {
    local link
    grep -q '](token-buckets.md)' "$COMMANDBUS_SOURCE_DIR/deploy/README.md" || fail "deploy/README.md does not link it"
    while read -r link; do
        [[ -e $COMMANDBUS_SOURCE_DIR/deploy/${link%%#*} ]] || fail "there is no $link"
    done < <(grep -oE '\]\([^)]+\)' "$page" | tr -d '])(')
}

test_its_profile_is_a_configuration() {
    mkdir -p "$work/config"
    sed -n '/^   features = /,/^   ```/p' "$page" | grep -v '```' >"$work/config/limited.cfg"
    COMMANDBUS_BIN=$COMMANDBUS_WORKER_BIN exits 0 --config-dir "$work/config" --profile limited --check-config
    prints '^fx: 2 calls in flight per instance × replicas; fleet-limit 6 over the fleet$'
}

test_its_plan_can_be_carried() {
    local words
    read -ra words < <(sed -n 's/^commandbus \(plan .*\)/\1/p' "$page")
    exits 0 "${words[@]}"
    prints 'recommended'
}

run_tests
