//! What a part of an experiment is given when it runs.

use std::fmt;

use nandu_sim::Chip;

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// All of it: what limits and the numbers of others are for.
    Full,
    /// The same on smaller chips with fewer records, for tests.
    Small,
}

impl Scale {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Full => "full",
            Scale::Small => "small",
        }
    }
}

/// What a run is given.
pub struct Context<'a> {
    /// Where all chance comes from.
    pub seed: u64,
    /// How much is run.
    pub scale: Scale,
    /// Is told now and then how much of it is done: pieces done, pieces in all.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("seed", &self.seed).field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl Context<'static> {
    /// Everything is run, and nobody is told how far it is.
    pub fn full(seed: u64) -> Context<'static> {
        Context { seed, scale: Scale::Full, progress: None }
    }

    /// As [`full`](Context::full), with [`Scale::Small`].
    pub fn small(seed: u64) -> Context<'static> {
        Context { seed, scale: Scale::Small, progress: None }
    }
}

impl Context<'_> {
    /// `full` in a full run, else `small`.
    pub fn scaled<T>(&self, full: T, small: T) -> T {
        match self.scale {
            Scale::Full => full,
            Scale::Small => small,
        }
    }

    /// A chip, or, for the small form, so few blocks of it that a volume takes them only since none may go bad.
    pub(crate) fn chip(&self, full: Chip, small_blocks: u32) -> Chip {
        let mut small = full.with_blocks(small_blocks);
        small.geometry.bad_block_max = 0;
        self.scaled(full, small)
    }

    /// Says how far this part of the experiment is.
    pub fn tell(&mut self, done: u64, total: u64) {
        if let Some(progress) = &mut self.progress {
            progress(done, total);
        }
    }
}
