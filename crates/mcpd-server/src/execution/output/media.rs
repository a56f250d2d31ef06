//! Media types by the first bytes of a content. A file name or a declared type may be wrong; a
//! model API that receives an image of another type than declared refuses the whole conversation
//! from then on.

use std::string::FromUtf8Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpd_protocol::content::{ResourceBody, ResourceContents};

/// Types of images that models read.
const READABLE_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Type of unknown bytes.
pub(super) const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Returns whether models read images of this type.
pub(super) fn is_readable(image_type: &str) -> bool {
    READABLE_IMAGES.contains(&image_type)
}

/// Returns the type that the bytes show, if it begins with `kind`, such as `image/`.
pub(super) fn type_of(bytes: &[u8], kind: &str) -> Option<&'static str> {
    let found = infer::get(bytes)?.mime_type();
    let found = match found {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        found => found,
    };
    Some(found).filter(|found| found.starts_with(kind))
}

/// Converts the bytes to text: UTF-8 without U+0000, which no readable text contains.
///
/// # Errors
///
/// The bytes, if they are not text.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    match memchr::memchr(0, &bytes) {
        Some(_) => Err(bytes),
        None => String::from_utf8(bytes).map_err(FromUtf8Error::into_bytes),
    }
}

/// Returns whether the bytes are text in this sense.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).is_ok()
}

/// Builds the contents of `uri`: text byte for byte, or else a blob. The type is the `listed`
/// one, unless that is of an image and the bytes are another image; without a listed type it is
/// guessed.
pub(crate) fn contents(uri: &str, listed: Option<&str>, bytes: Vec<u8>) -> ResourceContents {
    let image_type = type_of(&bytes, "image/");
    let (body, guess) = match text_of(bytes) {
        Ok(text) => (ResourceBody::Text(text), "text/plain"),
        Err(bytes) => (ResourceBody::Blob(STANDARD.encode(bytes)), UNKNOWN_TYPE),
    };
    let is_image = |listed: &&str| listed.starts_with("image/");
    let mime_type = match (listed, image_type) {
        (Some(listed), None) => listed,
        (Some(listed), Some(_)) if !is_image(&listed) => listed,
        (_, Some(image_type)) => image_type,
        (None, None) => guess,
    };
    ResourceContents::new(uri, body).with_mime_type(mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF";

    #[track_caller]
    fn check(listed: Option<&str>, bytes: &[u8], mime_type: &str, is_text: bool) {
        let contents = contents("a:b", listed, bytes.to_vec());
        assert_eq!(contents.mime_type.as_deref(), Some(mime_type));
        assert_eq!(matches!(contents.body, ResourceBody::Text(_)), is_text);
    }

    #[test]
    fn image_type_follows_its_bytes() {
        check(Some("image/png"), JPEG, "image/jpeg", false);
        check(None, JPEG, "image/jpeg", false);
        check(Some("application/x-own"), JPEG, "application/x-own", false);
        check(Some("image/svg+xml"), b"<svg/>", "image/svg+xml", true);
    }

    #[test]
    fn content_with_nul_is_a_blob() {
        check(Some("text/plain"), b"a\0b", "text/plain", false);
        check(None, b"a\0b", UNKNOWN_TYPE, false);
        check(None, b"ab\r\n", "text/plain", true);
    }

    #[test]
    fn audio_types_have_their_usual_names() {
        assert_eq!(
            type_of(b"RIFF\0\0\0\0WAVEfmt ", "audio/"),
            Some("audio/wav")
        );
        assert_eq!(type_of(b"RIFF\0\0\0\0WAVEfmt ", "image/"), None);
    }
}
