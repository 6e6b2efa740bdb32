# Sourced by the tests of deploy/k8s: $kustomize renders a folder. Where none is available they are
# skipped, and say so.

# shellcheck shell=bash disable=SC2034 # used by the tests
tools=${COMMANDBUS_SOURCE_DIR:?}/build/tools
# shellcheck source=deploy/local/kustomize.sh
. "$COMMANDBUS_SOURCE_DIR/deploy/local/kustomize.sh"

if ! kustomize=$(kustomize_command "$tools"); then
    if [[ $(uname -m) == x86_64 ]]; then
        echo "there is no kubectl 1.27 or kustomize 5: run deploy/local/deps --tests" >&2
        exit 1
    fi
    echo "SKIPPED: nothing of deploy/k8s was tested. There is no kubectl 1.27 or kustomize 5, and deps has none for $(uname -m): install one."
    exit 0
fi
