//! Views of a catalog for callers with restricted access, built once per kind of access.

use std::sync::{Arc, Mutex};

use super::Catalog;
use crate::policy::access::Access;
use crate::support::sync::lock;

/// Maximum number of cached views.
const MAX_VIEWS: usize = 64;

/// Cached views of one catalog; dropped with it.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<Vec<(Arc<Access>, Arc<Catalog>)>>);

impl Views {
    /// Returns the view for `access`, built by `make` on first use.
    pub(super) fn get(
        &self,
        access: &Arc<Access>,
        make: impl FnOnce() -> Arc<Catalog>,
    ) -> Arc<Catalog> {
        let find = |views: &[(Arc<Access>, Arc<Catalog>)]| {
            let found = views.iter().find(|(known, _)| Arc::ptr_eq(known, access));
            found.map(|(_, view)| Arc::clone(view))
        };
        if let Some(view) = find(&lock(&self.0)) {
            return view;
        }
        let made = make();
        let mut views = lock(&self.0);
        if let Some(view) = find(&views) {
            return view;
        }
        if views.len() >= MAX_VIEWS {
            // Views of access rules that no longer exist, as after a reload, or else the oldest.
            views.retain(|(access, _)| Arc::strong_count(access) > 1);
            if views.len() >= MAX_VIEWS {
                views.remove(0);
            }
        }
        views.push((Arc::clone(access), Arc::clone(&made)));
        made
    }
}
