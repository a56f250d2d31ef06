//! Figures of a large cluster: cost of heartbeats, of what a front does each second, and of a
//! choice among ten thousand workers, with the catalogues that it really has.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpd_server::remote::Announcement;
use serde_json::json;

use crate::catalogue::Catalogue;
use crate::delivery::{Action, Delivery, Order, Rerun};
use crate::front::inventory::Inventory;
use crate::front::metrics;
use crate::placement::Requirements;
use crate::wire::{Frame, Here, Kind};

const WORKERS: usize = 10_000;
const SCRIPTS: usize = 100;
const CALLS: u64 = 200;
const SECONDS: u32 = 10;

/// Returns a catalogue of which one script has this digest.
fn catalogue(digest: &str) -> Catalogue {
    let announcement = |number: usize| -> Announcement {
        let digest = if number == 0 { digest } else { "sha256:0" };
        let announcement = json!({
            "path": format!("reports/script-{number}"), "digest": digest, "role": "tool",
            "level": "none", "description": {},
        });
        serde_json::from_value(announcement).expect("an announcement")
    };
    Catalogue::new((0..SCRIPTS).map(announcement))
}

/// Announcement of a worker as it crosses. One of ten has the next version of a script.
fn announcement(number: usize, catalogues: &[Catalogue; 2]) -> Bytes {
    let mut here = Here::new(&format!("worker-{number}"), 1, Kind::Worker);
    (here.slots, here.running, here.waiting) = (16, 9, 0);
    here.catalog
        .clone_from(&catalogues[usize::from(number.is_multiple_of(10))].digest);
    here.labels = vec!["eu".to_owned(), "gpu".to_owned()];
    Frame::new(here, Bytes::new())
        .encode()
        .expect("a small frame")
}

fn hear(front: &mut Delivery<Inventory>, now: Duration, announcements: &[Bytes]) {
    for bytes in announcements {
        let here = Frame::<Here>::decode(bytes).expect("a frame").head;
        front.hear_here(now, here);
    }
}

/// Does what a front does each second.
fn do_rounds(front: &mut Delivery<Inventory>, now: Duration) -> bool {
    let Delivery {
        catalogues,
        presence,
        ..
    } = front;
    let wanted = catalogues.begin_fetches(now, presence);
    assert!(wanted.is_empty(), "{wanted:?}");
    presence.echo.hear(now, now);
    let has_changed = catalogues.select(now, presence);
    front.tick(now);
    let waiting = front.waiting_by_labels();
    let text = metrics::text(now, &front.presence, waiting);
    let workers = format!("mcpd_cluster_workers{{labels=\"eu,gpu\"}} {WORKERS}");
    assert!(text.contains(&workers), "{text}");
    has_changed
}

/// Delivers calls. Returns the time that a choice takes.
fn place(front: &mut Delivery<Inventory>, now: Duration, version: &str) -> Duration {
    let begun = Instant::now();
    for call in 0..CALLS {
        let order = Order {
            requirements: Requirements {
                path: "reports/script-0".to_owned(),
                labels: vec!["gpu".to_owned()],
                ..Requirements::default()
            },
            digest: version.to_owned(),
            rerun: Rerun::Never,
        };
        front.call(now, call, call.into(), order);
    }
    let choice = begun.elapsed() / CALLS as u32;
    let actions = front.take_actions();
    let runs = actions
        .iter()
        .filter(|action| matches!(action, Action::Run { .. }));
    assert_eq!(runs.count() as u64, CALLS);
    choice
}

/// Processor time of this thread, in which other work of the machine does not count. It is exact to
/// a few milliseconds.
fn processor_time() -> Duration {
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// Memory of this process, in MB.
fn memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|size| size.parse().ok()).unwrap_or(0.0) / 1024.0
}

/// Prints figures, and checks what does not depend on the machine.
#[test]
#[ignore = "prints figures: cargo test --release -p mcpd-cluster --lib -- --ignored --nocapture figures"]
fn figures_of_ten_thousand_workers() {
    let catalogues = ["sha256:1", "sha256:2"].map(catalogue);
    let version = catalogues[0].scripts["reports/script-0"]
        .version
        .to_string();
    let announcements: Vec<_> = (0..WORKERS)
        .map(|number| announcement(number, &catalogues))
        .collect();
    let before = memory();
    let inventory = Inventory::default();
    let mut front = Delivery::new(Duration::ZERO, Duration::from_secs(10), 7, inventory);
    let mut now = Duration::from_millis(100);
    for catalogue in catalogues {
        let digest = catalogue.digest.clone();
        front.catalogues.add(now, &digest, Some(catalogue));
    }
    hear(&mut front, now, &announcements);
    assert!(do_rounds(&mut front, now));
    let served: BTreeMap<_, _> = front
        .catalogues
        .served()
        .into_iter()
        .map(|script| (script.announcement.path, script.version))
        .collect();
    assert_eq!(served.len(), SCRIPTS);
    assert_eq!(*served["reports/script-0"], *version);
    let memory = memory() - before;
    let (mut heartbeats, mut rounds) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..SECONDS {
        now += Duration::from_secs(1);
        let begun = processor_time();
        hear(&mut front, now, &announcements);
        let heard = processor_time();
        heartbeats += heard - begun;
        assert!(!do_rounds(&mut front, now));
        rounds += processor_time() - heard;
    }
    let choice = place(&mut front, now, &version);
    let begun = Instant::now();
    front.tick(now + Duration::from_millis(50));
    let tick = begun.elapsed();
    let share = |time: Duration| time.as_secs_f64() * 100.0 / f64::from(SECONDS);
    println!("{WORKERS} workers with {SCRIPTS} scripts, a heartbeat each second: {memory:.1} MB");
    println!(
        "heartbeats: {:.2} % of a core, {:?} each",
        share(heartbeats),
        heartbeats / SECONDS / WORKERS as u32
    );
    println!(
        "selection and metrics: {:.2} % of a core, {:?} a second",
        share(rounds),
        rounds / SECONDS
    );
    println!("choice: {choice:?}; tick with {CALLS} runs: {tick:?}");
}
