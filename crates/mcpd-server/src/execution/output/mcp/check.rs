//! Checks of content beyond its shape. Strict clients refuse a whole result for one invalid
//! member, so the author of the script gets an error instead.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mcpd_protocol::content::{Annotations, ContentBlock, Icon, ResourceBody, ResourceContents};

/// Checks a content block.
///
/// # Errors
///
/// The fault, as a fragment.
pub(super) fn block(block: &ContentBlock) -> Result<(), String> {
    let hints = match block {
        ContentBlock::Text(text) => &text.annotations,
        // Their data was decoded when their types were determined.
        ContentBlock::Image(image) => &image.annotations,
        ContentBlock::Audio(audio) => &audio.annotations,
        ContentBlock::ResourceLink(link) => {
            link.icons.iter().try_for_each(icon)?;
            &link.annotations
        }
        ContentBlock::Resource(embedded) => {
            contents(&embedded.resource)?;
            &embedded.annotations
        }
        _ => return Ok(()),
    };
    hints.as_ref().map_or(Ok(()), annotations)
}

/// Checks the contents of a resource.
///
/// # Errors
///
/// See [`block`].
pub(super) fn contents(contents: &ResourceContents) -> Result<(), String> {
    match &contents.body {
        ResourceBody::Text(_) => Ok(()),
        ResourceBody::Blob(blob) => decode("blob", blob).map(drop),
    }
}

/// Decodes Base64. "The base64-encoded image data" is `"format": "byte"` in the schema: RFC 4648,
/// which has no line ends.
pub(in crate::execution::output) fn decode(member: &str, text: &str) -> Result<Vec<u8>, String> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|_| format!("`{member}` must be Base64, in one line and padded"))
}

fn annotations(annotations: &Annotations) -> Result<(), String> {
    let priority = annotations.priority;
    if priority.is_some_and(|priority| !(0.0..=1.0).contains(&priority)) {
        return Err("`annotations.priority` must be from 0 to 1".to_owned());
    }
    let modified = annotations.last_modified.as_deref();
    if modified.is_some_and(|modified| !is_time(modified)) {
        let expected = "`annotations.lastModified` must be a time such as `2025-01-12T15:00:58Z`";
        return Err(expected.to_owned());
    }
    Ok(())
}

/// Returns whether the text is a time. "ISO 8601 formatted string (e.g., "2025-01-12T15:00:58Z")"
/// -- 2026-07-28/schema#annotations. Clients accept only the form of the example, and that with
/// an offset.
fn is_time(text: &str) -> bool {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = text.chars().map(digits).collect();
    let ends = ["Z", "+00:00", "-00:00"];
    shape.starts_with("0000-00-00T00:00")
        && ends.iter().any(|end| shape.ends_with(end))
        && !shape.contains([',', '['])
        && text.parse::<Timestamp>().is_ok()
}

fn icon(icon: &Icon) -> Result<(), String> {
    match icon.theme.as_deref() {
        None | Some("light" | "dark") => Ok(()),
        Some(_) => Err("`theme` of an icon must be `light` or `dark`".to_owned()),
    }
}
