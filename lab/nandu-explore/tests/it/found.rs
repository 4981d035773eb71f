//! Sequences that were violations once.

use nandu_explore::replay;

/// A torn page, and behind it a commit that was lost later, whose copy counts: `verify` called the first one lost.
#[test]
fn two_cuts_in_a_block_are_no_damage() {
    for cuts in ["put-b-300!cut@22:complete", "put-b-300!cut@24:before", "put-b-300!cut@24:half-erased"] {
        let moves = format!("snapshot!cut@17:prefix-lost snapshot!cut@20:unstable {cuts}");
        assert_eq!(replay("store-sync", &moves), Ok(()));
    }
}
