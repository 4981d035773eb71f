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
#[path = "snapshots.rs"]
mod snapshots;
#[path = "suite.rs"]
mod suite;
#[path = "sync.rs"]
mod sync;
#[path = "values.rs"]
mod values;
