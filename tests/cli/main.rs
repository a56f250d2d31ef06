//! The command line as people and programs use it: arguments in, exit code and two streams out.
//! One file for each command.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod adopt;
mod audit;
mod basic;
mod bundle;
mod call;
mod check;
mod completions;
mod configuration;
mod describe;
mod dialects;
mod doctor;
mod endpoint;
mod escapes;
mod install;
mod kit;
mod libraries;
mod list;
mod lock;
mod lsp;
mod new;
mod notes;
mod packaging;
mod prompt;
mod read;
mod remote;
mod run_command;
mod serve;
mod service;
mod sockets;
mod sources;
mod state;
mod stdio;
mod test;
mod tokens;
mod update;
mod usage;

use mcpd_tests::Sandbox;

/// Minimal tool.
const HELLO: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Says hello"}'
  exit 0
fi
echo '{"message": "Hello, World!"}'
"#;

/// Script with every type of option but `any`, with bounds and defaults.
const CALCULATOR: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  printf '%s' '{"title": "Calculator", "description": "Calculates.\nSlowly.", "version": "1.0"}'
  cat >&2 <<'EOF'
{
  "operation": {"description": "What to do", "required": true, "value_type": {"enum": ["add", "subtract"]}},
  "a": {"description": "First number", "required": true, "value_type": "float"},
  "digits": {"description": "Digits after the point", "value_type": "integer", "default_value": 2, "size": {"min": 0, "max": 9}},
  "unit": {"description": "What is counted", "value_type": "string", "default_value": "", "size": {"max": 8}},
  "strict": {"description": "Whether to be strict", "value_type": "boolean", "default_value": false}
}
EOF
  exit 0
fi
cat
"#;

/// Script that keeps a number between calls.
const COUNTER: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Persistent counter", "state": true}'
  echo '{"increment": {"description": "Amount to add", "value_type": "integer", "default_value": 1}}' >&2
  exit 0
fi
count=$(cat "$XDG_STATE_HOME/count" 2>/dev/null || echo 0)
if [ "$1" = --state ]; then
  printf '{"count": %d}' "$count"
  exit 0
fi
count=$((count + MCPD_OPT_increment))
mkdir -p "$XDG_STATE_HOME"
echo "$count" >"$XDG_STATE_HOME/count"
echo "{\"count\": $count}"
"#;

/// Script that logs at every level and exits with the given code.
const EXIT: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Exits"}'
  echo '{"code": {"description": "How", "required": true, "value_type": "integer"}}' >&2
  exit 0
fi
echo 'ERROR it broke' >&2
echo 'WARNING: it bends' >&2
echo 'DEBUG x=5' >&2
echo 'no level' >&2
echo 'PROGRESS 1/2 halfway' >&2
[ "$MCPD_OPT_code" = 0 ] || echo '{"error": "as asked"}'
exit "$MCPD_OPT_code"
"#;

/// Script that writes its process id to the file `number`, ignores SIGTERM and runs until it is
/// killed.
const STUBBORN: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Runs on"}'
  exit 0
fi
trap '' TERM
echo $$ >number.new && mv number.new number
while :; do sleep 1; done
"#;

/// Script that fails on `--help`.
const BROKEN: &str =
    "#!/bin/sh\n# Takes $MCPD_OPT_name.\necho 'no such module: frobnicate' >&2\nexit 3\n";

/// Returns a sandbox with scripts in two directories, one of them faulty.
fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("math/calc", CALCULATOR)
        .with_script("count", COUNTER)
        .with_script("exit", EXIT)
        .with_script("broken", BROKEN)
}
