//! Stub of the cache for builds without a database.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;

use super::scan::InspectedFile;
use super::walk::Candidate;
use crate::database::rows::ProbeResult;

/// Cannot be constructed.
#[derive(Debug)]
pub(super) struct ProbeCache(Infallible);

/// Always empty.
#[derive(Debug, Default)]
pub(super) struct CachedResult {
    pub(super) answer: Option<(ProbeResult, Arc<str>)>,
    pub(super) was_tool: bool,
}

impl ProbeCache {
    pub(super) fn load(&mut self) {
        match self.0 {}
    }

    pub(super) fn get(&self, _: usize, _: &Candidate) -> CachedResult {
        match self.0 {}
    }

    pub(super) fn save(&mut self, _: &[BTreeMap<ScriptPath, Arc<InspectedFile>>]) {
        match self.0 {}
    }
}
