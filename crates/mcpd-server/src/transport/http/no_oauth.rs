//! Stub of OAuth for builds without its feature: no token of an issuer is accepted.

use hyper::header::HeaderValue;
use serde_json::Value;

use super::auth::{Problem, Unidentified};
use crate::policy::principal::Principal;

/// Uninhabited: without the feature no value exists.
#[derive(Debug)]
pub(super) enum OAuth {}

#[expect(clippy::unused_async, reason = "with OAuth it waits")]
impl OAuth {
    pub(super) async fn principal(&self, _: &[u8], _: &str) -> Result<Principal, Unidentified> {
        match *self {}
    }

    pub(super) fn inherit_keys(&self, _: &Self) {
        match *self {}
    }

    pub(super) fn challenge(&self, _: Problem<'_>, _: &str) -> HeaderValue {
        match *self {}
    }

    pub(super) fn metadata(&self, _: &str, _: &str) -> Option<Value> {
        match *self {}
    }
}
