//! What every result of the stateless wire carries and no stateful result may: `resultType`, cache
//! hints, and who answered. A handler fills in none of it, and no typed result becomes a response
//! except through a [`Stamp`].

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capabilities::Implementation;
use crate::jsonrpc::{self, RequestId};
use crate::meta::ResultMeta;
use crate::version::Wire;

/// How the results of one wire are marked.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "one for each wire")]
pub enum Stamp {
    /// Results carry what their handler put in, and nothing of the stateless wire.
    Stateful,
    /// Results say what they are, who answered, and how long a list may be kept.
    Stateless {
        /// Goes into `_meta` of every result.
        server_info: Arc<Implementation>,
        /// For cacheable results whose handler gave no hint of its own.
        cache: CacheHint,
    },
}

/// How long, and by whom, a result may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHint {
    /// Milliseconds; 0 means not at all.
    pub ttl_ms: u64,
    /// Who may be served from the cache.
    pub scope: CacheScope,
}

/// Who may be served a cached result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the schema closes this set")]
pub enum CacheScope {
    /// Everybody, also when the request was authenticated.
    Public,
    /// Only who asked.
    Private,
}

/// What kind of result this is. Extensions add values of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultType(Cow<'static, str>);

impl ResultType {
    /// The request is done.
    pub const COMPLETE: Self = Self(Cow::Borrowed("complete"));
    /// The client is asked for input, and tries again with it.
    pub const INPUT_REQUIRED: Self = Self(Cow::Borrowed("input_required"));

    /// The request goes on as a task. For clients that declared [`TASKS_EXTENSION`](crate::TASKS_EXTENSION).
    pub const TASK: Self = Self::extension("task");

    /// A value an extension defines. Only for clients that declared the extension.
    #[must_use]
    pub const fn extension(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The value on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A result that can be stamped. Every [`Method::Result`](crate::Method::Result) is one, and only
/// these can be sent.
pub trait ResultObject: Serialize {
    /// Sets what the wire wants and takes away what it forbids. A second time changes nothing.
    fn stamp(&mut self, stamp: &Stamp);
}

impl CacheHint {
    /// Not to be kept: always right.
    pub const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// A hint of `ttl_ms` milliseconds.
    #[must_use]
    pub const fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

/// Bytes that most results have room in: they need not be moved while they grow.
const USUAL: usize = 512;

impl Stamp {
    /// The wire this stamp is for.
    #[must_use]
    pub const fn wire(&self) -> Wire {
        match self {
            Self::Stateful => Wire::Stateful,
            Self::Stateless { .. } => Wire::Stateless,
        }
    }

    /// The response to a request, stamped and encoded.
    ///
    /// # Errors
    /// When the result has no JSON form: not with the results of this crate.
    pub fn respond(
        &self,
        id: &RequestId,
        mut result: impl ResultObject,
    ) -> serde_json::Result<Vec<u8>> {
        result.stamp(self);
        jsonrpc::response(id, &result)
    }

    /// The result alone, stamped and encoded, for many responses by [`jsonrpc::response_raw`].
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn encode(&self, mut result: impl ResultObject) -> serde_json::Result<Vec<u8>> {
        result.stamp(self);
        let mut json = Vec::with_capacity(USUAL);
        serde_json::to_writer(&mut json, &result)?;
        jsonrpc::replace_nul(&mut json);
        Ok(json)
    }

    /// The members every result has.
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

    /// The members cacheable results have besides.
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
