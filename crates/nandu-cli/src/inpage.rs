//! How the command makes and opens an index that logs in its blocks.

use nandu_inpage::{Cells, Durability, GroupSize, InPage, Kind, Layout, LogPages, Options, Policy, Splits, Times};
use nandu_media::inpage::anchor::AnchorFields;
use nandu_nand::{ProgramOrder, TearScope};
use nandu_sim::Chip;

use crate::flash::{Flash, FlashError};
use crate::kind;

/// An index on a chip that somebody else holds.
pub(crate) type Records<'m> = InPage<'m, &'m mut Flash>;

/// What goes wrong in it.
pub(crate) type Error = nandu_inpage::Error<FlashError>;

/// Most bytes of a log sector: what the papers take.
const SECTOR_SIZE_MAX: u32 = 512;

/// Most pages of a block that an index takes for logs.
const LOG_PAGES_MAX: u32 = 16;

/// Least bytes of a log sector.
const SECTOR_SIZE_MIN: u32 = 64;

/// The options with which an index is made on a chip.
///
/// Sectors where the chip takes them: programmed in any order of pages, torn alone, as many as a page takes programs. Whole log
/// pages elsewhere.
pub(crate) fn options(chip: &Chip, kind: kind::Kind, cells: Cells, node_pages: u8, cache: u32) -> Options {
    let geometry = &chip.geometry;
    let page = geometry.page_size;
    let programs = u32::from(geometry.programs_per_page.max(1));
    let sector = (page / programs).max(geometry.program_unit).max(geometry.ecc.codeword_size);
    let takes_sectors = geometry.order == ProgramOrder::Any
        && geometry.tear == TearScope::Range
        && programs > 1
        && page.is_multiple_of(sector)
        && sector >= SECTOR_SIZE_MIN;
    let (layout, sector_size) = if takes_sectors {
        (Layout::Sectors, sector)
    } else {
        (Layout::Pages, (page / 4).clamp(SECTOR_SIZE_MIN, SECTOR_SIZE_MAX))
    };
    // A quarter of a block at most, in log pages as large as nodes, and as much as an index takes.
    let node_count = geometry.pages_per_block / u32::from(node_pages.max(1));
    let log_pages_max = (node_count / 4).clamp(1, 8).min(LOG_PAGES_MAX / u32::from(node_pages.max(1))).max(1) as u8;
    let timing = &chip.timing;
    let base = if kind == kind::Kind::Ipl {
        Options {
            kind: Kind::Ipl,
            log_pages: LogPages::Static(1),
            group: GroupSize::Fixed(1),
            policy: Policy::Lru,
            splits: Splits::EagerThree,
            ..Options::DEFAULT
        }
    } else {
        Options { log_pages: LogPages::Adaptive(log_pages_max.min(4)), ..Options::DEFAULT }
    };
    Options {
        layout,
        cells,
        node_pages,
        sector_size,
        log_pages_max,
        buffer_size: (cache as usize).max(4 * (u32::from(node_pages) * page + sector_size) as usize),
        times: Times { read_ns: timing.read_lsb_ns, program_ns: timing.program_lsb_ns, erase_ns: timing.erase_ns },
        ..base
    }
}

/// The options with which the index that an anchor names is opened: what is part of its format, as it says.
pub(crate) fn options_of(chip: &Chip, kind: kind::Kind, fields: &AnchorFields, cache: u32) -> Options {
    let options = options(chip, kind, fields.cells, fields.more_pages.saturating_add(1), cache);
    let log_pages = match options.log_pages {
        LogPages::Adaptive(count) => LogPages::Adaptive(count.min(fields.log_pages_max)),
        other => other,
    };
    Options {
        layout: if fields.layout == 1 { Layout::Sectors } else { Layout::Pages },
        sector_size: fields.sector_size,
        log_pages_max: fields.log_pages_max,
        log_pages,
        ..options
    }
}

/// The same with a write-ahead ring, for a verb that makes many changes.
pub(crate) fn with_journal(chip: &Chip, options: Options, durability: Durability) -> Options {
    Options { journal_blocks: if chip.geometry.block_count < 64 { 1 } else { 4 }, durability, ..options }
}

/// Keys and values in words.
pub(crate) fn describe_cells(cells: Cells) -> String {
    match cells {
        Cells::Bytes => "byte strings".to_owned(),
        Cells::Fixed { key, value } => format!("keys of {key} bytes, values of {value}"),
    }
}

/// Where it logs, in words.
pub(crate) fn describe_layout(fields: &AnchorFields) -> String {
    let nodes = match fields.more_pages {
        0 => String::new(),
        more => format!("nodes of {} pages, ", u32::from(more) + 1),
    };
    match fields.layout {
        1 => format!("{nodes}log sectors of {} bytes at the end of each block", fields.sector_size),
        _ => format!("{nodes}whole log pages, where they come"),
    }
}
