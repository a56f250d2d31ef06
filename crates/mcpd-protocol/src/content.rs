//! Content blocks of tool results and prompts, and the contents of resources.

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
    /// Link to a resource by its URI; since 2025-06-18.
    ResourceLink(Resource),
    /// Resource with its contents.
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
    /// Metadata; since 2025-06-18.
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
    /// MIME type, such as `image/png`.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata; since 2025-06-18.
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
    /// MIME type, such as `audio/wav`.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A resource inside a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// Contents of the resource.
    pub resource: ResourceContents,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Contents of a resource: the schema's `TextResourceContents` and `BlobResourceContents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "AnyResourceContents")]
#[non_exhaustive]
pub struct ResourceContents {
    /// URI it was read from.
    pub uri: String,
    /// MIME type, such as `application/json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The `text` or the `blob`.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The two forms of resource contents.
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

/// Reads either form, and reports the fault when it is neither or both.
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

/// Hints on the audience and importance of content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Intended readers; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// Importance from 0, least, to 1, required.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "json::optional_number",
        default
    )]
    pub priority: Option<f64>,
    /// Time of the last change in ISO 8601; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Speaker or recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a conversation has these two")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Picture that represents a thing; since 2025-11-25.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// MIME type, which overrides the type the source declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// `light` or `dark`: the background it is drawn for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Cow<'static, str>>,
}

impl ContentBlock {
    /// Makes a block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            annotations: None,
            meta: None,
        })
    }

    /// Makes a picture from Base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self::Image(ImageContent {
            data,
            mime_type,
            annotations: None,
            meta: None,
        })
    }

    /// Makes a sound from Base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let (data, mime_type) = (data.into(), mime_type.into());
        Self::Audio(AudioContent {
            data,
            mime_type,
            annotations: None,
            meta: None,
        })
    }

    /// Makes a block from a resource with its contents.
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
    /// Makes contents of unknown type.
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            body,
            meta: None,
        }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

impl Icon {
    /// Makes an icon of any size and theme.
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
    fn contents_without_text_or_blob_are_an_error() {
        let error = serde_json::from_str::<ResourceContents>(r#"{"uri":"a:b"}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "resource contents have either a `text` or a `blob`"
        );
    }

    #[test]
    fn unknown_kind_of_content_lists_the_known_ones() {
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"video"}"#).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected one of `text`, `image`"),
            "{error}"
        );
    }
}
