//! What is said of an output of which a result shows only a part: how long it was, and where the rest can be read.

use mcpd_exec::{Captured, Stream};
use mcpd_protocol::{ContentBlock, Resource};

use crate::archive::{LIFETIME, Shelf};

/// Content that leads to the whole of `output`. None if it is not kept.
pub(super) fn content(stream: Stream, output: &Captured, shelf: &Shelf) -> Vec<ContentBlock> {
    let stream = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    let Some((uri, kept)) = shelf.put(stream, output) else {
        return Vec::new();
    };
    let total = output.total_bytes;
    let readable = match kept.omitted() {
        0 => "All of them".to_owned(),
        _ => format!("The first {} of them", kept.size()),
    };
    let minutes = LIFETIME.as_secs() / 60;
    let note = format!(
        "The text above is only a part of the {total} bytes that were printed on {stream}. {readable} can be read for {minutes} minutes as the resource {uri}"
    );
    let mut content = vec![ContentBlock::text(note)];
    if shelf.links {
        let mime_type = match output.is_utf8() {
            true => "text/plain",
            false => "application/octet-stream",
        };
        let mut link = Resource::new(uri, stream);
        link.mime_type = Some(mime_type.to_owned());
        // What is read is shorter if a terminal would not show all of it.
        link.size = output.shown.is_none().then(|| kept.size());
        content.push(ContentBlock::ResourceLink(link));
    }
    content
}
