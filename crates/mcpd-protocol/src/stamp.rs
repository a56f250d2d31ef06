//! Stamp of the stateless wire: `resultType`, cache hints and server identity, which every result
//! there carries and no stateful result may. A handler sets none of it, and no typed result
//! becomes a response except through a [`Stamp`].

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capabilities::Implementation;
use crate::jsonrpc::{self, RequestId};
use crate::meta::ResultMeta;
use crate::version::Wire;

/// Marking of the results of one wire.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "one for each wire")]
pub enum Stamp {
    /// Results carry only what their handler set, and nothing of the stateless wire.
    Stateful,
    /// Results carry their kind, the server's identity and a cache lifetime.
    Stateless {
        /// Identity for the `_meta` of every result.
        server_info: Arc<Implementation>,
        /// Default for cacheable results whose handler gave no hint of its own.
        cache: CacheHint,
    },
}

/// Lifetime and audience of a cached result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHint {
    /// Lifetime in milliseconds; 0 means not cacheable.
    pub ttl_ms: u64,
    /// Clients that may be served from the cache.
    pub scope: CacheScope,
}

/// Clients that may be served a cached result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the schema closes this set")]
pub enum CacheScope {
    /// All clients, also when the request was authenticated.
    Public,
    /// Only the client that made the request.
    Private,
}

/// Kind of result. Extensions add values of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultType(Cow<'static, str>);

impl ResultType {
    /// The request is complete.
    pub const COMPLETE: Self = Self(Cow::Borrowed("complete"));
    /// The client is asked for input, and tries again with it.
    pub const INPUT_REQUIRED: Self = Self(Cow::Borrowed("input_required"));

    /// The request continues as a task. For clients that declared
    /// [`TASKS_EXTENSION`](crate::method::TASKS_EXTENSION).
    pub const TASK: Self = Self::extension("task");

    /// Makes a value of an extension. Only for clients that declared the extension.
    #[must_use]
    pub const fn extension(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the value on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Result that can be stamped. Every [`Method::Result`](crate::Method::Result) is one, and only
/// these can be sent.
pub trait ResultObject: Serialize {
    /// Sets the members that the wire requires and removes those that it forbids. Idempotent.
    fn stamp(&mut self, stamp: &Stamp);
}

impl CacheHint {
    /// Forbids caching; always right.
    pub const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// Makes a hint of `ttl_ms` milliseconds.
    #[must_use]
    pub const fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

/// Initial capacity in bytes: most results fit without reallocation.
const INITIAL_CAPACITY: usize = 512;

impl Stamp {
    /// Returns the wire of this stamp.
    #[must_use]
    pub const fn wire(&self) -> Wire {
        match self {
            Self::Stateful => Wire::Stateful,
            Self::Stateless { .. } => Wire::Stateless,
        }
    }

    /// Stamps and encodes the response to a request.
    ///
    /// # Errors
    /// Fails if the result has no JSON form, which no result of this crate does.
    pub fn respond(
        &self,
        id: &RequestId,
        mut result: impl ResultObject,
    ) -> serde_json::Result<Vec<u8>> {
        result.stamp(self);
        jsonrpc::response(id, &result)
    }

    /// Stamps and encodes the result alone, for many responses by [`jsonrpc::response_raw`].
    ///
    /// # Errors
    /// Fails like [`respond`](Self::respond).
    pub fn encode(&self, mut result: impl ResultObject) -> serde_json::Result<Vec<u8>> {
        result.stamp(self);
        let mut json = Vec::with_capacity(INITIAL_CAPACITY);
        serde_json::to_writer(&mut json, &result)?;
        jsonrpc::replace_nul(&mut json);
        Ok(json)
    }

    /// Sets the members that every result has.
    pub(crate) fn mark(&self, result_type: &mut Option<ResultType>, meta: &mut ResultMeta) {
        match self {
            Self::Stateful => {
                *result_type = None;
                meta.server_info = None;
            }
            Self::Stateless { server_info, .. } => {
                result_type.get_or_insert(ResultType::COMPLETE);
                meta.server_info = Some(Arc::clone(server_info));
            }
        }
    }

    /// Sets the further members of cacheable results.
    pub(crate) fn hint(&self, ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>) {
        match self {
            Self::Stateful => (*ttl_ms, *scope) = (None, None),
            Self::Stateless { cache, .. } => {
                ttl_ms.get_or_insert(cache.ttl_ms);
                scope.get_or_insert(cache.scope);
            }
        }
    }
}

/// Implements [`ResultObject`] for results with `result_type` and `meta`; after `cacheable`, for
/// those that also have `ttl_ms` and `cache_scope`.
macro_rules! stamped {
    ($($result:ty),+ $(,)?) => {$(
        impl $crate::stamp::ResultObject for $result {
            fn stamp(&mut self, stamp: &$crate::stamp::Stamp) {
                stamp.mark(&mut self.result_type, &mut self.meta);
            }
        }
    )+};
    (cacheable $($result:ty),+ $(,)?) => {$(
        impl $crate::stamp::ResultObject for $result {
            fn stamp(&mut self, stamp: &$crate::stamp::Stamp) {
                stamp.mark(&mut self.result_type, &mut self.meta);
                stamp.hint(&mut self.ttl_ms, &mut self.cache_scope);
            }
        }
    )+};
}
pub(crate) use stamped;
