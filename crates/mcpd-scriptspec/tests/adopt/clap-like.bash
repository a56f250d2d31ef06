_tool() {
    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
        case "${cmd},${i}" in
            ",$1")
                cmd="tool"
                ;;
            tool,add)
                cmd="tool__subcmd__add"
                ;;
        esac
    done

    case "${cmd}" in
        tool)
            opts="-c -v -h --config --color --verbose --help [FILES]... add remove"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tool__subcmd__add)
            opts="-f --force --help"
            case "${prev}" in
                --message)
                    return 0
                    ;;
            esac
            ;;
    esac
}
complete -F _tool -o bashdefault -o default tool
