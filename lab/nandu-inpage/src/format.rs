//! Making a volume.

use nandu_media::inpage::record::Cells;
use nandu_media::volume::VolumeId;
use nandu_nand::{BlockAddr, Cause, Nand, NandError, NandErrorKind};

use crate::blocks::State;
use crate::descent::BUILD;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::NodeMut;
use crate::nodes::{LINKED, ROOT};
use crate::options::Options;
use crate::placement::Group;

/// Numbers left out between an old volume and a new one.
const SEQUENCE_GAP: u64 = 1 << 16;

/// How often a mark is asked for that cannot be read.
const MARK_ATTEMPTS: u32 = 3;

/// Least blocks that have to be good: three for anchors, three in reserve, and some for nodes.
const GOOD_MIN: u32 = 8;

impl<'m, N: Nand> InPage<'m, N> {
    /// Makes an empty index, whatever the chip holds. Respects every bad-block mark.
    ///
    /// Looks at the mark of every block, and programs the root and an anchor. A chip on which this was cut has no index, or
    /// the new one, or an old one that cannot be opened any more.
    ///
    /// # Errors
    ///
    /// [`Error::Geometry`], [`Error::Unsuitable`], [`Error::Memory`] before anything was changed; [`Error::Nand`].
    pub fn format(nand: N, options: Options, memory: &'m mut [u8]) -> Result<InPage<'m, N>, N> {
        let mut index = InPage::blank(nand, options, memory)?;
        let before = index.nand.attribute(Cause::Format);
        index.note_marks()?;
        let old = index.find_anchor()?;
        // Numbers go on from an old volume, so that a mount can tell its anchors from those of the new one.
        let mut id = VolumeId::new(options.salt);
        id.add(old.map_or(0, |old| old.sequence));
        let is_bad = |block: &BlockAddr| index.blocks[*block].state() == State::Bad;
        index.blocks.addresses().filter(is_bad).for_each(|block| id.add(block.0.into()));
        index.volume = id.draw(old.map_or(0, |old| old.volume));
        index.sequence = old.map_or(1, |old| old.sequence.saturating_add(SEQUENCE_GAP));
        index.choose_anchors(old.map(|old| index.geometry.block_of(old.page)))?;
        if index.blocks.free() + 3 < GOOD_MIN + index.journal_reserve() {
            return Err(Error::Unsuitable { what: "too few good blocks" });
        }
        index.write_root()?;
        // The anchor comes last: before it there is no volume.
        index.write_anchor(false)?;
        index.nand.attribute(before);
        Ok(index)
    }

    fn note_marks(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            let mut is_good = false;
            for _ in 0..MARK_ATTEMPTS {
                match self.nand.is_bad(block) {
                    Ok(is_bad) => {
                        is_good = !is_bad;
                        break;
                    }
                    Err(error) if error.kind() == NandErrorKind::Gone => return Err(Error::Nand(error)),
                    Err(_) => {}
                }
            }
            if is_good {
                self.blocks[block].is_mark_seen = 1;
            } else {
                // A mark that cannot be read is taken for set: the factory's marks are all that tells those blocks.
                self.blocks.set_state(block, State::Bad);
            }
        }
        Ok(())
    }

    fn write_root(&mut self) -> Result<(), N> {
        self.group = Group { size: 1, ..Group::CLOSED };
        let root = self.nodes.add(ROOT, 0, LINKED).ok_or(Error::Full)?;
        let low = match self.options.cells {
            Cells::Fixed { key, .. } => usize::from(key),
            Cells::Bytes => 0,
        };
        let frame = self.buffer.arena.scratch(BUILD);
        let bytes = self.buffer.arena.frame_mut(frame);
        NodeMut::create(bytes, self.options.cells, ROOT, 0, &[0; u8::MAX as usize][..low], None);
        if let crate::options::GroupSize::Fixed(size) = self.options.group {
            self.group.size = size;
        }
        self.write_node(frame, root)
    }
}
