#!/usr/bin/env bash
# Every C file is formatted as .clang-format says. Repair with: clang-format -i FILE
set -euo pipefail
cd "$(dirname "$0")/../.."

sources() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h'
    else # an unpacked archive
        find . -path ./build -prune -o -name '*.[ch]' -print0
    fi
}

sources | while IFS= read -r -d '' file; do
    if [[ -f $file ]]; then printf '%s\0' "$file"; fi # not those deleted but not yet committed
done | xargs -0 clang-format --dry-run -Werror
