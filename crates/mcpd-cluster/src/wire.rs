//! Messages of the cluster protocol: frames, identifiers, and their JSON heads.
//!
//! A frame is the length of its head (`u32`, little endian), the head (JSON), and a raw body.
//! Unknown members and events are ignored; a version that is too new is refused as such.

mod frame;
mod lines;
mod message;
mod run_id;

pub(crate) use frame::{Frame, FrameError, Head, MAX_FRAME, heads, read_run};
pub(crate) use lines::{push_line, read_lines};
pub(crate) use message::{
    Control, Cut, Event, Here, Kind, PROTOCOL_VERSION, Part, PartRequest, Pong, Refusal, Request,
    Stream, Word, bucket_name, subject_prefix,
};
pub(crate) use run_id::{RunId, random_bits};
