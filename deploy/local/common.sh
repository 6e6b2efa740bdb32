# shellcheck shell=bash
# Shared by the scripts of this folder. Sourced, not run.

say() { printf '%s\n' "$*"; }

# die CODE MESSAGE...: says what is wrong and what to do, then ends the script.
die() {
    local code=$1
    shift
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    shift
    if (($#)); then printf '  %s\n' "$@" >&2; fi
    exit "$code"
}

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# Prints the folder of the newest PostgreSQL server's programs; fails when there is none.
server_bindir() {
    local dir dirs
    mapfile -t dirs < <(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV)
    if command -v pg_config >/dev/null; then dirs+=("$(pg_config --bindir)"); fi
    for dir in "${dirs[@]}"; do
        if [[ -x $dir/initdb ]]; then echo "$dir" && return; fi
    done
    return 1
}

# Prints the folder where that server looks for extensions.
server_extension_dir() {
    local bindir=$1
    if [[ $bindir =~ ^/usr/lib/postgresql/([0-9]+)/bin$ ]]; then
        echo "/usr/share/postgresql/${BASH_REMATCH[1]}/extension"
    else
        echo "$("$bindir/pg_config" --sharedir)/extension"
    fi
}
