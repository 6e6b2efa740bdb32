# shellcheck shell=bash
# Rendering the overlays of deploy/k8s, with what there is. Sourced by deps, check-limits and tests.

# The overlays use components and labels as kustomize has them since version 5 (kubectl 1.27).
oldest_kustomize=5

# kustomize_command TOOLS: prints the words that render a folder, of the first program that is new enough: what deps has put
# into the folder TOOLS, or one in the PATH. Fails when there is none.
kustomize_command() {
    local words version
    for words in "$1/kubectl kustomize" 'kustomize build' 'kubectl kustomize'; do
        command -v "${words% *}" >/dev/null || continue
        case $words in
        kustomize*) version=$(kustomize version 2>/dev/null) || continue ;;
        *) version=$("${words% *}" version --client 2>/dev/null | grep -i '^kustomize') || continue ;;
        esac
        if [[ $version =~ v([0-9]+)\. ]] && ((BASH_REMATCH[1] >= oldest_kustomize)); then echo "$words" && return; fi
    done
    return 1
}

# yaml_to_json: the documents of stdin, each as JSON. There are two programs of the name yq; Debian's is the first.
yaml_to_json() {
    if [[ $(yq --version) == *mikefarah* ]]; then yq --output-format=json; else yq .; fi
}
