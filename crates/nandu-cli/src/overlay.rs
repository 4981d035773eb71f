//! Changes to a device that are not made: what a verb that only looks would program and erase stays in memory.

use std::collections::HashMap;

use nandu_nand::{BlockAddr, Geometry, PageAddr};

/// A page that was programmed in memory: its main area and its tag.
#[derive(Clone, Debug)]
struct Page {
    main: Vec<u8>,
    tag: Vec<u8>,
}

/// What happened to a block in memory.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Nothing of what the device has there counts any more.
    is_erased: bool,
    is_bad: bool,
    pages: HashMap<u32, Page>,
}

/// What differs from the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    blocks: HashMap<u32, Block>,
}

/// Where the content of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    Memory,
}

impl Overlay {
    /// Where a page is; what is in memory goes to the two buffers. The main area is read from a column on.
    pub(crate) fn read(
        &self,
        geometry: &Geometry,
        page: PageAddr,
        column: u32,
        main: &mut [u8],
        tag: &mut [u8],
    ) -> Place {
        let Some(block) = self.blocks.get(&geometry.block_of(page).0) else { return Place::Device };
        match block.pages.get(&geometry.index_in_block(page)) {
            Some(held) => {
                copy(&held.main, column as usize, main);
                copy(&held.tag, 0, tag);
                Place::Memory
            }
            None if block.is_erased => {
                main.fill(0xFF);
                tag.fill(0xFF);
                Place::Memory
            }
            None => Place::Device,
        }
    }

    pub(crate) fn program(&mut self, geometry: &Geometry, page: PageAddr, main: &[u8], tag: &[u8]) {
        let block = self.blocks.entry(geometry.block_of(page).0).or_default();
        block.pages.insert(geometry.index_in_block(page), Page { main: main.to_vec(), tag: tag.to_vec() });
    }

    pub(crate) fn erase(&mut self, block: BlockAddr) {
        let block = self.blocks.entry(block.0).or_default();
        block.is_erased = true;
        block.pages.clear();
    }

    pub(crate) fn mark_bad(&mut self, block: BlockAddr) {
        self.blocks.entry(block.0).or_default().is_bad = true;
    }

    pub(crate) fn is_bad(&self, block: BlockAddr) -> bool {
        self.blocks.get(&block.0).is_some_and(|block| block.is_bad)
    }
}

/// Bytes from an offset on; what was not programmed is ones.
fn copy(from: &[u8], offset: usize, to: &mut [u8]) {
    let held = from.get(offset..).unwrap_or_default();
    let count = held.len().min(to.len());
    to[..count].copy_from_slice(&held[..count]);
    to[count..].fill(0xFF);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandu_sim::Chip;

    #[test]
    fn what_was_changed_is_in_memory_and_all_else_on_the_device() {
        let geometry = Chip::TINY.geometry;
        let mut overlay = Overlay::default();
        let (mut main, mut tag) = ([0; 4], [0; 2]);
        assert_eq!(overlay.read(&geometry, PageAddr(9), 0, &mut main, &mut tag), Place::Device);
        overlay.program(&geometry, PageAddr(9), &[1, 2, 3, 4, 5, 6], &[7]);
        assert_eq!(overlay.read(&geometry, PageAddr(9), 3, &mut main, &mut tag), Place::Memory);
        assert_eq!((main, tag), ([4, 5, 6, 0xFF], [7, 0xFF]));
        // Its neighbour is where it was, until their block is erased.
        assert_eq!(overlay.read(&geometry, PageAddr(8), 0, &mut main, &mut tag), Place::Device);
        overlay.erase(BlockAddr(1));
        for page in [8, 9] {
            assert_eq!(overlay.read(&geometry, PageAddr(page), 0, &mut main, &mut tag), Place::Memory);
            assert_eq!((main, tag), ([0xFF; 4], [0xFF; 2]));
        }
        overlay.mark_bad(BlockAddr(2));
        assert!(overlay.is_bad(BlockAddr(2)) && !overlay.is_bad(BlockAddr(1)));
    }
}
