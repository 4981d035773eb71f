//! In place of `placing.rs` where feature `mlc` is left out: pages of files go to the one stream there is, and nothing moves in idle time.

use core::convert::Infallible;
use core::marker::PhantomData;

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::{FsError, Ino, Options};

/// Policies, of which there are none.
pub(crate) struct Placing<'m>(Infallible, PhantomData<&'m mut [u8]>);

/// Bytes of memory for policies.
pub(crate) const fn memory_size(_options: &Options) -> usize {
    0
}

impl<'m, N: Nand> Fs<'m, N> {
    pub(crate) fn begin_placing(&mut self, _memory: &'m mut [u8], _windows: u64) {}

    pub(crate) fn wear_windows(&mut self) -> Result<u64, FsError<N::Error>> {
        Ok(0)
    }

    pub(crate) fn place_page(&mut self, _ino: u64) -> Option<u8> {
        let Placing(never, _) = self.placing.as_ref()?;
        match *never {}
    }

    pub(crate) fn forget_hotness(&mut self, _ino: Ino) {}
}
