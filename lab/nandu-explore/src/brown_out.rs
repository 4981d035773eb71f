//! Brown-outs: what is found where some of the last programs and erases before a cut were acknowledged and are weak.
//!
//! Nobody can promise that such a cut loses nothing, since the newest commit may be among what is weak. What counts is how much is lost, and whether anybody is told.

use nandu_sim::{Sag, Weakness};
use serde::{Deserialize, Serialize};

/// What was found after a brown-out, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// All that was acknowledged.
    All,
    /// What was there before calls of which an operation was weak.
    Older,
    /// An error, or damage that the check finds.
    Damage,
    /// One content, and later another one.
    Fading,
    /// A content that never was there, or that no weak operation had to do with.
    Wrong,
}

/// What was found after brown-outs that reach so far back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrownOuts {
    /// How far back the weak operations reach, of the last programs and erases.
    pub reach: u8,
    /// How weak they are.
    pub weakness: String,
    /// Those after which all that was acknowledged was found.
    pub all: u64,
    /// Those after which what was there before a call with a weak operation was found.
    pub older: u64,
    /// Of these, those with no other cut before: there nothing but the brown-out took something back.
    #[serde(default)]
    pub uncut: u64,
    /// Those after which an error or the check said that something is damaged.
    pub damage: u64,
    /// Those after which something was found, and later something else.
    pub fading: u64,
}

/// All brown-outs that reach back so far at most.
pub(crate) fn sags(reach_max: u8) -> impl Iterator<Item = Sag> {
    Weakness::ALL.into_iter().flat_map(move |weakness| {
        (1..=reach_max).flat_map(move |reach| (1..=reach).map(move |weak| Sag { sound: reach - weak, weak, weakness }))
    })
}

/// Counts what was found after a brown-out.
pub(crate) fn count(rows: &mut Vec<BrownOuts>, (sag, was_cut): (Sag, bool), found: Found) {
    let (reach, weakness) = (sag.reach(), sag.weakness.to_string());
    let at = rows.iter().position(|row| (row.reach, &row.weakness) == (reach, &weakness)).unwrap_or_else(|| {
        rows.push(BrownOuts { reach, weakness, all: 0, older: 0, uncut: 0, damage: 0, fading: 0 });
        rows.len() - 1
    });
    let row = &mut rows[at];
    match found {
        Found::All => row.all += 1,
        Found::Older => {
            row.older += 1;
            row.uncut += u64::from(!was_cut);
        }
        Found::Damage => row.damage += 1,
        Found::Fading => row.fading += 1,
        Found::Wrong => {}
    }
}

/// The shortest reach first.
pub(crate) fn sorted(mut rows: Vec<BrownOuts>) -> Vec<BrownOuts> {
    rows.sort_by_key(|row| (row.reach, row.weakness != Weakness::Unstable.to_string()));
    rows
}

/// Adds the counts of another share.
pub(crate) fn merge(rows: &mut Vec<BrownOuts>, others: Vec<BrownOuts>) {
    for other in others {
        match rows.iter_mut().find(|row| (row.reach, &row.weakness) == (other.reach, &other.weakness)) {
            Some(row) => {
                row.all += other.all;
                row.older += other.older;
                row.uncut += other.uncut;
                row.damage += other.damage;
                row.fading += other.fading;
            }
            None => rows.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sags;

    #[test]
    fn each_brown_out_of_a_reach_is_tried_once() {
        let all: Vec<_> = sags(3).collect();
        assert_eq!(all.len(), 2 * (1 + 2 + 3));
        assert!(all.iter().all(|sag| sag.weak > 0 && sag.reach() <= 3));
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
    }
}
