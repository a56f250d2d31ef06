//! Downgrade of results to older revisions. Content that a revision does not know becomes text,
//! or is omitted where it does not matter.

use mcpd_protocol::content::{Annotations, AudioContent, ContentBlock, ResourceContents};
use mcpd_protocol::method::{
    CallToolResult, GetPromptResult, Interactive, ReadResourceResult, Resource,
};
use mcpd_protocol::{Implementation, ProtocolVersion};
use serde_json::Value;
use serde_json::value::RawValue;

/// Content that older revisions know in part.
pub(crate) trait Downgrade {
    /// Removes everything that `version` does not know.
    fn downgrade(&mut self, version: ProtocolVersion);
}

impl<R: Downgrade> Downgrade for Interactive<R> {
    fn downgrade(&mut self, version: ProtocolVersion) {
        // Only the newest revision has results that ask for input.
        if let Self::Complete(result) = self {
            result.downgrade(version);
        }
    }
}

impl Downgrade for Implementation {
    fn downgrade(&mut self, version: ProtocolVersion) {
        if !version.has_titles() {
            self.title = None;
        }
        if !version.has_icons() {
            (self.description, self.website_url) = (None, None);
            self.icons.clear();
        }
    }
}

impl Downgrade for CallToolResult {
    fn downgrade(&mut self, version: ProtocolVersion) {
        self.content
            .iter_mut()
            .for_each(|content| block(content, version));
        let unknown = self.structured_content.take_if(|value| {
            !version.has_structured_content()
                || version.structured_content_is_object_only() && !value.get().starts_with('{')
        });
        if let Some(value) = unknown
            && !contains_text(&self.content, &value)
        {
            self.content.push(ContentBlock::text(value.get()));
        }
    }
}

/// Returns whether one of the blocks is `value` as text, in any layout.
fn contains_text(content: &[ContentBlock], value: &RawValue) -> bool {
    let read = |json: &str| serde_json::from_str::<Value>(json).ok();
    let (json, value) = (value.get(), read(value.get()));
    content.iter().any(|block| match block {
        ContentBlock::Text(text) => {
            text.text == json || value.is_some() && read(&text.text) == value
        }
        _ => false,
    })
}

impl Downgrade for GetPromptResult {
    fn downgrade(&mut self, version: ProtocolVersion) {
        self.messages
            .iter_mut()
            .for_each(|message| block(&mut message.content, version));
    }
}

impl Downgrade for ReadResourceResult {
    fn downgrade(&mut self, version: ProtocolVersion) {
        self.contents
            .iter_mut()
            .for_each(|piece| contents(piece, version));
    }
}

fn block(block: &mut ContentBlock, version: ProtocolVersion) {
    match block {
        ContentBlock::Audio(audio) if !version.has_audio() => *block = audio_note(audio),
        ContentBlock::ResourceLink(link) if !version.has_resource_links() => {
            *block = link_note(link);
        }
        _ => {}
    }
    let (annotations, meta) = match block {
        ContentBlock::Text(text) => (&mut text.annotations, &mut text.meta),
        ContentBlock::Image(image) => (&mut image.annotations, &mut image.meta),
        ContentBlock::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
        ContentBlock::ResourceLink(link) => {
            if !version.has_icons() {
                link.icons.clear();
            }
            (&mut link.annotations, &mut link.meta)
        }
        ContentBlock::Resource(embedded) => {
            contents(&mut embedded.resource, version);
            (&mut embedded.annotations, &mut embedded.meta)
        }
        _ => return,
    };
    if !version.has_content_meta() {
        *meta = None;
    }
    downgrade_annotations(annotations, version);
}

/// Removes fields of annotations that the revision does not know.
pub(crate) fn downgrade_annotations(
    annotations: &mut Option<Annotations>,
    version: ProtocolVersion,
) {
    if let Some(annotations) = annotations
        && !version.has_content_meta()
    {
        annotations.last_modified = None;
    }
}

fn contents(contents: &mut ResourceContents, version: ProtocolVersion) {
    if !version.has_content_meta() {
        contents.meta = None;
    }
}

fn audio_note(audio: &AudioContent) -> ContentBlock {
    let text = format!(
        "[audio of type {}, which this client does not support]",
        audio.mime_type
    );
    note(text, &audio.annotations)
}

fn link_note(link: &Resource) -> ContentBlock {
    let name = link.title.as_ref().unwrap_or(&link.name);
    let text = match &link.description {
        Some(description) => format!("{name}: {}\n{description}", link.uri),
        None => format!("{name}: {}", link.uri),
    };
    note(text, &link.annotations)
}

fn note(text: String, annotations: &Option<Annotations>) -> ContentBlock {
    let mut note = ContentBlock::text(text);
    if let ContentBlock::Text(text) = &mut note {
        text.annotations.clone_from(annotations);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpd_protocol::ProtocolVersion as Version;

    /// Checks the form of a block in each revision, the oldest first.
    #[track_caller]
    fn check(content: &str, expected: [&str; 5]) {
        let parse = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        for (version, expected) in Version::ALL.into_iter().zip(expected) {
            let mut downgraded = serde_json::from_str(content).unwrap();
            block(&mut downgraded, version);
            let expected = if expected.is_empty() {
                content
            } else {
                expected
            };
            assert_eq!(
                serde_json::to_value(&downgraded).unwrap(),
                parse(expected),
                "{version}"
            );
        }
    }

    #[test]
    fn audio_becomes_a_note_in_older_revisions() {
        let note = r#"{"type":"text","text":"[audio of type audio/wav, which this client does not support]","annotations":{"priority":1}}"#;
        let audio =
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"priority":1}}"#;
        check(audio, [note, "", "", "", ""]);
    }

    #[test]
    fn resource_link_becomes_a_note_and_loses_its_icons() {
        let note = r#"{"type":"text","text":"N: a:b\nd"}"#;
        let bare =
            r#"{"type":"resource_link","uri":"a:b","name":"n","title":"N","description":"d"}"#;
        let link = r#"{"type":"resource_link","uri":"a:b","name":"n","title":"N","description":"d","icons":[{"src":"data:,"}]}"#;
        check(link, [note, note, bare, "", ""]);
    }

    #[test]
    fn meta_and_dates_come_with_2025_06_18() {
        let bare = r#"{"type":"resource","resource":{"uri":"a:b","text":"t"},"annotations":{"priority":1}}"#;
        let full = r#"{"type":"resource","resource":{"uri":"a:b","text":"t","_meta":{"a":1}},"annotations":{"priority":1,"lastModified":"2026-01-01"},"_meta":{"b":2}}"#;
        check(full, [bare, bare, "", "", ""]);
    }

    #[test]
    fn structured_content_comes_with_2025_06_18_and_is_an_object_until_2025_11_25() {
        let kept = |json: &str| {
            Version::ALL.map(|version| {
                let mut result = CallToolResult::text(json);
                result.structured_content = Some(serde_json::from_str(json).unwrap());
                result.downgrade(version);
                assert_eq!(result.content, [ContentBlock::text(json)]);
                result.structured_content.is_some()
            })
        };
        assert_eq!(kept("{}"), [false, false, true, true, true]);
        assert_eq!(kept("[]"), [false, false, false, false, true]);
        assert_eq!(kept("null"), [false, false, false, false, true]);
    }

    #[test]
    fn omitted_structured_content_becomes_text_once() {
        #[track_caller]
        fn check(text: &str, told: &[&str]) {
            let mut result = CallToolResult::text(text);
            result.structured_content = Some(serde_json::from_str("[1, 2]").unwrap());
            result.downgrade(Version::V2025_11_25);
            let told: Vec<_> = told.iter().map(|text| ContentBlock::text(*text)).collect();
            assert_eq!(result.content, told);
        }
        check("[1, 2]", &["[1, 2]"]);
        check("[\n  1,\n  2\n]", &["[\n  1,\n  2\n]"]);
        check("two numbers", &["two numbers", "[1, 2]"]);
    }

    #[test]
    fn messages_and_resources_are_downgraded_too() {
        let mut prompt: GetPromptResult = serde_json::from_str(
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"a:b","name":"n"}}]}"#,
        )
        .unwrap();
        prompt.downgrade(Version::V2025_03_26);
        assert_eq!(prompt.messages[0].content, ContentBlock::text("n: a:b"));
        let mut read: ReadResourceResult =
            serde_json::from_str(r#"{"contents":[{"uri":"a:b","text":"t","_meta":{}}]}"#).unwrap();
        read.downgrade(Version::V2025_03_26);
        assert_eq!(read.contents[0].meta, None);
    }
}
