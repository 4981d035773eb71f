//! A value in a commit, a **blob**: what fits beside the changes that a commit lists needs no page of its own.
//!
//! The head of its key is among these changes and says that the value stands in the commit that lists it, whose place nobody knows before it is programmed; whoever makes the change in memory, behind the commit or at a
//! mount, writes down which page that is. A tear leaves neither the value nor its head, since both are one page.
//!
//! * (W8) The page is needed while it is a member of the window, and while a head names the value. If the head dies first, the page dies when it leaves, as any member does; if it leaves first, it lives on as a raw page does.
//!
//! A page that is no member any more moves as a raw page, whose key the list says that came with the value.

use nandu_cells::Cells;
use nandu_index::Edit;
use nandu_log::{Claim, LogError};
use nandu_nand::Nand;

use crate::division::blob_head;
use crate::edits::Edits;
use crate::error::{EngineError, Outcome};
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::list::{blob_size, members_left};
use crate::options::Durability;
use crate::reader::raw_check;
use crate::sync::{RELIEVED_MAX, has_all, relieve, set};
use crate::writer::{Change, DEATHS, Need};

/// Puts a value at a key, and makes other changes with it, none of which is of this key; all of it is durable when this returns, with what was unsynced. False if that cannot be: nothing was changed then. 1 program, and as a sync leaves that are to make
/// room in memory.
pub(crate) fn put_blob<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    key: &[u8],
    bytes: &[u8],
    beside: &[Edit<'_>],
) -> Outcome<bool, N> {
    keeper.check_writable()?;
    if keeper.waiting().durability != Durability::OnSync {
        return Ok(false);
    }
    let head = blob_head(bytes.len(), raw_check(bytes));
    let edits = Edits::beside(Edit { key, value: Some(&head) }, beside);
    let Some(change) = claim(keeper, &edits, blob_size(bytes.len()))? else { return Ok(false) };
    // All this was read before. If it cannot be read again, nothing more is made durable.
    edits.iter().try_for_each(|edit| set(keeper, (&edits, &edit))).inspect_err(|_| keeper.breaks(true))?;
    keeper.count(true, (0, 0));
    let group = keeper.waiting().changes.unsynced();
    debug_assert!(group > 0, "what names the value is to be made durable");
    keeper.conclude_with(change, Ok(()), bytes)?;
    keeper.parts().0.path.stats_mut().blobs += 1;
    relieve(keeper, group, RELIEVED_MAX)?;
    Ok(true)
}

/// Room for a commit that lists these changes beside so many bytes. `None` if that cannot be. What was done for it is done.
fn claim<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    size: usize,
) -> Outcome<Option<Change>, N> {
    let need = Need { want: Claim::Grow, pages: 1, live: 1, deaths: DEATHS + edits.len() };
    for _ in 0..CLAIMS_MAX {
        // And what the leaf of its head may be divided into, as for a value in pages of its own.
        let more = DEATHS as u32 + members_left(keeper.waiting());
        if !has_all(keeper, edits, size)? || !keeper.has_room(1, more)? {
            break;
        }
        match keeper.claim(need) {
            Ok(None) => {}
            Err(EngineError::Log(LogError::Full)) => break,
            claimed => return claimed.map_err(|error| keeper.undo(error)),
        }
    }
    Ok(None)
}
