//! Embedding of files: content may name a file in place of its data, as in `{"type": "image",
//! "path": "chart.png"}`. Also determines the types of images and audio, given as data or by
//! name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::mcp::check;
use super::media;
use crate::policy::EffectivePolicy;
use crate::support::regular_file;
use crate::support::regular_file::real_path;

/// Maximum size of all files of one result, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Member of an item whose file could not be embedded where the script has run.
const FAULT: &str = "mcpd/fault";

/// Files of one result.
pub(super) struct EmbeddedFiles<'a> {
    /// Directory of relative paths; `None` if the script has run on another machine.
    directory: Option<&'a Path>,
    /// Permissions of the script that names the files; unrestricted without them.
    policy: Option<&'a EffectivePolicy>,
    remaining: u64,
    /// Number of images that became resources.
    resources: usize,
    remarks: Vec<String>,
}

impl<'a> EmbeddedFiles<'a> {
    /// Creates an unrestricted reader; relative paths are below `directory`.
    pub(super) fn new(directory: &'a Path) -> Self {
        Self {
            directory: Some(directory),
            policy: None,
            remaining: MAX_BYTES,
            resources: 0,
            remarks: Vec::new(),
        }
    }

    /// Creates a reader for the output of a script that has run on another machine, which has
    /// embedded its files.
    pub(super) fn elsewhere() -> Self {
        Self {
            directory: None,
            ..Self::new(Path::new(""))
        }
    }

    /// Returns whether an item names a file.
    pub(super) fn is_named_in(item: &mut Value) -> bool {
        holder(item).get("path").is_some_and(Value::is_string)
    }

    /// Embeds the file that an item names, for the reader on another machine. A fault goes there
    /// as well.
    pub(super) fn embed_for_front(&mut self, item: &mut Value) {
        if !Self::is_named_in(item) {
            return;
        }
        let embedded = self.embed(item);
        if let Some(object) = holder(item).as_object_mut() {
            match embedded {
                Ok(()) => object.remove("path"),
                Err(fault) => object.insert(FAULT.to_owned(), fault.into()),
            };
        }
    }

    /// Restricts the files to those that a script under `terms` may read.
    pub(super) fn with_terms(mut self, policy: &'a EffectivePolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Replaces the path in a content block, a message or the contents of a resource, if it has
    /// one, by the content of the file. Sets the types of images and audio.
    ///
    /// # Errors
    ///
    /// The reason for a failure, as a fragment.
    pub(super) fn embed(&mut self, item: &mut Value) -> Result<(), String> {
        let Some(object) = holder(item).as_object_mut() else {
            return Ok(());
        };
        if self.directory.is_none()
            && let Some(Value::String(fault)) = object.remove(FAULT)
        {
            return Err(fault);
        }
        let path = object
            .get("path")
            .and_then(Value::as_str)
            .map(str::to_owned);
        match (object.get("type").and_then(Value::as_str), path) {
            (Some("image"), path) => self.image(path.as_deref(), object),
            (Some("audio"), path) => self.audio(path.as_deref(), object),
            (None, Some(path)) => self.contents(&path, object),
            (Some("text"), _) => {
                self.text(object);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Remarks on content that was passed on in another form, for the operator's log.
    pub(super) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Reduces a text to the characters that a terminal would show.
    fn text(&self, block: &mut Map<String, Value>) {
        if let (Some(policy), Some(Value::String(text))) = (self.policy, block.get_mut("text")) {
            *text = policy.redact_for_terminal(std::mem::take(text));
        }
    }

    /// Completes an image. One that models cannot read becomes a resource: as an image it would
    /// end the conversation it gets into.
    fn image(&mut self, path: Option<&str>, block: &mut Map<String, Value>) -> Result<(), String> {
        let bytes = self.media(path, block)?;
        let found = media::type_of(&bytes, "image/");
        let named =
            declared_type(block).or_else(|| path.and_then(|path| named_type(path, "image/")));
        let Some(image_type) = found.map(str::to_owned).or(named) else {
            return Err(unknown_type("image", path));
        };
        if found.is_some_and(media::is_readable) {
            block.insert("mimeType".to_owned(), image_type.into());
            block.insert("data".to_owned(), STANDARD.encode(bytes).into());
            return Ok(());
        }
        let shown = path.map_or_else(
            || "an image".to_owned(),
            |path| format!("the image `{path}`"),
        );
        let found = found.map_or_else(|| "unknown".to_owned(), |found| format!("`{found}`"));
        self.remarks.push(format!("{shown} is sent as a resource: models read only PNG, JPEG, GIF and WebP, and the type of its bytes is {found}"));
        self.resources += 1;
        let uri = format!("mcpd://content/{}", self.resources);
        let bytes = match path {
            Some(_) => self.redact(bytes),
            None => bytes,
        };
        // A type that models read contradicts these bytes.
        let listed = Some(&*image_type).filter(|listed| !media::is_readable(listed));
        let resource = media::contents(&uri, listed, bytes);
        for member in ["path", "data", "mimeType"] {
            block.remove(member);
        }
        block.insert("type".to_owned(), "resource".into());
        let resource = serde_json::to_value(resource).map_err(|error| error.to_string())?;
        block.insert("resource".to_owned(), resource);
        Ok(())
    }

    fn audio(&mut self, path: Option<&str>, block: &mut Map<String, Value>) -> Result<(), String> {
        let bytes = self.media(path, block)?;
        let found = || media::type_of(&bytes, "audio/").map(str::to_owned);
        let named = || path.and_then(|path| named_type(path, "audio/"));
        let audio_type = declared_type(block).or_else(found).or_else(named);
        let audio_type = audio_type.ok_or_else(|| unknown_type("audio", path))?;
        block.insert("mimeType".to_owned(), audio_type.into());
        block.insert("data".to_owned(), STANDARD.encode(bytes).into());
        Ok(())
    }

    /// Reads the bytes of an image or of audio, which must not be empty.
    fn media(&mut self, path: Option<&str>, block: &Map<String, Value>) -> Result<Vec<u8>, String> {
        let data = block.get("data");
        let (bytes, what) = match (path, data.and_then(Value::as_str)) {
            (Some(_), Some(_)) => return Err("both `data` and `path`".to_owned()),
            (Some(path), None) => (self.read(path)?, format!("the file `{path}`")),
            (None, Some(data)) => (check::decode("data", data)?, "`data`".to_owned()),
            (None, None) => return Err("missing field `data`".to_owned()),
        };
        if bytes.is_empty() {
            return Err(format!("{what} is empty"));
        }
        match block.get("mimeType") {
            Some(Value::String(given)) if given.is_empty() => Err("`mimeType` is empty".to_owned()),
            _ => Ok(bytes),
        }
    }

    /// Returns the bytes without secrets.
    fn redact(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.policy.and_then(EffectivePolicy::redactor) {
            Some(redactor) => redactor.redact_bytes(bytes, false),
            None => bytes,
        }
    }

    fn contents(&mut self, path: &str, contents: &mut Map<String, Value>) -> Result<(), String> {
        if contents.contains_key("text") || contents.contains_key("blob") {
            return Err("both `path` and a `text` or `blob`".to_owned());
        }
        let bytes = self.read(path)?;
        let bytes = self.redact(bytes);
        let found = media::type_of(&bytes, "image/");
        let (name, value) = match media::text_of(bytes) {
            Ok(text) => ("text", text),
            Err(bytes) => ("blob", STANDARD.encode(bytes)),
        };
        contents.insert(name.to_owned(), value.into());
        if let Some(guess) = found.or_else(|| mime_guess::from_path(path).first_raw()) {
            contents.entry("mimeType").or_insert_with(|| guess.into());
        }
        Ok(())
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let Some(directory) = self.directory else {
            return Err(format!("the file `{path}` is on another machine"));
        };
        let file = directory.join(path);
        let may_read = |file: &File, real: &Path| {
            self.policy
                .is_none_or(|policy| policy.may_read_for_script(file, real, directory))
        };
        let bytes = read_at_most(&file, self.remaining, may_read)
            .map_err(|error| format!("failed to read the file `{path}`: {error}"))?;
        self.remaining = self
            .remaining
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| {
                format!("with the file `{path}` the files of the result exceed {MAX_BYTES} bytes")
            })?;
        Ok(bytes)
    }
}

/// Returns the type that a script declares, by its registered name.
fn declared_type(block: &Map<String, Value>) -> Option<String> {
    let declared = block.get("mimeType")?.as_str()?;
    let registered = match declared {
        "image/jpg" => "image/jpeg",
        declared => declared,
    };
    Some(registered.to_owned())
}

/// Returns the type by the extension of a file name, if it begins with `kind`.
fn named_type(path: &str, kind: &str) -> Option<String> {
    let guess = mime_guess::from_path(path).first_raw();
    guess
        .filter(|guess| guess.starts_with(kind))
        .map(str::to_owned)
}

fn unknown_type(kind: &str, path: Option<&str>) -> String {
    match path {
        Some(path) => format!(
            "the type `{kind}/*` of the file `{path}` is clear neither from its bytes nor from its name; add `mimeType`"
        ),
        None => "missing field `mimeType`".to_owned(),
    }
}

/// Returns the object that may have a path: the item itself, its resource, or either of these in
/// a message.
fn holder(mut item: &mut Value) -> &mut Value {
    for step in ["content", "resource"] {
        if item.get(step).is_some_and(Value::is_object) {
            item = &mut item[step];
        }
    }
    item
}

/// Reads a permitted file, up to one byte beyond `limit`.
fn read_at_most(
    path: &Path,
    limit: u64,
    may_read: impl FnOnce(&File, &Path) -> bool,
) -> io::Result<Vec<u8>> {
    let file = regular_file::open(path)?;
    let file = file.ok_or_else(|| io::Error::other("not a regular file"))?;
    // The open file is checked, not the path: a link may point elsewhere by now.
    if !may_read(&file, &real_path(&file, path)?) {
        return Err(io::Error::other("the script's sandbox does not allow it"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
