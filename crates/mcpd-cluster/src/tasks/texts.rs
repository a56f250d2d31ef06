//! Texts of tasks in the bucket: within the record, or in parts that never change.

use bytes::Bytes;

use super::Inner;
use super::record::{MAX_INLINE, Text};
use crate::wire::random_bits;

/// Size of a part in bytes.
const PART: usize = 512 * 1024;

impl Inner {
    /// Stores a text of the task with this key, unless the record has room for it.
    pub(super) async fn store_text(&self, key: &str, text: Option<String>) -> Result<Text, String> {
        let Some(text) = text else {
            return Ok(Text::None);
        };
        if text.len() <= MAX_INLINE {
            return Ok(Text::Here(text));
        }
        let bucket = self.bucket().await?;
        let name = format!("{:032x}", random_bits());
        let bytes = Bytes::from(text);
        let mut count = 0;
        while let Some(start) = usize::try_from(count).ok().map(|count| count * PART)
            && start < bytes.len()
        {
            let part = bytes.slice(start..bytes.len().min(start + PART));
            bucket
                .set(&format!("{key}.{name}.{count}"), part, 0)
                .await?;
            count += 1;
        }
        Ok(Text::Parts { name, count })
    }

    /// Loads a text of the task with this key.
    pub(super) async fn load_text(&self, key: &str, text: &Text) -> Result<Option<String>, String> {
        let (name, count) = match text {
            Text::None => return Ok(None),
            Text::Here(text) => return Ok(Some(text.clone())),
            Text::Parts { name, count } => (name, count),
        };
        let bucket = self.bucket().await?;
        let mut bytes = Vec::new();
        for number in 0..*count {
            let part = bucket.get(&format!("{key}.{name}.{number}")).await?;
            let part = part.ok_or_else(|| format!("a part of the task `{key}` is missing"))?;
            bytes.extend_from_slice(&part.value);
        }
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Ok(Some(text))
    }
}
