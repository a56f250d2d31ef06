//! `mcpd read`, and resources in `mcpd list`.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

use crate::sandbox;

const NEWS: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
    echo '{"description": "What is new.", "kind": "resource", "uri": "news://today", "mime_type": "text/plain"}'
    exit
fi
echo 'INFO read' >&2
echo "Nothing."
"#;

const PAGE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
    echo '{"description": "One page.", "kind": "resource", "uri_template": "book://{page}", "mime_type": "application/octet-stream"}'
    echo '{"page": {"value_type": "integer"}}' >&2
    exit
fi
[ "$MCPD_OPT_page" != 0 ] || exit 1
printf '\000\377page %s' "$MCPD_OPT_page"
"#;

fn resources() -> Sandbox {
    sandbox()
        .with_script("news", NEWS)
        .with_script("page", PAGE)
}

#[test]
fn resources_are_listed_apart() {
    let sandbox = resources();
    let listed = sandbox.run(&["list", "scripts"]);
    assert!(
        listed.contains("also served: `--resources` lists 2\n"),
        "{listed}"
    );
    assert_snapshot!(sandbox.run(&["list", "scripts", "--resources"]), @"
    exit code: 0
    ----- stdout -----
    mcpd://count/state  The current state of `count`.
    news://today        What is new.
    book://{page}       One page.
    ----- stderr -----
    the catalog is incomplete: 1 faulty script; run `mcpd check scripts` for details
    ");
    let alone = Sandbox::new().with_script("page", PAGE);
    assert_snapshot!(alone.run(&["list", "scripts", "--resources", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    [
      {
        "uriTemplate": "book://{page}",
        "name": "page",
        "title": "page",
        "description": "One page.",
        "mimeType": "application/octet-stream",
        "_meta": {
          "mcpd/path": "page"
        }
      }
    ]
    "#);
}

#[test]
fn contents_are_printed_verbatim() {
    let sandbox = resources();
    assert_snapshot!(sandbox.run(&["read", "scripts", "news://today"]), @"
    exit code: 0
    ----- stdout -----
    Nothing.
    ----- stderr -----
    INFO read
    ");
    assert_snapshot!(sandbox.run(&["read", "scripts", "mcpd://count/state"]), @r#"
    exit code: 0
    ----- stdout -----
    {"count": 0}
    "#);
    assert_snapshot!(sandbox.run(&["read", "scripts", "book://7", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    {
      "contents": [
        {
          "uri": "book://7",
          "mimeType": "application/octet-stream",
          "blob": "AP9wYWdlIDc="
        }
      ],
      "resultType": "complete",
      "ttlMs": 0,
      "cacheScope": "private",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "mcpd",
          "version": "0.1.0"
        }
      }
    }
    "#);
    let page = sandbox.stdout(&["read", "scripts", "book://7"]);
    assert_eq!(page, b"\0\xffpage 7");
}

#[test]
fn unreadable_resource_is_explained() {
    let sandbox = resources();
    let run = |uri: &str| sandbox.run(&["read", "scripts", uri]);
    assert_snapshot!(run("book://0"), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: the script `page` failed with exit code 1 (internal-error). It printed nothing.
    ");
    assert_snapshot!(run("book://x"), @r#"
    exit code: 5
    ----- stderr -----
    mcpd: error: Invalid arguments: option `page`: expected an integer, got the string "x"
    "#);
    assert_snapshot!(run("news://yesterday"), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no resource `news://yesterday`; `mcpd list --resources` shows all resources
    ");
    assert_snapshot!(run("page"), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no resource `page`; did you mean `book://{page}`?
    ");
    assert_snapshot!(run("no/such"), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no resource `no/such`; `mcpd list --resources` shows all resources
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "page"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `page`: it is the resource `book://{page}`; read it with `mcpd read`
    ");
}

#[test]
fn list_without_resources_says_so() {
    let sandbox = Sandbox::new().with_script("hello", crate::HELLO);
    assert_snapshot!(sandbox.run(&["list", "scripts", "--resources"]), @"
    exit code: 0
    ----- stderr -----
    no resources found
    ");
}
