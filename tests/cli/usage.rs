//! Behaviour common to all commands: help, version and usage errors.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

#[test]
fn help_shows_the_commands_and_examples() {
    assert_snapshot!(Sandbox::new().run(&["-h"]), @"
    exit code: 0
    ----- stdout -----
    Serve a directory of executable scripts to MCP clients

    Usage: mcpd [OPTIONS] <COMMAND>

    Commands:
      serve     Serve over HTTP
      stdio     Serve over stdin and stdout, as MCP clients start it
      list      List the tools, the prompts or the resources
      describe  Show what a tool or a prompt takes
      call      Call a tool
      prompt    Show what a prompt comes to
      read      Read a resource
      state     Show the state of a stateful tool
      endpoint  Answer one request of an action endpoint
      check     Find faults in what scripts say of themselves
      compile   Print what files describe as definitions for models and their APIs
      catalog   Show or forget what is remembered of scripts
      token     Make tokens for clients over HTTP
      audit     Read the audit log
      config    Look after the configuration, mcpd.toml
      doctor    Find out what this machine can enforce
      basic     Run a BASIC program
      help      Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Log, on stderr:
      -v, --verbose...           Log more; twice for even more
      -q, --quiet                Log errors only
          --log-format <FORMAT>  The form of the log [env: MCPD_LOG_FORMAT] [default: text] [possible
                                 values: text, json]
          --log <FILTER>         Which messages are logged, such as `warn` or `mcpd_server=debug` [env:
                                 MCPD_LOG]

    Examples:
      mcpd stdio ~/tools                    what an MCP client starts
      mcpd serve ~/tools                    HTTP on 127.0.0.1:43210, with a token
      mcpd call ~/tools greet name=World    call a tool from the shell
      mcpd check ~/tools                    what is wrong with the scripts

    `mcpd --root-directory DIR` is short for `mcpd serve DIR`.

    Exit codes:
      0    all went well
      1    wrong usage, a command that could not be carried out, or `check` or `audit` found faults
      5    the tool failed, or there is no such tool
      130  a call was interrupted
    ");
}

#[test]
fn a_command_explains_itself() {
    assert_snapshot!(Sandbox::new().run(&["call", "-h"]), @r#"
    exit code: 0
    ----- stdout -----
    Call a tool

    Usage: mcpd call [OPTIONS] <DIR> <TOOL> [NAME=VALUE]...

    Arguments:
      <DIR>            A directory with scripts
      <TOOL>           The tool: `math/add`, `math_add` and `math.add` are one
      [NAME=VALUE]...  Arguments: NAME=TEXT, or NAME:=JSON; a text that is a number or a boolean counts
                       as one where the tool wants one

    Options:
          --no-cache           Ask every script for its description, even if nothing has changed since
                               last time [env: MCPD_NO_CACHE]
          --enable <TOOL>      Serve a tool that mcpd brings along beside those of DIR [env:
                               MCPD_ENABLE] [possible values: run_command, runs]
          --workdir <DIR>      Where `run_command` works [default: a directory of this server's own,
                               deleted with it] [env: MCPD_WORKDIR]
          --json <OBJECT>      All arguments as one JSON object; `-` reads it from stdin [alias:
                               --json-args]
          --output <FORMAT>    What is printed: the content of the answer, or all of it [default: text]
                               [possible values: text, json]
          --timeout <SECONDS>  How long a script may run [default: 60] [env: MCPD_TIMEOUT]
      -h, --help               Print help (see more with '--help')

    Configuration:
          --config <FILE>  The configuration, mcpd.toml [default: that of the project, the user or the
                           system] [env: MCPD_CONFIG]

    Confinement:
          --sandbox <LEVEL>     Confine every script at least so far: none, guarded, strict or a sandbox
                                of the configuration [env: MCPD_SANDBOX]
          --allow-read <PATH>   Let every confined script read this file or directory, although it is
                                hidden [env: MCPD_ALLOW_READ]
          --allow-write <PATH>  Let every confined script write this file or directory [env:
                                MCPD_ALLOW_WRITE]
          --cgroup <DIR>        A control group that was delegated to mcpd, below which it limits the
                                memory of whole runs [default: the one it is in, if systemd has
                                delegated it] [env: MCPD_CGROUP]
          --no-network          Let no script use the network [env: MCPD_NO_NETWORK]

    Log, on stderr:
      -v, --verbose...           Log more; twice for even more
      -q, --quiet                Log errors only
          --log-format <FORMAT>  The form of the log [env: MCPD_LOG_FORMAT] [default: text] [possible
                                 values: text, json]
          --log <FILTER>         Which messages are logged, such as `warn` or `mcpd_server=debug` [env:
                                 MCPD_LOG]

    Examples:
      mcpd call ~/tools greet name=World
      mcpd call ~/tools math/calc operation=add a=1 b:=2.5
      mcpd call ~/tools text/count --json '{"text": "one two"}'
      jq -n '{text: input}' essay.json | mcpd call ~/tools text/count --json -

    The answer goes to stdout, what the script logs to stderr.
    The exit code is 5 when the tool fails.
    "#);
}

#[test]
fn an_unknown_command_is_wrong_usage() {
    assert_snapshot!(Sandbox::new().run(&["lst", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: mcpd [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn nothing_at_all_is_wrong_usage() {
    let transcript = Sandbox::new().run(&[]);
    assert!(transcript.starts_with("exit code: 1\n"), "{transcript}");
}

#[test]
fn a_number_that_must_not_be_zero_is_described() {
    let sandbox = Sandbox::new();
    for wrong in ["0", "many"] {
        let said = sandbox.run(&["stdio", "scripts", "--page-size", wrong]);
        let expected =
            format!("'{wrong}' for '--page-size <NUMBER>': expected a whole number above 0");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_log_filter_that_is_none_is_named() {
    assert_snapshot!(Sandbox::new().run(&["list", "scripts", "--log", "a=b=c"]), @r#"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the log filter `a=b=c`: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    "#);
}
