//! Figures of a large cluster: cost of heartbeats and of a choice among ten thousand workers.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::world::Everything;
use crate::delivery::{Action, Delivery, Order, Rerun};
use crate::placement::Requirements;
use crate::wire::{Frame, Here, Kind};

const WORKERS: usize = 10_000;
const CALLS: u64 = 200;

/// Announcement of a worker as it crosses.
fn announcement(number: usize) -> Bytes {
    let mut here = Here::new(&format!("worker-{number}"), 1, Kind::Worker);
    (here.slots, here.running, here.waiting) = (16, 9, 0);
    here.catalog = "0123456789abcdef0123456789abcdef".to_owned();
    here.labels = vec!["eu".to_owned(), "gpu".to_owned()];
    Frame::new(here, Bytes::new())
        .encode()
        .expect("a small frame")
}

fn hear(front: &mut Delivery<Everything>, now: Duration, announcements: &[Bytes]) {
    for bytes in announcements {
        let here = Frame::<Here>::decode(bytes).expect("a frame").head;
        front.hear_here(now, here);
    }
}

/// Prints figures, and checks what does not depend on the machine.
#[test]
#[ignore = "prints figures: cargo test --profile bench -p mcpd-cluster --lib -- --ignored --nocapture figures"]
fn figures_of_ten_thousand_workers() {
    let announcements: Vec<_> = (0..WORKERS).map(announcement).collect();
    let mut front = Delivery::new(Duration::ZERO, Duration::from_secs(10), 7, Everything);
    let mut now = Duration::from_millis(100);
    hear(&mut front, now, &announcements);
    let begun = Instant::now();
    for _ in 0..3 {
        now += Duration::from_millis(300);
        hear(&mut front, now, &announcements);
    }
    let heartbeat = begun.elapsed() / (3 * WORKERS as u32);
    let begun = Instant::now();
    for call in 0..CALLS {
        let order = Order {
            requirements: Requirements {
                labels: vec!["gpu".to_owned()],
                ..Requirements::default()
            },
            digest: String::new(),
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
    let begun = Instant::now();
    front.tick(now + Duration::from_millis(50));
    let tick = begun.elapsed();
    println!("heartbeat: {heartbeat:?}; choice: {choice:?}; tick with {CALLS} runs: {tick:?}");
    let share = heartbeat.as_secs_f64() * WORKERS as f64 * 100.0;
    println!("heartbeats of {WORKERS} workers, one a second: {share:.1} % of a core");
}
