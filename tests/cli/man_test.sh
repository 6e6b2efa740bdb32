#!/usr/bin/env bash
# commandbus(1) says what --help says: it is made from the same tables. BUS.18
. "$(dirname "$0")/lib.sh"
page=$COMMANDBUS_BUILD_DIR/share/man/man1/commandbus.1

# Lines so wide that none is broken.
groff -man -Tutf8 -P-cbou -rLL=1000n "$page" >"$work/page"

# section TITLE: its lines, without what the page adds on the left.
section() {
    awk -v title="$1" '/^(   )?[^ ]/ { on = $0 ~ "^ *" title "$"; next } on' "$work/page" |
        sed 's/^ *//'
}

# has WHAT LINE...: a section on stdin has each of them.
has() {
    local what=$1 line
    shift
    cat >"$work/section"
    for line; do
        grep -qxF -- "$line" "$work/section" || fail "$what lacks '$line': $(cat "$work/section")"
    done
}

# has_option WHAT OPTION: the section that `has` has kept.
has_option() {
    grep -qE -- "^$2( |\$)" "$work/section" || fail "$1 lacks $2: $(cat "$work/section")"
}

commands() { cb --help | sed -nE 's/^  ([a-z]+( [a-z]+)?) +[A-Z].*/\1/p'; }

test_the_page_has_each_command_as_help_shows_it() {
    local command usage summary option lines n=0
    while read -r command; do
        # shellcheck disable=SC2086 # one or two words
        cb $command --help >"$work/help"
        usage=$(sed -n 's/^usage: //p' "$work/help") summary=$(sed -n 3p "$work/help")
        mapfile -t lines < <(sed -n '/^example:/,$ s/^  //p' "$work/help")
        ((${#lines[@]} > 0)) || fail "no example in the help of $command"
        section "$command" | has "$command" "$usage" "$summary" "${lines[@]}"
        while read -r option; do
            has_option "$command" "$option"
            n=$((n + 1))
        done < <(sed '/^options of every command/,$ d' "$work/help" |
            grep -oE '^  (--[a-z-]+|[A-Z]{2,})\b' | tr -d ' ')
    done < <(commands)
    (($(commands | wc -l) >= 28 && n >= 100)) ||
        fail "only $n options of $(commands | wc -l) commands were found"
}

test_the_page_has_the_options_of_every_command_and_the_exit_codes() {
    local option codes n=0
    section OPTIONS | has OPTIONS
    for option in $(cb --help | grep -oE '^  --[a-z-]+'); do
        has_option OPTIONS "$option"
        n=$((n + 1))
    done
    mapfile -t codes < <(cb --help | sed -n 's/^exit codes: //p' | sed 's/ · /\n/g')
    ((n >= 4 && ${#codes[@]} >= 3)) || fail "only $n options and ${#codes[@]} exit codes were found"
    section 'EXIT STATUS' | tr -s ' ' | has 'EXIT STATUS' "${codes[@]}"
}

test_the_page_has_every_variable_that_the_program_reads() {
    local name names
    mapfile -t names < <(cat "$COMMANDBUS_SOURCE_DIR"/bus/cli/*.c | grep -oE 'getenv\("[A-Z_]+"\)' |
        cut -d'"' -f2 | sort -u | grep -vx USER) # the login says who it is; USER where it does not
    ((${#names[@]} >= 4)) || fail "only ${names[*]} were found"
    section ENVIRONMENT | has ENVIRONMENT
    for name in "${names[@]}"; do has_option ENVIRONMENT "$name"; done
}

test_the_title_has_the_version() {
    tail -n1 "$work/page" | grep -q "^$(cb --version) " || fail "$(tail -n1 "$work/page")"
    grep -q '^ *commandbus - sends ' "$work/page" || fail "$(head "$work/page")"
}

test_roff_takes_the_page_without_a_warning() {
    same "$(groff -man -Tutf8 -ww -z "$page" 2>&1)" ''
}

run_tests
