//! Content blocks: what tools and prompts are made of, and what a resource holds.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::json;
use crate::meta::Meta;
use crate::method::Resource;

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    expecting = "a content block, which is an object"
)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound; since 2025-03-26.
    Audio(AudioContent),
    /// A resource to read by its URI; since 2025-06-18.
    ResourceLink(Resource),
    /// A resource, contents and all.
    Resource(EmbeddedResource),
}

/// Text of a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A picture in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes in Base64.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Sound in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes in Base64.
    pub data: String,
    /// Such as `audio/wav`.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A resource inside a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// What it holds.
    pub resource: ResourceContents,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a resource holds: the schema's `TextResourceContents` and `BlobResourceContents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "AnyResourceContents")]
#[non_exhaustive]
pub struct ResourceContents {
    /// Where it was read.
    pub uri: String,
    /// Such as `application/json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The `text` or the `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The two forms resource contents have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the bytes are text or they are not"
)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Any bytes, in Base64.
    Blob(String),
}

/// Reads either form, and can say what is wrong when it is neither or both.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyResourceContents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl TryFrom<AnyResourceContents> for ResourceContents {
    type Error = &'static str;

    fn try_from(contents: AnyResourceContents) -> Result<Self, Self::Error> {
        let body = match (contents.text, contents.blob) {
            (Some(text), None) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            _ => return Err("resource contents have either a `text` or a `blob`"),
        };
        Ok(Self {
            uri: contents.uri,
            mime_type: contents.mime_type,
            body,
            meta: contents.meta,
        })
    }
}

/// Hints on who content is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Whom it is for; empty means everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// From 0, least important, to 1, required.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "json::optional_number",
        default
    )]
    pub priority: Option<f64>,
    /// ISO 8601; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Who speaks, or who is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a conversation has these two")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A picture that stands for a thing; since 2025-11-25.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Overrides the type the source declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// `light` or `dark`: the background it is drawn for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Cow<'static, str>>,
}

impl ContentBlock {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            annotations: None,
            meta: None,
        })
    }

    /// A picture from Base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self::Image(ImageContent {
            data,
            mime_type,
            annotations: None,
            meta: None,
        })
    }

    /// Sound from Base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self::Audio(AudioContent {
            data,
            mime_type,
            annotations: None,
            meta: None,
        })
    }

    /// A resource, contents and all.
    #[must_use]
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource {
            resource,
            annotations: None,
            meta: None,
        })
    }
}

impl ResourceContents {
    /// Contents of unknown type.
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body,
            meta: None,
        }
    }

    /// The same contents with a type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

impl Icon {
    /// An icon of any size and theme.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
            theme: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_are_neither_text_nor_blob_say_so() {
        let error = serde_json::from_str::<ResourceContents>(r#"{"uri":"a:b"}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "resource contents have either a `text` or a `blob`"
        );
    }

    #[test]
    fn an_unknown_kind_of_content_says_which_ones_there_are() {
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"video"}"#).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected one of `text`, `image`"),
            "{error}"
        );
    }
}
