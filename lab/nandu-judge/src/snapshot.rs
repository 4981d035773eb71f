//! Updates with one snapshot.

use nandu::{Error, Options};
use nandu_bench::BenchError;
use nandu_bench::records::{self, Cells, Records};
use nandu_sim::{Chip, Sim};
use nandu_suite::Chance;

use crate::measure::{Form, Values, Wrong};

/// How much of the chip lives when all that is changed was changed, in percent.
const LIVE: [u32; 2] = [40, 65];

/// Blocks of the chip.
const BLOCKS: u32 = 64;

/// Programs of a random update with one snapshot; infinite where there is no room for the snapshot or for an update.
pub(crate) fn values(form: Form) -> Result<Values, Wrong> {
    let mut values = Values::new();
    for live in LIVE {
        values.insert(format!("{live} % live"), programs(live, form)?);
    }
    Ok(values)
}

fn programs(live: u32, form: Form) -> Result<f64, Wrong> {
    let chip = Chip::W25N01GV.with_blocks(BLOCKS);
    let options = Options { cache_size: 16 << 10, ..Options::DEFAULT };
    let mut sim = Sim::new(chip);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let mut store = records::format(&mut sim, Cells::Bytes, options, &mut memory)?;
    let pages = chip.geometry.page_count();
    let key = |number: usize| (number as u32).to_be_bytes();
    // Each page that is changed lives twice, as long as there is the snapshot.
    let mut count = 0_usize;
    while store.stats().live_pages * 200 < pages * live {
        let mut records = (count..count + 200).map(|number| (key(number).to_vec(), vec![0; 100]));
        store.load(&mut records)?;
        count += 200;
    }
    match store.snapshot() {
        Ok(()) => {}
        Err(Error::Full) => return Ok(f64::INFINITY),
        Err(error) => return Err(error.into()),
    }
    let mut chance = Chance::new(1);
    let measured = form.pick(2_000, 10_000);
    let mut before = *store.nand().counters();
    for done in 0..pages as usize * 2 + measured {
        if done == pages as usize * 2 {
            before = *store.nand().counters();
        }
        match store.put(&key(chance.below(count)), &[1 + (done % 255) as u8; 100]) {
            Ok(_) => {}
            Err(Error::Full) => return Ok(f64::INFINITY),
            Err(error) => return Err(error.into()),
        }
    }
    let programs = store.nand().counters().since(&before).programs;
    kept(&mut *store, count, &key)?;
    Ok(programs as f64 / measured as f64)
}

/// The snapshot has what there was when it was taken.
fn kept(store: &mut dyn Records, count: usize, key: &dyn Fn(usize) -> [u8; 4]) -> Result<(), Wrong> {
    for number in (0..count).step_by(97) {
        if store.value_at(0, &key(number))?.as_deref() != Some(&[0; 100]) {
            return Err(Wrong::Bench(BenchError::Wrong(number as u32)));
        }
    }
    Ok(())
}
