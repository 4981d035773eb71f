//! The new heart: what judges the present store and does not ask for what the new one lacks yet, on that; and what only the new one has.

#[path = "next_campaign.rs"]
mod campaign;
#[path = "cursor.rs"]
mod cursor;
#[path = "cuts.rs"]
mod cuts;
#[path = "next_differential.rs"]
mod differential;
#[path = "next_heart.rs"]
mod heart;
#[path = "next_values.rs"]
mod large_values;
#[path = "life.rs"]
mod life;
#[path = "pending.rs"]
mod pending;
#[path = "suite.rs"]
mod suite;
#[path = "sync.rs"]
mod sync;
#[path = "values.rs"]
mod values;

/// A leaf that ascending keys filled does not fit beside a path that grew: each move of it costs two pages.
#[test]
#[ignore = "the new heart says Full to a delete, with each change durable at once"]
fn what_was_deleted_has_room_for_other_keys() {
    pending::deleted_has_room_for_other_keys();
}
