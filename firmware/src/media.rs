//! `nandu-media`: a page sealed and parsed again, an anchor, the record of a block.

use core::hint::black_box;

use nandu_media::header::FLAG_COMMIT;
use nandu_media::{Anchor, BlockRecord, Malformed, Page, PageFields, PageKind, Position};

const PAGE_SIZE: usize = 2048;

/// Uses the crate as the log does, and folds what comes out into a number, so that nothing is optimised away; the compiler
/// must not know what it sealed, or it would leave out what reads anything else.
pub(crate) fn exercise(seed: u32) -> u32 {
    let mut page = [0; PAGE_SIZE];
    let fields = PageFields {
        kind: PageKind::Node,
        sequence: u64::from(seed),
        page: seed >> 1,
        volume: 1,
        committed: None,
        checkpoint: 1,
        stream: 0,
        flags: FLAG_COMMIT,
        positions: &[Position::NONE; 2],
    };
    fields.seal(&mut page);
    let record = BlockRecord::from_bytes(seed.to_le_bytes()).erase_count;
    inspect(black_box(&page), seed >> 1).unwrap_or(0) ^ record
}

fn inspect(bytes: &[u8], address: u32) -> Result<u32, Malformed> {
    let page = Page::parse(bytes)?.expect(1, address)?;
    match page.kind() {
        PageKind::Anchor => Ok(Anchor::parse(&page)?.ready().sum()),
        _ => Ok(page.sequence() as u32 ^ u32::from(page.is_commit())),
    }
}
