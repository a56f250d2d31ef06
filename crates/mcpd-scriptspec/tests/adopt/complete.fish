# Completions of a program.
complete -c weld -s t -l torch -x -a 'gas plasma' -d 'Kind of torch'
complete -c weld -l mask -d 'Wear a mask'
complete -c weld -o fast -d 'Do not wait'
complete -c weld -n '__fish_use_subcommand' -l later -d 'Another time'
complete -c weld -d 'unclosed
