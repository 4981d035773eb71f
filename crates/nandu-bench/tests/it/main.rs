//! Figures, held against a committed snapshot.

mod snapshots;
