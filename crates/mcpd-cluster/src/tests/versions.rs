//! Versions of scripts in the simulation. Catalogues, the selection of what is served, and the
//! check of a worker are the real ones.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use mcpd_server::remote::{self, Announcement};
use serde_json::{Value, json};

use crate::catalogue::{Catalogue, Script};
use crate::delivery::{Catalogues, Order};
use crate::presence::{Moment, Presence};
use crate::selection::Selection;
use crate::transfer::RunHead;
use crate::wire::{Frame, Here, Refusal, RunId};
use crate::worker::check_run;

/// Scripts of each catalogue, by version.
const PATHS: [&[&str]; 3] = [&["a", "b"], &["a"], &["b"]];
const VERSIONS: usize = 2;

/// Number of a catalogue: those of the first version come first.
pub(super) type CatalogueNumber = usize;

/// Number of catalogues of one version.
pub(super) const PER_VERSION: usize = PATHS.len();

static CATALOGUES: LazyLock<Vec<Catalogue>> = LazyLock::new(|| {
    let versions = (1..=VERSIONS).flat_map(|version| PATHS.map(|paths| (version, paths)));
    let catalogue = |(version, paths): (usize, &[&str])| {
        Catalogue::new(paths.iter().map(|path| announce(path, version)))
    };
    versions.map(catalogue).collect()
});

/// Requests for every version of every script.
static HEADS: LazyLock<Vec<RunHead>> = LazyLock::new(|| {
    let scripts = CATALOGUES.iter().step_by(PER_VERSION);
    let scripts = scripts.flat_map(|catalogue| catalogue.scripts.values());
    scripts.map(ask).collect()
});

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a value as it crosses")
}

/// Announces a script, whose description differs in each version.
fn announce(path: &str, version: usize) -> Announcement {
    let mut announcement: Announcement = read(json!({
        "path": path, "digest": format!("sha256:{version}"), "role": "tool", "level": "none",
        "description": {},
    }));
    let schema = Bytes::from(format!("schema of {path} {version}"));
    let parts = [schema, Bytes::new(), Bytes::new()];
    announcement.description.set_parts(parts);
    announcement
}

fn ask(script: &Script) -> RunHead {
    let request: remote::Request = read(json!({
        "run": "", "path": script.announcement.path, "digest": script.version,
        "for": {"method": "", "name": "", "call": "", "principal": ""},
    }));
    let run = RunId { id: 0, attempt: 0 };
    let (head, _) = RunHead::new(&request, run, 0, String::new(), 0);
    let bytes = Frame::new(head, Bytes::new()).encode().expect("a frame");
    Frame::decode(&bytes).expect("a head").head
}

pub(super) fn catalogue(number: CatalogueNumber) -> &'static Catalogue {
    &CATALOGUES[number]
}

fn catalogue_of(here: &Here) -> Option<&'static Catalogue> {
    let mut all = CATALOGUES.iter();
    all.find(|catalogue| catalogue.digest == here.catalog)
}

fn script_of(here: &Here, path: &str) -> Option<&'static Script> {
    catalogue_of(here)?.scripts.get(path)
}

/// Returns the schema that the caller of a version has seen.
pub(super) fn schema(path: &str, version: &str) -> &'static [u8] {
    let mut scripts = CATALOGUES.iter().filter_map(|one| one.scripts.get(path));
    let script = scripts.find(|script| *script.version == *version);
    schema_of(script.expect("a version that is served"))
}

fn schema_of(script: &'static Script) -> &'static [u8] {
    script.announcement.description.parts()[0]
}

/// Checks as a worker does whether it can run what an order asks for.
pub(super) fn check(number: CatalogueNumber, order: &Order) -> Result<(), (Refusal, String)> {
    let mut heads = HEADS.iter();
    let head = heads.find(|head| head.request.digest == order.digest);
    check_run(catalogue(number), head.expect("a version that is served"))
}

/// Returns the schema of the script that a worker runs for a path.
pub(super) fn schema_at(number: CatalogueNumber, path: &str) -> Option<&'static [u8]> {
    catalogue(number).scripts.get(path).map(schema_of)
}

/// Catalogues as a front knows them, which has fetched them all.
#[derive(Debug, Default)]
pub(super) struct Known {
    selection: Selection,
}

impl Catalogues for Known {
    fn has(&self, here: &Here, path: &str, digest: &str) -> bool {
        script_of(here, path).is_some_and(|script| *script.version == *digest)
    }

    fn has_any(&self, here: &Here, path: &str) -> bool {
        script_of(here, path).is_some()
    }
}

impl Known {
    /// Selects what is served.
    pub(super) fn select(&mut self, now: Moment, presence: &Presence) {
        let workers = presence.workers(now).filter(|(here, _)| !here.draining);
        let scripts = workers.filter_map(|(here, _)| catalogue_of(here));
        let scripts = scripts.flat_map(|catalogue| &catalogue.scripts);
        let scripts = scripts.map(|(path, script)| (&**path, &script.version, 1));
        self.selection.update(now, scripts);
    }

    /// Returns the served version of a script; the first one for a caller who has seen it before
    /// the front was started.
    pub(super) fn version(&self, path: &str) -> Arc<str> {
        let mut served = self.selection.served();
        let served = served.find(|(served, _)| *served == path);
        let first = || &catalogue(0).scripts[path].version;
        Arc::clone(served.map_or_else(first, |(_, version)| version))
    }
}
