//! Checkpoints: the pages of the block table that changed, then an anchor, which makes them count.
//!
//! Four anchor blocks are filled in turn. A checkpoint is stable when something was programmed after it: the newest may be a page that reads
//! well once and not again. So neither the block of the newest checkpoint nor that of the newest stable one is erased (N8).

use nandu_media::anchor::MODE_SLC;
use nandu_media::header::{FLAG_CLEAN, FLAG_INEXACT};
use nandu_media::table::RECORD_SIZE;
use nandu_media::{
    ANCHOR_COUNT, Anchor, AnchorFields, Field, HeadFields, Malformed, PageFields, PageKind, READY_COUNT_MAX,
    STREAM_COUNT_MAX,
};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::blocks::{Blocks, Flag};
use crate::chip::Programmed;
use crate::error::LogError;
use crate::heads::Heads;
use crate::medium::{Header, Medium};
use crate::ready::Ready;
use crate::shape::Shape;
use crate::tail::Tail;

/// What a checkpoint says besides the block table.
#[derive(Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) heads: &'a Heads,
    pub(crate) ready: &'a Ready,
    pub(crate) committed: Option<PageAddr>,
    pub(crate) tail: Tail,
    /// Nothing will be programmed after it.
    pub(crate) is_clean: bool,
    /// Live counts are the truth.
    pub(crate) is_exact: bool,
}

/// Where a volume stands, beside its block table: what a checkpoint says, and a mount takes from it.
pub(crate) struct Standing {
    pub(crate) anchors: Anchors,
    pub(crate) heads: Heads,
    pub(crate) ready: Ready,
    pub(crate) committed: Option<PageAddr>,
    pub(crate) tail: Tail,
    pub(crate) is_exact: bool,
    pub(crate) is_read_only: bool,
}

/// The anchor blocks and the newest checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchors {
    blocks: [Option<BlockAddr>; ANCHOR_COUNT],
    /// Which of them holds the newest checkpoint.
    current: usize,
    /// Which of them holds the newest checkpoint that is known to be stable.
    base: usize,
    /// Pages programmed in the current one.
    next: u16,
    /// Whether the current block was written by this session alone, so that it may be programmed further.
    is_trusted: bool,
    page: Option<PageAddr>,
    sequence: u64,
    number: u32,
    is_clean: bool,
    /// Checkpoints made in this session.
    made: u64,
}

impl Anchors {
    pub(crate) const UNKNOWN: Anchors = Anchors {
        blocks: [None; ANCHOR_COUNT],
        current: 0,
        base: 0,
        next: 0,
        is_trusted: false,
        page: None,
        sequence: 0,
        number: 0,
        is_clean: false,
        made: 0,
    };

    /// The anchor blocks of a new volume, which are erased. `None` if there is none.
    pub(crate) fn chosen(blocks: [Option<BlockAddr>; ANCHOR_COUNT]) -> Option<Anchors> {
        let first = blocks.iter().position(Option::is_some)?;
        debug_assert!(first < ANCHOR_COUNT);
        Some(Anchors { blocks, current: first, base: first, is_trusted: true, ..Anchors::UNKNOWN })
    }

    /// Takes over what an anchor says, which stands in a page of which this was found.
    pub(crate) fn found(
        anchor: &Anchor<'_>,
        found: &Header,
        shape: &Shape,
        is_clean: bool,
    ) -> Result<Anchors, Malformed> {
        let block = shape.block_of(found.page);
        let blocks = anchor.anchors().map(|block| block.map(BlockAddr));
        let current = blocks.iter().position(|&it| it == Some(block)).ok_or(Malformed::Range(Field::Anchors))?;
        Ok(Anchors {
            blocks,
            current,
            base: anchor.base().into(),
            page: Some(found.page),
            sequence: found.sequence,
            number: found.checkpoint,
            is_clean,
            ..Anchors::UNKNOWN
        })
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockAddr> + use<'_> {
        self.blocks.iter().flatten().copied()
    }

    /// Number of the newest checkpoint.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Sequence of the newest anchor at the mount.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the newest checkpoint says that nothing was programmed after it.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_clean
    }

    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// The block with the checkpoint before, where it is not known whether the newest one is stable.
    pub(crate) fn base_in_doubt(&self, shape: &Shape) -> Option<BlockAddr> {
        let is_in_doubt = self.current != self.base && self.repeats_the_first(shape);
        self.blocks[self.base].filter(|_| is_in_doubt)
    }

    /// The newest checkpoint is stable after all.
    pub(crate) fn trust_newest(&mut self) {
        self.base = self.current;
    }

    /// Programs of a checkpoint made now, and whether it erases a block.
    pub(crate) fn cost(&self, blocks: &Blocks<'_>, shape: &Shape) -> (u32, u32) {
        let due = u32::from(blocks.due_table_pages(false)) + 1;
        debug_assert!(due <= u32::from(shape.pages), "a checkpoint fits an anchor block");
        if self.is_trusted && u32::from(self.next) + due <= u32::from(shape.pages) {
            return (due, 0);
        }
        (u32::from(shape.table_pages) + 1 + u32::from(self.repeats_the_first(shape)), 1)
    }

    /// Makes a checkpoint; `false` if no anchor block is left. Costs what [`Anchors::cost`] says, and that again for each block that fails.
    ///
    /// # Errors
    ///
    /// [`LogError::Nand`].
    pub(crate) fn write<N: Nand>(
        &mut self,
        medium: &mut Medium<'_, N>,
        blocks: &mut Blocks<'_>,
        said: &Said<'_>,
    ) -> Result<bool, LogError<N::Error>> {
        debug_assert!(said.ready.all().len() == said.ready.unopened().len(), "a checkpoint lists what nobody opened");
        debug_assert!(said.ready.all().len() <= usize::from(said.shape.ready_max));
        let Some(mut number) = self.number.checked_add(1) else { return Ok(false) };
        // Every round but the last loses an anchor block, or makes the first of two checkpoints.
        for _ in 0..=ANCHOR_COUNT + 1 {
            let needed = u32::from(blocks.due_table_pages(said.is_clean)) + 1;
            let has_room = u32::from(self.next) + needed <= u32::from(said.shape.pages);
            let goes_on = self.is_trusted && has_room;
            if !goes_on && !self.switch(medium, blocks, said.shape)? {
                return Ok(false);
            }
            match self.program(medium, blocks, said, number)? {
                Programmed::Done => {
                    let is_first = self.base != self.current;
                    (self.number, self.is_clean, self.base) = (number, said.is_clean, self.current);
                    debug_assert!(blocks.due_table_pages(said.is_clean) == 0, "a checkpoint says all");
                    self.made += 1;
                    let next = number.checked_add(1).filter(|_| is_first && self.repeats_the_first(said.shape));
                    let Some(next) = next else { return Ok(true) };
                    number = next;
                }
                Programmed::Failed => self.lose(self.current, blocks),
                Programmed::Unknown => self.is_trusted = false,
            }
        }
        Ok(false)
    }

    /// Whether the first checkpoint in an anchor block is made twice, before anything else is programmed or erased.
    ///
    /// After a cut the first one may be a page that reads well once and not again, so neither its block nor the one with the checkpoint before may be erased, and recovery takes
    /// a third one. Where there might be none, the second anchor says of the first that it is complete, and without a second one nothing rests on the first.
    fn repeats_the_first(&self, shape: &Shape) -> bool {
        self.blocks().count() < ANCHOR_COUNT && shape.table_pages + 2 <= shape.pages
    }

    /// Erases another anchor block and goes on there; `false` if there is none.
    fn switch<N: Nand>(
        &mut self,
        medium: &mut Medium<'_, N>,
        blocks: &mut Blocks<'_>,
        shape: &Shape,
    ) -> Result<bool, LogError<N::Error>> {
        for step in 1..ANCHOR_COUNT {
            let index = (self.current + step) % ANCHOR_COUNT;
            let Some(block) = self.blocks[index].filter(|_| index != self.base) else { continue };
            let first = shape.page(block, 0);
            let is_marked = !blocks.has(block, Flag::Mark) && medium.chip_mut().is_marked(first)?;
            if !is_marked {
                blocks.set(block, Flag::Mark, true);
                let erasure = medium.erase(first, (CellMode::Slc, Cause::Checkpoint))?;
                blocks.count_erases(block, erasure.count);
                if erasure.is_done {
                    // Neither the newest checkpoint nor the newest stable one (N8).
                    debug_assert!(index != self.base && index != self.current);
                    (self.current, self.next, self.is_trusted) = (index, 0, true);
                    blocks.change_every_table_page();
                    return Ok(true);
                }
            }
            self.lose(index, blocks);
            // At once, not after a checkpoint: there may be none any more that remembers it, and then each mount would erase the block
            // again. A cut before the checkpoint leaves a marked block that the table calls an anchor; it is asked for its mark before
            // it is erased. The content is lost either way.
            if !is_marked {
                blocks.set(block, Flag::Mark, false);
                medium.chip_mut().mark(block)?;
            }
        }
        Ok(false)
    }

    fn lose(&mut self, index: usize, blocks: &mut Blocks<'_>) {
        if let Some(block) = self.blocks[index].take() {
            blocks.retire(block);
        }
        self.is_trusted &= index != self.current;
        debug_assert!(self.blocks[index].is_none());
    }

    fn program<N: Nand>(
        &mut self,
        medium: &mut Medium<'_, N>,
        blocks: &mut Blocks<'_>,
        said: &Said<'_>,
        number: u32,
    ) -> Result<Programmed, LogError<N::Error>> {
        let Some(block) = self.blocks[self.current] else { return Ok(Programmed::Unknown) };
        let shape = said.shape;
        let fields = |page: PageAddr, kind, committed: Option<PageAddr>, flags| PageFields {
            kind,
            sequence: 0,
            page: page.0,
            volume: 0,
            committed: committed.map(|page| page.0),
            checkpoint: number,
            stream: 0,
            flags,
            positions: shape.no_positions(),
        };
        for index in 0..blocks.table_pages() {
            if !blocks.is_table_page_due(index, said.is_clean) {
                continue;
            }
            let page = self.take_page(block, shape);
            medium.compose(shape.header_size(), |body| {
                let records = body.chunks_exact_mut(RECORD_SIZE).zip(blocks.blocks_of_table_page(index));
                records.for_each(|(place, block)| {
                    place.copy_from_slice(&blocks.record(BlockAddr(block)).to_bytes());
                });
            });
            let table = fields(page, PageKind::Table, self.page, 0);
            let outcome = medium.program_own(table, Cause::Checkpoint, false)?;
            if outcome != Programmed::Done {
                return Ok(outcome);
            }
            blocks.set_table_address(index, page.0);
        }
        let page = self.take_page(block, shape);
        medium.compose(shape.header_size(), |body| self.compose(body, blocks, said));
        let clean = if said.is_clean { FLAG_CLEAN } else { 0 };
        let inexact = if said.is_exact { 0 } else { FLAG_INEXACT };
        // Read back whatever the options say: what this page replaces may be erased because of it.
        let anchor = fields(page, PageKind::Anchor, said.committed, clean | inexact);
        let outcome = medium.program_own(anchor, Cause::Checkpoint, true)?;
        if outcome == Programmed::Done {
            self.page = Some(page);
        }
        Ok(outcome)
    }

    /// The next page of the anchor block.
    fn take_page(&mut self, block: BlockAddr, shape: &Shape) -> PageAddr {
        debug_assert!(self.next < shape.pages, "an anchor block is full");
        self.next += 1;
        shape.page(block, self.next - 1)
    }

    /// What the anchor says. Off the stack when it is programmed: an operation that waits for a block comes here deepest.
    #[inline(never)]
    fn compose(&self, body: &mut [u8], blocks: &Blocks<'_>, said: &Said<'_>) {
        let geometry = &said.shape.geometry;
        let fields = AnchorFields {
            page_size: geometry.page_size,
            pages_per_block: geometry.pages_per_block,
            block_count: geometry.block_count,
            anchors: self.blocks.map(|block| block.map(|block| block.0)),
            base: self.base as u8,
            mode: MODE_SLC,
            ready_max: said.shape.ready_max,
            table_page_count: blocks.table_pages(),
            raw_streams: said.shape.raw_streams(),
            mlc_streams: u8::from(said.shape.has_mlc()),
            tags: said.shape.has_tags().then(|| said.tail.to_stored()),
            has_commit_stream: true,
        };
        let heads: [Option<HeadFields>; STREAM_COUNT_MAX] = core::array::from_fn(|stream| {
            said.heads.open(stream as u8).map(|head| HeadFields { block: head.block.0, next: head.next })
        });
        let mut ready = [0; READY_COUNT_MAX];
        let unopened = said.ready.unopened();
        ready.iter_mut().zip(unopened).for_each(|(place, block)| *place = block.0);
        fields.write(
            body,
            &heads[..usize::from(said.shape.positions())],
            &ready[..unopened.len()],
            (0..blocks.table_pages()).map(|index| blocks.table_address(index)),
            blocks.addresses().map(|block| blocks.record(block)),
        );
    }
}
