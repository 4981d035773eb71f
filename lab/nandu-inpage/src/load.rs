//! Reading a node: its page, and the log pages of its block.

use nandu_media::inpage::{FrontFields, Kind};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand};

use crate::arena::Frame;
use crate::chip::Read;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::{High, Node, NodeMut};
use crate::nodes::{LOST, NodeEntry};
use crate::options::{Layout, LogPages, LogRead};

/// How often a page is read that is not what it should be.
pub(crate) const READS: u32 = 2;

/// Which fences bound a node that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Range {
    Near,
    Far,
}

impl<N: Nand> InPage<'_, N> {
    /// Reads the pages of a node into a frame and checks them. Costs a read for each, and again if one is not what it should be.
    /// Returns its sequence.
    pub(crate) fn read_node(&mut self, index: u32, frame: Frame) -> Result<u64, N> {
        let entry = self.nodes[index];
        let Some(block) = entry.block() else {
            return Err(Error::Corrupt { page: nandu_nand::PageAddr(0), why: Malformed::Erased });
        };
        let page = self.page_of(block, entry.page);
        if entry.has(LOST) {
            return Err(Error::Corrupt { page, why: Malformed::Unreadable });
        }
        let mut attempt = 1;
        loop {
            match self.try_node(&entry, block, frame)? {
                Ok(()) => return Ok(entry.sequence),
                // Another page may have been read by mistake.
                Err(_) if attempt < READS => attempt += 1,
                Err(why) => return Err(Error::Corrupt { page, why }),
            }
        }
    }

    fn try_node(
        &mut self,
        entry: &NodeEntry,
        block: BlockAddr,
        frame: Frame,
    ) -> Result<core::result::Result<(), Malformed>, N> {
        let page = self.page_of(block, entry.page);
        let page_size = self.geometry.page_size as usize;
        let bytes = &mut self.buffer.arena.frame_mut(frame)[..page_size];
        match Self::read(&mut self.nand, page, 0, bytes)? {
            Read::Unreadable => return Ok(Err(Malformed::Unreadable)),
            Read::Worn => self.blocks[block].is_worn = 1,
            Read::Fine => {}
        }
        let front = FrontFields::parse(bytes).and_then(|front| front.expect(self.volume, page.0));
        let front = match front {
            Ok(front) if front.kind == Kind::Node => front,
            Ok(front) => return Ok(Err(Malformed::Kind(front.kind as u8))),
            Err(why) => return Ok(Err(why)),
        };
        let parts = match self.read_parts(&front, frame)? {
            Ok(parts) => parts,
            Err(why) => return Ok(Err(why)),
        };
        if parts.is_worn {
            self.blocks[block].is_worn = 1;
        }
        let parsed = Node::parse(self.buffer.arena.frame(frame), parts.size, self.options.cells);
        Ok(parsed.and_then(|(_, fields)| {
            if fields.node != entry.id || fields.level != entry.level {
                return Err(Malformed::Range(Field::Node));
            }
            if front.sequence == entry.sequence { Ok(()) } else { Err(Malformed::Sequence) }
        }))
    }

    /// Puts together in a frame what flash holds of a node, of the keys that it answers for. Costs a read for each of its pages, and
    /// one for each log page that the options say.
    pub(crate) fn compose(&mut self, index: u32, frame: Frame, range: Range) -> Result<(), N> {
        let fences = match range {
            Range::Near => self.near,
            Range::Far => self.far,
        };
        let entry = self.nodes[index];
        let Some(block) = entry.block() else { return self.read_node(index, frame).map(drop) };
        self.stats.loads += 1;
        self.blocks[block].loads = self.blocks[block].loads.saturating_add(1);
        let mut attempt = 1;
        while self.compose_once(index, block, frame, fences.high())? < entry.sectors {
            // A log page was not what it should be. Read by mistake, or it decayed: then records are lost, and without them
            // the node would be an older one.
            if attempt == READS {
                let page = self.page_of(block, entry.page);
                return Err(Error::Corrupt { page, why: Malformed::Range(Field::LogSectors) });
            }
            attempt += 1;
        }
        self.note_due(block);
        Ok(())
    }

    /// One try. Returns how many log sectors of the node were found.
    fn compose_once(&mut self, index: u32, block: BlockAddr, frame: Frame, high: High<'_>) -> Result<u16, N> {
        let sequence = self.read_node(index, frame)?;
        if let Some(high) = high {
            NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells).truncate(high);
        }
        let used = self.log_pages_used(block);
        let granted = self.log_pages_granted(block);
        let is_literal = self.options.log_read == LogRead::All && self.options.layout == Layout::Sectors;
        let dialect = self.dialect();
        let mut count = 0;
        for number in 0..if is_literal { used.max(granted) } else { used } {
            if self.options.log_read == LogRead::Smart && self.nodes[index].logs & 1 << number == 0 {
                continue;
            }
            let page = self.log_page(block, number);
            let read = Self::read_log_page(&mut self.nand, dialect, page, self.log)?;
            self.stats.log_pages_read += 1;
            self.blocks[block].log_read_ns += u64::from(self.options.times.read_ns);
            if read == Read::Worn {
                self.blocks[block].is_worn = 1;
            }
            if number >= used {
                continue;
            }
            let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells);
            count +=
                dialect.apply(&mut node, sequence, self.log, page, high).map_err(|why| Error::Corrupt { page, why })?;
        }
        Ok(count)
    }

    /// Remembers a block whose log pages have cost more to read than a merge does, or that is worn.
    fn note_due(&mut self, block: BlockAddr) {
        let entry = &self.blocks[block];
        let is_adaptive = matches!(self.options.log_pages, LogPages::Adaptive(_));
        let is_costly = is_adaptive && entry.logs > 0 && entry.log_read_ns > self.merge_cost_ns(block);
        if is_costly || entry.is_worn != 0 {
            self.due = Some(block);
        }
    }

    /// What it would take to merge a block now, nanoseconds.
    pub(crate) fn merge_cost_ns(&self, block: BlockAddr) -> u64 {
        let times = self.options.times;
        let nodes = u64::from(self.blocks[block].live);
        let logs = u64::from(self.log_pages_used(block));
        let pages = nodes * u64::from(self.node_pages());
        (pages + logs) * u64::from(times.read_ns) + pages * u64::from(times.program_ns) + u64::from(times.erase_ns)
    }

    /// Reads a node into a unit that has no base. The range that the node answers for is `near`, and the unit's changes
    /// are applied.
    pub(crate) fn load(&mut self, index: u32, unit: u32) -> Result<Frame, N> {
        // The caller made room, and the arena has as much as the buffer's size and what an operation pins.
        let frame = self.buffer.add_base(unit).ok_or(Error::Full)?;
        let result = self.compose(index, frame, Range::Near).and_then(|()| self.finish_load(index, unit, frame));
        if result.is_err() {
            self.buffer.drop_base(unit);
        }
        result.map(|()| frame)
    }

    fn finish_load(&mut self, index: u32, unit: u32, frame: Frame) -> Result<(), N> {
        let entry = self.nodes[index];
        let page = entry.block().map_or(nandu_nand::PageAddr(0), |block| self.page_of(block, entry.page));
        let corrupt = |why| Error::Corrupt { page, why };
        let cells = self.options.cells;
        let mut node = NodeMut::new(self.buffer.arena.frame_mut(frame), cells);
        if node.view().low() != self.near.low.as_slice() {
            return Err(corrupt(Malformed::Range(Field::Low)));
        }
        node.clip(self.near.high()).ok_or(corrupt(Malformed::Range(Field::High)))?;
        self.apply_changes(unit, frame)?;
        self.nodes[index].size = Node::new(self.buffer.arena.frame(frame), cells).size() as u32;
        Ok(())
    }

    /// Applies a unit's changes to a node in a frame.
    pub(crate) fn apply_changes(&mut self, unit: u32, frame: Frame) -> Result<(), N> {
        let Some(chunk) = self.buffer[unit].chunk() else { return Ok(()) };
        let used = self.buffer.changes_size(unit);
        let cells = self.options.cells;
        let (bytes, changes) = self.buffer.arena.frame_and_chunk(frame, chunk);
        let header = nandu_media::inpage::sector::HEADER_SIZE;
        let mut node = NodeMut::new(bytes, cells);
        for record in nandu_media::inpage::record::Records::new(cells, &changes[header..header + used]) {
            let applied = record.ok().and_then(|record| node.apply(record));
            // These records were written by this index into memory that is its own, for a node that has room for them.
            debug_assert!(applied.is_some(), "a change does not fit its node");
        }
        Ok(())
    }
}
