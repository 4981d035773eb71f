//! Pages of other volumes, and chips that are too small for one.

use nandu::nand::{BlockAddr, PageAddr};
use nandu::{Error, Options, Store};
use nandu_sim::{Chip, Fault, Sim, Trigger};

const KEYS: u32 = 40;

/// A store with a record for each key, all of them with this byte.
fn written(chip: Sim, options: Options, byte: u8) -> Sim {
    let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut bytes).unwrap();
    for number in 0..KEYS {
        store.put(&number.to_be_bytes(), &[byte; 20]).unwrap();
    }
    store.unmount().unwrap()
}

/// How often a record of another chip is read, over all pages that are taken from there one at a time.
fn foreign_records(options: Options) -> u32 {
    let chip = Chip::TINY.with_blocks(40);
    let page_size = chip.geometry.page_size as usize;
    let ours = written(Sim::new(chip), options, 1);
    // Of the same kind, and new as well; all that tells it from ours is a bad block where no data is.
    let mut other = Sim::new(chip);
    other.mark_factory_bad(BlockAddr(39));
    let other = written(other, options, 2);
    let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut foreign = 0;
    for page in (0..chip.geometry.page_count()).map(PageAddr) {
        if ours.page_state(page).programs == 0 || other.page_state(page).programs == 0 {
            continue;
        }
        let mut damaged = ours.clone();
        damaged.poke(page, &other.peek(page)[..page_size]);
        let Ok(mut store) = Store::open(damaged, options, &mut bytes) else { continue };
        let is_foreign = |number: &u32| matches!(store.get(&number.to_be_bytes()), Ok(Some([2, ..])));
        foreign += (0..KEYS).filter(is_foreign).count() as u32;
    }
    foreign
}

#[test]
fn a_page_of_another_chip_is_refused_where_its_address_fits() {
    let plain = Options { cache_size: 512, ..Options::DEFAULT };
    assert_eq!(foreign_records(plain), 0);
    // With one id for both they pass.
    let same = Options { volume: Some(1), ..plain };
    assert!(foreign_records(same) > 0);
}

/// Blocks of 16 pages of 512 bytes, of which so many may go bad.
fn small(blocks: u32, bad_block_max: u32) -> Chip {
    let mut chip = Chip::W25N01GV.with_blocks(blocks);
    chip.geometry.page_size = 512;
    chip.geometry.program_unit = 512;
    chip.geometry.ecc.codeword_size = 512;
    chip.geometry.pages_per_block = 16;
    chip.geometry.bad_block_max = bad_block_max;
    chip
}

const PLAIN: Options = Options { cache_size: 512, ..Options::DEFAULT };

/// A chip on which the first block to go bad would leave no room is refused by name, before anything on it was changed.
#[test]
fn a_chip_without_a_block_to_lose_is_refused_and_a_volume_that_is_there_still_opens() {
    let mut bytes = vec![0; Store::<Sim>::memory_required(&small(14, 2).geometry, &PLAIN)];
    let what = "too few blocks beside those that may be bad";
    // Some have lost the block that they may lose in the factory.
    let part = |blocks, bad_block_max| {
        let mut sim = Sim::new(small(blocks, bad_block_max));
        if blocks == 14 {
            sim.mark_factory_bad(BlockAddr(7));
        }
        sim
    };
    for (blocks, bad_block_max) in [(13, 0), (14, 1)] {
        let old = written(part(blocks, bad_block_max), PLAIN, 1);
        let mut chip = old.transplant(part(blocks, bad_block_max + 1));
        let refused = Store::format(&mut chip, PLAIN, &mut bytes).err();
        assert_eq!(refused, Some(Error::Unsuitable { what }), "{blocks} blocks");
        let mut store = Store::open(chip, PLAIN, &mut bytes).unwrap();
        for number in 0..KEYS {
            assert_eq!(store.get(&number.to_be_bytes()).unwrap(), Some(&[1; 20][..]));
            store.put(&number.to_be_bytes(), &[2; 20]).unwrap();
        }
    }
}

/// Whatever format accepts goes on after the first program that fails.
#[test]
fn the_smallest_chips_go_on_with_a_block_less() {
    let mut accepted = 0;
    for blocks in 8..40 {
        let chip = small(blocks, 1);
        let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.geometry, &PLAIN)];
        let Ok(mut store) = Store::format(Sim::new(chip), PLAIN, &mut bytes) else { continue };
        accepted += 1;
        let _ = store.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(5));
        for number in 0..200_u32 {
            store.put(&(number % KEYS).to_be_bytes(), &[1; 20]).unwrap();
        }
        let stats = store.stats();
        assert!(stats.bad_blocks == 1 && stats.capacity_pages > 0, "{blocks} blocks: {stats:?}");
    }
    assert_eq!(accepted, 40 - 14);
}
