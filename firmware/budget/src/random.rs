//! Numbers that are the same in every run.

/// A generator of numbers: the multiplier and increment of Knuth's MMIX, upper bits only.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that begins with this number.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % end
    }
}
