//! Storage of chips that are no longer needed, for those that come.
//!
//! Every case has a chip of its own. On a chip with the geometry of a real part, getting its memory from the system and
//! giving it back costs several times what the case itself does.

use std::cell::{Cell, RefCell};

use crate::Sim;
use crate::sim::{Pool, Stores};
use crate::state::BlockState;

/// Blocks' storage that no chip uses.
#[derive(Default)]
pub(super) struct Spare {
    stores: RefCell<Stores>,
    /// The most that one chip came to use.
    used_max: Cell<usize>,
}

impl Spare {
    /// A clone of the chip, made of spare storage and with more of it at hand. The chip stays as it is; it lends its
    /// blocks while the rest of it is cloned.
    pub(super) fn clone_of(&self, chip: &mut Sim) -> Sim {
        let mut stores = self.stores.borrow_mut();
        let blocks = std::mem::take(&mut chip.blocks);
        let mut copy = chip.clone();
        copy.blocks = blocks.iter().map(|block| clone_block(block, &mut stores)).collect();
        chip.blocks = blocks;

        let held = copy.blocks.iter().filter(|block| block.store.is_some()).count();
        let more = self.used_max.get().saturating_sub(held);
        let rest = stores.len().saturating_sub(more);
        copy.pool = Pool { stores: stores.split_off(rest), keep: Pool::default().keep.max(more), taken: 0 };
        copy
    }

    /// Takes the storage of a chip that is no longer needed.
    pub(super) fn reclaim(&self, mut chip: Sim) {
        let mut stores = self.stores.borrow_mut();
        let before = stores.len();
        stores.append(&mut chip.pool.stores);
        let held = chip.blocks.iter_mut().filter_map(|block| block.store.take());
        stores.extend(held.filter(|store| !store.data.is_empty() && store.places.is_empty()));
        self.used_max.set(self.used_max.get().max(stores.len() - before));
    }
}

fn clone_block(block: &BlockState, stores: &mut Stores) -> BlockState {
    let store = block.store.as_ref().map(|held| {
        // What an image has of a block, and not this memory, needs none of it.
        let spare = if held.data.is_empty() || !held.places.is_empty() { None } else { stores.pop() };
        match spare {
            Some(mut store) => {
                store.pages.copy_from_slice(&held.pages);
                store.data.copy_from_slice(&held.data);
                store
            }
            None => held.clone(),
        }
    });
    BlockState {
        store,
        history: block.history.clone(),
        damage: block.damage.clone(),
        counters: block.counters,
        next_index: block.next_index,
        mode: block.mode,
        condition: block.condition,
        mark: block.mark,
        dirty: block.dirty,
    }
}

#[cfg(test)]
mod tests {
    use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};

    use super::*;
    use crate::{Chip, Decay, Fault, Tear, Trigger};

    /// A chip on which something of everything happened.
    fn used(seed: u64) -> Sim {
        let mut chip = Sim::with_seed(Chip::TINY, seed).with_factory_bad(10.0, true);
        chip.set_decay(Decay { reads: 3, time_ns: 5 });
        chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
        for page in 0..4 {
            chip.program(PageAddr(page), 0, &[page as u8 + seed as u8; 256]).unwrap();
        }
        chip.inject(Fault::Stale, Trigger::Nth(1));
        chip.cut_at(chip.operation_count(), Tear::Unstable);
        chip.program(PageAddr(4), 0, &[9; 256]).unwrap_err();
        chip.advance_ns(7);
        chip.cut_at(1000, Tear::Before);
        chip
    }

    #[test]
    fn a_clone_of_spare_storage_is_the_chip_and_goes_on_like_it() {
        let spare = Spare::default();
        for seed in 1..4 {
            let mut original = used(seed);
            let mut plain = original.clone();
            let mut copy = spare.clone_of(&mut original);
            for chip in [&mut plain, &mut copy] {
                chip.power_on();
                chip.erase(BlockAddr(1), CellMode::Slc).unwrap();
                chip.program(PageAddr(8), 0, &[1; 256]).unwrap();
                for page in 0..16 {
                    let _ = chip.read(PageAddr(page), 0, &mut [0; 256]);
                }
            }
            assert_eq!(copy.state_hash(), plain.state_hash());
            assert_eq!((copy.clock_ns(), copy.counters()), (plain.clock_ns(), plain.counters()));
            assert_eq!(format!("{:?}", copy.last_cut()), format!("{:?}", plain.last_cut()));
            spare.reclaim(copy);
        }
        assert_eq!(spare.used_max.get(), 2);
        assert_eq!(spare.stores.borrow().len(), 2);
    }
}
