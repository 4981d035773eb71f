//! The write-ahead ring: changes in the order in which they were made, one page for many.
//!
//! With it a sync is one program, whatever nodes were changed, and what a cut leaves is what the index held after one of the
//! calls. The rule that makes it so: a change is in the ring, durably, before any node that holds it is programmed. So each
//! unit of the buffer knows in which journal page its last change stands, and is not flushed before that page. And it knows
//! in which its first one stands: blocks of the ring are erased when nothing in them is needed, and to make room the units
//! with the oldest changes are flushed.

use nandu_media::inpage::journal::{JOURNAL_SIZE, JournalFields};
use nandu_media::inpage::record::Record;
use nandu_media::inpage::{FrontFields, Kind};
use nandu_nand::{BlockAddr, Cause, Nand};

use crate::blocks::State;
use crate::chip::Read;
use crate::descent::WALK;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::nodes::NEW;

/// Most blocks that the options may give the ring.
pub(crate) const JOURNAL_BLOCKS_MAX: u8 = 8;

/// Most blocks of it for a time: some wait to be erased, some failed, and recovery copies a page.
const RING_MAX: usize = JOURNAL_BLOCKS_MAX as usize + 8;

/// Blocks that are free when a change is noted: one to copy the newest page to, one to merge into, one for nodes.
const FREE_MIN: u32 = 3;

/// How often a journal page is tried elsewhere.
const ATTEMPTS: u32 = 8;

/// A block of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingBlock {
    pub(crate) block: BlockAddr,
    /// Number of its first page.
    pub(crate) first: u64,
    /// Pages programmed.
    pub(crate) used: u16,
    /// A program failed: nothing is added, and it is retired when it is not needed.
    has_failed: bool,
}

impl RingBlock {
    /// The number behind that of its last page.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.used))
    }
}

/// How the copy of a block of the ring ended.
enum Copied {
    All,
    /// A page could not be read.
    Unreadable,
    /// A program failed in this block.
    Failed(BlockAddr),
}

/// The ring, and the page of it that is being filled.
#[derive(Debug)]
pub(crate) struct Journal<'m> {
    /// The page that is filled, or a page that is made again.
    pub(crate) page: &'m mut [u8],
    /// Bytes of the records in it.
    used: usize,
    pub(crate) count: u16,
    /// Number of the page that is filled.
    pub(crate) number: u64,
    /// The first page with changes that may not stand in nodes.
    pub(crate) oldest: u64,
    /// The same as flash says it. What is before may be erased.
    pub(crate) declared: u64,
    /// Where the batch begins that is being noted or done.
    pub(crate) batch: Option<(u64, u16)>,
    /// The batch is noted, and is being done.
    pub(crate) is_noted: bool,
    /// Blocks from the oldest on. The last one is being filled if `is_open`.
    ring: [Option<RingBlock>; RING_MAX],
    is_open: bool,
    /// Changes are made again and not noted.
    pub(crate) is_replaying: bool,
    /// What the newest page says that was found, and its sequence.
    pub(crate) found: Option<(JournalFields, u64)>,
}

impl<'m> Journal<'m> {
    pub(crate) fn new(page: &'m mut [u8]) -> Journal<'m> {
        Journal {
            page,
            used: 0,
            count: 0,
            number: 1,
            oldest: 1,
            declared: 1,
            batch: None,
            is_noted: false,
            ring: [None; RING_MAX],
            is_open: false,
            is_replaying: false,
            found: None,
        }
    }

    /// As if nothing was found.
    pub(crate) fn clear(&mut self) {
        let page = core::mem::take(&mut self.page);
        *self = Journal::new(page);
    }

    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = RingBlock> + use<> {
        self.ring.into_iter().flatten()
    }

    /// Blocks that it has.
    pub(crate) fn block_count(&self) -> u32 {
        self.blocks().count() as u32
    }

    /// Adds a block behind the others; the oldest goes if there are too many, which no ring that was written here has.
    pub(crate) fn push(&mut self, block: BlockAddr, first: u64, used: u16) {
        if self.ring[RING_MAX - 1].is_some() {
            self.remove(0);
        }
        let place = self.ring.iter().position(Option::is_none).unwrap_or(RING_MAX - 1);
        self.ring[place] = Some(RingBlock { block, first, used, has_failed: false });
    }

    pub(crate) fn find_mut(&mut self, block: BlockAddr) -> Option<&mut RingBlock> {
        self.ring.iter_mut().flatten().find(|entry| entry.block == block)
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<RingBlock> {
        let removed = self.ring.get_mut(place)?.take();
        self.ring[place..].rotate_left(1);
        if self.blocks().count() == place {
            self.is_open = false;
        }
        removed
    }

    fn last_mut(&mut self) -> Option<&mut RingBlock> {
        self.ring.iter_mut().flatten().last()
    }

    /// Bytes that records of the page may take still.
    pub(crate) fn room(&self) -> usize {
        self.page.len() - JOURNAL_SIZE - self.used
    }

    /// Bytes of records that an empty page takes.
    pub(crate) fn capacity(&self) -> usize {
        self.page.len() - JOURNAL_SIZE
    }
}

impl<N: Nand> InPage<'_, N> {
    /// Whether changes are noted in the ring.
    pub(crate) fn has_journal(&self) -> bool {
        self.options.journal_blocks > 0 && !self.journal.is_replaying
    }

    /// Blocks that the ring may still need and does not have.
    pub(crate) fn journal_reserve(&self) -> u32 {
        match self.options.journal_blocks {
            0 => 0,
            blocks => (u32::from(blocks) + FREE_MIN).saturating_sub(self.journal.block_count()),
        }
    }

    /// Before a change: has room for a record of this size in the page that is filled, and for that page in the ring.
    ///
    /// Here and not when the record is noted: making room flushes nodes, and may move what the change has found by then.
    pub(crate) fn make_journal_room(&mut self, size: usize) -> Result<(), N> {
        if !self.has_journal() || self.journal.is_noted {
            return Ok(());
        }
        // Whatever is noted has to be made again after a cut, and that takes blocks.
        if self.blocks.free() < FREE_MIN {
            return Err(Error::ReadOnly);
        }
        if self.journal.room() < size {
            self.write_journal()?;
        }
        // The page that is filled may have to be programmed on the way, before what waits in it is flushed, and the change then
        // comes to the next one.
        self.make_ring_room(2)
    }

    /// Has room for so many pages in the ring.
    pub(crate) fn make_ring_room(&mut self, pages: u64) -> Result<(), N> {
        self.release_journal()?;
        while self.ring_pages_left() < pages {
            self.advance_journal()?;
        }
        Ok(())
    }

    /// Pages that the ring takes without becoming larger than it may.
    fn ring_pages_left(&self) -> u64 {
        let per_block = u64::from(self.geometry.pages_per_block);
        let needed = self.journal.blocks().filter(|block| block.end() > self.journal.oldest).count() as u64;
        let open =
            self.journal.blocks().last().filter(|block| self.journal.is_open && block.end() > self.journal.oldest);
        let open = open.map_or(0, |block| per_block - u64::from(block.used));
        let most = u64::from(self.options.journal_blocks);
        if needed > most { 0 } else { open + (most - needed) * per_block }
    }

    /// Makes the oldest block of the ring one that is not needed: flushes what its changes are still waiting for.
    ///
    /// A new leaf is found only by the link to it, so inner nodes are flushed as well, all of them: few are changed.
    fn advance_journal(&mut self) -> Result<(), N> {
        let oldest = self.journal.oldest;
        let block = self.journal.blocks().find(|block| block.end() > oldest);
        let Some(block) = block else { return Err(Error::Poisoned) };
        self.flush_until(Some((block.end() - 1) as u32))?;
        self.journal.oldest = block.end();
        if self.journal.blocks().last().is_some_and(|last| last.block == block.block) {
            // Nothing in it is needed; it is erased sooner than it is full.
            self.journal.is_open = false;
        }
        Ok(())
    }

    /// Notes a change of a unit: in the ring, unless it stands there as part of a batch, and in the unit where that is.
    pub(crate) fn note_journal(&mut self, record: Record<'_>, unit: u32) -> Result<(), N> {
        if !self.has_journal() {
            return Ok(());
        }
        if !self.journal.is_noted {
            self.append_journal(record)?;
        }
        let number = self.journal.number;
        let first = self.journal.batch.map_or(number, |(page, _)| page);
        let is_first = !self.buffer[unit].has_changes() && !self.nodes[self.buffer[unit].node].has(NEW);
        self.buffer.set_journal(unit, is_first.then_some(first as u32), number as u32);
        Ok(())
    }

    pub(crate) fn append_journal(&mut self, record: Record<'_>) -> Result<(), N> {
        let journal = &mut self.journal;
        let out = &mut journal.page[JOURNAL_SIZE + journal.used..];
        let size = record.write(self.options.cells, out).ok_or(Error::Poisoned)?;
        journal.used += size;
        journal.count += 1;
        Ok(())
    }

    /// Whether the last change of a unit is in the ring's page that is not programmed.
    pub(crate) fn is_ahead(&self, unit: u32) -> bool {
        self.journal.count > 0 && self.buffer[unit].last_journal() == self.journal.number as u32
    }

    /// Has the changes of a unit durable in the ring, before its node is programmed with them. If the node came first, a cut
    /// would leave this change without the ones before it.
    pub(crate) fn write_ahead(&mut self, unit: u32) -> Result<(), N> {
        #[cfg(feature = "_broken")]
        if self.options.broken.node_before_journal {
            return Ok(());
        }
        if self.is_ahead(unit) { self.write_journal() } else { Ok(()) }
    }

    /// Programs the page that is being filled, if there is anything in it. Costs a program, and an erase where a block is taken
    /// that was not erased.
    pub(crate) fn write_journal(&mut self) -> Result<(), N> {
        if self.journal.count == 0 {
            return Ok(());
        }
        let journal = &self.journal;
        let here = (journal.number, journal.count);
        let (whole_page, whole_count) = if journal.is_noted { here } else { journal.batch.unwrap_or(here) };
        let fields = JournalFields {
            number: journal.number,
            oldest: journal.oldest,
            whole_page,
            whole_count,
            record_count: journal.count,
        };
        let size = JOURNAL_SIZE + journal.used;
        self.for_cause(Cause::Host, |index| index.program_journal(fields, size))?;
        self.journal.used = 0;
        self.journal.count = 0;
        self.journal.number += 1;
        Ok(())
    }

    /// Programs the page in memory as a journal page, in the open block or the next one.
    pub(crate) fn program_journal(&mut self, fields: JournalFields, size: usize) -> Result<(), N> {
        for _ in 0..ATTEMPTS {
            let (block, place) = self.journal_place(fields.number)?;
            let page = self.page_of(block, place);
            // As with every page: the sequence grows before the program, so that no two have one number.
            let sequence = self.next_sequence();
            let erase_count = self.blocks[block].erase_count;
            fields.write(self.journal.page);
            let (volume, size) = (self.volume, size as u32);
            FrontFields { kind: Kind::Journal, sequence, page: page.0, volume, erase_count, size }
                .seal(self.journal.page);
            let frame = self.buffer.arena.scratch(WALK);
            let read_back = self.options.read_back.then(|| self.buffer.arena.frame_mut(frame));
            if Self::program(&mut self.nand, page, 0, self.journal.page, read_back)? {
                if let Some(last) = self.journal.last_mut() {
                    last.used += 1;
                }
                self.journal.declared = fields.oldest;
                self.stats.journal_programs += 1;
                return Ok(());
            }
            self.fail_journal()?;
        }
        Err(Error::ReadOnly)
    }

    /// Where the next journal page goes.
    fn journal_place(&mut self, number: u64) -> Result<(BlockAddr, u16), N> {
        let open = self.journal.blocks().last().filter(|_| self.journal.is_open);
        let open = open.filter(|block| u32::from(block.used) < self.geometry.pages_per_block && block.end() == number);
        if let Some(open) = open {
            return Ok((open.block, open.used));
        }
        if self.journal.block_count() as usize == RING_MAX {
            return Err(Error::ReadOnly);
        }
        let block = self.take_erased(State::Journal)?;
        self.journal.push(block, number, 0);
        self.journal.is_open = true;
        Ok((block, 0))
    }

    /// A program failed in the block that is filled: its pages go to another block, and it is retired.
    ///
    /// At once, since what stands behind its pages cannot be told from what a cut tore, and would look like it when the index is
    /// opened. Only if one of them cannot be read it stays, until none is needed.
    fn fail_journal(&mut self) -> Result<(), N> {
        self.journal.is_open = false;
        for _ in 0..ATTEMPTS {
            let Some(failed) = self.journal.blocks().last() else { return Ok(()) };
            let needed = failed.end() > self.journal.oldest && failed.used > 0;
            let copied = if needed { self.copy_ring_block(&failed)? } else { Copied::All };
            match copied {
                Copied::Unreadable => {
                    if let Some(entry) = self.journal.find_mut(failed.block) {
                        entry.has_failed = true;
                    }
                    return Ok(());
                }
                Copied::Failed(target) => self.retire(target)?,
                Copied::All => {
                    let place = self.journal.blocks().position(|entry| entry.block == failed.block);
                    if let Some(place) = place {
                        let last = self.journal.block_count() as usize - 1;
                        let is_open = place < last;
                        self.journal.remove(place);
                        self.journal.is_open = is_open;
                    }
                    return self.retire(failed.block);
                }
            }
        }
        Err(Error::ReadOnly)
    }

    /// Copies the pages of a block of the ring to a new one, which takes its place.
    fn copy_ring_block(&mut self, from: &RingBlock) -> Result<Copied, N> {
        let target = self.take_erased(State::Journal)?;
        for place in 0..from.used {
            let source = self.page_of(from.block, place);
            let read = Self::read(&mut self.nand, source, 0, self.log)?;
            let front = FrontFields::parse(self.log).and_then(|front| front.expect(self.volume, source.0));
            let Some(front) = front.ok().filter(|front| read != Read::Unreadable && front.kind == Kind::Journal) else {
                self.erase(target)?;
                return Ok(Copied::Unreadable);
            };
            let page = self.page_of(target, place);
            let sequence = self.next_sequence();
            let erase_count = self.blocks[target].erase_count;
            FrontFields { sequence, page: page.0, erase_count, ..front }.seal(self.log);
            let frame = self.buffer.arena.scratch(WALK);
            let read_back = self.options.read_back.then(|| self.buffer.arena.frame_mut(frame));
            if !Self::program(&mut self.nand, page, 0, self.log, read_back)? {
                return Ok(Copied::Failed(target));
            }
        }
        self.journal.push(target, from.first, from.used);
        Ok(Copied::All)
    }

    /// Erases the blocks that flash says are not needed, and retires those that failed.
    pub(crate) fn release_journal(&mut self) -> Result<(), N> {
        // Only what is said on flash counts: if the power went behind an erase and before the word, a page would be missed.
        let declared = self.journal.declared;
        #[cfg(feature = "_broken")]
        let declared = if self.options.broken.release_undeclared { self.journal.oldest } else { declared };
        while let Some(place) = self.journal.blocks().position(|block| block.end() <= declared) {
            let Some(block) = self.journal.remove(place) else { break };
            self.release_block(block)?;
        }
        Ok(())
    }

    fn release_block(&mut self, block: RingBlock) -> Result<(), N> {
        if block.has_failed {
            return self.retire(block.block);
        }
        self.for_cause(Cause::Gc, |index| index.erase(block.block)).map(drop)
    }

    /// Everything that was noted stands in nodes.
    pub(crate) fn void_journal(&mut self) {
        self.journal.oldest = self.journal.number;
    }
}
