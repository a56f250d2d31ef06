//! W3C trace context: the trace a request is part of, passed through as text. An invalid value
//! counts as absent: no request fails because of it, and no script receives arbitrary text from a
//! client.

use mcpd_protocol::meta::RequestMeta;
use serde::{Deserialize, Serialize};

/// Length of `tracestate` that every participant must pass on -- W3C Trace Context, 3.3.
const MAX_STATE_LENGTH: usize = 512;
/// Length of `baggage` that every participant must pass on -- W3C Baggage, 3.3.2.
const MAX_BAGGAGE_LENGTH: usize = 8192;

/// Trace that a request is part of, if its caller or this server keeps one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TraceContext {
    /// `traceparent`: the trace, and the parent span in it.
    pub parent: Option<String>,
    /// `tracestate`: further data of the tracing systems involved.
    pub state: Option<String>,
    /// `baggage`: data of the caller for every participant.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// Keeps the valid ones of these values.
    pub(crate) fn new(
        parent: Option<impl AsRef<str>>,
        state: Option<impl AsRef<str>>,
        baggage: Option<impl AsRef<str>>,
    ) -> Self {
        let parent = valid(parent, is_parent);
        Self {
            // "If the vendor failed to parse `traceparent`, it MUST NOT attempt to parse
            // `tracestate`" -- W3C Trace Context, 3.3.
            state: valid(state, |state| is_printable(state, MAX_STATE_LENGTH))
                .filter(|_| parent.is_some()),
            parent,
            baggage: valid(baggage, |baggage| is_printable(baggage, MAX_BAGGAGE_LENGTH)),
        }
    }

    /// Reads the trace context in the `_meta` of a message.
    pub(crate) fn of_message(meta: &RequestMeta<'_>) -> Self {
        Self::new(meta.traceparent(), meta.tracestate(), meta.baggage())
    }

    /// Returns this context, or `other` if only that one names a trace.
    pub(crate) fn or(self, other: &Self) -> Self {
        match (&self.parent, &other.parent) {
            (None, Some(_)) => other.clone(),
            _ => self,
        }
    }

    /// Id of the trace. "An all-zero value is considered an invalid value" -- W3C Trace Context,
    /// 3.2.2.3.
    pub(crate) fn id(&self) -> Option<&str> {
        let id = self.parent.as_deref()?.split('-').nth(1)?;
        id.bytes().any(|digit| digit != b'0').then_some(id)
    }

    /// Present values, by their names in `_meta` and in headers.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let members = [
            ("traceparent", &self.parent),
            ("tracestate", &self.state),
            ("baggage", &self.baggage),
        ];
        let present = members.into_iter();
        present.filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

fn valid(text: Option<impl AsRef<str>>, is_valid: impl Fn(&str) -> bool) -> Option<String> {
    let text = text?;
    let text = text.as_ref();
    is_valid(text).then(|| text.to_owned())
}

/// `VERSION-TRACE-PARENT-FLAGS` in lower-case hexadecimal -- W3C Trace Context, 3.2.
fn is_parent(text: &str) -> bool {
    let is_hex = |part: &str| {
        part.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let lengths = text.split('-').map(str::len);
    lengths.eq([2, 32, 16, 2]) && text.split('-').all(is_hex)
}

fn is_printable(text: &str, max_length: usize) -> bool {
    text.len() <= max_length && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[track_caller]
    fn check(given: [Option<&str>; 3], expected: &[(&str, &str)]) {
        let [parent, state, baggage] = given;
        let context = TraceContext::new(parent, state, baggage);
        assert_eq!(context.members().collect::<Vec<_>>(), expected, "{given:?}");
    }

    #[test]
    fn valid_trace_context_is_passed_on() {
        let (state, baggage) = ("vendor=value,other=1", "user=7");
        check(
            [Some(PARENT), Some(state), Some(baggage)],
            &[
                ("traceparent", PARENT),
                ("tracestate", state),
                ("baggage", baggage),
            ],
        );
        check([None, None, Some(baggage)], &[("baggage", baggage)]);
    }

    #[test]
    fn invalid_trace_context_is_absent() {
        for parent in [
            "",
            "00",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "() { :;}; echo",
            "00-0af7651916cd43dd8448eb211c80319\0-b7ad6b7169203331-01",
        ] {
            check([Some(parent), Some("a=b"), None], &[]);
        }
        let long = "x".repeat(513);
        for state in ["a\nb", &long] {
            check(
                [Some(PARENT), Some(state), None],
                &[("traceparent", PARENT)],
            );
        }
        check([None, Some("a=b"), Some("a\0b")], &[]);
    }

    #[test]
    fn trace_has_an_id_that_is_not_zero() {
        let id = |parent: &str| {
            let context = TraceContext::new(Some(parent), None::<&str>, None::<&str>);
            context.id().map(str::to_owned)
        };
        let trace = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(id(PARENT).as_deref(), Some(trace));
        assert_eq!(id(&PARENT.replace(trace, &"0".repeat(32))), None);
        assert_eq!(id("nonsense"), None);
        assert_eq!(TraceContext::default().id(), None);
    }

    #[test]
    fn trace_of_a_message_takes_precedence_over_headers() {
        let header = || TraceContext::new(Some(PARENT), Some("a=b"), None::<&str>);
        let other = PARENT.replace("-01", "-00");
        let message = TraceContext::new(Some(&other), None::<&str>, None::<&str>);
        assert_eq!(message.clone().or(&header()), message);
        assert_eq!(TraceContext::default().or(&header()), header());
    }
}
