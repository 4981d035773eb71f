//! Which read is drawn next.

/// Which read counts next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    /// Reads before the one that is drawn; 0: this one.
    pub(crate) ahead: u32,
    pub(crate) state: u32,
    /// Reads in this session.
    pub(crate) session: u32,
}

impl Sampler {
    pub(crate) const NEW: Sampler = Sampler { ahead: u32::MAX, state: 0, session: 0 };

    /// A number that looks like chance (Marsaglia's 32-bit xorshift).
    pub(crate) fn draw(&mut self) -> u32 {
        let mut x = if self.state == 0 { 1 } else { self.state };
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.state = x;
        x >> 1
    }
}
