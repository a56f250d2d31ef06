//! Reports that the program adds to the console, by their names.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Future of a report: its text, or why there is none.
type ReportFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
/// Function that makes a report.
pub(crate) type MakeReport = dyn Fn() -> ReportFuture + Send + Sync;

/// Reports by their names.
#[derive(Clone, Default)]
pub(crate) struct Reports(BTreeMap<&'static str, Arc<MakeReport>>);

impl Reports {
    pub(crate) fn add(&mut self, name: &'static str, make: Arc<MakeReport>) {
        self.0.insert(name, make);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<MakeReport>> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
