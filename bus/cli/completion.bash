# bash completion for commandbus. The words come from the program's own tables, so they are always
# those of the version that is installed.

_commandbus() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -o default -F _commandbus commandbus
