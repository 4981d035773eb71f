//! Which index or file system a chip holds: what its anchors and superblocks say.
//!
//! Looks into a simulated chip past the contract, so that it costs no operation and works on one without power. A device is read: the
//! first page of each block in front, and of a block with anchors as many as find the newest one. What was found is kept until the device is changed.

use std::fmt;
use std::path::Path;

use anyhow::anyhow;
use clap::ValueEnum;
use nandu_media::dffs::SuperblockFields;
use nandu_media::header::begins_format_one;
use nandu_media::inpage::anchor::AnchorFields;
use nandu_media::inpage::{FrontFields, Kind as PageKind};
use nandu_media::{Anchor, Malformed, Page, PageKind as LogPageKind};
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

/// What a chip holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    /// The index whose anchor came last.
    found: Option<Found>,
    log: Option<LogSurvey>,
    /// Whether a block begins as those with anchors of format 1 do.
    begins_format_one: bool,
    /// When the superblock of DFFS was programmed that came last, and the id of its volume.
    dffs: Option<(u64, u32)>,
}

/// What the newest anchor of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LogSurvey {
    programmed_ns: u64,
    sequence: u64,
    uses_both_modes: bool,
    uses_tags: bool,
}

/// Finds out what a chip holds. A device that was not changed since is not read again.
fn survey(flash: &Flash) -> Survey {
    match flash {
        Flash::Sim(_) => Survey::of(flash),
        Flash::Device(device) => *device.survey().get_or_init(|| Survey::of(flash)),
    }
}

impl Survey {
    fn of(flash: &Flash) -> Survey {
        let mut survey = Survey::default();
        for front in fronts(flash) {
            survey.begins_format_one |= begins_format_one(&front.candidate.main);
            if front.place == 0
                && let Ok(superblock) = SuperblockFields::read(&front.candidate.main)
            {
                survey.dffs = survey.dffs.max(Some((front.candidate.programmed_ns, superblock.volume)));
            }
            for candidate in front.anchor_pages(flash) {
                if let Some(found) = candidate.anchor() {
                    // Of two that are alike, the later page counts.
                    let newest = survey.found.filter(|newest| newest.age() > found.age());
                    survey.found = newest.or(Some(found));
                }
                survey.log = survey.log.max(candidate.log());
            }
        }
        survey
    }
}

/// Finds the index of a chip; where blocks with anchors of several are left, the one whose anchor came last.
pub(crate) fn find(flash: &Flash) -> Option<Found> {
    survey(flash).found
}

/// Checks a page of a volume of nandu's.
fn page(bytes: &[u8]) -> Result<Page<'_>, Malformed> {
    Page::parse(bytes)
}

/// A page that may be an anchor.
struct Candidate {
    page: PageAddr,
    programmed_ns: u64,
    main: Vec<u8>,
}

/// The first page of a block in which anchors may be, or the second behind one that says nothing.
struct Front {
    block: BlockAddr,
    /// Which page of the block it is.
    place: u32,
    candidate: Candidate,
}

/// The blocks in which anchors may be, those that are programmed.
fn fronts(flash: &Flash) -> impl Iterator<Item = Front> + use<'_> {
    let geometry = &flash.chip().geometry;
    let count = geometry.bad_block_max.saturating_add(ANCHOR_BLOCKS).min(geometry.block_count);
    (0..count).map(BlockAddr).filter_map(move |block| {
        let front =
            |place| Some(Front { block, place, candidate: Candidate::read(flash, geometry.page_at(block, place))? });
        match flash {
            // Whatever was programmed there.
            Flash::Sim(_) => (0..geometry.pages_per_block).find_map(front),
            // What lies in a bad block is nobody's.
            Flash::Device(device) if device.is_marked(block).unwrap_or(true) => None,
            // If the first page was torn or has decayed, the rest of the block may be sound.
            Flash::Device(_) => front(0).map(|first| match first.candidate.is_sound() {
                true => first,
                false => front(1).unwrap_or(first),
            }),
        }
    })
}

impl Front {
    /// The pages that may be anchors of the index that the chip holds. Of a device, the newest alone: in a block with anchors, pages are
    /// programmed from the first on.
    fn anchor_pages(self, flash: &Flash) -> Vec<Candidate> {
        let geometry = &flash.chip().geometry;
        let read = |place| Candidate::read(flash, geometry.page_at(self.block, place));
        match flash {
            Flash::Sim(_) => (0..geometry.pages_per_block).filter_map(read).collect(),
            Flash::Device(_) if !self.candidate.is_beside_anchors() => Vec::new(),
            Flash::Device(device) => {
                let programmed = device.programmed_pages(self.block, self.place + 1);
                let behind = (self.place + 1..programmed).rev().filter_map(read);
                behind.chain([self.candidate]).find(|candidate| candidate.anchor().is_some()).into_iter().collect()
            }
        }
    }
}

/// The file system that a chip holds, if it holds one.
pub(crate) fn system(flash: &Flash) -> System {
    if dffs_volume(flash).is_some() { System::Dffs } else { System::Nandu }
}

/// The id of the volume of DFFS on a chip, if what says so came later than any anchor of an index.
pub(crate) fn dffs_volume(flash: &Flash) -> Option<u32> {
    let Survey { found, dffs, .. } = survey(flash);
    let (programmed_ns, volume) = dffs?;
    found.is_none_or(|found| found.programmed_ns < programmed_ns).then_some(volume)
}

/// Blocks with anchors of another index than this one. Left as they are, they could be taken for the index of the chip.
pub(crate) fn blocks_of_others(flash: &Flash, kind: Kind) -> Vec<BlockAddr> {
    let is_other = |found: &Found| found.fields.is_some() != (kind != Kind::Mutree);
    let has_others = |front: Front| {
        let block = front.block;
        let others = front.anchor_pages(flash).iter().filter_map(Candidate::anchor).any(|found| is_other(&found));
        others.then_some(block)
    };
    fronts(flash).filter_map(has_others).collect()
}

/// Whether the log on a chip has a stream with two bits a cell beside those with one, as the newest anchor says.
pub(crate) fn uses_both_modes(flash: &Flash) -> bool {
    survey(flash).log.is_some_and(|log| log.uses_both_modes)
}

/// Whether a chip holds a volume of format 1, which only older versions open, and nothing else.
pub(crate) fn is_of_format_one(flash: &Flash) -> bool {
    let Survey { found, dffs, begins_format_one, .. } = survey(flash);
    begins_format_one && found.is_none() && dffs.is_none()
}

/// Refuses a chip with such a volume, and says what to do.
pub(crate) fn refuse_format_one(image: &Path, flash: &Flash) -> anyhow::Result<()> {
    if is_of_format_one(flash) { Err(format_one(image)) } else { Ok(()) }
}

/// What is said of a volume of format 1.
pub(crate) fn format_one(image: &Path) -> anyhow::Error {
    let name = image.display();
    anyhow!(
        "{name}: holds a volume of format 1: export it with a nandu 0.1 that was built before format 2, and import it here; 'format --force' makes an empty volume in its place"
    )
}

/// Whether pages of the log on a chip have tags, as the newest anchor says.
pub(crate) fn uses_tags(flash: &Flash) -> bool {
    survey(flash).log.is_some_and(|log| log.uses_tags)
}

impl Found {
    /// What is more of the anchor that came later.
    fn age(&self) -> (u64, u64) {
        (self.programmed_ns, self.sequence)
    }
}

impl Candidate {
    /// The page, if it is programmed.
    fn read(flash: &Flash, page: PageAddr) -> Option<Candidate> {
        let main = flash.content(page)?;
        Some(Candidate { page, programmed_ns: flash.programmed_ns(page), main })
    }

    /// Whether the page says what it is.
    fn is_sound(&self) -> bool {
        page(&self.main).is_ok() || FrontFields::parse(&self.main).is_ok() || SuperblockFields::read(&self.main).is_ok()
    }

    /// Whether the page is of a kind that blocks with anchors begin with.
    fn is_beside_anchors(&self) -> bool {
        let Candidate { page: PageAddr(address), main, .. } = self;
        match page(main) {
            Ok(header) => header.kind().is_of_the_log() && header.page() == *address,
            Err(_) => FrontFields::parse(main).is_ok_and(|front| front.page == *address),
        }
    }

    /// The anchor in the page.
    fn anchor(&self) -> Option<Found> {
        let Candidate { page: PageAddr(address), programmed_ns, main } = self;
        let found = |kind, fields, sequence| Found { kind, fields, programmed_ns: *programmed_ns, sequence };
        if let Ok(header) = page(main) {
            return (header.kind() == LogPageKind::Anchor && header.page() == *address)
                .then(|| found(Kind::Mutree, None, header.sequence()));
        }
        let front =
            FrontFields::parse(main).ok().filter(|front| front.kind == PageKind::Anchor && front.page == *address)?;
        let (fields, _) = AnchorFields::parse(main, front.size).ok()?;
        let kind = if fields.kind == 1 { Kind::Ipl } else { Kind::Grr };
        Some(found(kind, Some(fields), front.sequence))
    }

    /// What the anchor of a log in the page says.
    fn log(&self) -> Option<LogSurvey> {
        let header = page(&self.main).ok()?;
        let is_anchor = header.kind() == LogPageKind::Anchor && header.page() == self.page.0;
        let anchor = Anchor::parse(&header).ok().filter(|_| is_anchor)?;
        Some(LogSurvey {
            programmed_ns: self.programmed_ns,
            sequence: header.sequence(),
            uses_both_modes: anchor.mlc_streams() > 0,
            uses_tags: anchor.tags().is_some(),
        })
    }
}
