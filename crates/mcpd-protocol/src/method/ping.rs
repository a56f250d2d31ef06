//! Liveness check; stateful wire only.

use super::{EmptyResult, RequestParams, request};

request! {
    /// `ping`, from either side. The answer is exactly `{}`.
    PingRequest, "ping", RequestParams => EmptyResult
}
