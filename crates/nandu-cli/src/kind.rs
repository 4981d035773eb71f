//! Which index a chip holds: what its anchors say.
//!
//! Looks into a simulated chip past the contract, so that it costs no operation and works on one without power. A device is read.

use std::fmt;

use clap::ValueEnum;
use nandu_media::dffs::SuperblockFields;
use nandu_media::inpage::anchor::AnchorFields;
use nandu_media::inpage::{FrontFields, Kind as PageKind};
use nandu_media::{Anchor, Page, PageKind as LogPageKind};
use nandu_nand::{BlockAddr, PageAddr};

use crate::flash::Flash;
use crate::volume::System;

/// Blocks in front of the chip in which anchors are looked for, beside as many as may be bad.
const ANCHOR_BLOCKS: u32 = 16;

/// An ordered index that keeps records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A tree whose path from root to leaf is one page: each change is one program
    Mutree,
    /// Group round robin: nodes stay in their blocks, and what changed in them is logged there
    Grr,
    /// In-page logging: as grr, with one log page in each block
    Ipl,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Mutree => "mutree",
            Kind::Grr => "grr",
            Kind::Ipl => "ipl",
        }
    }
}

impl Kind {
    /// The name behind its article.
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Kind::Mutree => "a mutree",
            Kind::Grr => "a grr",
            Kind::Ipl => "an ipl",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The index of a chip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    /// What the newest anchor says, of an index that logs in its blocks.
    pub(crate) fields: Option<AnchorFields>,
    /// When that anchor was programmed.
    programmed_ns: u64,
    sequence: u64,
}

impl Found {
    /// A chip without an index, as far as can be seen.
    pub(crate) const NOTHING: Found = Found { kind: Kind::Mutree, fields: None, programmed_ns: 0, sequence: 0 };
}

/// Finds the index of a chip; where blocks with anchors of several are left, the one whose anchor came last.
pub(crate) fn find(flash: &Flash) -> Option<Found> {
    anchor_pages(flash).filter_map(|page| page.anchor()).max_by_key(|found| (found.programmed_ns, found.sequence))
}

/// A page that may be an anchor.
struct Candidate {
    page: PageAddr,
    programmed_ns: u64,
    main: Vec<u8>,
}

/// The blocks in which anchors may be.
fn anchor_blocks(flash: &Flash) -> impl Iterator<Item = BlockAddr> + use<'_> {
    let geometry = &flash.chip().geometry;
    let count = geometry.bad_block_max.saturating_add(ANCHOR_BLOCKS).min(geometry.block_count);
    (0..count).map(BlockAddr).filter(|&block| flash.is_programmed(block))
}

/// The pages that may be anchors. A device is read for them, so only as far as a block is one with anchors.
fn anchor_pages(flash: &Flash) -> impl Iterator<Item = Candidate> + use<'_> {
    let geometry = flash.chip().geometry;
    let candidate = move |page| {
        let main = flash.content(page)?;
        Some(Candidate { page, programmed_ns: flash.programmed_ns(page), main })
    };
    anchor_blocks(flash).flat_map(move |block| {
        let pages = (0..geometry.pages_per_block).map(move |place| candidate(geometry.page_at(block, place)));
        let is_read = flash.sim().is_none();
        pages
            .enumerate()
            .take_while(move |(place, found)| {
                // Pages are programmed from the first on, and the first says what the block is for.
                let goes_on = |found: &Candidate| *place > 0 || found.is_beside_anchors();
                !is_read || found.as_ref().is_some_and(goes_on)
            })
            .filter_map(|(_, found)| found)
    })
}

/// The file system that a chip holds, if it holds one.
pub(crate) fn system(flash: &Flash) -> System {
    if dffs_volume(flash).is_some() { System::Dffs } else { System::Nandu }
}

/// The id of the volume of DFFS on a chip, if what says so came later than any anchor of an index.
pub(crate) fn dffs_volume(flash: &Flash) -> Option<u32> {
    let geometry = &flash.chip().geometry;
    let superblocks = anchor_blocks(flash).filter_map(|block| {
        let page = geometry.page_at(block, 0);
        let superblock = SuperblockFields::read(&flash.content(page)?).ok()?;
        Some((flash.programmed_ns(page), superblock.volume))
    });
    let (programmed_ns, volume) = superblocks.max()?;
    find(flash).is_none_or(|found| found.programmed_ns < programmed_ns).then_some(volume)
}

/// Blocks with anchors of another index than this one. Left as they are, they could be taken for the index of the chip.
pub(crate) fn blocks_of_others(flash: &Flash, kind: Kind) -> Vec<BlockAddr> {
    let geometry = &flash.chip().geometry;
    let is_other = |found: &Found| found.fields.is_some() != (kind != Kind::Mutree);
    let others = anchor_pages(flash).filter(|page| page.anchor().is_some_and(|found| is_other(&found)));
    let mut blocks: Vec<BlockAddr> = others.map(|page| geometry.block_of(page.page)).collect();
    blocks.dedup();
    blocks
}

/// Whether the log on a chip has a stream with two bits a cell beside those with one, as the newest anchor says.
pub(crate) fn uses_both_modes(flash: &Flash) -> bool {
    newest(flash, |anchor| anchor.mlc_streams() > 0).unwrap_or(false)
}

/// Whether pages of the log on a chip have tags, as the newest anchor says.
pub(crate) fn uses_tags(flash: &Flash) -> bool {
    newest(flash, |anchor| anchor.tags().is_some()).unwrap_or(false)
}

/// What the newest anchor of a log says.
fn newest(flash: &Flash, says: impl Fn(&Anchor<'_>) -> bool) -> Option<bool> {
    let anchors = anchor_pages(flash).filter_map(|page| {
        let header = Page::parse(&page.main).ok()?;
        let is_anchor = header.kind() == LogPageKind::Anchor && header.page() == page.page.0;
        let anchor = Anchor::parse(&header).ok().filter(|_| is_anchor)?;
        Some((page.programmed_ns, header.sequence(), says(&anchor)))
    });
    anchors.max().map(|(_, _, said)| said)
}

impl Candidate {
    /// Whether the page is of a kind that blocks with anchors begin with.
    fn is_beside_anchors(&self) -> bool {
        let Candidate { page, main, .. } = self;
        match Page::parse(main) {
            Ok(header) => header.kind().is_of_the_log() && header.page() == page.0,
            Err(_) => FrontFields::parse(main).is_ok_and(|front| front.page == page.0),
        }
    }

    /// The anchor in the page.
    fn anchor(&self) -> Option<Found> {
        let Candidate { page, programmed_ns, main } = self;
        let found = |kind, fields, sequence| Found { kind, fields, programmed_ns: *programmed_ns, sequence };
        if let Ok(header) = Page::parse(main) {
            return (header.kind() == LogPageKind::Anchor && header.page() == page.0)
                .then(|| found(Kind::Mutree, None, header.sequence()));
        }
        let front =
            FrontFields::parse(main).ok().filter(|front| front.kind == PageKind::Anchor && front.page == page.0)?;
        let (fields, _) = AnchorFields::parse(main, front.size).ok()?;
        let kind = if fields.kind == 1 { Kind::Ipl } else { Kind::Grr };
        Some(found(kind, Some(fields), front.sequence))
    }
}
