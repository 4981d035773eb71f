//! Partitions: which ranges are sound, and that nothing beyond them is touched.

use nandu_nand::{
    BlockAddr, Cause, CellMode, CopyRule, Geometry, Nand, NandError, NandErrorKind, PageAddr, Partition,
    PartitionError, RangeError, Shared,
};
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};

/// 24 blocks.
const CHIP: Geometry = Chip::TINY.with_blocks(24).geometry;

/// Whatever copies the partition offers are right on the chip, and it offers each that the chip does between its blocks.
#[test]
fn copies_in_a_sound_range_are_those_of_the_chip() {
    let (mut sound, mut refused) = (0, 0);
    for copies in [CopyRule::Never, CopyRule::Die, CopyRule::Plane, CopyRule::Parity] {
        for (die_count, plane_count) in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 2), (4, 1), (8, 1), (8, 2)]
        {
            let chip = Geometry { copies, die_count, plane_count, ..CHIP };
            assert_eq!(chip.validate(), Ok(()));
            for first in 0..24 {
                for count in 1..=24 - first {
                    let Ok(part) = chip.partition(BlockAddr(first), count) else {
                        refused += 1;
                        continue;
                    };
                    sound += 1;
                    assert_eq!(part.validate(), Ok(()));
                    for from in 0..count {
                        let whole = BlockAddr(first + from);
                        assert_eq!(part.plane_of(BlockAddr(from)), chip.plane_of(whole), "{chip:?} {first} {count}");
                        for to in 0..count {
                            let inside = part.may_copy(BlockAddr(from), BlockAddr(to));
                            let outside = chip.may_copy(whole, BlockAddr(first + to));
                            assert_eq!(inside, outside, "{from} to {to} of {first} + {count}, {chip:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(sound > 3_000 && refused > 3_000, "{sound} {refused}");
}

#[test]
fn a_range_that_is_not_sound_is_refused() {
    let outside = RangeError::Outside { block_count: 24 };
    for (first, count) in [(0, 0), (0, 25), (24, 1), (23, 2), (u32::MAX, 1), (1, u32::MAX)] {
        assert_eq!(CHIP.partition(BlockAddr(first), count), Err(outside), "{first} + {count}");
    }
    let planes = Geometry { plane_count: 2, ..CHIP };
    assert_eq!(planes.partition(BlockAddr(3), 4), Err(RangeError::Start { multiple: 2 }));
    assert!(planes.partition(BlockAddr(4), 3).is_ok());
    let parity = Geometry { copies: CopyRule::Parity, ..CHIP };
    assert_eq!(parity.partition(BlockAddr(3), 4), Err(RangeError::Start { multiple: 2 }));
    assert!(CHIP.partition(BlockAddr(3), 4).is_ok());
    let dies = Geometry { die_count: 3, ..CHIP };
    assert_eq!(dies.partition(BlockAddr(6), 4), Err(RangeError::Dies { blocks_per_die: 8 }));
    assert_eq!(dies.partition(BlockAddr(8), 12), Err(RangeError::Dies { blocks_per_die: 8 }));
    assert_eq!(dies.partition(BlockAddr(8), 16).unwrap().die_count, 2);
    assert_eq!(dies.partition(BlockAddr(18), 6).unwrap().die_count, 1);
}

#[test]
fn as_many_blocks_may_be_bad_as_in_the_chip() {
    let chip = Geometry { bad_block_max: 6, ..CHIP };
    for (count, most) in [(24, 6), (10, 6), (4, 4)] {
        let part = chip.partition(BlockAddr(0), count).unwrap();
        assert_eq!((part.block_count, part.bad_block_max), (count, most));
    }
    let same = Geometry { block_count: 24, bad_block_max: 6, ..chip };
    assert_eq!(chip.partition(BlockAddr(0), 24), Ok(same));
}

#[test]
fn an_address_outside_is_refused_before_the_chip_is_asked() {
    let mut part = Partition::new(Sim::new(Chip::TINY.with_blocks(24)), BlockAddr(8), 8).unwrap();
    let mut page = [0; 256];
    let outside = PartitionError::OutOfBounds;
    for number in [64, 65, 128, 192, u32::MAX - 64, u32::MAX - 63, u32::MAX] {
        let address = PageAddr(number);
        assert_eq!(part.read(address, 0, &mut page), Err(outside), "{number}");
        assert_eq!(part.program(address, 0, &page), Err(outside));
        assert_eq!(part.program_tagged(address, &page, &[]), Err(outside));
        assert_eq!(part.copy(address, PageAddr(0)), Err(outside));
        assert_eq!(part.copy(PageAddr(0), address), Err(outside));
        assert_eq!(part.recover_lsb(address, &mut page), Err(outside));
    }
    for number in [8, 9, 16, u32::MAX - 8, u32::MAX] {
        let block = BlockAddr(number);
        assert_eq!(part.erase(block, CellMode::Slc), Err(outside), "{number}");
        assert_eq!(part.is_bad(block), Err(outside));
        assert_eq!(part.mark_bad(block), Err(outside));
    }
    assert_eq!(outside.kind(), NandErrorKind::OutOfBounds);
    assert_eq!(part.into_inner().operation_count(), 0);
}

#[test]
fn every_operation_goes_to_its_place_on_the_chip() {
    let mut chip = Chip::TINY.with_blocks(24);
    chip.geometry = Geometry { copies: CopyRule::Parity, spare_size: 64, tag_size: 16, ..chip.geometry };
    let shared = Shared::new(Sim::new(chip));
    let mut part = Partition::new(&shared, BlockAddr(8), 8).unwrap();
    for block in [0, 2, 7] {
        part.erase(BlockAddr(block), CellMode::Slc).unwrap();
    }
    part.program(PageAddr(0), 0, &[0x11; 256]).unwrap();
    part.program_tagged(PageAddr(1), &[0x22; 256], &[0x33; 16]).unwrap();
    assert!(part.copy(PageAddr(0), PageAddr(16)).unwrap().is_some());
    part.program(PageAddr(63), 0, &[0x44; 256]).unwrap();
    part.mark_bad(BlockAddr(5)).unwrap();
    assert!(part.is_bad(BlockAddr(5)).unwrap() && !part.is_bad(BlockAddr(6)).unwrap());
    assert_eq!((part.attribute(Cause::Host), part.attribute(Cause::Gc)), (Cause::Other, Cause::Host));

    let mut sim = shared.into_inner();
    let mut page = [0; 256];
    for (number, byte) in [(64, 0x11), (65, 0x22), (80, 0x11), (127, 0x44)] {
        assert_eq!(sim.read(PageAddr(number), 0, &mut page).unwrap().corrected_bits(), 0);
        assert_eq!(page, [byte; 256], "page {number}");
    }
    let mut tag = [0; 16];
    assert_eq!(sim.read(PageAddr(65), chip.geometry.tag_column(), &mut tag).unwrap().corrected_bits(), 0);
    assert_eq!(tag, [0x33; 16]);
    assert!(sim.is_bad(BlockAddr(13)).unwrap());
    for block in (0..8).chain(16..24) {
        assert_eq!(sim.block_state(BlockAddr(block)), Sim::new(chip).block_state(BlockAddr(block)), "block {block}");
    }
}

#[test]
fn the_error_of_the_chip_is_kept() {
    let mut sim = Sim::new(Chip::TINY);
    sim.inject(Fault::Bus(Tear::Before), Trigger::Operation(0));
    let mut part = Partition::new(&mut sim, BlockAddr(4), 4).unwrap();
    let error = part.erase(BlockAddr(1), CellMode::Slc).unwrap_err();
    assert_eq!(error.kind(), NandErrorKind::Bus);
    let PartitionError::Chip(error) = error else { unreachable!("the address is inside") };
    assert_eq!(error.address, nandu_sim::Address::Block(BlockAddr(5)));
}
