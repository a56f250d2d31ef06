//! Text of an examination, for people: each fault says what to do.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::{Examination, ExaminedServer, Reach};
use crate::wire::{MAX_FRAME, PROTOCOL_VERSION};

/// KiB in bytes.
const KIB: usize = 1024;

impl Display for Examination {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "cluster {}, as the node {}", self.cluster, self.node)?;
        writeln!(f, "\nservers")?;
        for server in &self.servers {
            writeln!(f, "  {server}")?;
        }
        if !self.rights.is_empty() {
            self.write_rights(f)?;
            self.write_nodes(f)?;
        }
        Ok(())
    }
}

impl Display for ExaminedServer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { url, reach } = self;
        let (version, round_trip_ms, max_payload, jetstream) = match reach {
            Reach::Unreachable(reason) => return write!(f, "{url}: not reached: {reason}"),
            Reach::Reached {
                version,
                round_trip_ms,
                max_payload,
                jetstream,
            } => (version, round_trip_ms, *max_payload, *jetstream),
        };
        write!(f, "{url}: nats-server {version}, {round_trip_ms} ms")?;
        write!(f, ", max_payload {} KiB", max_payload / KIB)?;
        match jetstream {
            true => write!(f, ", JetStream")?,
            false => write!(f, ", no JetStream: tasks end with their front")?,
        }
        if max_payload < MAX_FRAME {
            let needed = MAX_FRAME / KIB;
            write!(
                f,
                "\n    max_payload is too low: messages have up to {needed} KiB; set `max_payload: 1MB` in nats.conf"
            )?;
        }
        Ok(())
    }
}

impl Examination {
    fn write_rights(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nrights")?;
        if self.is_open {
            writeln!(
                f,
                "  any client may do everything, such as run scripts on all workers; away from one machine, give each node a key and what `mcpd cluster grants` prints"
            )?;
            return Ok(());
        }
        let node = &self.node;
        for role in &self.rights {
            let name = role.role;
            if role.is_complete() {
                writeln!(f, "  {name}: complete")?;
                continue;
            }
            let missing = |what: &str, subjects: &[String]| {
                let list = subjects.join(", ");
                (!subjects.is_empty()).then(|| format!("{what} {list}"))
            };
            let publish = missing("may not send to", &role.no_publish);
            let subscribe = missing("may not hear", &role.no_subscribe);
            let missing: Vec<_> = publish.into_iter().chain(subscribe).collect();
            writeln!(f, "  {name}: {}", missing.join("; "))?;
        }
        if self.rights.iter().all(|role| !role.is_complete()) {
            writeln!(
                f,
                "  {node} can have no role: add what `mcpd cluster grants ROLE {node} KEY` prints to nats.conf"
            )?;
        }
        Ok(())
    }

    fn write_nodes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nnodes")?;
        let Some(nodes) = &self.nodes else {
            return writeln!(
                f,
                "  not heard: only fronts and operators may hear other nodes"
            );
        };
        if nodes.is_empty() {
            writeln!(f, "  none has announced itself")?;
        }
        let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
        for node in nodes {
            write!(f, "  {}: {}", node.name, node.kind)?;
            if !node.version.is_empty() {
                *versions.entry(&node.version).or_default() += 1;
                write!(f, ", mcpd {}", node.version)?;
            }
            write!(f, ", protocol {}", node.protocol)?;
            if let Some(difference) = node.clock_ms {
                write!(f, ", clock {difference:+} ms")?;
            }
            writeln!(f)?;
            if node.is_off() {
                writeln!(
                    f,
                    "    its clock differs from that of this machine; set both by NTP"
                )?;
            }
            if node.is_foreign() {
                writeln!(
                    f,
                    "    this mcpd speaks protocol {PROTOCOL_VERSION}: neither runs scripts for the other; update the older one"
                )?;
            }
        }
        if versions.len() > 1 {
            let counts = versions
                .iter()
                .map(|(version, count)| format!("{version} ({count})"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            writeln!(f, "  versions of mcpd side by side: {counts}")?;
        }
        Ok(())
    }
}
