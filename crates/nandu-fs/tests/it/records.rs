//! The records below a file system, changed behind its back.

use nandu_log::Log;
use nandu_sim::Sim;
use nandu_tree::{ByteCells, Durability, OnLog, Tree};

use crate::rig::OPTIONS;

/// The checksum of a page, over what follows it.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    nandu_media::checksum::checksum(bytes)
}

/// Bytes of a quarter of a page that no entry of a leaf has.
pub(crate) const ENTRY_FRONT: usize = 60;

/// Whether these are the bytes of a page of a file, of which each of the first 512 is this one.
pub(crate) fn is_full_of(bytes: &[u8], byte: u8) -> bool {
    bytes[..512].iter().all(|&it| it == byte)
}

/// Whether a violation may be of a page to which nothing leads: pages of files say nothing of themselves, so that none is.
pub(crate) fn may_be_of_dead_page(_violation: &str) -> bool {
    false
}

/// The tree below a file system.
pub(crate) type Records<'m> = Tree<'m, OnLog<'m, Sim>, ByteCells>;

/// Changes records behind the file system's back.
pub(crate) fn edit(chip: Sim, change: impl FnOnce(&mut Records<'_>)) -> Sim {
    let options = nandu_tree::Options {
        cache_size: 512,
        pending_size: 32_768,
        note_count: OPTIONS.note_count,
        durability: Durability::Immediate,
        ..nandu_tree::Options::DEFAULT
    };
    let geometry = chip.chip().geometry;
    let mut log_memory = vec![0; Log::<Sim>::memory_required(&geometry, &OPTIONS.log)];
    let log = Log::mount(chip, OPTIONS.log, &mut log_memory).unwrap();
    let mut memory = vec![0; nandu_tree::memory_required(geometry.page_size as usize, &options)];
    let mut tree = Tree::open(OnLog::new(log), ByteCells, options, &mut memory).unwrap();
    change(&mut tree);
    tree.settle().unwrap();
    tree.close().into_log().unmount().map_err(|(error, _)| error).unwrap()
}
