//! Remarks: warnings about irregularities of a server that are tolerated, each logged once and
//! with secrets redacted.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mcpd_server::source::Secrets;

/// Maximum number of distinct warnings; later remarks are logged at the level `debug`, like
/// repeated ones.
const MAX_REMARKS: usize = 100;

/// Log of one server's irregularities, over all its connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remarks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Name of the server.
    name: String,
    /// Redacted from every remark.
    secrets: Secrets,
    made: Mutex<BTreeSet<String>>,
}

impl Remarks {
    pub(crate) fn new(name: &str, secrets: &Secrets) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            secrets: secrets.clone(),
            made: Mutex::default(),
        }))
    }

    /// Logs `remark`, which follows the name of the server: as a warning the first time.
    pub(crate) fn add(&self, remark: impl Into<String>) {
        let upstream = &self.0.name;
        let remark = self.0.secrets.redact(remark.into());
        let mut made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() < MAX_REMARKS && !made.contains(&remark) {
            tracing::warn!(upstream, "{remark}");
            made.insert(remark);
        } else {
            tracing::debug!(upstream, "{remark}");
        }
    }

    /// Returns the warnings so far, sorted.
    #[cfg(test)]
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.0.made.lock().unwrap().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_bounded_and_redacted() {
        let remarks = Remarks::new("shell", &Secrets::new([("KEY", "s3cret-of-a-shell")]));
        remarks.add("says s3cret-of-a-shell");
        assert_eq!(remarks.warnings(), ["says [redacted KEY]"]);
        for number in 0..2 * MAX_REMARKS {
            remarks.add(format!("counts to {number}"));
        }
        assert_eq!(remarks.warnings().len(), MAX_REMARKS);
    }
}
