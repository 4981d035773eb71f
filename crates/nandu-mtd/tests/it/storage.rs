//! Stores and files on a device, with faults and cuts.

use nandu::fs::{Attributes, Format, Fs, Ino};
use nandu::{Options as StoreOptions, Store};
use nandu_mtd::Options;
use nandu_nand::{Ecc, Geometry};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::fake::{Fake, OPTIONS, chip};

const MEMORY_SIZE: usize = 1 << 18;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Puts records until something fails; how many were acknowledged.
fn fill(fake: &mut Fake, options: &Options, count: u32) -> u32 {
    let mut memory = vec![0; MEMORY_SIZE];
    let Ok(mut chip) = fake.open_with(options) else { return 0 };
    let Ok(mut store) = Store::open(&mut chip, StoreOptions::DEFAULT, &mut memory) else { return 0 };
    (0..count).take_while(|&number| store.put(&key(number % 40), &key(number)).is_ok()).count() as u32
}

fn format(fake: &mut Fake, options: &Options) {
    let mut memory = vec![0; MEMORY_SIZE];
    let mut chip = fake.open_with(options).unwrap();
    Store::format(&mut chip, StoreOptions::DEFAULT, &mut memory).unwrap().unmount().unwrap();
}

/// Whether the store has what was acknowledged: of each key the last value or one after it.
fn holds(fake: &mut Fake, options: &Options, acknowledged: u32) {
    let mut memory = vec![0; MEMORY_SIZE];
    let mut chip = fake.open_with(options).unwrap();
    let mut store = Store::open(&mut chip, StoreOptions::DEFAULT, &mut memory).unwrap();
    for number in acknowledged.saturating_sub(40)..acknowledged {
        let value = store.get(&key(number % 40)).unwrap().unwrap();
        let value = u32::from_be_bytes(value.try_into().unwrap());
        assert!(value == number || value == acknowledged, "{number} of {acknowledged} is {value}");
    }
}

#[test]
fn a_store_keeps_what_was_acknowledged_over_cuts_with_any_kernel() {
    const COUNT: u32 = 300;
    for (has_reads, has_tags) in [(true, true), (true, false), (false, false)] {
        let options = Options { has_tags, ..OPTIONS };
        let fresh = || {
            let mut fake = Fake::new(Sim::new(chip()));
            fake.has_reads = has_reads;
            format(&mut fake, &options);
            fake
        };
        let mut whole = fresh();
        let begin = whole.sim.operation_count();
        assert_eq!(fill(&mut whole, &options, COUNT), COUNT);
        let end = whole.sim.operation_count();
        for cut in (begin..end).step_by(11) {
            let mut fake = fresh();
            fake.sim.cut_somehow_at(cut);
            let acknowledged = fill(&mut fake, &options, COUNT);
            fake.sim.power_on();
            fake.sim.clear_cuts();
            holds(&mut fake, &options, acknowledged);
        }
    }
}

#[test]
fn blocks_that_fail_are_marked_in_the_kernels_table_and_nothing_is_lost() {
    let mut fake = Fake::new(Sim::new(chip()));
    format(&mut fake, &OPTIONS);
    fake.sim.inject(Fault::ProgramFails, Trigger::Nth(40));
    assert_eq!(fill(&mut fake, &OPTIONS, 400), 400);
    holds(&mut fake, &OPTIONS, 400);
    let marked = (0..64).filter(|&block| fake.sim.block_state(nandu_nand::BlockAddr(block)).grown_bad).count();
    assert_eq!(marked, 1);
}

#[test]
fn a_device_that_goes_away_ends_writing_and_has_all_when_it_is_back() {
    let mut fake = Fake::new(Sim::new(chip()));
    format(&mut fake, &OPTIONS);
    let acknowledged = fill(&mut fake, &OPTIONS, 100);
    fake.sim.power_off();
    assert_eq!(fill(&mut fake, &OPTIONS, 100), 0);
    fake.sim.power_on();
    holds(&mut fake, &OPTIONS, acknowledged);
}

#[test]
fn files_are_there_after_a_cut_with_and_without_tags() {
    for has_tags in [true, false] {
        let options = Options { has_tags, ..OPTIONS };
        // Files take larger pages.
        let tiny = chip();
        let ecc = Ecc { codeword_size: 512, ..tiny.geometry.ecc };
        let geometry = Geometry { page_size: 512, program_unit: 512, ecc, ..tiny.geometry };
        let mut fake = Fake::new(Sim::new(Chip { geometry, ..tiny }));
        let mut memory = vec![0; 1 << 20];
        let fs_options = nandu::fs::Options::DEFAULT;
        let content: Vec<u8> = (0..5000_u32).map(|at| (at % 251) as u8).collect();
        {
            let mut chip = fake.open_with(&options).unwrap();
            Fs::format(&mut chip, fs_options, Format::default(), &mut memory).unwrap().unmount().unwrap();
            let mut fs = Fs::mount(&mut chip, fs_options, &mut memory).unwrap();
            let ino = fs.create(Ino::ROOT, b"file", Attributes::FILE).unwrap();
            let mut offset = 0;
            while offset < content.len() {
                offset += fs.write_at(ino, offset as u64, &content[offset..]).unwrap();
            }
            fs.fsync(ino).unwrap();
            fs.abandon();
        }
        let mut chip = fake.open_with(&options).unwrap();
        let mut fs = Fs::mount(&mut chip, fs_options, &mut memory).unwrap();
        let ino = fs.lookup(Ino::ROOT, b"file").unwrap();
        let mut read = vec![0; content.len() + 1];
        let count = fs.read_at(ino, 0, &mut read).unwrap();
        assert!(read[..count] == content, "{has_tags}: {count} bytes");
    }
}
