//! Key-value bucket of JetStream: values by keys, with compare-and-set. Reads go to the leader of
//! the stream, so that each sees every write before it.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::kv::{EntryError, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, kv};
use bytes::Bytes;
use futures_util::TryStreamExt as _;

use super::Node;

/// Time limit of one request to JetStream.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a bucket in bytes. The server refuses what is above it.
const MAX_BYTES: i64 = 512 << 20;

/// Bucket that exists.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    store: Store,
}

/// Value, and its revision.
#[derive(Debug, Clone)]
pub(crate) struct Revised {
    pub(crate) value: Bytes,
    pub(crate) revision: u64,
}

impl Node {
    /// Opens a bucket, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Says what the operator can do.
    pub(crate) async fn open_bucket(&self, name: &str, replicas: usize) -> Result<Bucket, String> {
        open(self.client.clone(), name, replicas).await
    }
}

async fn open(client: Client, name: &str, replicas: usize) -> Result<Bucket, String> {
    let mut context = jetstream::new(client);
    context.set_timeout(REQUEST_TIMEOUT);
    // Servers before 2.10 know no settings of newer ones, so the stream is made without these.
    let stream = Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        max_bytes: MAX_BYTES,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: replicas,
        allow_rollup: true,
        ..Config::default()
    };
    if context.get_stream(&stream.name).await.is_err() {
        let created = context.create_stream(stream).await;
        if let Err(error) = created {
            // Another front may have been faster, with other settings.
            let exists = context.get_key_value(name).await;
            let Ok(store) = exists else {
                return Err(describe_refusal(name, &error.kind(), &error.to_string()));
            };
            return Ok(Bucket { store });
        }
    }
    let store = context.get_key_value(name).await;
    let store = store.map_err(|error| format!("open the bucket `{name}`: {error}"))?;
    Ok(Bucket { store })
}

fn describe_refusal(name: &str, kind: &CreateStreamErrorKind, error: &str) -> String {
    match kind {
        CreateStreamErrorKind::JetStreamUnavailable => {
            "the NATS server has no JetStream: add `jetstream {store_dir: …}` to its configuration \
             (or start it with `-js`), or set `tasks = \"front\"` in `[cluster]`"
                .to_owned()
        }
        CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response => format!(
            "the NATS server does not answer requests for the bucket `{name}`: it has no JetStream \
             or this node lacks the rights that `mcpd cluster grants front` prints"
        ),
        _ => format!("create the bucket `{name}`: {error}"),
    }
}

impl Bucket {
    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Revised>, String> {
        let entry: Result<Option<kv::Entry>, EntryError> = self.store.entry(key).await;
        let entry = entry.map_err(|error| format!("read `{key}`: {error}"))?;
        let entry = entry.filter(|entry| entry.operation == kv::Operation::Put);
        Ok(entry.map(|entry| Revised {
            value: entry.value,
            revision: entry.revision,
        }))
    }

    /// Sets the value of a key if its revision is this one; 0 means that it must not exist.
    /// Returns whether it was set.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub(crate) async fn set(&self, key: &str, value: Bytes, revision: u64) -> Result<bool, String> {
        match self.store.update(key, value, revision).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
            Err(error) => Err(format!("write `{key}`: {error}")),
        }
    }

    /// Returns the keys of a pattern.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub(crate) async fn keys(&self, pattern: &str) -> Result<Vec<String>, String> {
        let prefix = &self.store.prefix;
        let filter = format!("{prefix}{pattern}");
        let listed = async {
            let subjects = self.store.stream.info_with_subjects(filter).await?;
            subjects.try_collect::<Vec<_>>().await
        };
        let subjects = listed
            .await
            .map_err(|error| format!("list `{pattern}`: {error}"))?;
        let keys = subjects
            .into_iter()
            .filter_map(|(subject, _)| Some(subject.strip_prefix(&**prefix)?.to_owned()));
        Ok(keys.collect())
    }

    /// Removes the values of a pattern.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub(crate) async fn remove(&self, pattern: &str) -> Result<(), String> {
        let filter = format!("{}{pattern}", self.store.prefix);
        let purged = self.store.stream.purge().filter(filter).await;
        purged
            .map(drop)
            .map_err(|error| format!("remove `{pattern}`: {error}"))
    }
}
