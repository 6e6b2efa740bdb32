#!/usr/bin/env bash
# The documents of this tree: what is cited from them exists, what they must name they name, links lead somewhere, and
# neither they nor sources are wider than a page.
# shellcheck disable=SC2016 # what looks like variables are fields of awk
set -euo pipefail
cd "$(dirname "$0")/../.."
passed=0 failed=0

# check NAME COMMAND...: what the command prints is what is wrong, and so is its failing.
check() {
    local name=$1 wrong
    shift
    wrong=$("$@" 2>&1) || wrong+=" ($* failed)"
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
        for file; do find . -path ./build -prune -o -path "./$file" -print; done
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

# The sections of DESIGN.md, as 8 and 8.3.
sections() { sed -nE 's/^#+ ([0-9]+(\.[0-9]+)?)\.? .*/\1/p' DESIGN.md; }
unknown_sections() { # not those of S0 to S4
    files '*.c' '*.h' '*.sh' '*.sql' '*.md' | grep -v '^DESIGN.md$' |
        xargs grep -noE '(S[0-4] )?\b([Ss]ection|DESIGN( section)?) [0-9]+(\.[0-9]+)?(, [0-9]+\.[0-9]+)*' |
        awk 'NR == FNR { known[$0] = 1; next }
             /:S[0-4] / { next }
             { n = split(substr($0, match($0, /[0-9.]+(, [0-9.]+)*$/)), number, ", ")
               for (i = 1; i <= n; i++) if (!(number[i] in known)) print }' <(sections) -
}

# A behaviour that no test cites is a wish.
unproved_behaviours() {
    comm -23 <(behaviours | sort) <(files 'tests/*' | grep -v '\.md$' | xargs grep -ohEw '[A-Z]+\.[0-9]+' | sort -u)
}

repeated_behaviours() { behaviours | sort | uniq -d; }

# in_contract: the names on stdin that bus/CONTRACT.md does not have.
in_contract() {
    comm -13 <(grep -oE '[a-z][a-zA-Z_.<>-]*[a-z>]' bus/CONTRACT.md | sort -u) <(sort -u)
}

# Functions that a role may call.
granted() {
    files 'bus/sql/*.sql' | xargs cat | sed 's/--.*//' | tr '\n' ' ' | tr ';' '\n' |
        sed -nE 's/.*GRANT EXECUTE ON FUNCTION (.*) TO commandbus.*/\1/p' | grep -oE 'commandbus\.[a-z_]+' |
        sed 's/^commandbus\.//' | sort -u
}
functions_not_in_contract() { granted | in_contract; }

# Configuration keys, as the table of the worker has them.
keys() { files 'worker/config/*.c' | xargs grep -hoE '\{ "[a-z]+[a-zA-Z.<>-]+", KEY_' | cut -d'"' -f2; }
keys_not_in_contract() { keys | in_contract; }

# links: of the Markdown files, a line each: "at PATH" or "at PATH#HEADING" for where a link may lead (headings as GitHub
# names them), "to FILE PATH" or "to FILE PATH#HEADING" for each link within the tree.
links() {
    files '*' | awk '{ print "at " $0; while (sub(/\/[^\/]*$/, "")) if (!seen[$0]++) print "at " $0 }'
    files '*.md' | xargs awk '
        function tidy(path) { # a/../b is b
            while (sub(/(^|\/)[^\/.][^\/]*\/\.\.(\/|$)/, "/", path)) sub(/^\//, "", path)
            gsub(/\/\.\//, "/", path); sub(/\/$/, "", path)
            return path
        }
        FNR == 1 { code = 0; folder = FILENAME; if (!sub(/[^\/]*$/, "", folder)) folder = "" }
        /^ *```/ { code = !code }
        code { next }
        /^#+ / {
            name = tolower($0); sub(/^#+ +/, "", name); gsub(/[^a-z0-9 _-]/, "", name); gsub(/ /, "-", name)
            print "at " FILENAME "#" name
        }
        {
            gsub(/`[^`]*`/, "")
            while (match($0, /\]\([^) ]+\)/)) {
                target = substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH)
                if (target ~ /:\/\//) continue
                print "to " FILENAME " " (target ~ /^#/ ? FILENAME target : tidy(folder target))
            }
        }'
}

broken_links() {
    links | sort | awk '$1 == "at" { known[substr($0, 4)] = 1; next } !($3 in known) { print $2 ": there is no " $3 }'
}

# too_wide: those of the lines on stdin, as FILE:NUMBER:LINE, that have more than 100 columns (not bytes).
too_wide() { LC_ALL=C.UTF-8 grep -E '^[^:]+:[0-9]+:.{101,}$' || true; }

# Prose of more than 100 columns; code and tables in it are as wide as they are.
wide_prose() {
    files '*.md' |
        xargs awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code; next } !code && !/^ *\|/ { print FILENAME ":" FNR ":" $0 }' |
        too_wide
}

# The kinds of sources whose every line has at most 100 columns. Text that a program prints is as
# wide as it is: a line of C that is one string, and the head of a macro whose lines are such.
narrow=('*.sql' '*.c' '*.h')
wide_sources() {
    files "${narrow[@]}" | xargs awk '!/^ *(return )?({ )?".*"[ ,;:)}]*\\?$/ && !/^#define [A-Z_]+ +\\$/ {
        print FILENAME ":" FNR ":" $0 }' | too_wide
}

# A name that two headers have does not say which one is meant.
repeated_headers() { files '*.h' | sed 's|.*/||' | sort | uniq -d; }

# What finds nothing proves nothing.
enough() {
    (($(granted | wc -l) > 40)) || echo "only $(granted | wc -l) functions found"
    (($(keys | wc -l) > 40)) || echo "only $(keys | wc -l) keys found"
    (($(links | grep -c '^to') > 100)) || echo "only $(links | grep -c '^to') links found"
    (($(files "${narrow[@]}" | wc -l) > 50)) || echo "only $(files "${narrow[@]}" | wc -l) sources found"
}

check 'every behaviour that is cited is in tests/REQUIREMENTS.md' unknown_behaviours
check 'every behaviour of tests/REQUIREMENTS.md is cited by a test' unproved_behaviours
check 'every section that is cited is in DESIGN.md' unknown_sections
check 'every behaviour has one number' repeated_behaviours
check 'bus/CONTRACT.md has every function that a role may call' functions_not_in_contract
check 'bus/CONTRACT.md has every configuration key' keys_not_in_contract
check 'every link leads to a file, and to a heading if it names one' broken_links
check 'prose has at most 100 columns' wide_prose
check "lines of ${narrow[*]} have at most 100 columns" wide_sources
check 'no two headers have the same name' repeated_headers
check 'there are functions, keys, links and sources to look for' enough

echo "$passed passed, $failed failed"
((failed == 0))
