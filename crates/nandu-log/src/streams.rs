//! The stream of each page, by where it comes from.

use nandu_nand::{BlockAddr, Nand};

use crate::log::Log;
use crate::placement::Placement;

impl<N: Nand> Log<'_, N> {
    /// The coarse time.
    pub(crate) fn now(&self) -> u16 {
        (self.sequence >> self.shape.birth_shift) as u16
    }

    /// Coarse time since a block was opened.
    pub(crate) fn age(&self, block: BlockAddr) -> u16 {
        self.now().wrapping_sub(self.blocks.birth(block))
    }

    /// The stream for a bare page: the first one for what the user changes, the last one for what is moved.
    pub(crate) fn place_bare(&self, placement: Placement) -> u8 {
        let last = self.shape.streams - 1;
        let first = self.shape.headed().min(last);
        match placement {
            Placement::Stream(stream) => stream.clamp(first, last),
            Placement::Survivor { .. } => last,
            Placement::New | Placement::Update { .. } | Placement::Passing => first,
        }
    }

    /// The stream for a page.
    pub(crate) fn place(&self, placement: Placement) -> u8 {
        let streams = self.shape.headed();
        let last = streams - 1;
        match placement {
            Placement::Stream(stream) => stream.min(last),
            Placement::Passing => 0,
            Placement::New => u8::from(streams >= 3),
            Placement::Update { of } => {
                if streams < 3 || !self.shape.geometry.contains_page(of) {
                    return 0;
                }
                let age = self.age(self.shape.geometry.block_of(of));
                u8::from(u32::from(age) >= self.lifetimes.mean())
            }
            Placement::Survivor { from } => {
                if streams < 4 || !self.shape.geometry.contains_page(from) {
                    return last;
                }
                let stream = self.blocks.stream(self.shape.geometry.block_of(from));
                let colder = if stream < 2 { stream + 2 } else { stream + 1 };
                colder.min(last)
            }
        }
    }
}
