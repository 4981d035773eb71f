//! The ordinary life of a chip, and illegal use of it.

use nandu_nand::{
    BlockAddr, Cause, CellMode, CopyRule, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus,
};
use nandu_sim::{Chip, Counters, Sim, Tear};

const BLOCK: BlockAddr = BlockAddr(1);

/// A chip with block 1 erased in the mode that uses all of it.
fn erased(chip: Chip) -> Sim {
    let mut sim = Sim::new(chip);
    sim.erase(BLOCK, chip.full_mode()).unwrap();
    sim
}

fn page_of(chip: &Chip, index: u32) -> PageAddr {
    chip.geometry.page_at(BLOCK, index)
}

#[test]
fn what_was_programmed_is_read_back_until_the_erase() {
    let mut sim = erased(Chip::W25N01GV);
    let page = page_of(sim.chip(), 5);
    let data: Vec<u8> = (0..2048).map(|at| (at * 7) as u8).collect();
    sim.program(page, 0, &data).unwrap();
    let mut part = [0; 100];
    assert_eq!(sim.read(page, 1000, &mut part).unwrap(), ReadStatus::Clean);
    assert_eq!(part, data[1000..1100]);
    let mut beside = [0; 64];
    let _ = sim.read(page, 2048, &mut beside).unwrap();
    assert_eq!(beside, [0xFF; 64]);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    let _ = sim.read(page, 1000, &mut part).unwrap();
    assert_eq!(part, [0xFF; 100]);
}

#[test]
fn a_cut_silences_the_chip_until_the_power_is_back() {
    let mut sim = erased(Chip::TINY);
    let (first, second) = (page_of(sim.chip(), 0), page_of(sim.chip(), 1));
    sim.program(first, 0, &[1; 256]).unwrap();
    let cut = sim.operation_count();
    sim.cut_at(cut, Tear::Complete);
    let error = sim.program(second, 0, &[2; 256]).unwrap_err();
    assert_eq!(error.kind(), NandErrorKind::Gone);
    assert_eq!(error.to_string(), "program of page 9 (operation 2): chip does not answer");
    let record = sim.last_cut().unwrap();
    assert_eq!((record.operation, record.tear), (cut, Tear::Complete));
    assert!(sim.is_off());
    let mut buf = [0; 256];
    assert_eq!(sim.read(first, 0, &mut buf).unwrap_err().kind(), NandErrorKind::Gone);
    assert_eq!(sim.operation_count(), cut + 1);
    sim.power_on();
    for (page, byte) in [(first, 1), (second, 2)] {
        let _ = sim.read(page, 0, &mut buf).unwrap();
        assert_eq!(buf, [byte; 256]);
    }
}

#[test]
fn times_and_counts_are_exact() {
    let mut sim = erased(Chip::W25N01GV);
    let page = page_of(sim.chip(), 0);
    sim.reset_counters();
    let start = sim.clock_ns();
    sim.program(page, 0, &[0; 2048]).unwrap();
    let _ = sim.read(page, 0, &mut [0; 16]).unwrap();
    // Four data lines at 104 MHz: 846 ns of commands for each operation, 19.23 ns for each byte.
    let busy_ns = (250_000 + 846 + 39_383) + (45_000 + 846 + 307);
    let expected = Counters { reads: 1, programs: 1, bytes_in: 2048, bytes_out: 16, busy_ns, ..Counters::ZERO };
    assert_eq!(*sim.counters(), expected);
    assert_eq!(sim.clock_ns() - start, busy_ns);
}

#[test]
fn an_msb_program_takes_its_own_time() {
    let mut sim = erased(Chip::PAPER_FLEX);
    sim.reset_counters();
    for index in 0..128 {
        let page = page_of(sim.chip(), index);
        sim.program(page, 0, &[index as u8; 4096]).unwrap();
    }
    assert_eq!(sim.counters().busy_ns, 128 * 994_000);
}

/// Does each kind of operation for each of a few causes, with failures and cuts among them.
fn busy_life(sim: &mut Sim) {
    let mode = sim.chip().full_mode();
    for (round, cause) in (0u32..).zip([Cause::Host, Cause::Gc, Cause::Mount, Cause::Other, Cause::Host]) {
        let block = BlockAddr(round + 2);
        sim.attribute(cause);
        sim.erase(block, mode).unwrap();
        let first = sim.chip().geometry.first_page(block);
        let unit = sim.chip().geometry.program_unit as usize;
        sim.program(first, 0, &vec![round as u8; unit]).unwrap();
        let _ = sim.read(first, 0, &mut vec![0; 100 + round as usize]).unwrap();
        let _ = sim.copy(first, PageAddr(first.0 + 1)).unwrap();
        sim.is_bad(block).unwrap();
        if cause == Cause::Gc {
            sim.mark_bad(block).unwrap();
            sim.cut_somehow_at(sim.operation_count());
            sim.erase(BlockAddr(15), mode).unwrap_err();
            sim.power_on();
        }
        sim.advance_ns(1000);
    }
}

#[test]
fn the_ledger_sums_to_the_totals() {
    for chip in [Chip::W25N01GV, Chip::TINY, Chip::MLC_4K] {
        let mut sim = Sim::new(chip);
        busy_life(&mut sim);
        let total = *sim.counters();
        assert_eq!(sim.ledger().total(), total);
        assert_eq!((total.erases, total.mark_checks, total.marks), (6, 5, 1));
        assert_eq!(sim.ledger().of(Cause::Host).erases, 2);
        assert_eq!(sim.ledger().of(Cause::Gc).erases, 2);
        assert_eq!(sim.clock_ns(), total.busy_ns + 5 * 1000);
        let blocks = (0..chip.geometry.block_count).map(|block| sim.block_state(BlockAddr(block)).counters);
        let (programs, reads) = blocks.fold((0, 0), |sum, block| (sum.0 + block.programs, sum.1 + block.reads));
        assert_eq!((programs, reads), (total.programs, total.reads));
    }
}

#[test]
fn the_same_seed_gives_the_same_chip_bit_for_bit() {
    let life = |seed| {
        let mut sim = Sim::with_seed(Chip::W25N01GV, seed).with_factory_bad(2.0, true);
        for block in 0..16 {
            if sim.is_bad(BlockAddr(block)).unwrap() {
                return (sim.state_hash(), sim.clone().state_hash());
            }
        }
        busy_life(&mut sim);
        (sim.state_hash(), sim.clone().state_hash())
    };
    for seed in 0..4 {
        let (hash, cloned) = life(seed);
        assert_eq!(hash, cloned);
        assert_eq!(hash, life(seed).0);
        assert_ne!(hash, life(seed + 1).0);
    }
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut sim = erased(Chip::TINY);
    let page = page_of(sim.chip(), 0);
    let mut fork = sim.clone();
    fork.program(page, 0, &[0; 256]).unwrap();
    assert!(fork.page_state(page).held && !sim.page_state(page).held);
    sim.program(page, 0, &[0; 256]).unwrap();
    assert_eq!(sim.state_hash(), fork.state_hash());
}

#[test]
fn partial_programs_fill_a_page_piece_by_piece() {
    let mut sim = erased(Chip::W25N01GV);
    let page = page_of(sim.chip(), 0);
    for unit in [2, 0, 3, 1] {
        sim.program(page, unit * 512, &[unit as u8; 512]).unwrap();
    }
    let mut buf = [9; 2048];
    let _ = sim.read(page, 0, &mut buf).unwrap();
    assert!(buf.chunks(512).enumerate().all(|(unit, bytes)| bytes == [unit as u8; 512]));
    assert_eq!(sim.counters().partial_programs, 4);
}

/// A chip of 16 blocks, all erased, with two dies of two planes, that copies by this rule.
fn copying(copies: CopyRule) -> Sim {
    let geometry = Geometry { die_count: 2, plane_count: 2, copies, ..Chip::TINY.geometry };
    let mut sim = Sim::new(Chip { geometry, ..Chip::TINY });
    (0..16).for_each(|block| sim.erase(BlockAddr(block), CellMode::Slc).unwrap());
    sim.program(PageAddr(0), 0, &[7; 256]).unwrap();
    sim
}

#[test]
fn a_chip_copies_where_its_rule_lets_it() {
    for (rule, blocks) in
        [(CopyRule::Die, [1, 2, 7].as_slice()), (CopyRule::Plane, &[2, 4, 6]), (CopyRule::Parity, &[2, 4, 6])]
    {
        let mut sim = copying(rule);
        for &block in blocks {
            let to = sim.geometry().first_page(BlockAddr(block));
            assert_eq!(sim.copy(PageAddr(0), to).unwrap(), Some(ReadStatus::Clean));
            assert_eq!(sim.peek(to)[..256], [7; 256]);
        }
    }
    let mut none = copying(CopyRule::Never);
    assert_eq!(none.copy(PageAddr(0), PageAddr(8)).unwrap(), None);
}

#[test]
#[should_panic(
    expected = "illegal use: copy of page 64 (page 0 of block 8): it is copied from page 0 of block 0 in plane 0 of die 0 to \
                block 8 in plane 0 of die 1, and the chip copies inside a die"
)]
fn a_copy_between_dies_panics() {
    let _ = copying(CopyRule::Die).copy(PageAddr(0), PageAddr(64));
}

#[test]
#[should_panic(expected = "block 3 in plane 1 of die 0, and the chip copies inside a plane\ncopy is operation 18")]
fn a_copy_between_planes_panics_and_tells_the_history() {
    let mut sim = copying(CopyRule::Plane);
    sim.program(PageAddr(24), 0, &[1; 256]).unwrap();
    let _ = sim.copy(PageAddr(0), PageAddr(25));
}

#[test]
#[should_panic(expected = "from even to even and from odd to odd blocks")]
fn a_copy_between_blocks_of_different_parity_panics() {
    let mut sim = Sim::new(Chip::GD5F2GQ5);
    (0..2).for_each(|block| sim.erase(BlockAddr(block), CellMode::Slc).unwrap());
    let _ = sim.copy(PageAddr(0), PageAddr(64));
}

#[test]
fn what_no_image_has_is_told() {
    let mut sim = Sim::new(Chip::TINY);
    assert!(!sim.is_unkept());
    let _ = sim.read(PageAddr(0), 0, &mut [0; 8]).unwrap();
    assert!(!sim.is_unkept(), "only a counter changed");
    sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
    assert!(sim.is_unkept() && sim.unkept_size() == 0);
    sim.program(PageAddr(8), 0, &[1; 256]).unwrap();
    assert_eq!(sim.unkept_size(), 8 * 264);
}

#[test]
fn a_mode_the_chip_does_not_have_is_refused_before_anything_happens() {
    let mut sim = Sim::new(Chip::TINY);
    assert_eq!(sim.erase(BLOCK, CellMode::Mlc).unwrap_err().kind(), NandErrorKind::Unsupported);
    assert_eq!(sim.operation_count(), 0);
}

#[test]
#[should_panic(expected = "#0 erase for Slc mode (other)\n  #1 program of page 3 in the block, columns 0+256 (gc)")]
fn illegal_use_tells_the_history_of_the_block() {
    let mut sim = erased(Chip::TINY);
    let page = page_of(sim.chip(), 3);
    sim.attribute(Cause::Gc);
    sim.program(page, 0, &[0; 256]).unwrap();
    let _ = sim.program(page, 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "illegal use: program of page 11 (page 3 of block 1): columns 0+256 hold programmed bytes")]
fn a_second_program_of_a_page_panics() {
    let mut sim = erased(Chip::TINY);
    let page = page_of(sim.chip(), 3);
    sim.program(page, 0, &[0; 256]).unwrap();
    let _ = sim.program(page, 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "it was programmed 4 of 4 times")]
fn a_program_beyond_nop_panics() {
    let mut sim = erased(Chip {
        geometry: nandu_nand::Geometry { program_unit: 256, ..Chip::W25N01GV.geometry },
        ..Chip::W25N01GV
    });
    let page = page_of(sim.chip(), 0);
    for part in 0..5 {
        let _ = sim.program(page, part * 256, &[0; 256]);
    }
}

#[test]
#[should_panic(expected = "page 3 of the block was programmed before it")]
fn a_program_out_of_order_panics() {
    let mut sim = erased(Chip::TINY);
    sim.program(page_of(&Chip::TINY, 3), 0, &[0; 256]).unwrap();
    let _ = sim.program(page_of(&Chip::TINY, 2), 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "page 3 of the block was programmed before it")]
fn a_partial_program_out_of_order_panics() {
    let mut sim = erased(Chip::W25N01GV);
    sim.program(page_of(&Chip::W25N01GV, 3), 0, &[0; 512]).unwrap();
    // The last page takes more parts; the one before it does not.
    sim.program(page_of(&Chip::W25N01GV, 3), 512, &[0; 512]).unwrap();
    let _ = sim.program(page_of(&Chip::W25N01GV, 2), 0, &[0; 512]);
}

#[test]
#[should_panic(expected = "columns 2048+8 are not aligned")]
fn a_program_of_the_spare_area_alone_panics() {
    let _ = erased(Chip::W25N01GV).program(page_of(&Chip::W25N01GV, 0), 2048, &[0; 8]);
}

#[test]
fn a_program_may_go_on_into_the_spare_area() {
    let mut sim = erased(Chip::W25N01GV);
    let page = page_of(sim.chip(), 0);
    sim.program(page, 1536, &[3; 512 + 10]).unwrap();
    let mut tail = [0; 12];
    let _ = sim.read(page, 2047, &mut tail).unwrap();
    assert_eq!(tail, [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0xFF]);
}

#[test]
fn a_chip_that_takes_any_order_gets_any_order() {
    let mut sim = erased(Chip::PAPER_GRR);
    for (index, column) in [(31, 512), (0, 0), (31, 0), (7, 3584)] {
        sim.program(page_of(&Chip::PAPER_GRR, index), column, &[0; 512]).unwrap();
    }
}

#[test]
#[should_panic(expected = "the block was never erased")]
fn a_program_of_a_block_never_erased_panics() {
    let _ = Sim::new(Chip::TINY).program(PageAddr(0), 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "the block is bad")]
fn a_program_of_a_bad_block_panics() {
    let mut sim = erased(Chip::TINY);
    sim.mark_bad(BLOCK).unwrap();
    let _ = sim.program(page_of(&Chip::TINY, 0), 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "illegal use: erase of block 1: the block is bad")]
fn an_erase_of_a_bad_block_panics() {
    let mut sim = Sim::new(Chip::TINY);
    sim.mark_factory_bad(BLOCK);
    let _ = sim.erase(BLOCK, CellMode::Slc);
}

#[test]
#[should_panic(expected = "the page is an MSB page and the block is in SLC mode")]
fn an_msb_page_in_slc_mode_panics() {
    let mut sim = Sim::new(Chip::TINY_MLC);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    let _ = sim.program(page_of(&Chip::TINY_MLC, 4), 0, &[0; 256]);
}

#[test]
#[should_panic(expected = "columns 100+512 are not aligned to program units of 512")]
fn a_misaligned_program_panics() {
    let mut sim = erased(Chip::W25N01GV);
    let _ = sim.program(page_of(&Chip::W25N01GV, 0), 100, &[0; 512]);
}

#[test]
#[should_panic(expected = "page 128 is outside the chip")]
fn a_read_outside_the_chip_panics() {
    let _ = Sim::new(Chip::TINY).read(PageAddr(128), 0, &mut [0; 8]);
}

#[test]
#[should_panic(expected = "columns 260+8 of page 0 are outside its 264 columns")]
fn a_read_outside_the_page_panics() {
    let _ = Sim::new(Chip::TINY).read(PageAddr(0), 260, &mut [0; 8]);
}

#[test]
fn factory_bad_blocks_stay_within_their_share_and_lie_anywhere() {
    let bad = |seed, spare| {
        let sim = Sim::with_seed(Chip::W25N01GV, seed).with_factory_bad(2.0, spare);
        let bad: Vec<u32> = (0..1024).filter(|&block| sim.block_state(BlockAddr(block)).factory_bad).collect();
        assert_eq!(bad.len(), 20);
        bad
    };
    assert_eq!(bad(7, false), bad(7, false));
    assert_ne!(bad(7, false), bad(8, false));
    assert!((0..200).any(|seed| bad(seed, false)[0] == 0));
    assert!((0..200).all(|seed| bad(seed, true)[0] != 0));
}
