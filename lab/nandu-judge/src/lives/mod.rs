//! Random lives on full chips, with cuts: what the worst call costs, what the worst mount reads, what is refused.
//!
//! Each seed is a geometry, memory and habits of its own. A life fills its chip until there is no room, goes on there, and every now and then the power goes,
//! sometimes in the recovery as well. Whatever is found afterwards has to be what some calls made: where something is lost, there are no numbers.
//! At the end the power stays, and the volume has to serve again (`nandu_suite::liveness`).

mod files;
mod kept;
mod records;
mod stores;
mod tally;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, sized};

use crate::measure::{Form, Wrong};
pub(crate) use tally::Tally;
use tally::Whose;

/// Lives of each kind.
const LIVES: (u64, u64) = (60, 2_000);

/// Of so many lives one ends with liveness, which takes three fillings of the chip.
const ASKED_ONE_IN: (u64, u64) = (5, 1);

/// What is lived.
#[derive(Clone, Copy)]
enum Kind {
    Records,
    Files(Whose),
}

const KINDS: [Kind; 4] =
    [Kind::Records, Kind::Files(Whose::Files), Kind::Files(Whose::Tagged), Kind::Files(Whose::Dense)];

/// The seeds that a form lives.
pub(crate) fn seeds_of(form: Form) -> Range<u64> {
    0..form.pick(LIVES.0, LIVES.1)
}

/// Whether the life of this seed ends with liveness.
fn is_asked(form: Form, seed: u64) -> bool {
    seed.is_multiple_of(form.pick(ASKED_ONE_IN.0, ASKED_ONE_IN.1))
}

/// Lives of every kind, on all cores. The same seeds give the same numbers on any machine.
pub(crate) fn live_all(form: Form, seeds: Range<u64>) -> Result<Tally, Wrong> {
    let bar = bar(seeds.clone().count() * KINDS.len());
    let (begun, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let done = Mutex::new((Tally::default(), None::<String>));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        while !has_failed.load(Ordering::Relaxed) {
            let number = begun.fetch_add(1, Ordering::Relaxed);
            // Lives of all kinds at the same time, so that those that take long do not come last.
            let (nth, kind) = (number / KINDS.len() as u64, KINDS[(number % KINDS.len() as u64) as usize]);
            let Some(seed) = seeds.clone().nth(nth as usize) else { break };
            let life = match kind {
                Kind::Records => records::live(form, seed),
                Kind::Files(whose) => files::live(whose, form, seed),
            };
            bar.inc(1);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            match life {
                Ok(tally) => done.0.add(tally),
                Err(what) => {
                    has_failed.store(true, Ordering::Relaxed);
                    done.1.get_or_insert(what);
                }
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let (tally, wrong) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    match wrong {
        None => Ok(tally),
        Some(what) => {
            // Hours may have been lived before.
            eprintln!("{}", tally.in_words());
            Err(Wrong::Life(what))
        }
    }
}

/// How many lives are lived, for who waits at a terminal.
fn bar(lives: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("lives {bar:40} {pos}/{len}, {elapsed} of {duration}");
    ProgressBar::new(lives as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A chip by chance: sizes from the least to the largest, small ones as often as large ones.
fn chip(chance: &mut Chance, form: Form, least_blocks: usize) -> Chip {
    let page_size = [512, 2048, 4096, 8192][chance.below(4)];
    let pages_per_block = [8, 16, 32, 64][chance.below(4)];
    let pages_max = form.pick(1 << 11, 1 << 16);
    let most = (pages_max / pages_per_block as usize).min(1024);
    // As many between 8 and 16 as between 512 and 1,024.
    let doublings = (most / least_blocks).ilog2() as usize + 1;
    let least = least_blocks << chance.below(doublings);
    let blocks = (least + chance.below(least)).min(most);
    let mut chip = sized(page_size, blocks as u32);
    chip.geometry.pages_per_block = pages_per_block;
    chip
}

/// Bytes for changes that wait, from the least to 8,192.
fn pending(chance: &mut Chance) -> usize {
    match chance.below(4) {
        0 => chance.below(400),
        1 => chance.below(2_000),
        _ => chance.below(8_193),
    }
}

/// The power goes in one of the next operations.
fn cut_soon(chip: &mut Sim, chance: &mut Chance, soon: usize) {
    let operation = chip.operation_count() + chance.below(soon) as u64;
    chip.cut_somehow_at(operation);
}

/// Power is back, and nothing is to cut it.
fn power_on(chip: &mut Sim) {
    chip.clear_cuts();
    chip.power_off();
    chip.power_on();
}

#[cfg(test)]
mod tests {
    use super::tally::Whose;
    use super::{files, records};
    use crate::measure::Form;

    /// In this life a call read all leaves once for each page that could not be read, behind a cut: 9,056 reads.
    #[test]
    fn behind_a_cut_a_call_reads_all_leaves_once() {
        let reads = files::live(Whose::Files, Form::Short, 32).unwrap().reads();
        assert!(reads["files"] <= 512.0, "{reads:?}");
    }

    /// In this life, on pages of 512 bytes, the tree becomes as high as a page permits, with pages left. Unlinks were refused where part of a page waited in memory, which had no room in the tree.
    #[test]
    fn nothing_that_frees_is_refused_where_the_tree_is_as_high_as_can_be() {
        let refused = files::live(Whose::Files, Form::Full, 32).unwrap().refused();
        assert!(refused["unlinks"] == 0.0 && refused.values().all(|&count| count == 0.0), "{refused:?}");
    }

    /// In these lives chains of cuts on a full chip, or moves that gained nothing, ended a store once.
    #[test]
    fn a_store_outlives_chains_of_cuts_on_a_full_chip() {
        for seed in [737, 1313, 1897, 3801, 4707, 5202, 9389] {
            if let Err(what) = records::live(Form::Short, seed) {
                panic!("{what}");
            }
        }
    }
}
