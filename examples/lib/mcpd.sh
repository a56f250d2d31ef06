# Tools for mcpd in sh. One file, for every POSIX shell; questions need jq.
#
# Write `mcpd lib sh > mcpd.sh` beside your script:
#
#   #!/bin/sh
#   . "${0%/*}/mcpd.sh"
#   mcpd_tool "Greets someone, several times if need be."
#   mcpd_option name string "Who to greet" required
#   mcpd_option times integer "How often" default=1
#   mcpd_begin "$@"
#   for _ in $(seq "$MCPD_OPT_times"); do echo "Hello, $MCPD_OPT_name!"; done
#
# shellcheck shell=sh

mcpd_metadata=
mcpd_options=
mcpd_questions=

# mcpd_json TEXT: prints the text as a string of JSON.
mcpd_json() {
  printf '"'
  printf '%s\n' "$1" | tr '\001-\010\013-\037\177' ' ' |
    sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g' |
    awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
  printf '"'
}

# mcpd_tool DESCRIPTION [FIELD=JSON…]: describes the tool; fields are those of the metadata, as
# in `timeout=5` or `annotations='{"read_only": true}'`.
mcpd_tool() {
  mcpd_metadata="\"description\": $(mcpd_json "$1")"
  shift
  for mcpd_field in "$@"; do
    mcpd_metadata="$mcpd_metadata, $(mcpd_json "${mcpd_field%%=*}"): ${mcpd_field#*=}"
  done
}

# mcpd_option NAME TYPE DESCRIPTION [required | default=VALUE | FIELD=JSON…]: declares an option.
# A type such as a|b|c is an enum. The value is in $MCPD_OPT_NAME.
mcpd_option() {
  mcpd_name=$1
  case $2 in
    *'|'*) mcpd_type="{\"enum\": [$(mcpd_list "$2")]}" ;;
    *) mcpd_type="\"$2\"" ;;
  esac
  mcpd_definition="\"description\": $(mcpd_json "$3"), \"value_type\": $mcpd_type"
  mcpd_kind=$2
  shift 3
  for mcpd_field in "$@"; do
    case $mcpd_field in
      required) mcpd_field='"required": true' ;;
      default=*)
        case $mcpd_kind in
          integer | float | boolean | array | object | any)
            mcpd_field="\"default_value\": ${mcpd_field#*=}"
            ;;
          *) mcpd_field="\"default_value\": $(mcpd_json "${mcpd_field#*=}")" ;;
        esac
        ;;
      *) mcpd_field="$(mcpd_json "${mcpd_field%%=*}"): ${mcpd_field#*=}" ;;
    esac
    mcpd_definition="$mcpd_definition, $mcpd_field"
  done
  mcpd_options="$mcpd_options${mcpd_options:+, }$(mcpd_json "$mcpd_name"): {$mcpd_definition}"
}

# mcpd_list A|B|C: prints the strings of an enum.
mcpd_list() {
  mcpd_rest=$1
  mcpd_comma=
  while :; do
    printf '%s' "$mcpd_comma"
    mcpd_json "${mcpd_rest%%|*}"
    mcpd_comma=', '
    case $mcpd_rest in *'|'*) mcpd_rest=${mcpd_rest#*|} ;; *) break ;; esac
  done
}

# mcpd_ask NAME MESSAGE: a question that the person answers before the script goes on. The answer
# is in $mcpd_answer_NAME. The tool needs output='"mcp"'.
mcpd_ask() {
  mcpd_questions="$mcpd_questions $1"
  mcpd_schema="{\"type\": \"object\", \"properties\": {\"$1\": {\"type\": \"string\"}}, \"required\": [\"$1\"]}"
  mcpd_params="{\"message\": $(mcpd_json "$2"), \"requestedSchema\": $mcpd_schema}"
  mcpd_request="\"$1\": {\"method\": \"elicitation/create\", \"params\": $mcpd_params}"
  mcpd_requests="${mcpd_requests:-}${mcpd_requests:+, }$mcpd_request"
}

# mcpd_begin "$@": describes the tool if mcpd asks, and asks the questions; then the script runs.
mcpd_begin() {
  if [ "$#" -eq 1 ] && [ "$1" = --help ]; then
    printf '{%s}\n' "$mcpd_metadata"
    printf '{%s}\n' "$mcpd_options" >&2
    exit 0
  fi
  [ -n "$mcpd_questions" ] || return 0
  # Nobody should answer in vain.
  command -v jq >/dev/null ||
    mcpd_fail service-unavailable "The questions of this script need the program jq: install it."
  if [ -z "${MCPD_INPUT_RESPONSES:-}" ]; then
    printf '{"inputRequests": {%s}}\n' "$mcpd_requests"
    exit 0
  fi
  for mcpd_name in $mcpd_questions; do
    mcpd_value=$(jq -er --arg name "$mcpd_name" \
      '.[$name] | select(.action == "accept") | .content[$name]' "$MCPD_INPUT_RESPONSES") ||
      mcpd_fail not-acceptable "The question about $mcpd_name was not answered."
    eval "mcpd_answer_$mcpd_name=\$mcpd_value"
  done
}

# mcpd_log LEVEL TEXT: a log line; the level is ERROR, WARNING, INFO or DEBUG.
mcpd_log() {
  printf '%s\n' "$2" | while IFS= read -r mcpd_line; do printf '%s %s\n' "$1" "$mcpd_line"; done >&2
}

# mcpd_progress DONE [TOTAL [TEXT]]: how much is done, of how much.
mcpd_progress() {
  printf 'PROGRESS %s%s %s\n' "$1" "${2:+/$2}" "${3:-}" >&2
}

# mcpd_fail NAME TEXT: ends the call with an error, such as not-found.
mcpd_fail() {
  mcpd_log ERROR "$2"
  case $1 in
    bad-request) exit 2 ;;
    forbidden) exit 3 ;;
    not-found) exit 4 ;;
    service-unavailable) exit 5 ;;
    not-acceptable) exit 6 ;;
    not-implemented) exit 7 ;;
    conflict) exit 8 ;;
    timeout) exit 9 ;;
    *) exit 1 ;;
  esac
}

# mcpd_text TEXT: the answer of a tool with output='"mcp"'.
mcpd_text() {
  printf '{"content": [{"type": "text", "text": %s}]}\n' "$(mcpd_json "$1")"
}

# mcpd_image FILE [TEXT]: an image, with a text before it, from a tool with output='"mcp"'.
mcpd_image() {
  mcpd_caption=${2:+"{\"type\": \"text\", \"text\": $(mcpd_json "$2")}, "}
  printf '{"content": [%s{"type": "image", "path": %s}]}\n' "$mcpd_caption" "$(mcpd_json "$1")"
}
