//! Peak of open connections: when half of a large peak is gone, the memory they took can be
//! released.

/// Number of connections from which a peak counts.
const FLOOD: usize = 256;

/// Peak since the connections last fell to half of it.
#[derive(Debug, Default)]
pub(super) struct Tide {
    most: usize,
}

impl Tide {
    /// Updates the peak after a connection has closed and `open` are left. Returns whether they
    /// fell to half of a large peak.
    pub(super) fn is_out(&mut self, open: usize) -> bool {
        self.most = self.most.max(open);
        let is_out = self.most >= FLOOD && open <= self.most / 2;
        if is_out {
            self.most = open;
        }
        is_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tide_goes_out_by_halves() {
        let mut tide = Tide::default();
        let low: Vec<_> = (0..2000).rev().filter(|open| tide.is_out(*open)).collect();
        assert_eq!(low, [999, 499, 249]);
        assert!(!(0..FLOOD).rev().any(|open| tide.is_out(open)));
        assert!((0..=FLOOD).rev().any(|open| tide.is_out(open)));
    }
}
