//! Sequences that were violations once.

use nandu_explore::replay;

/// What does not happen has shown nothing.
#[test]
fn a_sequence_that_cannot_be_made_is_refused() {
    assert!(replay("store", "put-a-8!cut@999:before").is_err_and(|why| why.contains("not cut")));
    assert!(replay("store", "put-d-8").is_err_and(|why| why.contains("no move")));
    assert!(replay("stores", "put-a-8").is_err());
}

/// A torn page, and behind it a commit that was lost later, whose copy counts: `verify` called the first one lost.
#[test]
fn two_cuts_in_a_block_are_no_damage() {
    for cuts in ["put-b-300!cut@22:complete", "put-b-300!cut@24:before", "put-b-300!cut@24:half-erased"] {
        let moves = format!("snapshot!cut@17:prefix-lost snapshot!cut@20:unstable {cuts}");
        assert_eq!(replay("store-sync", &moves), Ok(()));
    }
}

#[test]
fn a_brown_out_before_the_start_shows_nothing_and_replay_says_so() {
    assert!(nandu_explore::replay("store", "put-a-8!sag@16:0+8:lost").is_err());
    assert!(nandu_explore::replay("store", "put-a-8!sag@9999:0+1:lost").is_err());
}
