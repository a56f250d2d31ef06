//! Frame of a message: length of the head, head, body. Decoding never trusts a length.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::PROTOCOL_VERSION;
use super::run_id::RunId;

/// Maximum size of a frame in bytes. A server closes the connection of a client that sends more
/// than its `max_payload`, which is 1 MiB unless the operator says otherwise.
pub(crate) const MAX_FRAME: usize = 768 * 1024;

/// Decoded frame, or one to encode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame<H> {
    pub(crate) head: H,
    pub(crate) body: Bytes,
}

/// Reason for which bytes are not a frame of this version, or a message is no frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("frame of {0} bytes, but {MAX_FRAME} are the limit")]
    TooLarge(usize),
    #[error("frame ends within its head")]
    Truncated,
    #[error("head of the frame: {0}")]
    Head(#[from] serde_json::Error),
    #[error("protocol version {0}, but this is version {PROTOCOL_VERSION}")]
    Version(u32),
}

/// Part of every head that is read when the rest can't be.
#[derive(serde::Deserialize)]
struct Version {
    v: u32,
}

impl<H> Frame<H> {
    pub(crate) fn new(head: H, body: impl Into<Bytes>) -> Self {
        Self {
            head,
            body: body.into(),
        }
    }
}

impl<H: Serialize> Frame<H> {
    /// Encodes the frame.
    ///
    /// # Errors
    ///
    /// Fails if it is larger than [`MAX_FRAME`].
    pub(crate) fn encode(&self) -> Result<Bytes, FrameError> {
        let head = serde_json::to_vec(&self.head)?;
        let size = 4 + head.len() + self.body.len();
        if size > MAX_FRAME {
            return Err(FrameError::TooLarge(size));
        }
        let mut bytes = BytesMut::with_capacity(size);
        bytes.put_u32_le(u32::try_from(head.len()).map_err(|_| FrameError::TooLarge(size))?);
        bytes.put_slice(&head);
        bytes.put_slice(&self.body);
        Ok(bytes.freeze())
    }
}

/// Head of a message, which has the version of its protocol.
pub(crate) trait Head: DeserializeOwned {
    /// Version that the message says it has.
    fn version(&self) -> u32;
}

macro_rules! heads {
    ($($head:ty),*) => {
        $(impl $crate::wire::Head for $head {
            fn version(&self) -> u32 {
                self.v
            }
        })*
    };
}
pub(crate) use heads;

impl<H: Head> Frame<H> {
    /// Decodes a frame; its body shares the memory of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails for bytes of any other form, and for a newer version.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, FrameError> {
        if bytes.len() > MAX_FRAME {
            return Err(FrameError::TooLarge(bytes.len()));
        }
        let (length, rest) = bytes.split_first_chunk().ok_or(FrameError::Truncated)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let head = rest.get(..length).ok_or(FrameError::Truncated)?;
        let parsed: Result<H, _> = serde_json::from_slice(head);
        let version = match &parsed {
            Ok(head) => head.version(),
            // A newer version may have changed everything but this.
            Err(_) => serde_json::from_slice(head).map_or(0, |Version { v }| v),
        };
        if version > PROTOCOL_VERSION {
            return Err(FrameError::Version(version));
        }
        Ok(Self {
            head: parsed?,
            body: bytes.slice(4 + length..),
        })
    }
}

/// Reads the id of a run from a head that can't be read otherwise.
pub(crate) fn read_run(bytes: &Bytes) -> Option<RunId> {
    #[derive(serde::Deserialize)]
    struct Head {
        run: RunId,
    }
    let (length, rest) = bytes.split_first_chunk()?;
    let head = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    serde_json::from_slice::<Head>(head)
        .ok()
        .map(|head| head.run)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{Control, Event, Here, RunId, Word};

    fn check_any(bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        // Whatever comes, it is an error or a message, never a panic.
        drop(Frame::<Event>::decode(&bytes));
        drop(Frame::<Control>::decode(&bytes));
        drop(Frame::<Here>::decode(&bytes));
    }

    proptest! {
        #[test]
        fn hostile_frames_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check_any(&bytes);
        }

        #[test]
        fn hostile_heads_are_errors(length in any::<u32>(), head in ".{0,80}", body in any::<u64>()) {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(&body.to_le_bytes());
            check_any(&bytes);
        }

        #[test]
        fn frames_round_trip(id in any::<u128>(), attempt in any::<u8>(), epoch in any::<u64>(), body in prop::collection::vec(any::<u8>(), 0..2000)) {
            let run = RunId { id, attempt };
            let event = Event::new(run, "gpu-7", epoch >> 1, Word::Lines { dropped: 3 });
            let frame = Frame::new(event, body);
            let decoded = Frame::<Event>::decode(&frame.encode().unwrap()).unwrap();
            prop_assert_eq!(decoded, frame);
        }
    }

    #[test]
    fn newer_version_is_refused_as_such() {
        let head = br#"{"v": 2, "changed": ["beyond", "recognition"]}"#;
        let mut bytes = u32::try_from(head.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(head);
        let error = Frame::<Event>::decode(&bytes.into()).unwrap_err();
        assert!(matches!(error, FrameError::Version(2)), "{error}");
    }

    #[test]
    fn unknown_members_and_events_are_ignored() {
        let head = br#"{"v": 1, "run": "000000000000000000000000000000ff.1", "node": "a", "epoch": 7, "event": "sings", "song": "la"}"#;
        let mut bytes = u32::try_from(head.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(head);
        let event = Frame::<Event>::decode(&bytes.into()).unwrap().head;
        assert_eq!(event.word, Word::Other);
        assert_eq!(
            event.run,
            RunId {
                id: 255,
                attempt: 1
            }
        );
    }

    #[test]
    fn oversized_frame_is_never_sent() {
        let event = Event::new(RunId { id: 1, attempt: 0 }, "a", 1, Word::Accepted);
        let error = Frame::new(event, vec![0; MAX_FRAME]).encode().unwrap_err();
        assert!(matches!(error, FrameError::TooLarge(_)), "{error}");
    }
}
