//! After a cut: what became of the blocks that were open at the checkpoint, or opened since, as far as the newest commit tells.

use nandu_media::Position;
use nandu_nand::{BlockAddr, CellMode};

use crate::anchors::Standing;
use crate::blocks::{Blocks, Stage};
use crate::roll::Rolled;
use crate::shape::Shape;
use crate::tail::{TAIL_MAX, Tail};

/// Sets the states of the blocks that were open at the checkpoint or opened since; no erase of a listed block is believed, if that is in doubt. Returns where stream 0 would have gone on.
pub(crate) fn classify(
    (blocks, standing): (&mut Blocks<'_>, &mut Standing),
    (shape, doubts): (&Shape, bool),
    rolled: &Rolled,
) -> Option<(BlockAddr, u16)> {
    let positions = rolled.newest.map(|found| found.positions);
    let pages = shape.pages;
    let heads = core::mem::replace(&mut standing.heads, shape.no_heads());
    // The other streams take from the back, and keep their block until they open the next.
    let streams = usize::from(shape.streams);
    let others = positions.iter().flat_map(|it| &it[1..streams]).filter_map(|position| position.slot());
    let first =
        others.filter(|&slot| slot != Position::SLOT_OPEN).min().map_or(standing.ready.all().len(), usize::from);
    standing.ready.resume(rolled.front, standing.ready.all().len() - first.min(standing.ready.all().len()));
    let unopened = standing.ready.unopened();
    for &block in standing.ready.all() {
        // Whether they were opened after the newest commit or not: nothing in them is needed, and they are erased before they are
        // opened (again).
        if unopened.contains(&block) {
            if doubts {
                blocks.doubt(block);
            }
        } else {
            blocks.found_used(block, pages);
        }
    }
    let slots = |mode| {
        let place = streams + usize::from(mode == CellMode::Mlc);
        positions.filter(|_| place < usize::from(shape.positions())).map(|positions| positions[place])
    };
    let (raw_slots, mlc_slots) = (slots(CellMode::Slc), slots(CellMode::Mlc));
    for (slot, &block) in (0..).zip(standing.ready.all()) {
        let is_among = |slots: Option<Position>| slots.is_some_and(|slots| slots.has_slot(slot));
        match blocks.state(block) {
            Stage::Closed if is_among(mlc_slots) => {
                blocks.found_mlc(block);
                blocks.found_used(block, shape.pages_max());
            }
            Stage::Closed if is_among(raw_slots) => blocks.found_raw(block),
            _ => {}
        }
    }
    for stream in 0..shape.streams {
        let at_checkpoint = heads.open(stream);
        let position = positions.map_or(Position::NONE, |positions| positions[usize::from(stream)]);
        let next = position.last() + 1;
        if let Some(head) = at_checkpoint {
            // Where the stream went on in another block, this one was filled before.
            let end = match position.slot() {
                Some(Position::SLOT_OPEN) => next,
                Some(_) => shape.pages_in(heads.mode(stream)),
                None => head.next,
            };
            let live = blocks.live(head.block) + end.saturating_sub(head.next);
            blocks.found_used(head.block, live);
        }
        if let Some(block) = position.slot().and_then(|slot| standing.ready.at(slot)) {
            blocks.found_used(block, next);
        }
    }
    // Tags may tell of pages behind what the newest commit knows of.
    if let Some((page, _)) = standing.tail.place(shape, (0, 0)) {
        let block = shape.block_of(page);
        if blocks.state(block) == Stage::Closed && blocks.is_raw(block) {
            blocks.found_used(block, (blocks.live(block) + TAIL_MAX).min(pages));
        } else {
            standing.tail = Tail::NONE;
        }
    }
    let newest = rolled.newest.map(|found| (shape.block_of(found.page), shape.nth_of(found.page) + 1));
    newest.or(heads.open(0).map(|head| (head.block, head.next)))
}
