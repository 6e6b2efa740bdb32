#!/usr/bin/env bash
# The documents of this tree: what is cited from them exists.
set -euo pipefail
cd "$(dirname "$0")/../.."
passed=0 failed=0

# check NAME COMMAND...: what the command prints is what is wrong.
check() {
    local name=$1 wrong
    shift
    wrong=$("$@")
    if [[ -z $wrong ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$name" "$wrong"
    fi
}

# files PATTERN...: those of the tree, without the ones that were deleted and not yet committed.
files() {
    local file
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@"
    else # an unpacked archive
        for file; do find . -path ./build -prune -o -name "$file" -print; done
    fi | while IFS= read -r file; do
        if [[ -f $file ]]; then printf '%s\n' "$file"; fi
    done
}

# The numbers of tests/REQUIREMENTS.md, as BUS.3.
behaviours() {
    awk '/^## / { area = $2 } /^[0-9]+\. / { print area "." $1 + 0 }' tests/REQUIREMENTS.md
}

unknown_behaviours() {
    local areas
    areas=$(behaviours | cut -d. -f1 | sort -u | paste -sd'|')
    files '*.c' '*.h' '*.sh' '*.sql' '*.md' '*.cfg' '*.yaml' '*.txt' | xargs grep -noEw "($areas)\.[0-9]+" |
        awk -F: 'NR == FNR { known[$0] = 1; next } !($3 in known)' <(behaviours) -
}

repeated_behaviours() { behaviours | sort | uniq -d; }

check 'every behaviour that is cited is in tests/REQUIREMENTS.md' unknown_behaviours
check 'every behaviour has one number' repeated_behaviours

echo "$passed passed, $failed failed"
((failed == 0))
