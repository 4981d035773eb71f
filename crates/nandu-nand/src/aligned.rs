//! Memory for storage code, aligned for DMA.

use core::ops::{Deref, DerefMut};

/// The size of a line of a Cortex-M7's data cache. Page sizes are multiples of it.
pub const ALIGNMENT: usize = 32;

/// So many bytes at an address that is a multiple of 32, [`ALIGNMENT`].
///
/// Stores and files that are opened with the option `aligned` put their page buffers at multiples of 32 from the beginning of their memory. So in
/// memory like this every whole page that goes to the chip from a buffer of theirs, or comes into one, begins and ends at a line of the cache.
///
/// ```
/// use nandu_nand::Aligned;
///
/// static MEMORY: Aligned<2048> = Aligned::new();
/// # assert!(MEMORY.as_ptr().addr().is_multiple_of(32) && MEMORY.len() == 2048);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct Aligned<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Aligned<SIZE> {
    /// Zeros.
    pub const fn new() -> Aligned<SIZE> {
        Aligned([0; SIZE])
    }
}

impl<const SIZE: usize> Default for Aligned<SIZE> {
    fn default() -> Aligned<SIZE> {
        Aligned::new()
    }
}

impl<const SIZE: usize> Deref for Aligned<SIZE> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const SIZE: usize> DerefMut for Aligned<SIZE> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
