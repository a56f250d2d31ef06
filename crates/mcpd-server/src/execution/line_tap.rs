//! Lines of a run for another machine: those that a caller may see, without secrets.

use std::borrow::Cow;
use std::mem;
use std::sync::{Arc, Mutex};

use mcpd_exec::{Line, Stream};

use crate::execution::relay::ProgramKind;
use crate::policy::{EffectivePolicy, Redactor};
use crate::remote::OnLine;
use crate::support::sync::lock;

/// Receiver of the lines of a run.
pub(super) struct LineTap<'a> {
    kind: ProgramKind,
    redactor: Option<&'a Arc<Redactor>>,
    keeps_escapes: bool,
    state: Mutex<TapState<'a>>,
}

struct TapState<'a> {
    on_line: OnLine<'a>,
    /// The last line of stdout, and that of stderr, was a part of a longer line.
    continued: [bool; 2],
}

impl<'a> LineTap<'a> {
    pub(super) fn new(kind: ProgramKind, policy: &'a EffectivePolicy, on_line: OnLine<'a>) -> Self {
        Self {
            kind,
            redactor: policy.redactor(),
            keeps_escapes: policy.keeps_escapes(),
            state: Mutex::new(TapState {
                on_line,
                continued: [false; 2],
            }),
        }
    }

    /// Passes a line on.
    pub(super) fn accept_line(&self, line: Line<'_>) {
        if !self.kind.relays(line.stream) {
            return;
        }
        // A secret that escape sequences interrupt becomes whole without them.
        let shown = match self.keeps_escapes {
            true => Cow::Borrowed(line.bytes),
            false => mcpd_exec::terminal_text(line.bytes),
        };
        let mut state = lock(&self.state);
        let place = &mut state.continued[usize::from(line.stream == Stream::Stderr)];
        let continued = mem::replace(place, line.continues);
        let bytes = match self.redactor {
            Some(redactor) => redactor.redact_piece(&shown, continued, line.continues),
            None => Cow::Borrowed(&*shown),
        };
        (state.on_line)(Line::new(line.stream, &bytes, line.continues));
    }
}
