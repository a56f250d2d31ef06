//! Rights of nodes at the NATS server, as text for `nats.conf`: each role gets the subjects that
//! it needs, and no node can speak as another or hear what is for another.

use std::fmt::Write as _;

use crate::error::Error;
use crate::settings::Name;
use crate::wire::{bucket_name, subject_prefix};

/// Length of the public NKey of a user.
const KEY_LENGTH: usize = 56;

/// Role of a node, which decides on its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Runs scripts. It hears what is for it alone, and answers.
    Worker,
    /// Sends runs to any worker.
    Front,
    /// Serves clients and runs scripts, under one name.
    Both,
    /// Asks for the state of all nodes, and lets workers drain.
    Operator,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Front => "front",
            Self::Both => "front and worker",
            Self::Operator => "operator",
        }
    }

    /// Returns the subjects that it publishes to, below the prefix of the cluster.
    pub(crate) fn publish(self, node: &Name) -> Vec<String> {
        let here = format!("here.{node}");
        let own = |subjects: &[&str]| subjects.iter().map(ToString::to_string).collect();
        let mut subjects: Vec<String> = match self {
            Self::Worker => own(&["in.*"]),
            Self::Front => own(&["run.*", "ctl.*", "catalog.*", "who", "event"]),
            Self::Both => own(&["run.*", "ctl.*", "catalog.*", "in.*", "who", "event"]),
            Self::Operator => own(&["ctl.*", "catalog.*", "who"]),
        };
        if self != Self::Operator {
            subjects.push(here);
        }
        subjects
    }

    /// Returns the subjects that it subscribes to, below the prefix of the cluster.
    pub(crate) fn subscribe(self, node: &Name) -> Vec<String> {
        match self {
            Self::Worker => vec![format!("*.{node}"), "who".to_owned()],
            Self::Front => vec![
                "here.*".to_owned(),
                format!("in.{node}"),
                format!("ctl.{node}"),
                "event".to_owned(),
            ],
            // The first one holds `in` of this node.
            Self::Both => vec![
                format!("*.{node}"),
                "here.*".to_owned(),
                "who".to_owned(),
                "event".to_owned(),
            ],
            Self::Operator => vec!["here.*".to_owned()],
        }
    }
}

/// Returns the entry of a node in `authorization.users` of `nats.conf`. `key` is the public NKey of
/// the node.
///
/// # Errors
///
/// Fails with [`Error::Key`] if the key is not one of a user.
pub fn grants(role: Role, cluster: &Name, node: &Name, key: &str) -> Result<String, Error> {
    let is_key = key.len() == KEY_LENGTH
        && key.starts_with('U')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_key {
        return Err(Error::Key(key.to_owned()));
    }
    let prefix = subject_prefix(cluster.as_str());
    let list = |subjects: Vec<String>| {
        let quoted = subjects
            .iter()
            .map(|subject| format!("\"{prefix}.{subject}\""));
        quoted.collect::<Vec<_>>().join(", ")
    };
    let inbox = format!("\"_INBOX.{node}.>\"");
    let mut text = format!("# {} {node} of the cluster {cluster}\n{{\n", role.name());
    // Writing to a string can't fail, here and below.
    writeln!(text, "  nkey: {key}").ok();
    writeln!(text, "  permissions: {{").ok();
    let mut publish = list(role.publish(node));
    if role == Role::Front {
        publish += &tasks_bucket(cluster);
    }
    writeln!(text, "    publish: [{publish}]").ok();
    writeln!(
        text,
        "    subscribe: [{}, {inbox}]",
        list(role.subscribe(node))
    )
    .ok();
    if role != Role::Operator {
        // Events of a run go to its front for as long as it lasts.
        writeln!(
            text,
            "    allow_responses: {{max: 1000000000, expires: \"24h\"}}"
        )
        .ok();
    }
    text.push_str("  }\n}\n");
    Ok(text)
}

/// Returns the subjects with which a front uses the bucket of tasks, after those before.
fn tasks_bucket(cluster: &Name) -> String {
    let bucket = bucket_name(cluster.as_str());
    let requests = ["INFO", "CREATE", "MSG.GET", "PURGE"];
    let requests = requests.map(|request| format!(", \"$JS.API.STREAM.{request}.KV_{bucket}\""));
    format!("{}, \"$KV.{bucket}.>\"", requests.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_can_speak_as_itself_alone() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let key = format!("U{}", "A".repeat(KEY_LENGTH - 1));
        let text = grants(Role::Worker, &name("prod"), &name("gpu-7"), &key).unwrap();
        let expected = r#"# worker gpu-7 of the cluster prod
{
  nkey: KEY
  permissions: {
    publish: ["mcpd.1.prod.in.*", "mcpd.1.prod.here.gpu-7"]
    subscribe: ["mcpd.1.prod.*.gpu-7", "mcpd.1.prod.who", "_INBOX.gpu-7.>"]
    allow_responses: {max: 1000000000, expires: "24h"}
  }
}
"#;
        assert_eq!(text, expected.replace("KEY", &key));
    }

    #[test]
    fn only_the_public_key_of_a_user_gets_rights() {
        let name: Name = "gpu-7".parse().unwrap();
        let seed = format!("S{}", "A".repeat(KEY_LENGTH));
        for key in ["", "UABC", "U\"; nkey: x", &seed] {
            let refused = grants(Role::Worker, &name, &name, key);
            assert!(matches!(refused, Err(Error::Key(_))), "{key}");
        }
    }

    #[test]
    fn packaged_configuration_has_these_rights() {
        let packaged = include_str!("../../../packaging/cluster/nats.conf");
        let without_indent = |text: &str| -> String {
            let lines = text.lines().map(str::trim_start);
            lines.flat_map(|line| [line, "\n"]).collect()
        };
        let mut keys = packaged
            .lines()
            .filter_map(|line| line.trim().strip_prefix("nkey: "));
        let cluster = "default".parse().unwrap();
        for (role, node) in [(Role::Front, "front-1"), (Role::Worker, "worker-1")] {
            let key = keys.next().unwrap();
            let expected = grants(role, &cluster, &node.parse().unwrap(), key).unwrap();
            assert!(
                without_indent(packaged).contains(&without_indent(&expected)),
                "{expected}"
            );
        }
    }
}
