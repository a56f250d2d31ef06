//! Scan of a server that serves only what its operator has approved: scripts, files and
//! instructions that differ are held back, and a script that differs is not even probed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{InspectedFile, Scan, ScannedScript, Scanner, join_blocking};
use crate::catalog::file::StaticFile;
use crate::catalog::pins::{HeldBack, LockCheck, Locked, Observer, Pins, Roots};
use crate::catalog::source::Offer;

/// Judgement of everything that the last scan found.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Scripts in their current form, by their address: as found if approved.
    scripts: Vec<(Arc<ScannedScript>, Arc<ScannedScript>)>,
    files: Vec<Arc<StaticFile>>,
    instructions: Vec<String>,
    held_back: Vec<HeldBack>,
}

impl Scanner {
    /// Serves only what is approved. Everything else is [held back](Scan::held_back).
    #[must_use]
    pub fn locked(mut self, locked: Arc<Locked>) -> Self {
        self.set_lock(Some(locked));
        self
    }

    pub(super) fn set_lock(&mut self, locked: Option<Arc<Locked>>) {
        let check = locked.map(|locked| Arc::new(LockCheck::new(locked, false)));
        self.inspector = Arc::new(self.inspector.with_lock(check));
        self.judged = Judged::default();
    }

    /// Tells the check of what is approved which files are scripts. Any probe comes later.
    pub(super) fn note_scripts(&self) {
        if let Some(check) = self.inspector.lock_check() {
            check.note_scripts(&self.inspected());
        }
    }

    /// Returns what can be approved of the last scan, under the names of `roots`, but for files
    /// that match a pattern of `unlocked`.
    pub async fn observe(&self, roots: Roots, unlocked: Vec<String>) -> Pins {
        let (inspected, files) = (self.inspected(), self.static_files());
        let instructions = self.instructions.clone();
        let observe =
            move || Observer::new(roots).observe(&inspected, &files, &instructions, unlocked);
        join_blocking(tokio::task::spawn_blocking(observe)).await
    }

    /// Compares everything with what is approved, if only that is served. The results follow from
    /// the last comparison.
    pub(crate) async fn compare_with_lock(&mut self) {
        let Some(check) = self.inspector.lock_check().map(Arc::clone) else {
            return;
        };
        let (inspected, files) = (self.inspected(), self.static_files());
        let instructions = self.instructions.clone();
        let before = std::mem::take(&mut self.judged);
        let judge = move || judge(&check, &before, &inspected, files, instructions);
        self.judged = join_blocking(tokio::task::spawn_blocking(judge)).await;
    }

    /// Returns the approved parts of `offers`, or all of them if everything is served.
    pub(crate) fn approved_offers(&mut self, offers: Vec<Arc<Offer>>) -> Vec<Arc<Offer>> {
        match self.inspector.lock_check() {
            Some(check) => self.approved_offers.of(offers, check.locked()),
            None => offers,
        }
    }

    /// Replaces what is found by what is approved of it.
    pub(super) fn hold_back(&self, scan: &mut Scan) {
        if self.inspector.lock_check().is_none() {
            return;
        }
        let judged: BTreeMap<_, _> = self
            .judged
            .scripts
            .iter()
            .map(|(found, judged)| (Arc::as_ptr(found), judged))
            .collect();
        let scripts = std::mem::take(&mut scan.scripts).into_iter();
        // One that is not judged yet was found after the comparison, and joins the next results.
        let scripts = scripts.filter_map(|script| judged.get(&Arc::as_ptr(&script)).copied());
        scan.scripts = scripts.map(Arc::clone).collect();
        scan.files.clone_from(&self.judged.files);
        scan.instructions.clone_from(&self.judged.instructions);
        scan.held_back.clone_from(&self.judged.held_back);
    }

    fn inspected(&self) -> Vec<(PathBuf, Arc<InspectedFile>)> {
        let files = self.known.iter().flat_map(BTreeMap::values);
        files
            .map(|file| (file.candidate.root.clone(), Arc::clone(file)))
            .collect()
    }

    fn static_files(&self) -> Vec<Arc<StaticFile>> {
        self.files.iter().flatten().map(Arc::clone).collect()
    }
}

fn judge(
    check: &LockCheck,
    before: &Judged,
    inspected: &[(PathBuf, Arc<InspectedFile>)],
    files: Vec<Arc<StaticFile>>,
    instructions: Vec<(PathBuf, String)>,
) -> Judged {
    check.note_scripts(inspected);
    let roots = inspected.iter().map(|(root, _)| root);
    let companion_changes = check.check_companions(roots);
    let known: BTreeMap<_, _> = before
        .scripts
        .iter()
        .map(|(found, judged)| (Arc::as_ptr(found), judged))
        .collect();
    let mut judged = Judged::default();
    for (root, file) in inspected {
        let changes = companion_changes.get(root).map_or(&[][..], |all| all);
        for found in &file.scripts {
            let script = match check.judge(&file.candidate, found, changes) {
                None => Arc::clone(found),
                // The same one as before if nothing is new, so that the catalog is not replaced.
                Some(reason) => match known.get(&Arc::as_ptr(found)) {
                    Some(known) if known.held_back.as_ref() == Some(&reason) => Arc::clone(known),
                    _ => Arc::new(found.held_back(reason)),
                },
            };
            judged.scripts.push((Arc::clone(found), script));
        }
    }
    for file in files {
        match check.judge_file(&file) {
            Ok(None) => judged.files.push(file),
            Ok(Some(approved)) => judged.files.push(Arc::new(approved)),
            Err(held_back) => judged.held_back.push(held_back),
        }
    }
    for (root, text) in instructions {
        match check.judge_instructions(&root, &text) {
            None => judged.instructions.push(text),
            Some(held_back) => judged.held_back.push(held_back),
        }
    }
    judged
}

impl Scan {
    /// Iterates over everything that is not served because it is not approved as it is.
    pub fn held_back(&self) -> impl Iterator<Item = &HeldBack> {
        let scripts = self.scripts.iter();
        let scripts = scripts.filter_map(|script| script.held_back.as_ref());
        scripts.chain(&self.held_back)
    }
}
