//! `mcpd state`.

use insta::assert_snapshot;

use crate::sandbox;

#[test]
fn state_follows_the_calls() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.run(&["state", "scripts", "count"]), @r#"
    exit code: 0
    ----- stdout -----
    {"count": 0}
    "#);
    assert_snapshot!(sandbox.run(&["call", "scripts", "count", "increment=5"]), @r#"
    exit code: 0
    ----- stdout -----
    {"count": 5}
    "#);
    assert_snapshot!(sandbox.run(&["state", "scripts", "count"]), @r#"
    exit code: 0
    ----- stdout -----
    {"count": 5}
    "#);
}

#[test]
fn json_is_the_resource_of_clients() {
    assert_snapshot!(sandbox().run(&["state", "scripts", "count", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    {
      "uri": "mcpd://count/state",
      "mimeType": "application/json",
      "text": "{\"count\": 0}"
    }
    "#);
}

#[test]
fn tool_without_state_is_explained() {
    assert_snapshot!(sandbox().run(&["state", "scripts", "hello"]), @r#"
    exit code: 5
    ----- stderr -----
    mcpd: error: `hello` has no state; its metadata lacks `"state": true`
    "#);
}
