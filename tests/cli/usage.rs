//! Behaviour common to all commands: help, version and usage errors.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

#[test]
#[expect(clippy::too_many_lines, reason = "it is one page")]
fn help_shows_commands_and_examples() {
    assert_snapshot!(Sandbox::new().run(&["-h"]), @"
    exit code: 0
    ----- stdout -----
    Serve a directory of executable scripts to MCP clients

    Usage: mcpd [OPTIONS] <COMMAND>

    Commands:
      new          Create a script to begin from
      adopt        Draft the description of a program from its help
      install      Install a server in a client, such as Claude Desktop, Cursor or VS Code
      serve        Serve over HTTP
      dev          Serve over HTTP while you write scripts, and show what happens
      stdio        Serve over stdin and stdout, for clients that start their servers
      worker       Run scripts for the servers of a cluster
      cluster      Show the nodes of a cluster, drain a worker, or print the rights of a node
      connect      Connect a client that starts its servers to one over HTTP
      console      Print a link that opens the web console of a running server once
      list         List tools, prompts or resources
      discover     List the servers in the configurations of clients
      describe     Show the description and the arguments of a tool or a prompt
      call         Call a tool
      prompt       Render a prompt
      read         Read a resource
      state        Show the state of a stateful tool
      endpoint     Answer one action endpoint request from stdin
      check        Check the descriptions of scripts for faults
      test         Test tools with the cases beside them, and with generated arguments
      update       Review and take changes of sources: git repositories and archives in mcpd.toml
      lock         Note every tool as approved, for servers with --locked
      approve      Show and approve what differs from the lock file of tools
      bundle       Make a file that clients install: scripts, mcpd and settings in one (.mcpb)
      lsp          Help an editor with descriptions of scripts and mcpd.toml: a language server
      compile      Print tool definitions for the APIs of models
      catalog      Show or clear the script cache
      token        Create, list and revoke tokens of HTTP clients
      audit        Read and verify the audit log
      config       Check, show and document the configuration, mcpd.toml
      doctor       Show what this machine can enforce, and which interpreters clients miss
      basic        Run a BASIC program
      lib          Print a helper library for scripts, one file for each language
      completions  Print what makes a shell complete commands, tools and arguments
      man          Write the manual pages
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Logging options:
      -v, --verbose...           Log more; repeat for even more
      -q, --quiet                Log errors only
          --log-format <FORMAT>  Log format [default: text] [env: MCPD_LOG_FORMAT] [possible values:
                                 text, json]
          --log <FILTER>         Log filter, such as `warn` or `mcpd_server=debug` [env: MCPD_LOG]

    Examples:
      mcpd new ~/tools/greet                create a script to begin from
      mcpd install claude-code ~/tools      install the directory in a client
      mcpd stdio ~/tools                    serve over stdio, as MCP clients start it
      mcpd serve ~/tools                    serve over HTTP on 127.0.0.1:43210, with a token
      mcpd call ~/tools greet name=World    call a tool from the shell
      mcpd check ~/tools                    find faults in the scripts
      mcpd test ~/tools                     test the tools with the cases beside them

    `mcpd --root-directory DIR` is short for `mcpd serve DIR`.

    Exit codes:
      0    success
      1    wrong usage, the command failed, or `check`, `test` or `audit` found faults
      3    a remote server wants a token
      4    a remote server cannot be reached
      5    the tool failed or does not exist
      130  the call was interrupted
    ");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one page")]
fn a_command_explains_itself() {
    assert_snapshot!(Sandbox::new().run(&["call", "-h"]), @r#"
    exit code: 0
    ----- stdout -----
    Call a tool

    Usage: mcpd call [OPTIONS] <DIR> <TOOL> [NAME=VALUE]... [-- <COMMAND>...]

    Arguments:
      <DIR>            Directory with scripts; or a URL, an entry of a client such as `cursor:github`,
                       or `-` for the server that COMMAND starts
      <TOOL>           Tool name; `math/add`, `math_add` and `math.add` are the same tool
      [NAME=VALUE]...  Arguments: NAME=TEXT or NAME:=JSON; TEXT is read as a number or a boolean where
                       the tool expects one
      [COMMAND]...     Program that speaks MCP over stdin and stdout, and its arguments, where DIR is
                       `-`

    Options:
          --no-cache            Run every script with `--help`, even if it has not changed since the
                                last time [env: MCPD_NO_CACHE]
          --locked              Serve only tools, prompts and resources that are as the lock file notes
                                them; `mcpd lock` creates it [env: MCPD_LOCKED]
          --lock-file <FILE>    Lock file of tools [default: mcpd.lock beside mcpd.toml, or without that
                                in the first DIR] [env: MCPD_LOCK_FILE]
          --enable <TOOL>       Also serve a built-in tool [env: MCPD_ENABLE] [possible values:
                                run_command, runs]
          --workdir <DIR>       Working directory of `run_command` [default: a temporary directory,
                                deleted when the server stops] [env: MCPD_WORKDIR]
          --arguments <OBJECT>  All arguments as one JSON object; `-` reads the object from stdin
          --record[=<NAME>]     Append the call to the test cases beside the script, as a case with this
                                name [default: a number]; values of secret options are left out
          --json                Print the MCP result as JSON
          --raw                 Print control characters of the result to a terminal too
          --show                Print the command that the call would run, as a line for a shell, and
                                run nothing; with --json as one object
      -y, --yes                 Approve the call without a question, if a person must approve it
          --timeout <SECONDS>   Time limit of a script [default: 60] [env: MCPD_TIMEOUT]
      -h, --help                Print help (see more with '--help')

    Options for remote servers:
          --token-env <NAME>  Variable with the bearer token for a URL

    Configuration options:
          --config <FILE>  Configuration file [default: mcpd.toml of the project, the user or the
                           system] [env: MCPD_CONFIG]

    Sandbox options:
          --sandbox <LEVEL>     Minimum sandbox of every script: none, guarded, strict or a sandbox of
                                the configuration [env: MCPD_SANDBOX]
          --allow-read <PATH>   Let every sandboxed script read this hidden file or directory [env:
                                MCPD_ALLOW_READ]
          --allow-write <PATH>  Let every sandboxed script write this file or directory [env:
                                MCPD_ALLOW_WRITE]
          --cgroup <DIR>        Control group delegated to mcpd, below which it limits the memory of
                                each run [default: its own control group, if systemd has delegated it]
                                [env: MCPD_CGROUP]
          --no-network          Deny the network to every script [env: MCPD_NO_NETWORK]

    Logging options:
      -v, --verbose...           Log more; repeat for even more
      -q, --quiet                Log errors only
          --log-format <FORMAT>  Log format [default: text] [env: MCPD_LOG_FORMAT] [possible values:
                                 text, json]
          --log <FILTER>         Log filter, such as `warn` or `mcpd_server=debug` [env: MCPD_LOG]

    Examples:
      mcpd call ~/tools greet name=World
      mcpd call ~/tools math/calc operation=add a=1 b:=2.5
      mcpd call ~/tools text/count --arguments '{"text": "one two"}'
      mcpd call ~/tools greet --record name=World
      jq -n '{text: input}' essay.json | mcpd call ~/tools text/count --arguments -
      mcpd call --show ~/tools greet name=World

    The result goes to stdout, log messages of the script to stderr.
    The exit code is 5 if the tool fails.
    "#);
}

#[test]
fn unknown_command_is_a_usage_error() {
    assert_snapshot!(Sandbox::new().run(&["lst", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    error: unrecognized subcommand 'lst'

      tip: some similar subcommands exist: 'test', 'lsp', 'cluster', 'list'

    Usage: mcpd [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn missing_command_is_a_usage_error() {
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
fn invalid_log_filter_is_named() {
    assert_snapshot!(Sandbox::new().run(&["list", "scripts", "--log", "a=b=c"]), @r#"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the log filter `a=b=c`: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    "#);
}
