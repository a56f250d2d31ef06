//! Records of what the server does: audit log, metrics and spans.

pub mod audit;
#[cfg_attr(not(feature = "metrics"), path = "observe/metrics/absent.rs")]
pub(crate) mod metrics;
#[cfg_attr(not(feature = "otel"), path = "observe/spans/absent.rs")]
pub(crate) mod spans;
