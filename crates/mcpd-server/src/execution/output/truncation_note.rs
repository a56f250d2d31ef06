//! Note and link appended to truncated output: its full length, and the resource with the rest.

use mcpd_exec::{Captured, Stream};
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::method::Resource;

use crate::execution::archive::{CallArchive, OUTPUT_LIFETIME};
use crate::execution::relay::stream_name;

/// Returns the note and the link to the whole of `output`; empty if it is not kept.
pub(super) fn content(
    stream: Stream,
    output: &Captured,
    archive: &CallArchive,
) -> Vec<ContentBlock> {
    let Some(kept) = archive.keep(stream, output) else {
        return Vec::new();
    };
    let stream = stream_name(stream);
    let total = output.total_bytes;
    let readable = match kept.omitted_bytes {
        0 => "All of it".to_owned(),
        _ => format!("The first {} bytes", kept.size),
    };
    let minutes = OUTPUT_LIFETIME.as_secs() / 60;
    let note = format!(
        "The text above is only a part of the {total} bytes of output on {stream}. {readable} can be read for {minutes} minutes as the resource {}",
        kept.uri
    );
    let mut content = vec![ContentBlock::text(note)];
    if archive.links {
        let mime_type = match output.is_utf8() {
            true => "text/plain",
            false => "application/octet-stream",
        };
        let mut link = Resource::new(kept.uri, stream);
        link.mime_type = Some(mime_type.to_owned());
        // The size is unknown if control sequences are removed when it is read.
        link.size = output.terminal.is_none().then_some(kept.size);
        content.push(ContentBlock::ResourceLink(link));
    }
    content
}
