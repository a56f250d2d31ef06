//! Attacking clients, and one honest client meanwhile, whose service must not degrade.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::client::Client;
use crate::latency::Latency;
use crate::report::{line, promise};
use crate::request::Request;
use crate::server::{GREET, Server, Usage, build};

/// Token of the honest client, and its SHA-256.
const HONEST: &str = "6f8d2c1e9b3a47508e5d4c7b1a2f9360d8e7c6b5a4938271605f4e3d2c1b0a99";
const CONFIGURATION: &str = r#"
[[token]]
name = "honest"
sha256 = "bcb57f469236ac284d24d1d5129b7e2ae6b0f6ad5d53c14a620f4c020a129e8f"
rate = inf
"#;

/// Maximum cost of a connection, in KiB of the server's memory.
const MAX_CONNECTION_MEMORY: u64 = 40;

/// Floor of compared latencies: on a busy processor the scheduler alone causes such delays now and
/// then.
const MIN_COMPARED_LATENCY: Duration = Duration::from_millis(2);

/// Maximum time for which the server keeps a connection without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Time limit for the server to recover after an attack.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause of a slow client between two bytes.
const SLOW_BYTE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval between the arrivals of a crowd's clients: independent clients do not arrive all at
/// once.
const ARRIVAL_INTERVAL: Duration = Duration::from_millis(2);

/// Behaviour of an attacker.
#[derive(Debug, Clone, Copy)]
enum Attack {
    /// Connects, and sends nothing.
    Silence,
    /// Sends a head, one byte in ten seconds.
    SlowHead,
    /// Sends a body, one byte in ten seconds.
    SlowBody,
    /// Requests a stream of notifications, and reads nothing of it.
    DeafStream,
    /// Requests a stream of notifications, and disappears without closing it.
    LostStream,
}

/// Behaviour of a client that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// Waits for the suggested delay.
    Patient,
    /// Tries again ten times a second.
    Hasty,
}

/// Connections of an attack.
#[derive(Debug, Default)]
struct Tally {
    opened: AtomicUsize,
    /// Connections closed by the server.
    closed: AtomicUsize,
}

/// Latencies that the honest client sees.
#[derive(Debug, Default)]
struct Seen {
    calls: Latency,
    lists: Latency,
}

/// Runs every attack for this time. Returns whether every promise was kept.
///
/// # Errors
///
/// Fails if the server can't be built, or ends.
pub(crate) async fn run(each: Duration) -> anyhow::Result<bool> {
    let server = Server::start(&build()?, &[("greet", GREET)], CONFIGURATION).await?;
    // Warms the server up: allocations that are made once stay.
    crowd(&server, 64, Manners::Patient, Duration::from_secs(2)).await?;
    let rest = server.usage()?;
    let base = visit(server.address(), each).await?;
    line(format_args!("the honest client alone"));
    base.show();
    let mut kept = true;
    for (attack, connections, name) in [
        (Attack::Silence, 2000, "connections that send nothing"),
        (Attack::SlowHead, 2000, "heads, one byte in 10 s"),
        (Attack::SlowBody, 2000, "bodies, one byte in 10 s"),
        (Attack::DeafStream, 1000, "streams that nobody reads"),
        (
            Attack::LostStream,
            1000,
            "streams whose clients are gone without a word",
        ),
    ] {
        line(format_args!("{connections} {name}"));
        kept &= attack
            .judge(connections, &server, each, &base, rest)
            .await?;
        kept &= recovers(&server, rest).await?;
    }
    kept &= overload(&server, each, rest).await?;
    server.stop().await?;
    Ok(kept)
}

impl Attack {
    /// Returns whether this number of connections leaves the honest client unaffected, and they
    /// are neither kept too long nor too expensive.
    async fn judge(
        self,
        connections: usize,
        server: &Server,
        each: Duration,
        base: &Seen,
        rest: Usage,
    ) -> anyhow::Result<bool> {
        let tally = Arc::new(Tally::default());
        let mut attackers = JoinSet::new();
        for index in 0..connections {
            let (address, token) = (server.address().to_owned(), server.token().to_owned());
            let tally = Arc::clone(&tally);
            let phase = SLOW_BYTE_INTERVAL * index as u32 / connections as u32;
            attackers.spawn(async move { self.run(phase, &address, &token, &tally).await });
            // A burst would overflow the listen queue: the clients would seem connected, unknown
            // to the server.
            sleep(Duration::from_millis(1)).await;
        }
        let (seen, peak) = tokio::join!(visit(server.address(), each), peak(server, each));
        let (seen, peak) = (seen?, peak?);
        let mut kept = seen.judge(base);
        let is_to_close = !matches!(self, Self::DeafStream | Self::LostStream);
        if is_to_close {
            tally.wait_until_closed().await;
        }
        if matches!(self, Self::LostStream) {
            // A lost client can't see its end, so the server's usage shows it.
            kept &= recovers(server, rest).await?;
        }
        attackers.shutdown().await;
        let [opened, closed] = [&tally.opened, &tally.closed].map(|n| n.load(Ordering::Relaxed));
        kept &= promise(
            opened == connections && (closed == opened || !is_to_close),
            format_args!("{opened} connections were opened, and {closed} closed by the server"),
        );
        let growth = peak.saturating_sub(rest.memory);
        kept &= promise(
            growth <= MAX_CONNECTION_MEMORY * connections as u64,
            format_args!("memory grew by {growth} KiB"),
        );
        Ok(kept)
    }

    /// Runs one attacker. Its first byte comes after `phase`: independent clients do not send at
    /// the same moment.
    async fn run(
        self,
        phase: Duration,
        address: &str,
        token: &str,
        tally: &Tally,
    ) -> anyhow::Result<()> {
        let start = match self {
            Self::Silence => String::new(),
            Self::SlowHead => format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nX-Slow: "),
            Self::SlowBody => format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
            ),
            Self::DeafStream | Self::LostStream => {
                let mut client = Client::connect(address, token).await?;
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                let request = Request::new("subscriptions/listen", wanted);
                let head = client.send(&request, 1).await?;
                anyhow::ensure!(head.status == 200, "{}", head.status);
                if matches!(self, Self::LostStream) {
                    client.vanish()?;
                }
                tally.opened.fetch_add(1, Ordering::Relaxed);
                return std::future::pending().await;
            }
        };
        let mut stream = TcpStream::connect(address).await?;
        tally.opened.fetch_add(1, Ordering::Relaxed);
        stream.write_all(start.as_bytes()).await?;
        let mut answer = [0; 1024];
        let mut pause = phase;
        loop {
            match timeout(pause, stream.read(&mut answer)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => break,
                Err(_) if matches!(self, Self::Silence) => {}
                Err(_) if stream.write_all(b"x").await.is_ok() => {}
                Err(_) => break,
            }
            pause = SLOW_BYTE_INTERVAL;
        }
        tally.closed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Tally {
    /// Waits until the server has closed all connections, or has had enough time for it.
    async fn wait_until_closed(&self) {
        let start = Instant::now();
        let is_open = || self.closed.load(Ordering::Relaxed) < self.opened.load(Ordering::Relaxed);
        while is_open() && start.elapsed() < IDLE_TIMEOUT {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Seen {
    fn show(&self) {
        line(format_args!("  greet      {}", self.calls));
        line(format_args!("  tools/list {}", self.lists));
    }

    /// Returns whether the latency is close to that of `base`.
    fn judge(&self, base: &Self) -> bool {
        self.show();
        let [calls, lists] =
            [(&self.calls, &base.calls), (&self.lists, &base.lists)].map(|(now, then)| {
                let then = then.quantile(0.99).max(MIN_COMPARED_LATENCY);
                now.quantile(0.99).as_secs_f64() / then.as_secs_f64()
            });
        promise(
            calls <= 2.0 && lists <= 2.0,
            format_args!("99 % take {calls:.2} and {lists:.2} times as long as before, 2 at most"),
        )
    }
}

/// Makes a call and a list of the honest client, fifty times a second, and records their
/// latencies.
async fn visit(address: &str, time: Duration) -> anyhow::Result<Seen> {
    let mut client = Client::connect(address, HONEST).await?;
    let mut seen = Seen::default();
    let end = Instant::now() + time;
    while Instant::now() < end {
        let answer = client.call("greet", &json!({"name": "you"})).await?;
        anyhow::ensure!(answer.text() == Some("Hello, you!"), "{answer:?}");
        seen.calls.record(answer.took);
        let answer = client.list().await?;
        anyhow::ensure!(answer.status == 200, "{answer:?}");
        seen.lists.record(answer.took);
        sleep(Duration::from_millis(20)).await;
    }
    Ok(seen)
}

/// Returns the peak memory of the server in this time, in KiB.
async fn peak(server: &Server, time: Duration) -> anyhow::Result<u64> {
    let end = Instant::now() + time;
    let mut peak = 0;
    while Instant::now() < end {
        peak = peak.max(server.usage()?.memory);
        sleep(Duration::from_millis(100)).await;
    }
    Ok(peak)
}

/// Waits until the server uses no more than before.
async fn recovers(server: &Server, rest: Usage) -> anyhow::Result<bool> {
    let start = Instant::now();
    let mut usage = server.usage()?;
    while !usage.is_within(rest) && start.elapsed() < RECOVERY_TIMEOUT {
        sleep(Duration::from_millis(100)).await;
        usage = server.usage()?;
    }
    Ok(promise(
        usage.is_within(rest),
        format_args!("after {:.1?} it holds {usage}", start.elapsed()),
    ))
}

/// Makes ten times as many concurrent calls as the server can answer, beside the honest client:
/// first with clients that respect the retry delay, then with others.
async fn overload(server: &Server, each: Duration, rest: Usage) -> anyhow::Result<bool> {
    line(format_args!("64 calls at once"));
    let (base, full) = crowd(server, 64, Manners::Patient, each).await?;
    base.show();
    full.show(each);
    let mut kept = true;
    for (manners, name) in [
        (Manners::Patient, "wait as they are told"),
        (Manners::Hasty, "try again ten times a second"),
    ] {
        line(format_args!("640 calls at once, of clients that {name}"));
        let (seen, crowd) = crowd(server, 640, manners, each).await?;
        crowd.show(each);
        kept &= seen.judge(&base);
        kept &= crowd.judge(&full, manners);
        kept &= recovers(server, rest).await?;
    }
    Ok(kept)
}

/// Combined results of many clients.
#[derive(Debug, Default)]
struct Crowd {
    answered: Latency,
    refused: Latency,
    wrong: usize,
}

impl Crowd {
    fn show(&self, time: Duration) {
        let rate = self.answered.count() as f64 / time.as_secs_f64();
        line(format_args!(
            "  answered   {} ({rate:.0} a second)",
            self.answered
        ));
        line(format_args!("  refused    {}", self.refused));
    }

    /// Returns whether as many calls were answered as before, and the others refused at once.
    /// Hasty clients take processor time from the scripts, so that only their answers have to be
    /// right.
    fn judge(&self, before: &Self, manners: Manners) -> bool {
        let right = promise(
            self.wrong == 0,
            format_args!("{} wrong answers", self.wrong),
        );
        if manners == Manners::Hasty {
            return right;
        }
        let share = self.answered.count() as f64 / before.answered.count() as f64;
        let answered = promise(
            share >= 0.9,
            format_args!("{share:.2} as many answers as before, 0.9 at least"),
        );
        let refusal = self.refused.quantile(0.99);
        let at_once = promise(
            self.refused.count() == 0 || refusal <= Duration::from_millis(10),
            format_args!("99 % of refusals take {refusal:.1?}, 10 ms at most"),
        );
        right & answered & at_once
    }
}

/// Runs this number of clients that call without a pause, and the honest one meanwhile.
async fn crowd(
    server: &Server,
    clients: usize,
    manners: Manners,
    time: Duration,
) -> anyhow::Result<(Seen, Crowd)> {
    let begin = Instant::now() + ARRIVAL_INTERVAL * clients as u32;
    let end = begin + time;
    let mut calling = JoinSet::new();
    for _ in 0..clients {
        let mut client = Client::connect(server.address(), server.token()).await?;
        calling.spawn(async move {
            let mut crowd = Crowd::default();
            while Instant::now() < end {
                let all_are_there = Instant::now() >= begin;
                let answer = client.call("greet", &json!({"name": "you"})).await?;
                if answer.text() == Some("Hello, you!") {
                    if all_are_there {
                        crowd.answered.record(answer.took);
                    }
                } else if let Some(wait) = answer.wait() {
                    crowd.refused.record(answer.took);
                    sleep(match manners {
                        Manners::Patient => wait,
                        Manners::Hasty => Duration::from_millis(100),
                    })
                    .await;
                } else {
                    crowd.wrong += 1;
                }
            }
            anyhow::Ok(crowd)
        });
        sleep(ARRIVAL_INTERVAL).await;
    }
    let seen = visit(server.address(), time).await?;
    let mut sum = Crowd::default();
    while let Some(crowd) = calling.join_next().await {
        let crowd = crowd.context("a client panicked")??;
        sum.answered.add(&crowd.answered);
        sum.refused.add(&crowd.refused);
        sum.wrong += crowd.wrong;
    }
    Ok((seen, sum))
}
