//! Catalogues of workers: their digests, their exchange in parts, and the versions of scripts.
//!
//! A version is the digest of the file and of what the script said, so that a run that names it
//! never meets a description other than the one that its caller has seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mcpd_server::remote::Announcement;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::wire::{Frame, PROTOCOL_VERSION, heads};

/// Maximum size of the descriptions in one part, in bytes.
const MAX_PART: usize = 512 * 1024;
/// Maximum number of scripts of one worker.
const MAX_SCRIPTS: usize = 20_000;

/// Scripts of a worker.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) digest: String,
    /// By path.
    pub(crate) scripts: BTreeMap<String, Script>,
}

/// Script with its version.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) version: Arc<str>,
    pub(crate) announcement: Announcement,
}

/// Request for a part of a catalogue.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartQuestion {
    v: u32,
    catalog: String,
    /// Number of scripts that are known already.
    from: usize,
}

/// Part of a catalogue. The body has the descriptions of its scripts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    v: u32,
    /// Digest of the catalogue at present, which may be another than the one in the request.
    catalog: String,
    total: usize,
    scripts: Vec<PartScript>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PartScript {
    #[serde(flatten)]
    announcement: Announcement,
    /// Lengths of the parts of its description.
    lengths: [usize; 3],
}

heads!(PartQuestion, Part);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the version of a script.
fn version(announcement: &Announcement) -> String {
    let mut hash = Sha256::new();
    // Without its bytes, which follow.
    let head = serde_json::to_vec(announcement).unwrap_or_default();
    let parts = announcement.description.parts();
    for part in [&head[..]].into_iter().chain(parts.map(|part| &part[..])) {
        hash.update(u64::try_from(part.len()).unwrap_or_default().to_le_bytes());
        hash.update(part);
    }
    format!("sha256:{}", hex(&hash.finalize()))
}

impl Catalogue {
    /// Returns the catalogue of these scripts.
    pub(crate) fn new(announcements: impl IntoIterator<Item = Announcement>) -> Self {
        let mut scripts = BTreeMap::new();
        for announcement in announcements {
            let version = version(&announcement).into();
            let script = Script {
                version,
                announcement,
            };
            scripts.insert(script.announcement.path.clone(), script);
        }
        let mut hash = Sha256::new();
        for (path, script) in &scripts {
            hash.update(path.as_bytes());
            hash.update([0]);
            hash.update(script.version.as_bytes());
            hash.update([0]);
        }
        Self {
            digest: hex(&hash.finalize()[..16]),
            scripts,
        }
    }

    /// Returns the part from the script number `from` on.
    fn part(&self, from: usize) -> Frame<Part> {
        let mut body = BytesMut::new();
        let mut heads = 0;
        let mut scripts = Vec::new();
        for script in self.scripts.values().skip(from) {
            let announcement = script.announcement.clone();
            let parts = announcement.description.parts();
            let lengths = parts.map(Bytes::len);
            let size = lengths.iter().sum::<usize>() + 1024;
            if !scripts.is_empty() && body.len() + heads + size > MAX_PART {
                break;
            }
            heads += 1024;
            for part in parts {
                body.extend_from_slice(part);
            }
            scripts.push(PartScript {
                announcement,
                lengths,
            });
        }
        let part = Part {
            v: PROTOCOL_VERSION,
            catalog: self.digest.clone(),
            total: self.scripts.len(),
            scripts,
        };
        Frame::new(part, body.freeze())
    }

    /// Answers a request for a part.
    pub(crate) fn answer(&self, question: &PartQuestion) -> Frame<Part> {
        self.part(question.from)
    }
}

/// Catalogue on its way.
#[derive(Debug)]
pub(crate) struct Collection {
    digest: String,
    announcements: Vec<Announcement>,
}

impl Collection {
    pub(crate) fn new(digest: String) -> Self {
        Self {
            digest,
            announcements: Vec::new(),
        }
    }

    /// Returns the request for the next part.
    pub(crate) fn question(&self) -> Frame<PartQuestion> {
        let question = PartQuestion {
            v: PROTOCOL_VERSION,
            catalog: self.digest.clone(),
            from: self.announcements.len(),
        };
        Frame::new(question, Bytes::new())
    }

    /// Adds a part. Returns the catalogue when it is complete.
    ///
    /// # Errors
    ///
    /// The worker has another catalogue by now, or tells another than it announced.
    pub(crate) fn add(&mut self, part: Frame<Part>) -> Result<Option<Catalogue>, String> {
        let Frame { head, mut body } = part;
        if head.catalog != self.digest {
            return Err("the catalogue has changed meanwhile".to_owned());
        }
        if head.total > MAX_SCRIPTS {
            return Err(format!("more than {MAX_SCRIPTS} scripts"));
        }
        if head.scripts.is_empty() && self.announcements.len() < head.total {
            return Err("a part without scripts".to_owned());
        }
        for script in head.scripts {
            let mut announcement = script.announcement;
            let mut take = |length: usize| {
                let has = length <= body.len();
                has.then(|| body.split_to(length))
                    .ok_or("a description is cut off")
            };
            let [stdout, stderr, source] = script.lengths;
            let parts = [take(stdout)?, take(stderr)?, take(source)?];
            announcement.description.set_parts(parts);
            self.announcements.push(announcement);
        }
        if self.announcements.len() < head.total {
            return Ok(None);
        }
        let catalogue = Catalogue::new(std::mem::take(&mut self.announcements));
        match catalogue.digest == self.digest {
            true => Ok(Some(catalogue)),
            false => Err("the catalogue is not the announced one".to_owned()),
        }
    }
}
