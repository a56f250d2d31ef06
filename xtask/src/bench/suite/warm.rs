//! Script calls in Python with a warm and a cold start, and in Node with and without its cache of
//! compiled code.

use crate::bench::findings::{Findings, Table};
use crate::bench::lab::Lab;
use crate::bench::lineup::Lineup;
use crate::bench::sample::Sample;
use crate::request::Request;
use crate::server::Home;

/// Measured numbers of concurrent requests.
const AT_ONCE: [usize; 2] = [1, 8];

/// Required ratio of warm to cold.
const MIN_RATIO: f64 = 5.0;

/// Python of the system: one in a home could not be read by the user of the servers.
const PYTHON: &str = r#"#!/usr/bin/python3
import json
import sys

if sys.argv[1:] == ["--help"]:
    print('{"description": "Greets someone by name."}')
    print('{"name": {"description": "Whom to greet.", "required": true, "value_type": "string"}}', file=sys.stderr)
    sys.exit()
sys.stdout.write(f"Hello, {json.load(sys.stdin)['name']}!")
"#;

const NODE: &str = r#"#!/usr/bin/env node
if (process.argv[2] === "--help") {
  console.log('{"description": "Greets someone by name."}');
  console.error('{"name": {"description": "Whom to greet.", "required": true, "value_type": "string"}}');
  process.exit();
}
process.stdout.write(`Hello, ${JSON.parse(require("fs").readFileSync(0, "utf8")).name}!`);
"#;

const WARM: &str = "[[tool]]\nmatch = \"*\"\nwarm = [\"json\"]\n";
const CACHE: &str = "[env]\nset = { NODE_COMPILE_CACHE = \"/tmp/mcpd-bench-node\" }\n";

/// Names of the subjects, with their scripts and configurations.
const SUBJECTS: [(&str, &str, &str); 4] = [
    ("mcpd Python cold", PYTHON, ""),
    ("mcpd Python warm", PYTHON, WARM),
    ("mcpd Node cold", NODE, ""),
    ("mcpd Node with a cache", NODE, CACHE),
];

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut table = Table::new([
        "at a time",
        "level",
        "Python, cold",
        "Python, warm",
        "warm / cold",
        "Node, cold",
        "Node, with a cache / cold",
    ]);
    for level in ["none", "guarded"] {
        let mut lineup = Lineup::new(&lab.options);
        for (name, script, configuration) in SUBJECTS {
            let home = Home::new(&[("greet", script)], configuration)?;
            lineup.add(name, lab.http(home, &["--sandbox", level]).await?);
        }
        for at_once in AT_ONCE {
            let samples = lineup.load(&Request::greet(), at_once).await?;
            let [cold, warm, node, cached] = SUBJECTS.map(|(name, ..)| name);
            let ratio = samples.ratio(warm, cold, Sample::rate)?;
            table.row([
                at_once.to_string(),
                level.to_owned(),
                samples.figure(cold, Sample::rate)?.to_string(),
                samples.figure(warm, Sample::rate)?.to_string(),
                ratio.to_string(),
                samples.figure(node, Sample::rate)?.to_string(),
                samples.ratio(cached, node, Sample::rate)?.to_string(),
            ]);
            let what = format!("warm / cold greet in Python, {level}, {at_once} at a time");
            findings.at_least(what, MIN_RATIO, ratio);
        }
    }
    findings.table("warm", table);
    Ok(findings)
}
