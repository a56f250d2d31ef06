//! Offers of sources without the entries that are not approved.

use std::sync::Arc;

use super::held_back::reason;
use super::observe::offer_entries;
use super::{Locked, PinnedEntry, Pins};
use crate::catalog::source::Offer;

/// Approved part of each offer, computed once.
#[derive(Debug, Default)]
pub(crate) struct ApprovedOffers(Vec<(Arc<Offer>, Arc<Offer>)>);

impl ApprovedOffers {
    /// Returns the approved parts of `offers`, whose faults name the rest.
    pub(crate) fn of(&mut self, offers: Vec<Arc<Offer>>, locked: &Locked) -> Vec<Arc<Offer>> {
        let known = std::mem::take(&mut self.0);
        let approve = |offer: Arc<Offer>| {
            let known = known.iter().find(|(before, _)| Arc::ptr_eq(before, &offer));
            let approved = match known {
                Some((_, approved)) => Arc::clone(approved),
                None => locked.pins.approved_part(&offer),
            };
            (offer, approved)
        };
        self.0 = offers.into_iter().map(approve).collect();
        let approved = self.0.iter();
        approved.map(|(_, approved)| Arc::clone(approved)).collect()
    }
}

impl Locked {
    /// Returns the approved parts of `offers`, whose faults name the rest.
    #[must_use]
    pub fn approved_offers(&self, offers: &[Arc<Offer>]) -> Vec<Arc<Offer>> {
        ApprovedOffers::default().of(offers.to_vec(), self)
    }
}

impl Pins {
    /// Adds the entries of sources, as they are offered.
    pub fn add_offers<'a>(&mut self, offers: impl IntoIterator<Item = &'a Arc<Offer>>) {
        let offered = offers.into_iter().flat_map(|offer| offer_entries(offer));
        self.entries.extend(offered);
        self.sort();
    }

    fn approved_part(&self, offer: &Arc<Offer>) -> Arc<Offer> {
        let held_back: Vec<_> = offer_entries(offer)
            .into_iter()
            .filter_map(|entry| Some((self.changes(&entry)?, entry)))
            .collect();
        if held_back.is_empty() {
            return Arc::clone(offer);
        }
        let is_held_back = |kind, path: &str| {
            let mut held_back = held_back.iter();
            held_back.any(|(_, entry)| entry.kind == kind && entry.path == path)
        };
        let mut approved = offer.without(is_held_back);
        for (changes, entry) in &held_back {
            let word = entry.kind.word();
            approved.fault(format!(
                "has the {word} `{}`, which is held back: {}",
                entry.path,
                reason(changes)
            ));
        }
        Arc::new(approved)
    }

    /// Returns what differs from the approved entry; nothing but `Some` if there is none, and
    /// `None` if nothing differs.
    pub(super) fn changes(&self, now: &PinnedEntry) -> Option<Vec<String>> {
        let Some(approved) = self.entries.iter().find(|entry| entry.key() == now.key()) else {
            return Some(Vec::new());
        };
        let differences = approved.differences(now).into_iter();
        let changes: Vec<_> = differences.map(|difference| difference.member).collect();
        (!changes.is_empty()).then_some(changes)
    }
}
