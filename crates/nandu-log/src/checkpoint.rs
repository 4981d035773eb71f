//! Writing a checkpoint: the pages of the block table that changed, then an anchor, which is its commit.

use nandu_media::anchor::{MODE_MLC, MODE_SLC, mlc_ready_count};
use nandu_media::features::MLC;
use nandu_media::header::FLAG_CLEAN;
use nandu_media::table::RECORD_SIZE;
use nandu_media::{
    ANCHOR_COUNT, AnchorFields, Head, PageFields, PageKind, Position, READY_COUNT_MAX, STREAM_COUNT_MAX,
};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::access::Programmed;
use crate::block_table::{HELD, MARK_SEEN, State};
use crate::error::LogError;
use crate::log::{Condition, Log};
use crate::ready::ReadyList;

impl<N: Nand> Log<'_, N> {
    /// Makes a checkpoint: what is known of the blocks becomes durable, and blocks erased since the last one can be
    /// opened. The log makes checkpoints by itself; an owner calls this to shorten the next recovery.
    ///
    /// Costs one program for the anchor and one for each page of the block table that changed; when the anchor block is
    /// full, and for the first checkpoint after a mount, an erase and a program for every page of the block table, and one more
    /// for an anchor if an anchor block was lost.
    ///
    /// # Errors
    ///
    /// [`LogError::ReadOnly`] if no anchor block is left; [`LogError::Poisoned`], [`LogError::Nand`].
    pub fn checkpoint(&mut self) -> Result<(), LogError<N::Error>> {
        self.check_writable()?;
        self.write_checkpoint(false)
    }

    /// Leaves the state that a clean unmount left: from here on a mount has to look for what was programmed.
    ///
    /// Before the first program or erase after a clean mount: after a cut, a clean checkpoint would have open blocks
    /// continued where a page was torn.
    pub(crate) fn leave_clean(&mut self) -> Result<(), LogError<N::Error>> {
        if self.anchors.is_clean { self.write_checkpoint(false) } else { Ok(()) }
    }

    pub(crate) fn write_checkpoint(&mut self, is_clean: bool) -> Result<(), LogError<N::Error>> {
        self.for_cause(Cause::Checkpoint, |log| log.write_to_some_anchor(is_clean))?;
        self.mark_retired()
    }

    fn write_to_some_anchor(&mut self, is_clean: bool) -> Result<(), LogError<N::Error>> {
        let Some(mut number) = self.anchors.number.checked_add(1) else {
            self.condition = Condition::ReadOnly;
            return Err(LogError::ReadOnly);
        };
        self.refill_ready_list();
        for frontier in &mut self.frontiers {
            if frontier.is_some_and(|frontier| frontier.is_closed) {
                *frontier = None;
            }
        }
        // Every round but the last loses an anchor block, or makes the first of two checkpoints.
        for _ in 0..=ANCHOR_COUNT + 1 {
            let needed = self.blocks.changed_table_pages(is_clean) + 1;
            let has_room = u32::from(self.anchors.next) + u32::from(needed) <= u32::from(self.shape.anchor_pages);
            let goes_on = self.anchors.is_trusted && has_room;
            if !goes_on && !self.switch_anchor()? {
                break;
            }
            match self.program_checkpoint(number, is_clean)? {
                Programmed::Done => {
                    let is_first = self.anchors.base != self.anchors.current;
                    self.settle(number, is_clean);
                    let next = number.checked_add(1).filter(|_| is_first && self.repeats_first_checkpoints());
                    let Some(next) = next else { return Ok(()) };
                    number = next;
                }
                Programmed::Failed => self.lose_anchor(self.anchors.current),
                Programmed::Unknown => self.anchors.is_trusted = false,
            }
        }
        self.condition = Condition::ReadOnly;
        Err(LogError::ReadOnly)
    }

    /// What is left of the ready list, in its order, then blocks that hold nothing, the least worn first. They are erased
    /// once this checkpoint calls them empty, before they are opened.
    ///
    /// In its order: the first unopened block is the one that a recovery erases and copies to. After a cut of this
    /// checkpoint one recovery may see it and another may not, and both have to take the same block.
    fn refill_ready_list(&mut self) {
        let mut list = ReadyList::EMPTY;
        // One that failed meanwhile is bad.
        let is_left = |block: BlockAddr| matches!(self.blocks.state(block), State::Ready | State::Listed);
        let mut last = [None; if MLC { READY_COUNT_MAX } else { 0 }];
        let mut last_count = 0;
        for &block in self.ready.unopened().iter().filter(|&&block| is_left(block)) {
            list.push(block);
        }
        // Those for streams with two bits a cell stay behind the others, since one of them is erased so already.
        for (place, &block) in last.iter_mut().zip(self.ready.mlc_unopened().iter().filter(|&&block| is_left(block))) {
            *place = Some(block);
            last_count += 1;
        }
        let is_asked = MLC && core::mem::take(&mut self.collector.lists_most_worn);
        let resting = if is_asked { self.worn_to_list() } else { None };
        if let Some(block) = resting {
            // It is the next one, and the one that would have been the last waits for another checkpoint. Whichever of the two checkpoints a cut
            // leaves, neither block holds anything, and recovery takes the first of the others, which stays.
            if last_count == mlc_ready_count(self.shape.ready_max.into()) {
                last.first().into_iter().flatten().for_each(|&dropped| self.blocks.set_state(dropped, State::Free));
                last.rotate_left(1);
                last_count -= 1;
            }
            self.take_to_list(block);
            last[last_count] = Some(block);
            last_count += 1;
        }
        while list.count + last_count < self.shape.ready_max as usize && self.can_list() {
            let Some(block) = self.least_worn_listable() else { break };
            self.take_to_list(block);
            list.push(block);
        }
        last[..last_count].iter().flatten().for_each(|&block| list.push(block));
        list.divide(self.shape.has_mlc());
        self.ready = list;
    }

    /// A block that holds nothing becomes one of the ready list.
    fn take_to_list(&mut self, block: BlockAddr) {
        if self.blocks.stream(block) == 0 && self.blocks.state(block).is_closed() {
            let age = self.age(block);
            self.lifetimes.learn(age);
        }
        self.forget_victim(block);
        self.blocks.set_state(block, State::Listed);
    }

    /// The most worn block that holds nothing, if it is more worn than the next one of the ready list for streams with two bits a cell.
    fn worn_to_list(&self) -> Option<BlockAddr> {
        let next = self.ready.mlc_unopened().last().map(|&block| self.blocks.erase_count(block));
        self.most_worn_listable().filter(|&block| Some(self.blocks.erase_count(block)) > next)
    }

    /// Has the most worn block that holds nothing opened next for pages that are moved to even out wear: it becomes the next one of those
    /// listed for streams with two bits a cell, and the others stay in their order. Costs a checkpoint, unless it is that already.
    ///
    /// Only when such pages are about to be moved: listed by any checkpoint before, it would be taken for whatever else goes to two bits a
    /// cell, and would not rest.
    ///
    /// # Errors
    ///
    /// As [`Log::checkpoint`].
    pub fn list_most_worn(&mut self) -> Result<(), LogError<N::Error>> {
        self.check_writable()?;
        if !self.shape.has_mlc() || self.worn_to_list().is_none() {
            return Ok(());
        }
        self.collector.lists_most_worn = true;
        self.stats.levelling_checkpoints += 1;
        self.write_checkpoint(false)
    }

    /// Blocks that the next checkpoint can list.
    fn listable(&self) -> impl Iterator<Item = BlockAddr> + use<'_, N> {
        self.blocks.addresses().filter(|&block| self.blocks.may_be_listed(block) && !self.holds_commit(block))
    }

    fn least_worn_listable(&self) -> Option<BlockAddr> {
        self.listable().min_by_key(|&block| self.blocks.erase_count(block))
    }

    pub(crate) fn most_worn_listable(&self) -> Option<BlockAddr> {
        self.listable().max_by_key(|&block| self.blocks.erase_count(block))
    }

    /// Erases another anchor block and goes on there; `false` if there is none.
    ///
    /// Never the block of the newest checkpoint, and never that of the newest one known to be stable (L8): after a cut
    /// the newest may be a page that reads well once and not again, so that recovery, which writes here, would destroy
    /// with the stable one the only checkpoint there is.
    fn switch_anchor(&mut self) -> Result<bool, LogError<N::Error>> {
        for step in 1..ANCHOR_COUNT {
            let index = (self.anchors.current + step) % ANCHOR_COUNT;
            let Some(block) = self.anchors.blocks[index] else { continue };
            if index == self.anchors.base {
                continue;
            }
            if self.erase(block, CellMode::Slc)? {
                self.anchors.current = index;
                self.anchors.next = 0;
                self.anchors.is_trusted = true;
                self.blocks.change_every_table_page();
                return Ok(true);
            }
            self.lose_anchor(index);
            // At once, not after a checkpoint: there may be none any more that remembers it, and then each mount would erase the block
            // again. A cut before the checkpoint leaves a marked block that the table calls an anchor; it is asked for its mark before
            // it is erased. The content is lost either way.
            if self.blocks.has(block, MARK_SEEN) {
                self.mark(block)?;
            }
        }
        Ok(false)
    }

    /// Whether the first checkpoint in an anchor block is made twice, before anything else is programmed or erased.
    ///
    /// After a cut the first one may be a page that reads well once and not again, so neither its block nor the one with the
    /// checkpoint before may be erased, and recovery takes a third one. Where there might be none, the second anchor says of the
    /// first that it is complete, and without a second one nothing rests on the first (`Log::prove_checkpoint`).
    pub(crate) fn repeats_first_checkpoints(&self) -> bool {
        let left = self.anchors.blocks.iter().flatten().count();
        left < ANCHOR_COUNT && self.blocks.table_page_count() + 2 <= self.shape.anchor_pages
    }

    fn lose_anchor(&mut self, index: usize) {
        self.stats.program_failures += 1;
        if let Some(block) = self.anchors.blocks[index].take() {
            self.retire(block);
        }
        if index == self.anchors.current {
            self.anchors.is_trusted = false;
        }
    }

    fn program_checkpoint(&mut self, number: u32, is_clean: bool) -> Result<Programmed, LogError<N::Error>> {
        let Some(block) = self.anchors.blocks[self.anchors.current] else { return Ok(Programmed::Unknown) };
        for index in 0..self.blocks.table_page_count() {
            if !self.blocks.table_page_changed(index, is_clean) {
                continue;
            }
            let page = self.shape.anchor_page(block, self.anchors.next);
            let outcome = self.program_table_page(number, index, page)?;
            if outcome != Programmed::Done {
                return Ok(outcome);
            }
            self.blocks.set_table_address(index, page.0, false);
        }
        let page = self.shape.anchor_page(block, self.anchors.next);
        let outcome = self.program_anchor(number, is_clean, page)?;
        if outcome == Programmed::Done {
            self.anchors.page = Some(page);
        }
        Ok(outcome)
    }

    /// Seals and programs the log's own buffer at the next page of the anchor block.
    fn program_own(&mut self, fields: PageFields<'_>, check: bool) -> Result<Programmed, LogError<N::Error>> {
        self.buffered = None;
        fields.seal(self.blocks.page);
        self.sequence += 1;
        self.anchors.next += 1;
        self.stats.count(Cause::Checkpoint);
        Self::program(&mut self.nand, &mut self.losses, PageAddr(fields.page), self.blocks.page, check)
            .map_err(|error| self.write_error(error))
    }

    fn program_table_page(
        &mut self,
        number: u32,
        index: u16,
        page: PageAddr,
    ) -> Result<Programmed, LogError<N::Error>> {
        let header_size = self.shape.header_size;
        let bytes = core::mem::take(&mut self.blocks.page);
        bytes[header_size..].fill(0);
        let records = bytes[header_size..].chunks_exact_mut(RECORD_SIZE);
        for (record, block) in records.zip(self.blocks.blocks_of_table_page(index)) {
            record.copy_from_slice(&self.blocks.record(BlockAddr(block)).to_bytes());
        }
        self.blocks.page = bytes;
        let fields = PageFields {
            kind: PageKind::Table,
            sequence: self.sequence,
            page: page.0,
            volume: self.volume,
            committed: self.anchors.page.map(|page| page.0),
            checkpoint: number,
            stream: 0,
            flags: 0,
            positions: &[Position::NONE; STREAM_COUNT_MAX][..self.shape.streams as usize],
        };
        let check = self.options.read_back;
        self.program_own(fields, check)
    }

    fn program_anchor(
        &mut self,
        number: u32,
        is_clean: bool,
        page: PageAddr,
    ) -> Result<Programmed, LogError<N::Error>> {
        let geometry = self.shape.geometry;
        let fields = AnchorFields {
            page_size: geometry.page_size,
            pages_per_block: geometry.pages_per_block,
            block_count: geometry.block_count,
            anchors: self.anchors.blocks.map(|block| block.map(|block| block.0)),
            base: self.anchors.base as u8,
            mode: if self.shape.mode == CellMode::Mlc { MODE_MLC } else { MODE_SLC },
            ready_max: self.shape.ready_max,
            table_page_count: self.blocks.table_page_count(),
            bare_streams: self.bare_streams(),
            mlc_streams: self.mlc_streams(),
            // A clean checkpoint is made when a commit names everything.
            tags: self.shape.has_tags().then(|| self.tags.to_store().filter(|tail| tail.is_due || !is_clean)),
            has_commit_stream: false,
        };
        let heads = self
            .frontiers
            .map(|frontier| frontier.map(|frontier| Head { block: frontier.block.0, next: frontier.next }));
        let mut ready = [0; READY_COUNT_MAX];
        for (place, block) in ready.iter_mut().zip(self.ready.all_unopened()) {
            *place = block.0;
        }
        let bytes = core::mem::take(&mut self.blocks.page);
        let blocks = &self.blocks;
        fields.write(
            &mut bytes[self.shape.header_size..],
            &heads[..self.shape.streams as usize],
            &ready[..self.ready.remaining() + self.ready.mlc_remaining()],
            (0..blocks.table_page_count()).map(|index| blocks.table_address(index)),
            blocks.addresses().map(|block| blocks.record(block)),
        );
        self.blocks.page = bytes;
        let fields = PageFields {
            kind: PageKind::Anchor,
            sequence: self.sequence,
            page: page.0,
            volume: self.volume,
            committed: self.committed.map(|page| page.0),
            checkpoint: number,
            stream: 0,
            flags: if is_clean { FLAG_CLEAN } else { 0 },
            positions: &[Position::NONE; STREAM_COUNT_MAX][..self.shape.streams as usize],
        };
        // Read back whatever the options say: what this page replaces may be erased because of it.
        self.program_own(fields, true)
    }

    /// The checkpoint is durable and stable.
    fn settle(&mut self, number: u32, is_clean: bool) {
        self.anchors.number = number;
        self.anchors.is_clean = is_clean;
        self.anchors.base = self.anchors.current;
        self.stats.checkpoints += 1;
        for frontier in self.frontiers.iter_mut().flatten() {
            frontier.slot = Position::SLOT_OPEN;
        }
        for block in self.blocks.addresses() {
            let is_open = self.blocks.state(block) == State::Open;
            if self.blocks.has(block, HELD) != is_open {
                self.blocks.set(block, HELD, is_open);
            }
        }
    }
}
