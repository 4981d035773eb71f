//! A power-cut test of code like yours: money that moves between two accounts, cut at every operation of the chip with everything
//! that a cut can leave there. Right with a batch, wrong with two puts, and the test tells the two apart.
//!
//! `cargo run -p nandu --example power_cut`

#![expect(clippy::expect_used, reason = "the check of a test: what does not open has failed")]

use std::error::Error;
use std::panic;

use nandu::{Edit, Options, Store};
use nandu_sim::power_cut::{self, Summary};
use nandu_sim::{Chip, Sim, SimError};

type Bank<'m, 'c> = Store<'m, &'c mut Sim>;
type Outcome = Result<(), nandu::Error<SimError>>;

const OPTIONS: Options = Options { cache_size: 200, ..Options::DEFAULT };

/// Money in all.
const TOTAL: u8 = 100;

/// What is to be tested: takes one from the left account to the right one.
fn transfer(bank: &mut Bank<'_, '_>, left: u8) -> Outcome {
    bank.batch(&[
        Edit { key: b"left", value: Some(&[left - 1]) },
        Edit { key: b"right", value: Some(&[TOTAL - left + 1]) },
    ])
}

/// What many would write first.
fn transfer_by_two_puts(bank: &mut Bank<'_, '_>, left: u8) -> Outcome {
    bank.put(b"left", &[left - 1])?;
    bank.put(b"right", &[TOTAL - left + 1])?;
    Ok(())
}

/// Cuts twenty transfers at every operation, and looks each time whether money was lost or made.
fn cut_everywhere(transfer: fn(&mut Bank<'_, '_>, u8) -> Outcome) -> Result<Summary, Box<dyn Error>> {
    // A toy of 32 KiB: few operations, so that every one of them can be cut.
    let mut chip = Sim::new(Chip::TINY);
    let memory = || vec![0; Store::<Sim>::memory_required(&Chip::TINY.geometry, &OPTIONS)];
    {
        let mut memory = memory();
        let mut bank = Store::format(&mut chip, OPTIONS, &mut memory)?;
        bank.batch(&[Edit { key: b"left", value: Some(&[TOTAL]) }, Edit { key: b"right", value: Some(&[0]) }])?;
        bank.unmount()?;
    }
    Ok(power_cut::every(
        chip,
        // The workload. It notes what was acknowledged to it.
        |chip, acknowledged: &mut u8| {
            let mut memory = memory();
            let mut bank = Store::open(chip, OPTIONS, &mut memory)?;
            for left in (TOTAL - 19..=TOTAL).rev() {
                transfer(&mut bank, left)?;
                *acknowledged += 1;
            }
            Ok(())
        },
        // The check, after the power came back. What it returns must be the same after a rest.
        |chip, acknowledged| {
            let mut memory = memory();
            let mut bank = Store::open(chip, OPTIONS, &mut memory).expect("the store opens");
            let mut amount = |key: &[u8]| bank.get(key).expect("it is read").expect("it is there")[0];
            let (left, right) = (amount(b"left"), amount(b"right"));
            assert_eq!(left + right, TOTAL, "money was lost or made");
            assert!(right >= *acknowledged, "an acknowledged transfer was lost");
            right
        },
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let summary = cut_everywhere(transfer)?;
    println!("{} cuts in {} operations, and no money lost", summary.cases, summary.operations);
    assert!(summary.cases > 100);

    // A failed case is a panic, whose message ends with the line that runs this case alone.
    let caught =
        panic::catch_unwind(|| cut_everywhere(transfer_by_two_puts).map(drop).map_err(|error| error.to_string()));
    assert!(caught.is_err(), "the cut between the two puts was not noticed");
    println!("the message above is that of the case which tells two puts from a batch");
    Ok(())
}
