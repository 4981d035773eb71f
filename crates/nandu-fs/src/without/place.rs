//! In place of `place.rs` where feature `mlc` is left out: pages of files go to the one stream there is.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::placing::Placing;
use crate::{FsError, Ino};

impl<'m, N: Nand> Fs<'m, N> {
    #[inline(never)]
    pub(crate) fn begin_placing(&mut self, _memory: &'m mut [u8], _windows: u64) {}

    #[inline(never)]
    pub(crate) fn wear_windows(&mut self) -> Result<u64, FsError<N::Error>> {
        Ok(0)
    }

    pub(crate) fn place_page(&mut self, _ino: u64) -> Option<u8> {
        let Placing(never, _) = self.placing.as_ref()?;
        match *never {}
    }

    pub(crate) fn forget_hotness(&mut self, _ino: Ino) {}
}
