//! Tests of the relay, on a paused clock that advances only while a test waits.

use std::time::Duration;

use bytes::Bytes;
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::meta::ProgressToken;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;
use crate::client::outbox::Outbox;

const MILLIS_100: Duration = Duration::from_millis(100);

/// Creates a relay to a caller that wants all messages.
fn relay(kind: ProgramKind) -> (Relay<'static>, mpsc::Receiver<Bytes>) {
    let (outbox, messages) = Outbox::new();
    let level = Some(LoggingLevel::Debug);
    let token = Some(ProgressToken::from(RequestId::from(1)));
    let side = SideStream::new(outbox, ProtocolVersion::LATEST, level, token);
    (Relay::with_redactor(kind, "tool", None, side), messages)
}

fn out(relay: &Relay<'_>, line: &str) {
    relay.relay_line(Stream::Stdout, line.as_bytes(), false);
}

fn err(relay: &Relay<'_>, line: &str) {
    relay.relay_line(Stream::Stderr, line.as_bytes(), false);
}

/// Received messages: `LEVEL text` of the log, `NUMBER/TOTAL text` of progress.
fn receive_all(messages: &mut mpsc::Receiver<Bytes>) -> Vec<String> {
    let mut received = Vec::new();
    while let Ok(message) = messages.try_recv() {
        let message: Value = serde_json::from_slice(&message).unwrap();
        let params = &message["params"];
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        received.push(match params.get("progress") {
            Some(progress) => {
                let total = params.get("total").map(|total| format!("/{total}"));
                format!(
                    "{progress}{} {}",
                    total.unwrap_or_default(),
                    text("message")
                )
            }
            None => format!("{} {}", text("level"), text("data")),
        });
    }
    received
}

#[tokio::test(start_paused = true)]
async fn command_lines_are_sent_while_it_runs() {
    let (relay, mut messages) = relay(ProgramKind::Command);
    let run = async {
        sleep(Duration::from_secs(1)).await;
        out(&relay, "one");
        sleep(FIRST_LINES_DELAY + MILLIS_100).await;
        assert_eq!(receive_all(&mut messages), ["info one", "1 one"]);
        err(&relay, "two\r");
        out(&relay, "");
        sleep(MILLIS_100).await;
        assert_eq!(receive_all(&mut messages), ["info two", "2 two"]);
        out(&relay, "three");
    };
    relay.relay_while(pin!(run)).await;
    assert_eq!(receive_all(&mut messages), ["info three", "3 three"]);
}

#[tokio::test(start_paused = true)]
async fn short_run_sends_no_lines() {
    let (relay, mut messages) = relay(ProgramKind::Command);
    relay
        .relay_while(pin!(async {
            sleep(Duration::from_secs(1)).await;
            out(&relay, "one");
            sleep(MILLIS_100).await;
        }))
        .await;
    assert_eq!(receive_all(&mut messages), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn line_rate_limit_sends_the_last_and_counts_the_others() {
    let (relay, mut messages) = relay(ProgramKind::Command);
    let run = async {
        for line in 1..=1000 {
            out(&relay, &line.to_string());
        }
        sleep(FIRST_LINES_DELAY + MILLIS_100).await;
        let first = receive_all(&mut messages);
        assert_eq!(first.len(), 2 * MAX_LINES_PER_WINDOW);
        assert_eq!(first[0], "info [… 980 lines] 981");
        assert_eq!(first[39], "20 1000");
        for line in 1001..=1100 {
            out(&relay, &line.to_string());
        }
        sleep(WINDOW / 2).await;
        assert_eq!(receive_all(&mut messages), [""; 0]);
        sleep(WINDOW / 2).await;
        let second = receive_all(&mut messages);
        assert_eq!(second.len(), 2 * MAX_LINES_PER_WINDOW);
        assert_eq!(second[1], "21 [… 80 lines] 1081");
    };
    relay.relay_while(pin!(run)).await;
}

#[tokio::test(start_paused = true)]
async fn script_progress_keeps_its_numbers() {
    let (relay, mut messages) = relay(ProgramKind::TextScript);
    let run = async {
        out(&relay, "begin");
        sleep(FIRST_LINES_DELAY + MILLIS_100).await;
        err(&relay, "PROGRESS 1/3 first");
        err(&relay, "WARNING look");
        out(&relay, "printed");
        sleep(MILLIS_100).await;
        err(&relay, "PROGRESS 2/3");
    };
    relay.relay_while(pin!(run)).await;
    let expected = [
        "info begin",
        "1e-6 begin",
        "1/3 first",
        "warning look",
        "info printed",
        "2/3 ",
    ];
    assert_eq!(receive_all(&mut messages), expected);
}

#[tokio::test(start_paused = true)]
async fn structured_stdout_is_not_sent_by_line() {
    let (relay, mut messages) = relay(ProgramKind::Script);
    let run = async {
        out(&relay, "{");
        err(&relay, "reading");
        sleep(FIRST_LINES_DELAY + MILLIS_100).await;
    };
    relay.relay_while(pin!(run)).await;
    assert_eq!(receive_all(&mut messages), ["info reading"]);
}

#[tokio::test(start_paused = true)]
async fn heartbeat_breaks_long_silence() {
    let (relay, mut messages) = relay(ProgramKind::Script);
    let run = async {
        sleep(Duration::from_secs(25)).await;
        let beats = [
            "1e-6 still running after 10 s",
            "2e-6 still running after 20 s",
        ];
        assert_eq!(receive_all(&mut messages), beats);
        err(&relay, "PROGRESS 3/10 third");
        sleep(Duration::from_secs(11)).await;
        assert_eq!(
            receive_all(&mut messages),
            ["3/10 third", "3.000001/10 third"]
        );
        err(&relay, "PROGRESS 4/10");
    };
    relay.relay_while(pin!(run)).await;
    assert_eq!(receive_all(&mut messages), ["4/10 "]);
}

/// Covers a script that restarts its numbers, and one that repeats a number.
#[tokio::test(start_paused = true)]
async fn stagnant_progress_does_not_delay_the_heartbeat() {
    let (relay, mut messages) = relay(ProgramKind::Script);
    let run = async {
        err(&relay, "PROGRESS 3/10 waiting");
        for _ in 0..4 {
            sleep(Duration::from_secs(4)).await;
            err(&relay, "PROGRESS 1/5 again");
        }
        assert_eq!(
            receive_all(&mut messages),
            ["3/10 waiting", "3.000001/5 again"]
        );
    };
    relay.relay_while(pin!(run)).await;
}

#[test]
fn long_stderr_line_is_one_message() {
    let (relay, mut messages) = relay(ProgramKind::Script);
    relay.relay_line(
        Stream::Stderr,
        "WARN begin ä".as_bytes().split_last().unwrap().1,
        true,
    );
    relay.relay_line(Stream::Stderr, b"PROGRESS 5", true);
    err(&relay, "ERROR end");
    err(&relay, "next");
    assert_eq!(receive_all(&mut messages), ["warning begin …", "info next"]);
}

#[tokio::test(start_paused = true)]
async fn long_line_is_cut() {
    let (relay, mut messages) = relay(ProgramKind::Command);
    let run = async {
        relay.relay_line(Stream::Stdout, &[b'x'; 2 * MAX_LINE_LENGTH], true);
        relay.relay_line(Stream::Stdout, b"its end", false);
        out(&relay, "next");
        sleep(FIRST_LINES_DELAY).await;
    };
    relay.relay_while(pin!(run)).await;
    let cut = "x".repeat(MAX_LINE_LENGTH) + "…";
    let expected = [
        format!("info {cut}"),
        format!("1 {cut}"),
        "info next".to_owned(),
        "2 next".to_owned(),
    ];
    assert_eq!(receive_all(&mut messages), expected);
}
