//! A dump of a device, as `nanddump` makes it, as a simulated chip to be looked at.
//!
//! A dump is bytes and nothing else: pages one after the other, each with its spare area behind it (`-o`) or without, bad blocks filled with ones or as
//! they are, or left out (`--bb=skipbad`). So what it is of is found out from the anchors of the volume in it, which say the shape of the
//! chip and where they stand, and where a block belongs from any page in it that says its own address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use nandu_media::checksum::checksum;
use nandu_media::header::{self, MAGIC};
use nandu_media::table::RECORD_SIZE;
use nandu_media::{Anchor, BlockRecord, BlockState, Page, PageKind};
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand};
use nandu_sim::{Chip, Sim};

use crate::device::NO_TIMES;
use crate::flash::Flash;
use crate::kind;
use crate::verbs::fs::check;

/// Bytes at the front of a dump in which an anchor is looked for: as many blocks as may be bad, and some more.
const SEARCH_SIZE: usize = 64 << 20;

/// Where a page says that it is one of nandu's.
const MAGIC_AT: usize = 4;

/// Pages begin at multiples of this in a dump with spare areas, too.
const ALIGNMENT: usize = 16;

/// Sizes of pages there are.
const PAGE_SIZES: [usize; 9] = [2048, 4096, 8192, 16_384, 512, 1024, 256, 32_768, 65_536];

/// Bytes of spare areas there are, for pages of 2,048 bytes; larger ones have as much more.
const SPARE_SIZES: [usize; 8] = [0, 64, 128, 112, 120, 218, 256, 16];

/// Bytes of a spare area where the dump has none.
const SPARE_SIZE: u32 = 64;

/// An anchor in a dump.
struct Found {
    offset: usize,
    page: usize,
    page_size: usize,
    pages_per_block: usize,
    block_count: usize,
    has_tags: bool,
}

/// What an erased byte is.
const ERASED: u8 = 0xFF;

/// How a dump is to be read.
struct Layout {
    page_size: usize,
    spare_size: usize,
    pages_per_block: usize,
    block_count: usize,
    has_tags: bool,
}

impl Layout {
    /// Bytes of a block in the dump.
    fn block_size(&self) -> usize {
        (self.page_size + self.spare_size) * self.pages_per_block
    }
}

/// The chip of a dump; `None` if the file is none of a volume of nandu's.
pub(crate) fn open(path: &Path) -> anyhow::Result<Option<Sim>> {
    let here = || path.display().to_string();
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).with_context(here)?;
    let Some(layout) = layout(&bytes) else {
        return if begins_format_one(&bytes) { Err(kind::format_one(path)) } else { Ok(None) };
    };
    if layout.has_tags {
        let name = path.display();
        eprintln!(
            "nandu: {name}: a dump does not say where the tags of pages are: of what was synced just before a cut, something may be missing"
        );
    }
    chip(&bytes, &layout).with_context(here).map(Some)
}

/// Whether a dump without an anchor has one of format 1: a page that says so and is as long as its checksum is right for.
fn begins_format_one(bytes: &[u8]) -> bool {
    let is_right = |page: &[u8]| page.first_chunk().is_some_and(|sum| *sum == checksum(&page[4..]).to_le_bytes());
    let starts =
        (0..bytes.len().min(SEARCH_SIZE)).step_by(ALIGNMENT).filter(|&at| header::begins_format_one(&bytes[at..]));
    let mut pages = starts.flat_map(|at| PAGE_SIZES.iter().filter_map(move |&size| bytes.get(at..at + size)));
    pages.any(is_right)
}

/// The first anchors of a dump, wherever they are.
fn anchors(bytes: &[u8]) -> Vec<Found> {
    let end = bytes.len().min(SEARCH_SIZE);
    let starts = (0..end)
        .step_by(ALIGNMENT)
        .filter(|&at| bytes.get(at + MAGIC_AT..at + MAGIC_AT + 2).is_some_and(|magic| magic == MAGIC.to_le_bytes()));
    let anchor = |offset: usize| {
        PAGE_SIZES.iter().find_map(|&size| {
            let header = Page::parse(bytes.get(offset..offset + size)?).ok()?;
            let anchor = Anchor::parse(&header).ok().filter(|_| header.kind() == PageKind::Anchor)?;
            (anchor.page_size() as usize == size && anchor.pages_per_block() > 0 && anchor.block_count() > 0).then(
                || Found {
                    offset,
                    page: header.page() as usize,
                    page_size: size,
                    pages_per_block: anchor.pages_per_block() as usize,
                    block_count: anchor.block_count() as usize,
                    has_tags: anchor.tags().is_some(),
                },
            )
        })
    };
    starts.filter_map(anchor).collect()
}

/// What a dump's anchors and its size say. Spare areas are as large as makes each anchor stand where it says.
fn layout(bytes: &[u8]) -> Option<Layout> {
    let anchors = anchors(bytes);
    let first = anchors.first()?;
    let Found { page_size, pages_per_block, block_count, has_tags, .. } = *first;
    let fits = |spare_size: usize| {
        let stride = page_size + spare_size;
        let block = stride.checked_mul(pages_per_block).filter(|&size| size > 0 && bytes.len().is_multiple_of(size));
        block.is_some_and(|size| bytes.len() / size <= block_count)
            && anchors.iter().all(|anchor| {
                anchor.offset.is_multiple_of(stride)
                    && (anchor.offset / stride) % pages_per_block == anchor.page % pages_per_block
            })
    };
    let scale = (page_size / 2048).max(1);
    let mut spare_sizes = SPARE_SIZES.into_iter().map(|size| size * scale).chain([224, 448, 640, 744, 1280, 8, 32]);
    let spare_size = spare_sizes.find(|&size| fits(size))?;
    Some(Layout { page_size, spare_size, pages_per_block, block_count, has_tags })
}

/// Blocks that the newest checkpoint in a dump calls bad.
fn bad_blocks(bytes: &[u8], layout: &Layout) -> BTreeSet<usize> {
    let stride = layout.page_size + layout.spare_size;
    let pages = bytes.chunks_exact(stride).take(SEARCH_SIZE / stride);
    let headers: Vec<Page<'_>> = pages
        .filter_map(|page| Page::parse(&page[..layout.page_size]).ok())
        .filter(|header| header.kind().is_of_the_log())
        .collect();
    let anchors = headers.iter().filter_map(|header| Some((header, Anchor::parse(header).ok()?)));
    let Some((_, anchor)) = anchors.max_by_key(|(header, _)| header.sequence()) else { return BTreeSet::new() };
    let of_page = |page: u32| headers.iter().find(|header| header.page() == page).map(Page::body).unwrap_or_default();
    let records = anchor.table().flat_map(|page| of_page(page).as_chunks::<RECORD_SIZE>().0.iter());
    let records = anchor.records().iter().chain(records).map(|&record| BlockRecord::from_bytes(record));
    let blocks = (0..layout.block_count).zip(records);
    blocks.filter_map(|(block, record)| (record.state == BlockState::Bad).then_some(block)).collect()
}

/// Which block of the chip each block of the dump is, as far as a page of it says so.
fn said(bytes: &[u8], layout: &Layout) -> BTreeMap<usize, usize> {
    let stride = layout.page_size + layout.spare_size;
    let blocks = bytes.chunks_exact(layout.block_size());
    blocks
        .enumerate()
        .filter_map(|(at, block)| {
            let mut pages = block.chunks_exact(stride).enumerate();
            let block = pages.find_map(|(index, page)| {
                let header = Page::parse(&page[..layout.page_size]).ok()?;
                let page = header.page() as usize;
                // A page that was moved here by somebody is not believed.
                (page % layout.pages_per_block == index).then_some(page / layout.pages_per_block)
            })?;
            (at <= block && block < layout.block_count).then_some((at, block))
        })
        .collect()
}

/// Which block of the chip each block of the dump is.
///
/// Blocks of raw pages may say nothing of themselves. Where those around them say that so many blocks were left out between them as are bad there, these were; behind the last that says
/// something, bad blocks were left out if those before it were, and where there were none, as the caller says.
fn places(bytes: &[u8], layout: &Layout, is_left_out_behind: bool) -> anyhow::Result<Vec<usize>> {
    let (said, bad) = (said(bytes, layout), bad_blocks(bytes, layout));
    let last = said.last_key_value().map(|(&at, &block)| (at, block));
    let is_left_out = match last {
        Some((at, block)) if bad.range(..block).next().is_some() => block > at,
        _ => is_left_out_behind,
    };
    let mut next = 0;
    let mut places = Vec::new();
    for at in 0..bytes.len() / layout.block_size() {
        let place = match (said.get(&at), said.range(at..).next()) {
            (Some(&place), _) => place,
            (None, Some((&later, &place))) => {
                let skipped = place.saturating_sub(next).saturating_sub(later - at);
                let is_left_out = skipped > 0 && skipped == bad.range(next..place).count();
                first_good(next, &bad, is_left_out)
            }
            (None, None) => first_good(next, &bad, is_left_out),
        };
        if place < next || place >= layout.block_count {
            bail!("a dump whose blocks are out of order");
        }
        places.push(place);
        next = place + 1;
    }
    Ok(places)
}

/// The chip of a dump. Where it depends on bad blocks of which the dump does not say whether they were left out, the better of the two.
fn chip(bytes: &[u8], layout: &Layout) -> anyhow::Result<Sim> {
    let there = places(bytes, layout, false)?;
    let is_whole = there.len() == layout.block_count;
    let Some(left_out) = places(bytes, layout, true).ok().filter(|_| !is_whole) else {
        return fill(bytes, layout, &there);
    };
    let blocks = bytes.chunks_exact(layout.block_size()).zip(there.iter().zip(&left_out));
    let mut moved = blocks.filter(|(_, (there, left_out))| there != left_out).map(|(block, _)| block);
    if moved.all(|block| block.iter().all(|&byte| byte == ERASED)) {
        return fill(bytes, layout, &there);
    }
    let (there, left_out) = (fill(bytes, layout, &there)?, fill(bytes, layout, &left_out)?);
    let errors = |sim: &Sim| check::error_count(&mut Flash::from(sim.clone()));
    Ok(if errors(&left_out) < errors(&there) { left_out } else { there })
}

/// The first block from here on, or the first that is not bad.
fn first_good(from: usize, bad: &BTreeSet<usize>, is_left_out: bool) -> usize {
    (from..).find(|block| !is_left_out || !bad.contains(block)).unwrap_or(from)
}

fn fill(bytes: &[u8], layout: &Layout, places: &[usize]) -> anyhow::Result<Sim> {
    let base = Chip::DEFAULT;
    let block_count = layout.block_count as u32;
    let page_size = layout.page_size as u32;
    let geometry = Geometry {
        page_size,
        spare_size: if layout.spare_size > 0 { layout.spare_size as u32 } else { SPARE_SIZE.min(page_size) },
        tag_size: if layout.has_tags { nandu_media::tag::TAG_SIZE as u32 } else { 0 },
        pages_per_block: layout.pages_per_block as u32,
        block_count,
        programs_per_page: 1,
        program_unit: page_size,
        bad_block_max: nandu_mtd::Options::DEFAULT.bad_blocks_of(block_count),
        ..base.geometry
    };
    let geometry = Geometry { ecc: nandu_nand::Ecc { codeword_size: page_size.min(512), ..geometry.ecc }, ..geometry };
    geometry.validate().context("a dump of a chip that cannot be")?;
    let chip = Chip { name: "dump", source: "a dump of a device", geometry, timing: NO_TIMES, lsb_recovery: false };
    let mut sim = Sim::new(chip);
    let stride = layout.page_size + layout.spare_size;
    for (block, &place) in bytes.chunks_exact(stride * layout.pages_per_block).zip(places) {
        let place = BlockAddr(place as u32);
        let is_marked = layout.spare_size > 0 && block[layout.page_size] != 0xFF;
        if is_marked {
            sim.mark_bad(place)?;
            continue;
        }
        sim.erase(place, CellMode::Slc)?;
        for (index, page) in block.chunks_exact(stride).enumerate() {
            let main = &page[..layout.page_size];
            if main.iter().any(|&byte| byte != 0xFF) {
                sim.program(geometry.page_at(place, index as u32), 0, main)?;
            }
        }
    }
    // A block that is left out is one that the kernel knows as bad.
    let present: BTreeSet<usize> = places.iter().copied().collect();
    for block in (0..places.last().copied().unwrap_or(0)).filter(|block| !present.contains(block)) {
        sim.mark_bad(BlockAddr(block as u32))?;
    }
    Ok(sim)
}
