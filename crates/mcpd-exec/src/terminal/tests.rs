//! Outputs and what a terminal shows of them.

use super::*;
use crate::limits::Limits;

/// Checks a text at once, and as a stream in pieces of every small length.
#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(
        String::from_utf8_lossy(&terminal_text(text.as_bytes())),
        expected,
        "{text:?}"
    );
    for length in 1..=4 {
        let captured = stream(text.as_bytes(), length, &Limits::default());
        assert_eq!(
            captured.terminal_view().to_text_lossy(),
            expected,
            "{text:?} by {length}"
        );
        assert_eq!(captured.to_text_lossy(), text);
    }
}

/// Captures a text that comes in pieces.
fn stream(text: &[u8], length: usize, limits: &Limits) -> Captured {
    let (mut capture, mut shown) = (Capture::new(limits), TerminalCapture::default());
    for piece in text.chunks(length) {
        shown.push(piece, &capture);
        capture.push(piece);
    }
    let shown = shown.finish(&capture);
    let mut captured = capture.finish();
    captured.terminal = shown;
    captured
}

#[test]
fn ordinary_text_is_not_touched() {
    for text in [
        "",
        "a\nb\n",
        "a\r\nb\r\n",
        "\r\n",
        "a\tb\u{8}\u{7}\0é\u{9b}",
        "a  \n",
    ] {
        assert!(
            matches!(terminal_text(text.as_bytes()), Cow::Borrowed(_)),
            "{text:?}"
        );
        assert!(
            stream(text.as_bytes(), 1, &Limits::default())
                .terminal
                .is_none()
        );
        check(text, text);
    }
    let latin = b"gr\xfc\xdfe\r\n";
    assert_eq!(&*terminal_text(latin), latin);
}

#[test]
fn colours_titles_and_links_are_left_out() {
    check("\x1b[1;31merror\x1b[0m: no\n", "error: no\n");
    check("\x1b[38;2;1;2;3mx\x1b[m\x1b[4:3my", "xy");
    check(
        "\x1b]0;title\x07a\x1b]8;;http://b\x1b\\link\x1b]8;;\x1b\\",
        "alink",
    );
    check("\x1b[?25la\x1b[?25h\x1b(B\x1b=", "a");
    check("\x1bPq#0~~\x1b\\a", "a");
    check("größe \x1b[32m✓\x1b[0m\n", "größe ✓\n");
}

#[test]
fn carriage_return_overwrites() {
    check("10%\r20%\r100%\n", "100%\n");
    check("abc\rX\n", "Xbc\n");
    check("before\n10%\r20%\ndone\r\n", "before\n20%\ndone\r\n");
    check("working...\rdone      \n", "done\n");
    check("a\r\r\nb\n", "a\r\nb\n");
    check("a\r", "a");
    check("日本 1%\r日本 2%", "日本 2%");
    check("ab\x1b[m\u{8}c", "ac");
}

#[test]
fn erased_text_is_gone() {
    check("10%\r\x1b[Kdone\n", "done\n");
    check("10%\x1b[2K\x1b[1Gdone\n", "done\n");
    check("a\nprogress\r\x1b[K", "a\n");
    check("one\ntwo\x1b[2J\x1b[Hthree", "one\nthree");
    check("\x1b[mone\ntwo\x1b[2J\x1b[Hthree", "three");
}

#[test]
fn cursor_goes_back_to_earlier_rows() {
    let bars = "\x1b[?25la: 0%\nb: 0%\n\x1b[2Aa: 50%\x1b[K\n\x1b[1Bb: 9%\n";
    check(bars, "a: 50%\nb: 0%\nb: 9%\n");
    check("\x1b[ma\nb\n\x1b[1A\x1b[2Kc\n", "a\nc\n");
    check("\x1b[ma\n\x1b[9Ab", "b\n");
    check("\x1b[2;3Hx\x1b[1;1Hy", "y\n  x");
    check("\x1b[ma\x1b[3Cb", "a   b");
}

#[test]
fn broken_sequence_ends_with_its_line() {
    check("a\x1b]0;never closed\nb\n", "a\nb\n");
    check("a\x1b[", "a");
    let long = [&b"a\x1b]"[..], &vec![b'x'; MAX_SEQUENCE + 2], b"b"].concat();
    assert!(terminal_text(&long).ends_with(b"b"));
}

#[test]
fn bytes_that_are_no_characters_swallow_nothing() {
    assert_eq!(
        &*terminal_text(b"\x1b[mgr\xfc\nx\xe9y\n"),
        "gr\u{fffd}\nx\u{fffd}y\n".as_bytes()
    );
    assert_eq!(&*terminal_text(b"\x1b[ma\xe2\x82"), "a\u{fffd}".as_bytes());
}

#[test]
fn long_lines_and_many_rows_are_kept_whole() {
    let line = "x".repeat(3 * MAX_ROW_LENGTH);
    check(
        &format!("\x1b[1m{line}\x1b[m\nend\n"),
        &format!("{line}\nend\n"),
    );
    let lines: String = (0..5 * MAX_ROWS).map(|n| format!("{n}\n")).collect();
    check(&format!("\x1b[m{lines}"), &lines);
}

#[test]
fn movement_makes_no_more_than_a_screen() {
    let text = "\x1b[65535C\x1b[65535;65535Hx".repeat(100);
    assert!(terminal_text(text.as_bytes()).len() < 2 * (MAX_ROWS + MAX_COLUMN));
}

#[test]
fn progress_bar_longer_than_the_capture_leaves_room_for_the_rest() {
    let mut limits = Limits::default();
    (limits.capture_head, limits.capture_tail) = (16, 16);
    let bar: String = (0..=100).map(|n| format!("\r{n}%")).collect();
    let captured = stream(format!("start\n{bar}\ndone\n").as_bytes(), 7, &limits);
    assert!(captured.omitted_bytes > 0);
    let shown = captured.terminal_view();
    assert_eq!(shown.to_text_lossy(), "start\n100%\ndone\n");
    assert_eq!(
        (shown.omitted_bytes, shown.total_bytes),
        (0, captured.total_bytes)
    );
}

#[test]
fn text_before_the_first_sequence_stays_cut_as_it_was() {
    let mut limits = Limits::default();
    (limits.capture_head, limits.capture_tail) = (4, 8);
    let captured = stream(b"0123456789abcdef\nok\x1b[m!\n", 5, &limits);
    assert_eq!(captured.terminal_view().head, "0123");
    assert_eq!(captured.terminal_view().tail, "def\nok!\n");
}
