//! `mcpd prompt`, and prompts in `mcpd list`.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

use crate::sandbox;

const REVIEW: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
    echo '{"description": "Asks for a review.", "kind": "prompt"}'
    echo '{"tone": {"description": "How.", "required": true}, "of": {"default_value": "code"}}' >&2
    exit
fi
echo 'INFO asked' >&2
[ "$MCPD_OPT_tone" != rude ] || exit 1
echo "Write a $MCPD_OPT_tone review of $MCPD_OPT_of."
"#;

const DIALOGUE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
    echo '{"description": "Says how to go on.", "kind": "prompt", "output": "mcp"}'
    exit
fi
echo '{"messages": [
    {"role": "user", "content": {"type": "text", "text": "Hello"}},
    {"role": "assistant", "content": {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}}
]}'
"#;

fn prompts() -> Sandbox {
    sandbox()
        .with_script("deep/review", REVIEW)
        .with_script("dialogue", DIALOGUE)
}

#[test]
fn prompts_are_listed_apart() {
    let sandbox = prompts();
    let listed = sandbox.run(&["list", "scripts"]);
    assert!(
        listed.contains("also served: `--prompts` lists 2\n"),
        "{listed}"
    );
    assert_snapshot!(sandbox.run(&["list", "scripts", "--prompts"]), @"
    exit code: 0
    ----- stdout -----
    deep/review(tone, of?)  Asks for a review.
    dialogue()              Says how to go on.
    ----- stderr -----
    the catalog is incomplete: 1 faulty script; run `mcpd check scripts` for details
    ");
    assert_snapshot!(Sandbox::new().with_script("review", REVIEW).run(&["list", "scripts", "--prompts", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    [
      {
        "name": "review",
        "title": "review",
        "description": "Asks for a review.",
        "arguments": [
          {
            "name": "tone",
            "description": "How.",
            "required": true
          },
          {
            "name": "of"
          }
        ],
        "_meta": {
          "mcpd/path": "review"
        }
      }
    ]
    "#);
}

#[test]
fn a_prompt_is_described_with_its_arguments() {
    let sandbox = prompts();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "deep/review"]), @"
    exit code: 0
    ----- stdout -----
    deep/review
    (a prompt)

    Asks for a review.

    Arguments:
      tone: required
          How.
      of
    ");
    assert_snapshot!(sandbox.run(&["describe", "scripts", "dialogue"]), @"
    exit code: 0
    ----- stdout -----
    dialogue
    (a prompt)

    Says how to go on.

    No arguments.
    ");
}

#[test]
fn prompt_shows_roles_and_texts() {
    let sandbox = prompts();
    assert_snapshot!(sandbox.run(&["prompt", "scripts", "deep_review", "tone=kind", "of=a=b"]), @"
    exit code: 0
    ----- stdout -----
    user:
    Write a kind review of a=b.
    ----- stderr -----
    INFO asked
    ");
    assert_snapshot!(sandbox.run(&["prompt", "scripts", "dialogue"]), @r#"
    exit code: 0
    ----- stdout -----
    user:
    Hello
    assistant:
    {
      "type": "image",
      "data": "iVBORw==",
      "mimeType": "image/png"
    }
    "#);
    assert_snapshot!(sandbox.run(&["prompt", "scripts", "deep/review", "tone=kind", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    {
      "messages": [
        {
          "role": "user",
          "content": {
            "type": "text",
            "text": "Write a kind review of code."
          }
        }
      ],
      "resultType": "complete",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "mcpd",
          "version": "0.1.0"
        }
      }
    }
    ----- stderr -----
    INFO asked
    "#);
}

#[test]
fn failed_prompt_is_explained() {
    let sandbox = prompts();
    let run = |arguments: &[&str]| sandbox.run(&[&["prompt", "scripts"], arguments].concat());
    assert_snapshot!(run(&["deep/review"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: Invalid arguments: option `tone`: expected a value, got nothing
    ");
    assert_snapshot!(run(&["deep/review", "tone=rude"]), @"
    exit code: 5
    ----- stderr -----
    INFO asked
    mcpd: error: the script `deep/review` failed with exit code 1 (internal-error). The end of its stderr:
    INFO asked
    ");
    assert_snapshot!(run(&["deep/review", "kind"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the argument `kind`: expected NAME=TEXT
    ");
    assert_snapshot!(run(&["deep/review", "tone:=1"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the argument `tone:=1`: prompts accept only NAME=TEXT
    ");
    assert_snapshot!(run(&["deep/review", "tone=a", "tone=b"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the arguments: `tone` is given twice
    ");
    assert_snapshot!(run(&["dialog"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no prompt `dialog`; did you mean `dialogue`?
    ");
    assert_snapshot!(run(&["nothing"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no prompt `nothing`; `mcpd list --prompts` shows all prompts
    ");
    assert_snapshot!(run(&["hello"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no prompt `hello`: it is a tool; call it with `mcpd call`
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "dialogue"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `dialogue`: it is a prompt; render it with `mcpd prompt`
    ");
}

#[test]
fn list_without_prompts_says_so() {
    assert_snapshot!(sandbox().run(&["list", "scripts", "--prompts"]), @"
    exit code: 0
    ----- stderr -----
    no prompts found
    the catalog is incomplete: 1 faulty script; run `mcpd check scripts` for details
    ");
}
