//! Which index a chip holds: what its anchors say.
//!
//! Looks into the chip past the contract, so that it costs no operation and works on a chip without power.

use std::fmt;

use clap::ValueEnum;
use nandu_media::dffs::SuperblockFields;
use nandu_media::inpage::anchor::AnchorFields;
use nandu_media::inpage::{FrontFields, Kind as PageKind};
use nandu_media::{Anchor, Page, PageKind as LogPageKind};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::Sim;

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
pub(crate) fn find(sim: &Sim) -> Option<Found> {
    let pages = anchor_blocks(sim).flat_map(|block| {
        let geometry = &sim.chip().geometry;
        (0..geometry.pages_per_block).map(move |place| geometry.page_at(block, place))
    });
    pages.filter_map(|page| anchor(sim, page)).max_by_key(|found| (found.programmed_ns, found.sequence))
}

/// The blocks in which anchors may be.
fn anchor_blocks(sim: &Sim) -> impl Iterator<Item = BlockAddr> + use<'_> {
    let geometry = &sim.chip().geometry;
    let count = geometry.bad_block_max.saturating_add(ANCHOR_BLOCKS).min(geometry.block_count);
    (0..count).map(BlockAddr).filter(|&block| sim.block_state(block).pages_programmed > 0)
}

/// The file system that a chip holds, if it holds one.
pub(crate) fn system(sim: &Sim) -> System {
    if dffs_volume(sim).is_some() { System::Dffs } else { System::Nandu }
}

/// The id of the volume of DFFS on a chip, if what says so came later than any anchor of an index.
pub(crate) fn dffs_volume(sim: &Sim) -> Option<u32> {
    let geometry = &sim.chip().geometry;
    let superblocks = anchor_blocks(sim).filter_map(|block| {
        let page = geometry.page_at(block, 0);
        let bytes = sim.peek(page);
        let superblock = SuperblockFields::read(&bytes[..geometry.page_size as usize]).ok()?;
        Some((sim.page_state(page).programmed_ns, superblock.volume))
    });
    let (programmed_ns, volume) = superblocks.max()?;
    find(sim).is_none_or(|found| found.programmed_ns < programmed_ns).then_some(volume)
}

/// Blocks with anchors of another index than this one. Left as they are, they could be taken for the index of the chip.
pub(crate) fn blocks_of_others(sim: &Sim, kind: Kind) -> Vec<BlockAddr> {
    let geometry = &sim.chip().geometry;
    let is_other = |block: &BlockAddr| {
        let mut pages = (0..geometry.pages_per_block).map(|place| geometry.page_at(*block, place));
        pages.any(|page| anchor(sim, page).is_some_and(|found| found.fields.is_some() != (kind != Kind::Mutree)))
    };
    anchor_blocks(sim).filter(is_other).collect()
}

/// Whether the log on a chip has a stream with two bits a cell beside those with one, as the newest anchor says.
pub(crate) fn uses_both_modes(sim: &Sim) -> bool {
    let geometry = &sim.chip().geometry;
    let pages = anchor_blocks(sim)
        .flat_map(|block| (0..geometry.pages_per_block).map(move |place| geometry.page_at(block, place)));
    let anchors = pages.filter(|&page| sim.page_state(page).programs > 0).filter_map(|page| {
        let bytes = sim.peek(page);
        let header = Page::parse(&bytes[..geometry.page_size as usize]).ok()?;
        let is_anchor = header.kind() == LogPageKind::Anchor && header.page() == page.0;
        let anchor = Anchor::parse(&header).ok().filter(|_| is_anchor)?;
        Some((sim.page_state(page).programmed_ns, header.sequence(), anchor.mlc_streams() > 0))
    });
    anchors.max().is_some_and(|(_, _, uses_both)| uses_both)
}

/// The anchor in a page.
fn anchor(sim: &Sim, page: PageAddr) -> Option<Found> {
    let state = sim.page_state(page);
    if state.programs == 0 {
        return None;
    }
    let bytes = sim.peek(page);
    let main = &bytes[..sim.chip().geometry.page_size as usize];
    let found = |kind, fields, sequence| Found { kind, fields, programmed_ns: state.programmed_ns, sequence };
    if let Ok(header) = Page::parse(main) {
        return (header.kind() == LogPageKind::Anchor && header.page() == page.0)
            .then(|| found(Kind::Mutree, None, header.sequence()));
    }
    let front = FrontFields::parse(main).ok().filter(|front| front.kind == PageKind::Anchor && front.page == page.0)?;
    let (fields, _) = AnchorFields::parse(main, front.size).ok()?;
    let kind = if fields.kind == 1 { Kind::Ipl } else { Kind::Grr };
    Some(found(kind, Some(fields), front.sequence))
}
