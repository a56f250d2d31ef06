//! Content that names a file in place of its data: `{"type": "image", "path": "chart.png"}`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::catalog::real_path;
use crate::policy::Terms;
use crate::regular;

/// Bytes that the files of one result may have together.
const MAX_BYTES: u64 = 16 << 20;

/// The files of one result.
pub(super) struct Files<'a> {
    directory: &'a Path,
    /// What the script that names them may do; without it, anything.
    terms: Option<&'a Terms>,
    room: u64,
}

impl<'a> Files<'a> {
    /// Relative paths are below `directory`.
    pub(super) fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            terms: None,
            room: MAX_BYTES,
        }
    }

    /// The same for a script that may not do everything.
    pub(super) fn under(mut self, terms: &'a Terms) -> Self {
        self.terms = Some(terms);
        self
    }

    /// Replaces the path in a content block, a message or the contents of a resource, if it has one, by what the
    /// file holds.
    ///
    /// # Errors
    ///
    /// Why that can't be done, as a fragment.
    pub(super) fn embed(&mut self, item: &mut Value) -> Result<(), String> {
        let Some(object) = holder(item).as_object_mut() else {
            return Ok(());
        };
        let Some(Value::String(path)) = object.get("path") else {
            return Ok(());
        };
        let path = path.clone();
        match object.get("type").and_then(Value::as_str) {
            Some("image") => self.media("image/", &path, object),
            Some("audio") => self.media("audio/", &path, object),
            Some(_) => Ok(()),
            None => self.contents(&path, object),
        }
    }

    fn media(
        &mut self,
        kind: &str,
        path: &str,
        block: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if block.contains_key("data") {
            return Err("both `data` and `path`".to_owned());
        }
        let guess = mime_guess::from_path(path).first_raw();
        let mime_type = match block.get("mimeType") {
            Some(given) => given.clone(),
            None => guess
                .filter(|guess| guess.starts_with(kind))
                .ok_or_else(|| {
                    format!("the name of `{path}` is of no known type `{kind}*`; add a `mimeType`")
                })?
                .into(),
        };
        let data = STANDARD.encode(self.read(path)?);
        block.insert("mimeType".to_owned(), mime_type);
        block.insert("data".to_owned(), data.into());
        Ok(())
    }

    fn contents(&mut self, path: &str, contents: &mut Map<String, Value>) -> Result<(), String> {
        if contents.contains_key("text") || contents.contains_key("blob") {
            return Err("both `path` and a `text` or `blob`".to_owned());
        }
        let mut bytes = self.read(path)?;
        if let Some(redactor) = self.terms.and_then(Terms::redactor) {
            bytes = redactor.bytes(bytes, false);
        }
        let (name, value) = match String::from_utf8(bytes) {
            Ok(text) => ("text", text),
            Err(error) => ("blob", STANDARD.encode(error.as_bytes())),
        };
        contents.insert(name.to_owned(), value.into());
        if let Some(guess) = mime_guess::from_path(path).first_raw() {
            contents.entry("mimeType").or_insert_with(|| guess.into());
        }
        Ok(())
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let file = self.directory.join(path);
        let may_read = |file: &File, real: &Path| {
            self.terms
                .is_none_or(|terms| terms.may_hand_over(file, real, self.directory))
        };
        let bytes = read_at_most(&file, self.room, may_read)
            .map_err(|error| format!("the file `{path}` can't be read: {error}"))?;
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or_else(|| {
            format!(
                "with the file `{path}` the files of one result are larger than {MAX_BYTES} bytes"
            )
        })?;
        Ok(bytes)
    }
}

/// The object that may have a path: the item itself, its resource, or either of these in a message.
fn holder(mut item: &mut Value) -> &mut Value {
    for step in ["content", "resource"] {
        if item.get(step).is_some_and(Value::is_object) {
            item = &mut item[step];
        }
    }
    item
}

/// What a file holds that may be read, and one byte of what is beyond `limit`.
fn read_at_most(
    path: &Path,
    limit: u64,
    may_read: impl FnOnce(&File, &Path) -> bool,
) -> io::Result<Vec<u8>> {
    let file = regular::open(path)?;
    let file = file.ok_or_else(|| io::Error::other("it is no regular file"))?;
    // Asked of the file that is open, for a link may lead elsewhere by now.
    if !may_read(&file, &real_path(&file, path)?) {
        return Err(io::Error::other("the script's sandbox does not allow it"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
