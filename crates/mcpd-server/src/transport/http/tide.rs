//! How many connections there are, of how many: when most of a flood is gone, so is the use of the memory they took.

/// How many connections are a flood.
const FLOOD: usize = 256;

/// The most connections there were since they last were half as many.
#[derive(Debug, Default)]
pub(super) struct Tide {
    most: usize,
}

impl Tide {
    /// Another connection is gone, and so many are left: whether that is half of what was a flood.
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
