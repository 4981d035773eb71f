//! Opening a volume: finding every node and what was logged of it, and putting right what a cut left.
//!
//! Each block that holds anything is read once. Of each node the page with the highest sequence is the current one (I1), and
//! sectors count that stand in its block and are newer (I2). Then the tree is walked from the root: what it does not reach
//! is dead, whatever stopped it from being linked.

use nandu_index::KeyBuf;
use nandu_media::Malformed;
use nandu_media::checksum::checksum;
use nandu_media::inpage::{FrontFields, Kind, NodeFields};
use nandu_nand::{BlockAddr, Cause, Nand, PageAddr};

use crate::blocks::{LOG_PAGES_MAX, State};
use crate::chip::{Read, is_erased};
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::Node;
use crate::nodes::{LINKED, LOST, NONE, REACHED, ROOT, STALE};
use crate::options::{GroupSize, Layout, Options};
use crate::placement::{GROUP_MAX, Group};

/// How often opening begins anew.
const ATTEMPTS: u32 = 3;

/// What a page of a block that holds nodes turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Erased,
    Node,
    Log,
    /// Torn, decayed, or of another volume.
    Garbage,
}

/// The program that came last, as far as can be seen.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: u64,
    block: Option<BlockAddr>,
}

/// How far a block is filled.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    /// Pages from the front that hold nodes or something torn.
    used: u16,
    /// Log sectors, or log pages.
    logs: u16,
}

/// A value that differs, nearly certainly, with an upper fence.
fn fence_mark(high: Option<&[u8]>) -> u32 {
    high.map_or(1, |high| checksum(high) ^ 2)
}

impl<'m, N: Nand> InPage<'m, N> {
    /// Opens the index on a chip.
    ///
    /// Reads the first page of each block and every page of those that hold something; then inner nodes with their logs.
    /// After a cut it merges the block that was programmed last.
    ///
    /// # Errors
    ///
    /// [`Error::NotFormatted`], [`Error::WrongFormat`], [`Error::Corrupt`] if the tree cannot be followed: nothing was
    /// changed. [`Error::Geometry`], [`Error::Unsuitable`], [`Error::Memory`], [`Error::Nand`].
    pub fn open(nand: N, options: Options, memory: &'m mut [u8]) -> Result<InPage<'m, N>, N> {
        let mut index = InPage::blank(nand, options, memory)?;
        let before = index.nand.attribute(Cause::Mount);
        let mut attempt = 1;
        loop {
            match index.mount() {
                // What a cut left unstable may be lost between two reads of it. It is passed over from the beginning, then.
                Err(Error::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
            index.forget_all();
        }
        index.buffer.unpin();
        index.nand.attribute(before);
        index.stats = crate::stats::Stats { torn: index.stats.torn, ..crate::stats::Stats::default() };
        Ok(index)
    }

    fn mount(&mut self) -> Result<(), N> {
        self.nand.attribute(Cause::Mount);
        let anchor = self.find_anchor()?.ok_or(Error::NotFormatted)?;
        let clean_root = self.adopt_anchor(anchor)?;
        let mut newest = Newest { sequence: anchor.sequence, block: None };
        for block in self.blocks.addresses() {
            if self.blocks[block].is_free() {
                self.scan_block(block, &mut newest)?;
            }
        }
        self.sequence = newest.sequence + 1;
        let clean_root = clean_root.filter(|_| newest.block.is_none());
        let root = self.root()?;
        if clean_root.is_some_and(|sequence| sequence != self.nodes[root].sequence) {
            // An older page of the root would pass for the whole tree.
            return Err(Error::Corrupt { page: anchor.page, why: Malformed::Sequence(self.nodes[root].sequence) });
        }
        if clean_root.is_some() {
            self.note_damage();
        }
        self.walk()?;
        self.settle_tables();
        if clean_root.is_some() {
            return Ok(());
        }
        self.nand.attribute(Cause::Recovery);
        self.is_recovering = true;
        self.recover(newest)?;
        self.is_recovering = false;
        Ok(())
    }

    /// Nothing was torn, so log pages that are not what they were have decayed. What they held nobody knows: the nodes of
    /// their blocks may be older than they seem, and count as lost.
    fn note_damage(&mut self) {
        for index in self.nodes.indexes() {
            let block = self.nodes[index].block();
            if block.is_some_and(|block| self.blocks[block].is_suspect != 0) {
                self.nodes[index].set(LOST, true);
            }
        }
        for block in self.blocks.addresses() {
            self.blocks[block].is_suspect = 0;
        }
    }

    /// As before anything was read.
    fn forget_all(&mut self) {
        self.nodes.clear();
        self.blocks.clear();
        self.buffer.clear();
        self.is_recovering = false;
        self.failing = 0;
        self.due = None;
        self.next_id = ROOT + 1;
    }

    /// Reads a block if its first page is not erased. A first page that cannot be read must not cost the others.
    fn scan_block(&mut self, block: BlockAddr, newest: &mut Newest) -> Result<(), N> {
        let mut fill = Fill::default();
        for place in 0..self.geometry.pages_per_block as u16 {
            let state = self.scan_page(block, place, newest)?;
            if place == 0 {
                if state == PageState::Erased {
                    return Ok(());
                }
                self.blocks.set_state(block, State::Nodes);
            }
            self.note_page(block, place, state, &mut fill)?;
        }
        let entry = &mut self.blocks[block];
        entry.used = fill.used;
        entry.logs = fill.logs;
        Ok(())
    }

    /// Counts a page of a block, and the log sectors in it.
    fn note_page(&mut self, block: BlockAddr, place: u16, state: PageState, fill: &mut Fill) -> Result<(), N> {
        self.stats.torn += u64::from(state == PageState::Garbage);
        if self.options.layout == Layout::Pages {
            if state != PageState::Erased {
                fill.used = place + 1;
            }
            if state == PageState::Log && usize::from(fill.logs) < LOG_PAGES_MAX {
                self.blocks[block].log_at[usize::from(fill.logs)] = place;
                fill.logs += 1;
            }
            return Ok(());
        }
        match state {
            // Torn, before any log page: the last node, or the first sector of another log page. Whichever it is, nothing
            // is programmed there, nor between it and the nodes.
            PageState::Node | PageState::Garbage if fill.logs == 0 => fill.used = place + 1,
            PageState::Log if fill.logs == 0 => {
                let number = self.geometry.pages_per_block as u16 - 1 - place;
                fill.logs = number * self.sectors_per_page() as u16 + self.sectors_consumed();
            }
            _ => {}
        }
        Ok(())
    }

    /// Sectors of the log page read last that are not erased, or lie before one that is not.
    fn sectors_consumed(&self) -> u16 {
        let ecc = self.geometry.ecc;
        let mut sectors = self.log.chunks(self.options.sector_size as usize);
        let last = sectors.rposition(|sector| !is_erased(sector, ecc.codeword_size, ecc.correctable_bits));
        last.map_or(0, |number| number as u16 + 1)
    }

    /// Reads a page and takes in what it holds.
    fn scan_page(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> Result<PageState, N> {
        let page = self.page_of(block, place);
        let dialect = self.dialect();
        let read = Self::read_log_page(&mut self.nand, dialect, page, self.log)?;
        let ecc = self.geometry.ecc;
        if read != Read::Unreadable && is_erased(self.log, ecc.codeword_size, ecc.correctable_bits) {
            return Ok(PageState::Erased);
        }
        let front = FrontFields::parse(self.log).and_then(|front| front.expect(self.volume, page.0));
        match front {
            Ok(front) if front.kind == Kind::Node => {
                let parsed = Node::parse(self.log, front.size, self.options.cells);
                let Ok((node, fields)) = parsed else { return Ok(self.garbage(block, place)) };
                let mark = fence_mark(node.high());
                note_newest(newest, front.sequence, block);
                self.note_node(block, place, &front, &fields, mark)?;
                Ok(PageState::Node)
            }
            Ok(front) if front.kind == Kind::Log && self.options.layout == Layout::Pages => {
                note_newest(newest, front.sequence, block);
                self.note_sectors(block, place, newest);
                Ok(PageState::Log)
            }
            Ok(_) => Ok(self.garbage(block, place)),
            Err(_) if self.options.layout == Layout::Pages => Ok(self.garbage(block, place)),
            Err(_) => {
                let is_log = self.note_sectors(block, place, newest);
                if !is_log || read == Read::Unreadable {
                    self.garbage(block, place);
                }
                Ok(if is_log { PageState::Log } else { PageState::Garbage })
            }
        }
    }

    /// Notes a page that is neither erased nor valid and may have held logs.
    fn garbage(&mut self, block: BlockAddr, place: u16) -> PageState {
        let from = self.geometry.pages_per_block - u32::from(self.options.log_pages_max);
        if self.options.layout == Layout::Pages || u32::from(place) >= from {
            self.blocks[block].is_suspect = 1;
        }
        PageState::Garbage
    }

    /// A page of a node is its current one if none is newer (I1).
    fn note_node(
        &mut self,
        block: BlockAddr,
        place: u16,
        front: &FrontFields,
        fields: &NodeFields,
        mark: u32,
    ) -> Result<(), N> {
        let entry = &mut self.blocks[block];
        entry.erase_count = entry.erase_count.max(front.erase_count);
        entry.group = fields.group;
        entry.position = fields.position;
        entry.granted = fields.log_pages.clamp(1, self.options.log_pages_max);
        self.next_id = self.next_id.max(fields.node.saturating_add(1));
        let index = match self.nodes.find(fields.node) {
            Some(index) if self.nodes[index].sequence > front.sequence => return Ok(()),
            Some(index) => index,
            None => {
                let required = Self::memory_required(&self.geometry, &self.options);
                self.nodes.add(fields.node, fields.level, 0).ok_or(Error::Memory { required })?
            }
        };
        let node = &mut self.nodes[index];
        node.sequence = front.sequence;
        node.set_block(Some(block));
        node.page = place;
        node.level = fields.level;
        node.size = front.size;
        node.raw = front.size;
        node.logs = 0;
        // Until blocks list their nodes, this place holds what the page says of its upper fence.
        node.next = mark;
        Ok(())
    }

    /// Takes in the sectors of the log page read last. Whether there are any.
    fn note_sectors(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> bool {
        let page = self.page_of(block, place);
        let number = match self.options.layout {
            Layout::Sectors => self.geometry.pages_per_block - 1 - u32::from(place),
            Layout::Pages => {
                // Those found so far are counted when the page is noted, which comes after this.
                let before = self.blocks[block].log_at;
                before.iter().take_while(|&&other| other != 0 && other < place).count() as u32
            }
        };
        let dialect = self.dialect();
        let mut found = false;
        for sector in dialect.sectors(self.log, page) {
            found = true;
            note_newest(newest, sector.sequence, block);
            let Some(index) = self.nodes.find(sector.node) else { continue };
            let node = &mut self.nodes[index];
            // I2: only in the block of the current page, and only if newer.
            if node.block() == Some(block) && sector.sequence > node.sequence && number < LOG_PAGES_MAX as u32 {
                node.logs |= 1 << number;
                node.size += sector.payload().len() as u32;
                node.raw += sector.payload().len() as u32;
            }
        }
        found
    }

    /// Follows the tree from the root, level by level, and marks what is reached.
    fn walk(&mut self) -> Result<(), N> {
        let root = self.root()?;
        self.nodes[root].set(REACHED | LINKED, true);
        for level in (1..=self.nodes[root].level).rev() {
            let mut key = KeyBuf::EMPTY;
            if let nandu_media::inpage::record::Cells::Fixed { key: size, .. } = self.options.cells {
                key.set(&[0; u8::MAX as usize][..usize::from(size)]);
            }
            loop {
                let spot = self.descend(key.as_slice(), false, level)?;
                let unit = self.ensure(spot.node)?;
                self.buffer.pin(1, unit);
                self.reach_children(spot.node, unit)?;
                let Some(high) = self.near.high().and_then(KeyBuf::new) else { break };
                if high.as_slice() <= key.as_slice() {
                    return Err(self.broken_walk(spot.node));
                }
                key = high;
            }
        }
        Ok(())
    }

    fn broken_walk(&self, index: u32) -> Error<N::Error> {
        let entry = &self.nodes[index];
        let page = entry.block().map_or(PageAddr(0), |block| self.page_of(block, entry.page));
        Error::Corrupt { page, why: Malformed::Range("fences") }
    }

    /// Marks the children of an inner node in the buffer.
    fn reach_children(&mut self, index: u32, unit: u32) -> Result<(), N> {
        let Some(frame) = self.buffer[unit].base() else { return Err(Error::Poisoned) };
        let level = self.nodes[index].level;
        let mut at = Node::new(self.buffer.arena.frame(frame), self.options.cells).first();
        loop {
            let node = Node::new(self.buffer.arena.frame(frame), self.options.cells);
            let Some(cell) = node.read(at) else { return Ok(()) };
            let high = node.read(cell.at + cell.size).map(|next| next.key).or(node.high());
            let (id, mark) = (cell.child(), fence_mark(high));
            at += cell.size;
            match self.nodes.find(id) {
                Some(child) if self.nodes[child].level + 1 == level && !self.nodes[child].has(REACHED) => {
                    let is_stale = self.nodes[child].next != mark;
                    self.nodes[child].set(REACHED | LINKED, true);
                    self.nodes[child].set(STALE, is_stale);
                }
                // The keys of a leaf that is lost are lost; the others are not.
                None if level == 1 && id != 0 => {
                    self.nodes.add(id, 0, REACHED | LINKED | LOST).ok_or(self.broken_walk(index))?;
                }
                _ => return Err(self.broken_walk(index)),
            }
        }
    }

    /// Forgets what was not reached, and lists the nodes of each block.
    fn settle_tables(&mut self) {
        for index in self.nodes.indexes() {
            if self.nodes[index].id == 0 {
                continue;
            }
            if !self.nodes[index].has(REACHED) {
                self.nodes.remove(index);
                continue;
            }
            self.nodes[index].set(REACHED, false);
            self.nodes[index].next = NONE;
            self.blocks.attach(&mut self.nodes, index);
        }
        let mut number = 0;
        for block in self.blocks.addresses() {
            if self.blocks[block].state() != State::Nodes {
                continue;
            }
            number = number.max(self.blocks[block].group);
            if self.blocks[block].live == 0 {
                self.blocks[block].clear();
                self.blocks.set_state(block, State::Unknown);
            }
        }
        self.reopen_group(number);
    }

    /// The group that was filled last goes on being filled.
    fn reopen_group(&mut self, number: u32) {
        let mut group = Group { number, size: 1, next: 0, blocks: [None; GROUP_MAX] };
        for block in self.blocks.addresses() {
            let entry = &self.blocks[block];
            let position = usize::from(entry.position);
            if entry.state() == State::Nodes && entry.group == number && position < GROUP_MAX {
                group.blocks[position] = Some(block);
                group.size = group.size.max(entry.position + 1);
            }
        }
        if let GroupSize::Fixed(size) = self.options.group {
            group.size = group.size.max(size);
        }
        self.group = group;
    }

    /// After a cut: what was programmed last may read well now and not later, so it is copied out with its block. And a
    /// program that left no trace may have hit any block that was not full, so nothing is programmed into these before they
    /// are erased: each is merged when it is written to next.
    fn recover(&mut self, newest: Newest) -> Result<(), N> {
        self.anchors.is_clean = false;
        self.records = None;
        for block in self.blocks.addresses() {
            let entry = &mut self.blocks[block];
            if entry.state() == State::Nodes {
                entry.used = self.geometry.pages_per_block as u16;
                entry.is_suspect = 1;
            }
        }
        self.group = Group { number: self.group.number, ..Group::CLOSED };
        if let Some(block) = newest.block
            && self.blocks[block].state() == State::Nodes
        {
            self.merge(block, None)?;
        }
        self.finish_merges()?;
        self.empty_failing()
    }

    /// Empties the old block of each merge that a cut stopped: blocks with the same place in the same group. Nothing would
    /// be wrong without, but for one thing: if it was recovery that was stopped, what it was copying out may be unstable.
    fn finish_merges(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            if self.blocks[block].state() != State::Nodes {
                continue;
            }
            let age = self.newest_in(block);
            let is_old = self.blocks.addresses().any(|other| {
                let (entry, this) = (&self.blocks[other], &self.blocks[block]);
                let is_twin = entry.group == this.group && entry.position == this.position;
                other != block && entry.state() == State::Nodes && is_twin && self.newest_in(other) > age
            });
            if is_old {
                self.evacuate(block)?;
            }
        }
        Ok(())
    }

    /// Highest sequence of a block's nodes.
    fn newest_in(&self, block: BlockAddr) -> u64 {
        let mut at = self.blocks[block].first;
        let mut newest = 0;
        while at != NONE {
            newest = newest.max(self.nodes[at].sequence);
            at = self.nodes[at].next;
        }
        newest
    }
}

fn note_newest(newest: &mut Newest, sequence: u64, block: BlockAddr) {
    if sequence > newest.sequence {
        *newest = Newest { sequence, block: Some(block) };
    }
}
