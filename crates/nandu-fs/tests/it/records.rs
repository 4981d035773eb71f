//! The records below a file system, changed behind its back.

use nandu_log::Log;
use nandu_log::LogOptions;
use nandu_media::checksum::page_checksum;
use nandu_sim::Sim;
use nandu_tree::{ByteCells, Durability, Engine, Options, Parts, memory_required};

use crate::rig::OPTIONS;

/// The checksum of a page, over what follows it.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    page_checksum(bytes)
}

/// Bytes of a quarter of a page that no entry of a leaf has.
pub(crate) const ENTRY_FRONT: usize = 110;

/// Bytes of a page before what it has of a file, at most.
const FRONT: usize = 96;

/// Whether these are the bytes of a page of a file, of which each of the first 512 is this one but for those that its record has.
pub(crate) fn is_full_of(bytes: &[u8], byte: u8) -> bool {
    bytes[FRONT..512].iter().all(|&it| it == byte)
}

/// Whether a violation may be of a page to which nothing leads: the log says that N1 does not hold of each that cannot be read, until its block is erased.
pub(crate) fn may_be_of_dead_page(violation: &str) -> bool {
    violation.starts_with("N1 ")
}

/// The tree below a file system.
pub(crate) type Records<'m> = Engine<'m, Sim, ByteCells>;

/// Changes records behind the file system's back.
pub(crate) fn edit(chip: Sim, change: impl FnOnce(&mut Records<'_>)) -> Sim {
    let options = Options {
        log: LogOptions { has_raw: true, ..OPTIONS.log },
        cache_size: 512,
        pending_size: 32_768,
        durability: Durability::OnSync,
        has_values: true,
        ..Options::DEFAULT
    };
    let mut memory = vec![0; memory_required::<Sim>(&chip.chip().geometry, &options)];
    let mut engine = Engine::unopened(Parts::new(chip, ByteCells, &options, &mut memory).unwrap());
    engine.begin(&options, Log::mount).unwrap();
    change(&mut engine);
    engine.merge().unwrap();
    engine.unmount().map_err(|(error, _)| error).unwrap()
}
