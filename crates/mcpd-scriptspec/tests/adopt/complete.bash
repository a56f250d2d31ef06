# Completions in the style of the bash-completion project.
_pack() {
    local cur prev words cword split
    _init_completion -s || return

    case $prev in
        --help | --version | -!(-*)V)
            return
            ;;
        --output | -!(-*)o)
            _filedir
            return
            ;;
        --level | -!(-*)[lL])
            COMPREPLY=($(compgen -W 'fast normal best' -- "$cur"))
            return
            ;;
        --jobs)
            COMPREPLY=($(compgen -W '{1..'$(_ncpus)'}' -- "$cur"))
            return
            ;;
    esac

    $split && return

    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W '--output= --level= --jobs --keep --exclude=
            --verbose -v' -- "$cur"))
        return
    fi
    _filedir
} &&
    complete -F _pack pack
