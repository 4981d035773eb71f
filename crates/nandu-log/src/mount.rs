//! Mounting: the newest checkpoint, read and checked; then the newest commit after it.

use nandu_media::anchor::MODE_SLC;
use nandu_media::features::TAGS;
use nandu_media::header::{FLAG_INEXACT, begins_format_one};
use nandu_media::table::{LIVE_MAX, RECORD_SIZE};
use nandu_media::tag::TAG_SIZE;
use nandu_media::{Anchor, BlockRecord, Field, Malformed, PageKind};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::anchors::{Anchors, Standing};
use crate::blocks::{Blocks, Stage};
use crate::error::LogError;
use crate::medium::{Header, Medium, Probe};
use crate::options::LogOptions;
use crate::ready::Ready;
use crate::recover::{hold_commit, recover};
use crate::roll::Roll;
use crate::search::{AnchorSearch, NewestAnchor, bad_anchor};
use crate::shape::Shape;
use crate::tail::Tail;
use crate::volume::Volume;

/// How often a mount is tried. A page that was being programmed at the cut may read well once and badly the next time, even
/// within one mount; then another attempt sees it one way, and in the end it reads badly always.
const ATTEMPTS: u32 = 8;

/// Opens the volume on the chip; returns whether a cut was found, and repaired.
///
/// # Errors
///
/// [`LogError::NotFormatted`], [`LogError::WrongFormat`], [`LogError::Corrupt`], [`LogError::Nand`].
pub(crate) fn mount<N: Nand>(volume: &mut Volume<'_, N>, options: &LogOptions) -> Result<bool, LogError<N::Error>> {
    let mut attempt = 1;
    loop {
        match open(volume, options) {
            Err(LogError::Corrupt { .. }) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn open<N: Nand>(volume: &mut Volume<'_, N>, options: &LogOptions) -> Result<bool, LogError<N::Error>> {
    let (medium, _, shape) = volume.reader();
    medium.forget_all();
    let Some(newest) = AnchorSearch::new(medium, shape).newest()? else { return Err(no_volume(medium, shape)?) };
    let stored = stored_options(medium, newest.found.page, options)?;
    volume.reshape(Shape::new(volume.medium().chip().geometry(), &stored)?);
    let (medium, blocks, shape, standing) = volume.loader();
    medium.set_volume(newest.found.volume);
    if options.volume.is_some_and(|volume| volume != newest.found.volume) {
        return Err(LogError::WrongFormat { what: &"volume id" });
    }
    Loader { medium, blocks, shape, standing }.proven(&newest)?;
    medium.pass_sequence(newest.sequence.saturating_add(1));
    let roll = Roll { shape, standing };
    if !standing.anchors.is_clean() || !roll.is_clean(medium, blocks)? {
        let rolled = roll.forward(medium)?;
        recover(volume, &rolled)?;
        return Ok(true);
    }
    volume.resume();
    volume.resume_raw()?;
    if let Some(page) = volume.committed() {
        hold_commit(volume, page)?;
    }
    Ok(false)
}

/// Why there is none: a block where anchors may be begins as one of format 1, or the chip is not formatted. One read for each of these blocks.
fn no_volume<N: Nand>(medium: &mut Medium<'_, N>, shape: &Shape) -> Result<LogError<N::Error>, LogError<N::Error>> {
    for block in (0..shape.anchor_window()).map(BlockAddr) {
        if matches!(medium.probe_any(shape.page(block, 0))?, Probe::Garbage) && begins_format_one(medium.bytes()) {
            return Ok(LogError::WrongFormat { what: &"format version" });
        }
    }
    Ok(LogError::NotFormatted)
}

/// The options that the volume was formatted with, if chip and wishes agree with them.
fn stored_options<N: Nand>(
    medium: &mut Medium<'_, N>,
    page: PageAddr,
    options: &LogOptions,
) -> Result<LogOptions, LogError<N::Error>> {
    medium.probe_any(page)?;
    let geometry = *medium.chip().geometry();
    let parsed = medium.parsed().map_err(|why| LogError::Corrupt { page, why })?;
    let anchor = Anchor::parse(&parsed).map_err(|why| bad_anchor(page, why))?;
    let differs = |wish: Option<u8>, found: u8| wish.is_some_and(|wish| wish != found);
    let (has_raw, has_mlc, has_tags) = (anchor.raw_streams() > 0, anchor.mlc_streams() > 0, anchor.tags().is_some());
    let has_more = anchor.raw_streams() > 1 + anchor.mlc_streams() || anchor.mlc_streams() > 1;
    let may_have_tags = TAGS && geometry.tag_size as usize >= TAG_SIZE;
    let streams = parsed.stream_count().saturating_sub(options.raw_positions());
    let differences = [
        (!anchor.has_commit_stream() || has_more, &"features"),
        (anchor.page_size() != geometry.page_size, &"page size"),
        (anchor.pages_per_block() != geometry.pages_per_block, &"pages per block"),
        (anchor.block_count() != geometry.block_count, &"block count"),
        (has_raw != options.has_raw, &"raw pages"),
        (has_mlc != options.has_mlc, &"two bits a cell"),
        (has_tags && !may_have_tags, &"tags"),
        (anchor.mode() != MODE_SLC, &"cell mode"),
        (differs(options.stream_count, streams), &"stream count"),
        (differs(options.ready_max, anchor.ready_max()), &"ready list"),
    ];
    match differences.iter().find(|(is_other, _)| *is_other) {
        Some(&(_, what)) => Err(LogError::WrongFormat { what }),
        None => {
            let ready_max = Some(anchor.ready_max());
            Ok(LogOptions { stream_count: Some(streams), ready_max, has_tags, ..*options })
        }
    }
}

/// Reads a checkpoint.
struct Loader<'l, 'm, N> {
    medium: &'l mut Medium<'m, N>,
    blocks: &'l mut Blocks<'m>,
    shape: &'l Shape,
    standing: &'l mut Standing,
}

impl<N: Nand> Loader<'_, '_, N> {
    /// Takes over the newest checkpoint. Where anchor blocks were lost, it may be the first one of its block, whose page reads well once and not again: recovery keeps its block and
    /// that of the checkpoint before, and takes a third. A cut there leaves a part of another first checkpoint, which says nothing new: where it cannot be read whole, the one before is taken.
    /// With two blocks only the one that is kept may be believed. If the second checkpoint was begun, the first is complete. If not, only these pages were programmed since the
    /// checkpoint before, which says all and is taken. Where that one is gone, an earlier mount saw the second one, and erased it.
    ///
    /// Nothing more is read on a volume with three of its anchor blocks; else one page, and in doubt as much as in a search for an anchor.
    fn proven(&mut self, newest: &NewestAnchor) -> Result<(), LogError<N::Error>> {
        self.standing.anchors = Anchors::UNKNOWN;
        let loaded = self.load(&newest.found);
        let Some(base) = self.standing.anchors.base_in_doubt(self.shape) else { return loaded };
        let has_third = self.standing.anchors.blocks().count() > 2;
        let before = match &loaded {
            Ok(()) if has_third => return loaded,
            Ok(()) if self.is_followed(newest.found.page)? => None,
            Ok(()) | Err(LogError::Corrupt { .. }) => AnchorSearch::new(self.medium, self.shape).newest_in(base)?,
            Err(_) => return loaded,
        };
        match before.filter(|it| it.volume == newest.found.volume && it.sequence < newest.found.sequence) {
            Some(before) => match self.load(&before) {
                Err(LogError::Corrupt { .. }) => self.load(&newest.found)?,
                result => result?,
            },
            None => loaded?,
        }
        // Whoever began the other block knew that the one before is stable.
        self.standing.anchors.trust_newest();
        Ok(())
    }

    /// Whether something was begun behind this page of an anchor block.
    fn is_followed(&mut self, page: PageAddr) -> Result<bool, LogError<N::Error>> {
        let (block, nth) = (self.shape.block_of(page), self.shape.nth_of(page) + 1);
        let is_confirmed = self.medium.chip().reads_back();
        let followed = self.medium.last(nth..self.shape.pages.min(nth + 1), [], is_confirmed, |medium, _| {
            let is_erased = matches!(medium.probe(self.shape.page(block, nth))?, Probe::Erased);
            Ok((!is_erased).then_some((nth, ())))
        })?;
        Ok(followed.is_some())
    }

    /// Takes over what an anchor says.
    fn load(&mut self, found: &Header) -> Result<(), LogError<N::Error>> {
        let corrupt = |why| LogError::Corrupt { page: found.page, why };
        self.blocks.clear();
        self.medium.load(found.page)?;
        self.take_anchor(found).map_err(corrupt)?;
        if found.committed.is_some_and(|page| !self.shape.geometry.contains_page(page)) {
            return Err(corrupt(Malformed::Range(Field::Committed)));
        }
        for index in 0..self.blocks.table_pages() {
            self.load_table_page(index, found.sequence)?;
        }
        self.check().map_err(corrupt)
    }

    fn take_anchor(&mut self, found: &Header) -> Result<(), Malformed> {
        let parsed = self.medium.parsed()?;
        let anchor = Anchor::parse(&parsed)?;
        let is_exact = parsed.is_clean()
            && parsed.flags() & FLAG_INEXACT == 0
            // Larger blocks have their counts rounded up.
            && self.shape.pages_max() <= u16::from(LIVE_MAX);
        let anchors = Anchors::found(&anchor, found, self.shape, parsed.is_clean())?;
        let tail = anchor.tags().flatten().filter(|_| !parsed.is_clean());
        // A recovery needs the next number, for what it copies and for its checkpoint.
        let is_read_only = anchor.is_read_only() || found.checkpoint == u32::MAX;
        *self.standing = Standing {
            anchors,
            heads: self.shape.no_heads(),
            ready: Ready::EMPTY,
            committed: found.committed,
            tail: tail.map_or(Tail::NONE, |tail| Tail::stored(PageAddr(tail.first), tail.commit)),
            is_exact,
            is_read_only,
        };
        for (stream, head) in anchor.heads().enumerate() {
            let Some(head) = head else { continue };
            let mode = self.standing.heads.mode(stream as u8);
            if head.next >= self.shape.pages_in(mode) || stream >= usize::from(self.shape.streams) {
                return Err(Malformed::Range(Field::Heads));
            }
            debug_assert!(head.next > 0, "an anchor with an open block of no page is refused");
            self.standing.heads.begin(stream as u8, BlockAddr(head.block), head.next, None);
        }
        anchor.ready().for_each(|block| self.standing.ready.push(BlockAddr(block)));
        if anchor.table().len() != usize::from(self.blocks.table_pages()) {
            return Err(Malformed::Range(Field::TablePageCount));
        }
        for (index, address) in anchor.table().enumerate() {
            self.blocks.set_table_address(index as u16, address);
        }
        for (block, record) in self.blocks.addresses().zip(anchor.records()) {
            if !self.blocks.load(block, BlockRecord::from_bytes(*record)) {
                return Err(Malformed::Range(Field::Records));
            }
        }
        Ok(())
    }

    fn load_table_page(&mut self, index: u16, anchor_sequence: u64) -> Result<(), LogError<N::Error>> {
        let page = PageAddr(self.blocks.table_address(index));
        let corrupt = |why| LogError::Corrupt { page, why };
        let found = self.medium.load(page)?;
        if found.kind != PageKind::Table {
            return Err(corrupt(Malformed::Kind(found.kind as u8)));
        }
        if found.sequence >= anchor_sequence {
            return Err(corrupt(Malformed::Sequence));
        }
        let body = self.medium.bytes().get(self.shape.header_size()..).unwrap_or_default();
        let (records, _) = body.as_chunks::<RECORD_SIZE>();
        for (block, &record) in self.blocks.blocks_of_table_page(index).zip(records) {
            if !self.blocks.load(BlockAddr(block), BlockRecord::from_bytes(record)) {
                return Err(corrupt(Malformed::Range(Field::Records)));
            }
        }
        self.blocks.set_table_address(index, page.0);
        Ok(())
    }

    /// Whether the parts of the checkpoint agree; a hostile image may say anything.
    fn check(&mut self) -> Result<(), Malformed> {
        let Standing { heads, ready, anchors, .. } = &*self.standing;
        // What is listed or open twice shows in the sums.
        let ready = ready.all();
        for &block in ready {
            match self.blocks.state(block) {
                Stage::Free => self.blocks.list(block),
                Stage::Ready => {}
                _ => return Err(Malformed::Range(Field::Ready)),
            }
        }
        if self.blocks.in_state(Stage::Ready) + self.blocks.in_state(Stage::Listed) != ready.len() as u32 {
            return Err(Malformed::Range(Field::Ready));
        }
        let mut open = 0;
        for (stream, head) in (0..heads.streams()).filter_map(|stream| Some((stream, heads.open(stream)?))) {
            let is_so = self.blocks.is_raw(head.block) == heads.is_raw(stream)
                && self.blocks.mode(head.block) == heads.mode(stream);
            if self.blocks.state(head.block) != Stage::Open || !is_so {
                return Err(Malformed::Range(Field::Heads));
            }
            // Recorded counts are rounded up, and an image may say anything.
            self.blocks.set_live(head.block, self.blocks.live(head.block).min(head.next));
            open += 1;
        }
        if self.blocks.in_state(Stage::Open) != open {
            return Err(Malformed::Range(Field::Heads));
        }
        if anchors.blocks().any(|block| self.blocks.state(block) != Stage::Anchor) {
            return Err(Malformed::Range(Field::Anchors));
        }
        Ok(())
    }
}
