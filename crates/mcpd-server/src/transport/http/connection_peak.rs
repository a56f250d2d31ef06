//! Peak of open connections: when half of a large peak is gone, the memory they took can be
//! released.

/// Number of connections from which a peak counts.
const MIN_PEAK: usize = 256;

/// Peak since the connections last fell to half of it.
#[derive(Debug, Default)]
pub(super) struct ConnectionPeak {
    peak: usize,
}

impl ConnectionPeak {
    /// Updates the peak after a connection has closed and `open` are left. Returns whether they
    /// fell to half of a large peak.
    pub(super) fn record_close(&mut self, open: usize) -> bool {
        self.peak = self.peak.max(open);
        let fell_by_half = self.peak >= MIN_PEAK && open <= self.peak / 2;
        if fell_by_half {
            self.peak = open;
        }
        fell_by_half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_falls_by_halves() {
        let mut peak = ConnectionPeak::default();
        let low: Vec<_> = (0..2000)
            .rev()
            .filter(|open| peak.record_close(*open))
            .collect();
        assert_eq!(low, [999, 499, 249]);
        assert!(!(0..MIN_PEAK).rev().any(|open| peak.record_close(open)));
        assert!((0..=MIN_PEAK).rev().any(|open| peak.record_close(open)));
    }
}
