//! Pseudorandom numbers with a fixed seed: `SplitMix64`, the same on every machine and in every
//! version. Not for secrets.

/// Generator of pseudorandom numbers.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Makes a generator for this seed and name.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        // FNV-1a: stable, unlike the hashes of the standard library.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed ^ hash)
    }

    /// Returns a number below `limit`, or 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(mixed % limit).unwrap_or_default()
    }
}
