//! Tells chips apart by what matters for what comes.
//!
//! Two chips count as one where each page reads the same way and says the same, but for how many pages were programmed before it: sequences count from the newest page on, and so do
//! numbers of checkpoints. A page whose header is not sound is as good as any other that reads the same way, where the system gives each page a header. What bodies say of
//! sequences and erases is not made relative, so some chips are told apart that need not be; none are taken for one that differ.

use std::hash::{DefaultHasher, Hasher};

use nandu_media::Page;
use nandu_nand::{BlockAddr, Nand, PageAddr};
use nandu_sim::Sim;

/// Where a header has what is made relative: its checksum, its sequence, and the number of its checkpoint.
const CRC: std::ops::Range<usize> = 0..4;
const SEQUENCE: std::ops::Range<usize> = 8..16;
const CHECKPOINT: std::ops::Range<usize> = 28..32;

/// Hashes what is on a chip, which takes it, since reading may make bits worse.
pub(crate) fn of_chip(mut chip: Sim, has_headers: bool, hash: &mut DefaultHasher) {
    chip.power_on();
    let geometry = *chip.geometry();
    let size = geometry.page_size as usize;
    let mut bytes = vec![0; size * geometry.page_count() as usize];
    let mut newest = (0, 0);
    for (page, bytes) in (0..).zip(bytes.chunks_exact_mut(size)) {
        // How a page reads is looked at again below.
        let _ = chip.read(PageAddr(page), 0, bytes);
        if let Ok(page) = Page::parse(bytes) {
            newest = newest.max((page.sequence(), page.checkpoint()));
        }
    }
    for (number, bytes) in (0..).zip(bytes.chunks_exact_mut(size)) {
        let page = PageAddr(number);
        if number % geometry.pages_per_block == 0 {
            let block = chip.block_state(BlockAddr(number / geometry.pages_per_block));
            hash.write_u8(block.condition as u8);
            hash.write_u8(block.mode as u8);
            hash.write_u8(u8::from(block.reads_bad));
        }
        let state = chip.page_state(page);
        hash.write_u8(u8::from(state.harmed));
        if state.programs == 0 && !state.held && !state.harmed {
            continue;
        }
        match chip.read(page, 0, bytes) {
            Err(_) => hash.write_u8(1),
            Ok(_) if bytes.iter().all(|&byte| byte == u8::MAX) => hash.write_u8(2),
            Ok(_) => {
                let parsed = Page::parse(bytes).ok().map(|page| (page.sequence(), page.checkpoint()));
                match parsed {
                    Some((sequence, checkpoint)) => {
                        hash.write_u64(newest.0 - sequence);
                        hash.write_u32(newest.1.wrapping_sub(checkpoint));
                        hash.write(&bytes[CRC.end..SEQUENCE.start]);
                        hash.write(&bytes[SEQUENCE.end..CHECKPOINT.start]);
                        hash.write(&bytes[CHECKPOINT.end..]);
                    }
                    None if has_headers => hash.write_u8(3),
                    None => hash.write(bytes),
                }
            }
        }
    }
}
