//! Head, tail, totals and cuts.

use super::*;

fn capture(head: usize, tail: usize, chunks: &[&[u8]]) -> Captured {
    let limits = Limits {
        capture_head: head,
        capture_tail: tail,
        ..Limits::default()
    };
    let mut capture = Capture::new(&limits);
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish()
}

#[track_caller]
fn check(head: usize, tail: usize, chunks: &[&[u8]], expected: &str) {
    assert_eq!(capture(head, tail, chunks).to_text_lossy(), expected);
}

#[test]
fn short_output_is_kept_whole() {
    check(4, 4, &[b"ab", b"cd", b"ef"], "abcdef");
    assert_eq!(capture(4, 4, &[b"abcdef"]).whole().unwrap(), "abcdef");
}

#[test]
fn middle_of_long_output_is_left_out() {
    check(
        2,
        3,
        &[b"abcd", b"ef", b"ghij"],
        "ab\n… 5 bytes left out …\nhij",
    );
    assert_eq!(capture(2, 3, &[b"abcdefghij"]).whole(), None);
}

#[test]
fn totals_are_exact() {
    let captured = capture(2, 3, &[b"abcd", b"ef", b"ghij"]);
    assert_eq!((captured.total_bytes, captured.omitted_bytes), (10, 5));
}

#[test]
fn character_on_the_border_of_head_and_tail_survives() {
    check(1, 3, &["é!".as_bytes()], "é!");
}

#[test]
fn capture_cuts_no_character() {
    // Head ends inside `é`, tail starts inside `ü`: both go, and are counted.
    check(2, 2, &["aé--üb".as_bytes()], "a\n… 6 bytes left out …\nb");
    assert!(capture(2, 2, &["aé--üb".as_bytes()]).is_utf8());
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_flagged() {
    check(8, 8, &[b"a\xff\0b"], "a\u{fffd}\0b");
    assert!(!capture(8, 8, &[b"a\xff"]).is_utf8());
}

#[test]
fn invalid_byte_at_the_cut_is_not_taken_for_a_cut_character() {
    check(2, 1, &[b"a\xff---b"], "a\u{fffd}\n… 3 bytes left out …\nb");
}

#[test]
fn stream_without_capture_is_counted() {
    check(0, 0, &[b"abc"], "\n… 3 bytes left out …\n");
}
