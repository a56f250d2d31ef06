//! State of nodes as text for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{NodeStatus, status};
use crate::settings::Settings;

/// Digits of a digest that people compare.
const SHOWN_DIGITS: usize = 12;

/// Describes nodes, a line for each, and then the scripts that workers have different versions of.
#[must_use]
pub fn describe(nodes: &[NodeStatus]) -> String {
    let lines = nodes.iter().map(line).collect::<String>();
    lines + &differences(nodes)
}

/// Describes the nodes that announce themselves.
///
/// # Errors
///
/// Says what failed, if there is no connection.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn described_status(settings: Settings) -> Result<String, String> {
    let nodes = status(&settings).await;
    let nodes = nodes.map_err(|error| format!("failed to {error}"))?;
    Ok(describe(&nodes))
}

fn line(node: &NodeStatus) -> String {
    let mut text = format!("{}  {}  mcpd {}", node.name, node.kind(), node.version);
    // Writing to a string can't fail, here and below.
    if node.is_worker {
        let (running, waiting, slots) = (node.running, node.waiting, node.slots);
        let scripts = node.scripts.len();
        write!(
            text,
            "  {running} of {slots} running, {waiting} waiting  {scripts} scripts"
        )
        .ok();
    }
    if !node.labels.is_empty() {
        write!(text, "  [{}]", node.labels.join(", ")).ok();
    }
    text + if node.is_draining {
        "  draining\n"
    } else {
        "\n"
    }
}

/// Lists the scripts of which there is more than one version.
fn differences(nodes: &[NodeStatus]) -> String {
    let mut versions: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for node in nodes {
        for (path, digest) in node.scripts.iter() {
            let digests = versions.entry(path).or_default();
            digests.entry(digest).or_default().push(&node.name);
        }
    }
    let mut text = String::new();
    for (path, digests) in versions.iter().filter(|(_, digests)| digests.len() > 1) {
        writeln!(text, "{path} has {} versions:", digests.len()).ok();
        for (digest, nodes) in digests {
            let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
            let digits: String = digest.chars().take(SHOWN_DIGITS).collect();
            writeln!(text, "  {digits}  {}", nodes.join(", ")).ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str, version: &str) -> NodeStatus {
        NodeStatus {
            name: name.to_owned(),
            is_worker: true,
            version: "0.1.0".to_owned(),
            slots: 4,
            running: 1,
            waiting: 0,
            labels: vec!["gpu".to_owned()],
            is_draining: name == "w2",
            catalog: "sha256:c".to_owned(),
            scripts: [("greet".to_owned(), format!("sha256:{version}"))].into(),
        }
    }

    #[test]
    fn versions_that_differ_are_listed_below_the_nodes() {
        let nodes = [worker("w1", "0123456789abcdef"), worker("w2", "fedcba")];
        let expected = "\
w1  worker  mcpd 0.1.0  1 of 4 running, 0 waiting  1 scripts  [gpu]
w2  worker  mcpd 0.1.0  1 of 4 running, 0 waiting  1 scripts  [gpu]  draining
greet has 2 versions:
  0123456789ab  w1
  fedcba  w2
";
        assert_eq!(describe(&nodes), expected);
    }

    #[test]
    fn programs_read_the_kind_and_the_scripts_of_a_node() {
        let json = serde_json::to_value(worker("w1", "01")).unwrap();
        assert_eq!(json["kind"], "worker");
        assert_eq!(json["node"], "w1");
        assert_eq!(json["scripts"]["greet"], "sha256:01");
    }
}
