//! Messages of the cluster protocol, version 1: frames, identifiers, and their JSON heads.
//!
//! A frame is the length of its head (`u32`, little endian), the head (JSON), and a raw body.
//! Unknown members and events are ignored; a version that is too new is refused as such.

mod frame;
mod message;
mod run_id;

pub(crate) use frame::{Frame, FrameError, MAX_FRAME};
pub(crate) use message::{
    Control, Cut, Event, Here, Kind, PROTOCOL_VERSION, PartRequest, Refusal, Request, Stream, Word,
};
pub(crate) use run_id::{RunId, random_bits};
