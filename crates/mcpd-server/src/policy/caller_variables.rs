//! Variables of callers: the credentials that one caller's runs get, and no other's.

use std::collections::BTreeMap;

use super::Secret;

/// Secret variables of each caller, by the name of its principal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallerVariables(BTreeMap<String, Vec<(String, Secret)>>);

impl CallerVariables {
    pub(super) fn set(&mut self, caller: String, name: String, secret: Secret) {
        let variables = self.0.entry(caller).or_default();
        variables.retain(|(known, _)| *known != name);
        variables.push((name, secret));
    }

    /// Returns the variables of a caller, if it has any.
    pub(super) fn of(&self, caller: &str) -> Option<&[(String, Secret)]> {
        self.0.get(caller).map(Vec::as_slice)
    }

    /// Returns the variables of all callers.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &(String, Secret))> {
        let callers = self.0.iter();
        callers.flat_map(|(caller, variables)| variables.iter().map(move |one| (caller, one)))
    }
}
