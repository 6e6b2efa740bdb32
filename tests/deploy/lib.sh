# Sourced by the tests of deploy/k8s: rendered manifests, copies of them to spoil, and what a test says.
#
# A test is a function test_<sentence>; run_tests runs each in a subshell, with a folder $work of its own.
#
#   rendered OVERLAY                   an array of its manifests; OVERLAY is a folder below deploy/k8s/overlays
#   rendered_with COMPONENT OVERLAY    the same with a component added
#   in_copy                            from now on in a copy of config/ and deploy/, to be changed
#   valid FILE                         manifests that Kubernetes and the operators know, field by field

# shellcheck shell=bash disable=SC2034 # what is set here is used by the tests
set -euo pipefail
: "${COMMANDBUS_WORKER_BIN:?start the tests with tests/run}" "${COMMANDBUS_SOURCE_DIR:?}"
deploy_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$COMMANDBUS_SOURCE_DIR
# shellcheck source=tests/deploy/render.sh
. "$deploy_tests/render.sh"
unset "${!COMMANDBUS_DOMAINS_@}" "${!COMMANDBUS_FEATURES_@}" COMMANDBUS_PROFILE
export -n COMMANDBUS_MODULES_DIR

fail() {
    echo "$*" >&2
    exit 1
}
same() { [[ $1 == "$2" ]] || fail "${3:-it} is '$1', not '$2'"; }
# none WHAT TEXT: nothing is wrong with it.
none() { [[ -z $2 ]] || fail "$1:"$'\n'"$2"; }

overlays=(dev production production/migrate production/replay-gate)
components=(alerts dashboard keda podmonitor)

# Once for each tree and overlay: a copy is changed before it is rendered.
# shellcheck disable=SC2086 # kustomize is two words
rendered() {
    local kept
    kept=$work/rendered-$(tr / - <<<"$1")
    [[ $tree == "$work/tree" ]] || kept=$all_work/rendered-$(tr / - <<<"$1")
    [[ -e $kept ]] || $kustomize "$tree/deploy/k8s/overlays/$1" | yaml_to_json | jq -s . >"$kept.new"
    [[ -e $kept ]] || mv "$kept.new" "$kept"
    cat "$kept"
}

rendered_with() {
    local folder=$tree/deploy/k8s/overlays/with-$1
    mkdir "$folder"
    printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' "resources: [../$2]" \
        "namespace: commandbus" "components: [../../components/$1]" >"$folder/kustomization.yaml"
    rendered "with-$1"
}

in_copy() {
    mkdir -p "$work/tree/deploy"
    cp -R "$COMMANDBUS_SOURCE_DIR/config" "$work/tree/"
    mkdir "$work/tree/build" && ln -s "$tools" "$work/tree/build/tools"
    cp -R "$COMMANDBUS_SOURCE_DIR/deploy/"{k8s,local,check-limits} "$work/tree/deploy/"
    tree=$work/tree
}
# replace FILE SED: in the copy; it must change something.
replace() {
    local file=$tree/$1
    [[ $tree == "$work/tree" ]] || fail "this would change the sources"
    cp "$file" "$work/before"
    sed -i -E "$2" "$file"
    if cmp -s "$work/before" "$file"; then fail "$1 has nothing that $2 replaces"; fi
    rm -f "$work"/rendered-*
}

# The types of each kind, of which the compiler rejects fields that they do not have and values of another type. A kind that
# nobody has types for is an error as well.
valid() {
    local folder code=0
    folder=$(mktemp -d "$tools/schemas/check.XXXXXX")
    jq -r 'to_entries[] | .key as $n | .value
        | (if .apiVersion | startswith("keda.sh/") then "@kubernetes-models/keda/"
           elif .apiVersion | startswith("monitoring.coreos.com/") then "@kubernetes-models/prometheus-operator/"
           else "kubernetes-models/" end) as $package
        | "// \(.kind) \(.metadata.name)", "import type { I\(.kind) as T\($n) } from \"\($package)\(.apiVersion)/\(.kind)\";",
          "export const m\($n): T\($n) = \(.);"' "$1" >"$folder/manifests.ts"
    "$tools/schemas/node_modules/.bin/tsc" --noEmit --strict --module nodenext --skipLibCheck --ignoreConfig \
        "$folder/manifests.ts" >"$work/types" || code=$?
    rm -rf "$folder"
    return "$code"
}

# environment_of NAME: variables, files and arguments of a workload in the manifests of stdin, as check-limits takes them.
environment_of() {
    jq -L "$COMMANDBUS_SOURCE_DIR/deploy/local" --arg name "$1" 'include "workloads"; [workloads | select(.name == $name)] | first'
}

run_test() {
    work=$all_work/$1
    mkdir "$work"
    "$1"
}

run_tests() {
    local passed=0 failed=0 name names code start
    all_work=$(mktemp -d)
    # shellcheck disable=SC2064 # as it is now
    trap "rm -rf '$all_work'" EXIT
    mapfile -t names < <(grep -oE '^test_[a-zA-Z0-9_]+' "$0")
    for name in "${names[@]}"; do
        code=0 start=$SECONDS
        (
            set -e
            run_test "$name"
        ) >"$all_work/log" 2>&1 &
        wait $! || code=$?
        if ((code == 0)); then
            passed=$((passed + 1))
            echo "passed: $(tr _ ' ' <<<"${name#test_}") ($((SECONDS - start)) s)"
        else
            failed=$((failed + 1))
            echo "FAILED: $(tr _ ' ' <<<"${name#test_}")"
            sed 's/^/    /' "$all_work/log"
        fi
    done
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
