//! `nandu map`: all blocks at a glance.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::Args;
use nandu_dffs::{Area, BlockUse, Dffs};
use nandu_nand::{BlockAddr, CellMode};
use nandu_sim::BlockInfo;
use serde_json::json;

use crate::flash::Flash;
use crate::output::Output;
use crate::report::{self, BlockClass};
use crate::volume::{System, VolumeError};
use crate::{files, kind, session, units};

/// Characters that the map of a large chip is brought down to.
const CELL_COUNT_MAX: usize = 2048;

/// Columns left of the map: the number of the first block of the line.
const LABEL_WIDTH: usize = 9;

#[derive(Args, Debug)]
pub(crate) struct Map {
    /// The image
    image: PathBuf,
    /// Show every block, however many there are
    #[arg(long)]
    all: bool,
}

/// A block as the map needs it.
struct Block {
    address: BlockAddr,
    class: Shown,
    mode: CellMode,
    erases: u32,
    pages_programmed: u32,
    /// Its area in a volume of DFFS, and how many of its pages live.
    used: Option<(&'static str, u32)>,
}

/// A class, whether the block was erased for two bits a cell on a chip that has both modes, and its area in a volume of DFFS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    class: BlockClass,
    is_mlc: bool,
    area: Option<Place>,
}

/// What a block with pages is used for in a volume of DFFS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Unused,
    Data,
    File,
    Virtual,
    Directory,
    Map,
    Checkpoint,
}

impl Place {
    const ALL: [Place; 7] =
        [Place::Checkpoint, Place::Map, Place::Directory, Place::Virtual, Place::File, Place::Data, Place::Unused];

    fn of(area: Area) -> Place {
        match area {
            Area::Checkpoint => Place::Checkpoint,
            Area::Map => Place::Map,
            Area::Directory => Place::Directory,
            Area::Virtual => Place::Virtual,
            Area::File => Place::File,
            Area::Data => Place::Data,
            _ => Place::Unused,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Place::Checkpoint => "checkpoints",
            Place::Map => "the map of directories",
            Place::Directory => "directories",
            Place::Virtual => "further pages of directories",
            Place::File => "inodes of files",
            Place::Data => "data",
            Place::Unused => "nothing that is needed",
        }
    }

    /// The letter of a block that is full; one with room has the small letter.
    fn letter(self) -> char {
        match self {
            Place::Checkpoint => 'C',
            Place::Map => 'M',
            Place::Directory => 'D',
            Place::Virtual => 'V',
            Place::File => 'F',
            Place::Data => 'A',
            Place::Unused => 'U',
        }
    }

    fn style(self) -> Style {
        match self {
            Place::Checkpoint => AnsiColor::White.on_default().bold(),
            Place::Map => AnsiColor::Magenta.on_default(),
            Place::Directory => AnsiColor::Yellow.on_default(),
            Place::Virtual => AnsiColor::Yellow.on_default().dimmed(),
            Place::File => AnsiColor::Cyan.on_default(),
            Place::Data => AnsiColor::Blue.on_default(),
            Place::Unused => Style::new().dimmed(),
        }
    }
}

impl Shown {
    fn of(flash: &Flash, address: BlockAddr, state: &BlockInfo, uses: &[BlockUse]) -> Shown {
        let class = BlockClass::of(flash, address, state);
        let is_mlc = has_both_modes(flash) && state.mode == CellMode::Mlc && holds_pages(class);
        let area = uses.get(address.0 as usize).filter(|_| holds_pages(class)).map(|used| Place::of(used.area));
        Shown { class, is_mlc, area }
    }

    /// What a legend says.
    fn name(self) -> String {
        let bits = if self.is_mlc { ", two bits a cell" } else { "" };
        match self.area {
            Some(area) => format!("{}{bits}: {}", self.class.name(), area.name()),
            None => format!("{}{bits}", self.class.name()),
        }
    }
}

fn holds_pages(class: BlockClass) -> bool {
    matches!(class, BlockClass::Partial | BlockClass::Full)
}

fn has_both_modes(flash: &Flash) -> bool {
    let geometry = &flash.chip().geometry;
    geometry.pairing.is_paired() && geometry.supports(CellMode::Slc) && geometry.supports(CellMode::Mlc)
}

pub(crate) fn run(args: &Map, out: &mut Output) -> anyhow::Result<()> {
    let flash = session::look(&args.image)?;
    let uses = uses(args, &flash)?;
    let blocks: Vec<Block> = report::blocks(&flash)
        .map(|(address, state)| Block {
            address,
            class: Shown::of(&flash, address, &state, &uses),
            mode: state.mode,
            erases: state.counters.erases,
            pages_programmed: state.pages_programmed,
            used: uses.get(address.0 as usize).map(|used| (used.area.name(), used.live)),
        })
        .collect();
    if out.is_json() {
        for block in &blocks {
            let mut line = json!({
                "block": block.address.0,
                "state": block.class.class.key(),
                "mode": report::mode_name(block.mode),
                "erases": block.erases,
                "pages_programmed": block.pages_programmed,
            });
            if let Some((area, live)) = block.used {
                line["area"] = area.into();
                line["live"] = live.into();
            }
            out.json(&line)?;
        }
        return Ok(());
    }
    print_text(args, &flash, &blocks, out)
}

/// What each block of a volume of DFFS is used for; nothing of other chips.
fn uses(args: &Map, flash: &Flash) -> anyhow::Result<Vec<BlockUse>> {
    if kind::system(flash) != System::Dffs {
        return Ok(Vec::new());
    }
    let mut copy = flash.clone();
    copy.power_on();
    let mut memory = files::volume_memory(&copy, System::Dffs, files::MemoryArgs::DEFAULT);
    let explain = |error| files::explain(&args.image, VolumeError::Dffs(error));
    let fs = Dffs::mount(&mut copy, files::DFFS, &mut memory).map_err(explain)?;
    Ok(fs.blocks().collect())
}

fn print_text(args: &Map, flash: &Flash, blocks: &[Block], out: &mut Output) -> anyhow::Result<()> {
    let blocks_per_cell = if args.all { 1 } else { blocks.len().div_ceil(CELL_COUNT_MAX).next_power_of_two() };
    let erases_max = blocks.iter().map(|block| block.erases).max().unwrap_or(0);
    let one = if blocks_per_cell == 1 {
        "each character is a block".to_owned()
    } else {
        format!("each character is {blocks_per_cell} blocks, shown as the last of them in the legend's order")
    };
    let count = units::things(blocks.len() as u64, "block");
    writeln!(out, "{}: {}, {count}; {one}\n", args.image.display(), flash.chip().name)?;

    print_grid(blocks, blocks_per_cell, out, |cell| {
        let none = Shown { class: BlockClass::NeverErased, is_mlc: false, area: None };
        let class = cell.iter().map(|block| block.class).max().unwrap_or(none);
        (glyph(class), class_style(class))
    })?;
    writeln!(out)?;
    for class in BlockClass::ALL {
        let modes: &[bool] = if has_both_modes(flash) && holds_pages(class) { &[false, true] } else { &[false] };
        let has_areas = blocks.iter().any(|block| block.used.is_some()) && holds_pages(class);
        let areas: Vec<_> = if has_areas { Place::ALL.map(Some).into() } else { vec![None] };
        for (&is_mlc, &area) in modes.iter().flat_map(|mode| areas.iter().map(move |area| (mode, area))) {
            let shown = Shown { class, is_mlc, area };
            let count = blocks.iter().filter(|block| block.class == shown).count();
            let style = out.style(class_style(shown));
            writeln!(
                out,
                "  {style}{}{style:#}  {:>9}  {}",
                glyph(shown),
                units::count_of(count as u64),
                shown.name()
            )?;
        }
    }

    if flash.sim().is_none() {
        writeln!(out, "\nof bad blocks Linux does not say since when; 'nandu info' says how worn the others are")?;
        return Ok(());
    }
    if erases_max == 0 {
        writeln!(out, "\nno block was ever erased")?;
        return Ok(());
    }
    writeln!(
        out,
        "\nerases in tenths of {}, the most of a block, which is rated for {}; . is never\n",
        units::count_of(erases_max.into()),
        units::count_of(flash.chip().geometry.endurance.into())
    )?;
    print_grid(blocks, blocks_per_cell, out, |cell| {
        let erases = cell.iter().map(|block| block.erases).max().unwrap_or(0);
        wear_glyph(erases, erases_max)
    })
}

/// Draws a character for each so many blocks, in lines as wide as fits.
fn print_grid(
    blocks: &[Block],
    blocks_per_cell: usize,
    out: &mut Output,
    draw: impl Fn(&[Block]) -> (char, Style),
) -> anyhow::Result<()> {
    let room = out.width().saturating_sub(LABEL_WIDTH).max(16);
    let cells_per_line = 1 << room.ilog2();
    for line in blocks.chunks(blocks_per_cell * cells_per_line) {
        let first = line.first().map_or(0, |block| block.address.0);
        write!(out, "{first:>7}  ")?;
        // A style is switched once for each run of cells that share it.
        let mut current = Style::new();
        for cell in line.chunks(blocks_per_cell) {
            let (glyph, style) = draw(cell);
            let style = out.style(style);
            if style != current {
                write!(out, "{current:#}{style}")?;
                current = style;
            }
            write!(out, "{glyph}")?;
        }
        writeln!(out, "{current:#}")?;
    }
    Ok(())
}

fn glyph(shown: Shown) -> char {
    if let Some(area) = shown.area {
        return if shown.class == BlockClass::Full { area.letter() } else { area.letter().to_ascii_lowercase() };
    }
    match shown.class {
        BlockClass::Partial if shown.is_mlc => '+',
        BlockClass::Full if shown.is_mlc => '@',
        BlockClass::NeverErased => '.',
        BlockClass::Erased => '_',
        BlockClass::Partial => '-',
        BlockClass::Full => '#',
        BlockClass::Harmed => '?',
        BlockClass::GrownBad => 'x',
        BlockClass::FactoryBad => 'X',
    }
}

fn class_style(shown: Shown) -> Style {
    if let Some(area) = shown.area {
        return area.style();
    }
    match shown.class {
        BlockClass::Partial | BlockClass::Full if shown.is_mlc => AnsiColor::Yellow.on_default(),
        BlockClass::NeverErased => Style::new().dimmed(),
        BlockClass::Erased => AnsiColor::Green.on_default(),
        BlockClass::Partial => AnsiColor::Cyan.on_default(),
        BlockClass::Full => AnsiColor::Blue.on_default(),
        BlockClass::Harmed => AnsiColor::Magenta.on_default().bold(),
        BlockClass::GrownBad => AnsiColor::Red.on_default().bold(),
        BlockClass::FactoryBad => AnsiColor::Red.on_default(),
    }
}

/// A digit for the tenths of the most erased block, rounded up, so that a block erased once shows.
fn wear_glyph(erases: u32, erases_max: u32) -> (char, Style) {
    if erases == 0 {
        return ('.', Style::new().dimmed());
    }
    let tenths = (u64::from(erases) * 10).div_ceil(u64::from(erases_max)).min(10);
    let glyph = char::from_digit(tenths as u32, 10).unwrap_or('*');
    let color = match tenths {
        0..=4 => AnsiColor::Green,
        5..=7 => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    (glyph, color.on_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_shown_in_tenths_of_the_most_and_the_least_wear_shows() {
        let glyphs: String = [0, 1, 10, 11, 55, 90, 91, 100].map(|erases| wear_glyph(erases, 100).0).iter().collect();
        assert_eq!(glyphs, ".1126 9**".replace(' ', ""));
    }
}
