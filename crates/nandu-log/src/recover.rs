//! Putting right what a cut left.

use nandu_media::{Field, Malformed, PageFields, PageKind};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};

use crate::blocks::{Flag, Stage};
use crate::chip::Programmed;
use crate::classify::classify;
use crate::error::LogError;
use crate::medium::{Header, Probe};
use crate::ready::End;
use crate::roll::{Roll, Rolled};
use crate::volume::Volume;

/// By how much the sequence jumps after a cut: more pages than one operation programs, or a recovery.
const SEQUENCE_GAP: u64 = 4096;

/// Puts right what a cut left. It can be cut itself and begun again: it erases nothing that the newest checkpoint or the one before it
/// needs, and what it programs counts only once its own checkpoint is complete.
pub(crate) fn recover<N: Nand>(volume: &mut Volume<'_, N>, rolled: &Rolled) -> Result<(), LogError<N::Error>> {
    let (doubts, copies) = (!volume.is_broken(|it| it.erase_proof), !volume.is_broken(|it| it.quarantine));
    let (medium, ..) = volume.loader();
    medium.pass_sequence(rolled.newest.map_or(0, |found| found.sequence.saturating_add(1)));
    medium.pass_sequence(medium.sequence().saturating_add(SEQUENCE_GAP));
    volume.resume();
    let (_, blocks, shape, standing) = volume.loader();
    standing.is_exact = false;
    standing.committed = rolled.newest.map(|found| found.page).or(standing.committed);
    if let Some(found) = &rolled.newest {
        standing.tail = Roll { shape, standing }.tail_behind(found);
    }
    let last = classify((blocks, standing), (shape, doubts), rolled);
    debug_assert!(blocks.in_state(Stage::Open) == 0, "nothing goes on where it was");
    if let Some(page) = volume.committed() {
        hold_commit(volume, page)?;
    }
    if volume.is_read_only() {
        return Ok(());
    }
    // A commit that the checkpoint names was complete. One behind it may be the very page that was being programmed when the power went;
    // it may read well now and not later.
    let is_recovered = match rolled.newest.filter(|_| copies) {
        Some(found) => copy_commit(volume, &found)?,
        None => true,
    };
    if !is_recovered {
        let (.., standing) = volume.loader();
        standing.is_read_only = true;
        return Ok(());
    }
    go_on(volume, last)?;
    match volume.checkpoint(false) {
        Err(LogError::ReadOnly) => Ok(()),
        result => result,
    }
}

/// Goes on in the block that stream 0 was in, behind the page that may be torn (N9): with commits, or with survivors where the newest commit was copied to another block. The checkpoint
/// that says so is complete before the next program, so a mount after another cut begins behind that page, however often that happens: a cut takes a page. One read.
fn go_on<N: Nand>(volume: &mut Volume<'_, N>, last: Option<(BlockAddr, u16)>) -> Result<(), LogError<N::Error>> {
    let torn = u16::from(!volume.is_broken(|it| it.quarantine));
    let (medium, blocks, shape, standing) = volume.loader();
    let Some((block, next)) = last.filter(|&(_, next)| next + torn < shape.pages) else { return Ok(()) };
    let is_erased = matches!(medium.probe(shape.page(block, next + torn))?, Probe::Erased);
    if is_erased && blocks.state(block) == Stage::Closed && !blocks.has(block, Flag::Refresh) {
        let stream = u8::from(standing.heads.open(0).is_some());
        standing.heads.begin(stream, block, next + torn, None);
        // An image may say that more live than there are.
        blocks.set_live(block, blocks.live(block).min(next + torn));
        blocks.reopen(block, stream);
    }
    Ok(())
}

/// The block of the newest commit has to hold data, and at least that page; a hostile image may say otherwise.
pub(crate) fn hold_commit<N: Nand>(volume: &mut Volume<'_, N>, page: PageAddr) -> Result<(), LogError<N::Error>> {
    let (medium, blocks, shape) = volume.reader();
    let found = medium.load(page)?;
    let block = shape.block_of(page);
    let is_right = found.kind == PageKind::Commit && blocks.state(block).holds_data();
    if !is_right || found.sequence >= medium.sequence() {
        return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Committed) });
    }
    if blocks.live(block) == 0 {
        blocks.set_live(block, 1);
    }
    debug_assert!(!blocks.is_listable(block), "the block of the newest commit is not erased (N7)");
    Ok(())
}

/// Copies the newest commit to a block of the ready list, which is erased here; `false` if there is no block for it.
///
/// Neither this checkpoint nor the one before it needs the block. A cut leaves in it a page with the number of a checkpoint that does not exist, which roll-forward passes over.
fn copy_commit<N: Nand>(volume: &mut Volume<'_, N>, found: &Header) -> Result<bool, LogError<N::Error>> {
    debug_assert!(volume.committed() == Some(found.page) && found.kind == PageKind::Commit);
    while volume.ready().remaining() > 0 {
        let (.., standing) = volume.loader();
        let (slot, listed) = standing.ready.take(End::Front);
        let Some(erased) = volume.erase(listed, (CellMode::Slc, Cause::Recovery))? else { continue };
        let block = erased.block();
        volume.begin_block(0, erased, slot);
        let (medium, _, shape, standing) = volume.loader();
        let page = shape.page(block, 0);
        // Where a read between failed, the buffer holds something else.
        medium.load(found.page)?;
        let fields = PageFields {
            kind: found.kind,
            sequence: 0,
            page: page.0,
            volume: 0,
            committed: found.committed.map(|page| page.0),
            checkpoint: standing.anchors.number().saturating_add(1),
            stream: 0,
            flags: 0,
            positions: shape.no_positions(),
        };
        let outcome = medium.program_own(fields, Cause::Recovery, false)?;
        if outcome == Programmed::Done {
            volume.grow(0, block);
            let (_, blocks, shape, standing) = volume.loader();
            blocks.lose(shape.block_of(found.page));
            standing.committed = Some(page);
            debug_assert!(blocks.live(block) == 1 && page != found.page);
            return Ok(true);
        }
        volume.close(0, outcome);
        let (.., standing) = volume.loader();
        standing.heads.forget(0);
    }
    Ok(false)
}
