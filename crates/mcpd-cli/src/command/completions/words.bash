# Joins what Bash splits: `name=value` and `cursor:github` come in pieces, because `=` and `:` are
# in COMP_WORDBREAKS. Bash replaces the last piece only, so each candidate loses the others.
_mcpd_complete() {
    local -a joined=()
    local rest=${COMP_LINE} piece index current=0 last=
    for index in "${!COMP_WORDS[@]}"; do
        piece=${COMP_WORDS[index]}
        if ((${#joined[@]})) && [[ $rest != [[:space:]]* ]] &&
            [[ -n $piece && ($piece == [=:]* || $last == *[=:]) ]]; then
            joined[${#joined[@]}-1]+=$piece
        else
            joined+=("$piece")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$piece"}
        last=$piece
        if ((index == COMP_CWORD)); then
            current=$((${#joined[@]} - 1))
        fi
    done
    local word=${joined[current]}
    local before=${word%"${word##*[=:]}"}
    local -a COMP_WORDS=("${joined[@]}")
    local COMP_CWORD=$current
    _clap_complete_mcpd "$1" "$word" "$3"
    if [[ -n $before && $COMP_WORDBREAKS == *"${before: -1}"* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _mcpd_complete mcpd
else
    complete -o nospace -o bashdefault -F _mcpd_complete mcpd
fi
