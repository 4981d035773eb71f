//! Pages of other volumes.

use nandu::nand::{BlockAddr, PageAddr};
use nandu::{Options, Store};
use nandu_sim::{Chip, Sim};

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
