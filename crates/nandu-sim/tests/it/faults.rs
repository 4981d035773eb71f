//! One test for each fault of the fault model: the simulator produces it. Those that are the business of storage code
//! (F18 to F24) show the means.

use nandu_nand::{BlockAddr, CellMode, CopyRule, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::{Aging, Chip, Condition, Decay, Fault, OperationKind, Sag, Sim, SimError, Tear, Trigger, Weakness};

const BLOCK: BlockAddr = BlockAddr(1);
/// The first page of [`BLOCK`] on the tiny chips.
const FIRST: PageAddr = PageAddr(8);
const NEXT: PageAddr = PageAddr(9);
const SIZE: usize = 256;
const YEAR_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The tiny chip with an erased block.
fn tiny(seed: u64) -> Sim {
    let mut sim = Sim::with_seed(Chip::TINY, seed);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim
}

/// The tiny MLC chip with a block erased for MLC mode, its pages 0 to 3 programmed. Page 4 is the partner of page 0.
fn tiny_mlc(seed: u64) -> Sim {
    let mut sim = Sim::with_seed(Chip::TINY_MLC, seed);
    sim.erase(BLOCK, CellMode::Mlc).unwrap();
    for index in 0..4 {
        sim.program(PageAddr(8 + index), 0, &data(index as u8)).unwrap();
    }
    sim
}

/// Bytes with both kinds of bits, different for each tag.
fn data(tag: u8) -> [u8; SIZE] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(29) ^ tag)
}

fn read(sim: &mut Sim, page: PageAddr) -> Result<([u8; SIZE], ReadStatus), NandErrorKind> {
    let mut buf = [0; SIZE];
    let status = sim.read(page, 0, &mut buf).map_err(|error| error.kind())?;
    Ok((buf, status))
}

/// Cuts the power during an operation and gives it back.
fn cut(sim: &mut Sim, tear: Tear, operation: impl FnOnce(&mut Sim) -> Result<(), SimError>) {
    sim.cut_at(sim.operation_count(), tear);
    assert_eq!(operation(sim).unwrap_err().kind(), NandErrorKind::Gone);
    assert_eq!(sim.last_cut().unwrap().tear, tear);
    sim.power_on();
}

fn cut_program(sim: &mut Sim, page: PageAddr, tear: Tear) {
    cut(sim, tear, |sim| sim.program(page, 0, &data(7)));
}

fn zero_bits(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| byte.count_zeros()).sum()
}

/// Bits that `torn` has programmed, of those that the data asked for; none where it asked for ones.
fn programmed_bits(torn: &[u8]) -> u32 {
    let asked = data(7);
    assert!(
        torn.iter().zip(asked).all(|(torn, asked)| !torn & asked == 0),
        "a bit was programmed that was not asked for"
    );
    zero_bits(torn)
}

#[test]
fn f01_cut_program_leaves_nothing_a_prefix_some_bits_most_bits_or_all() {
    let asked = zero_bits(&data(7));
    for seed in 0..20 {
        let torn = |tear| {
            let mut sim = tiny(seed);
            cut_program(&mut sim, FIRST, tear);
            read(&mut sim, FIRST)
        };
        assert_eq!(torn(Tear::Before), Ok(([0xFF; SIZE], ReadStatus::Clean)));
        assert_eq!(torn(Tear::Complete), Ok((data(7), ReadStatus::Clean)));

        let (prefix, status) = torn(Tear::Prefix).unwrap();
        let kept = prefix.iter().zip(data(7)).take_while(|&(&torn, asked)| torn == asked).count();
        assert!(prefix[kept..].iter().all(|&byte| byte == 0xFF) && status == ReadStatus::Clean);

        let some = programmed_bits(&torn(Tear::SomeBits).unwrap().0);
        assert!((asked / 3..asked * 2 / 3).contains(&some), "{some} of {asked} bits");
        let most = programmed_bits(&torn(Tear::MostBits).unwrap().0);
        assert!((asked - 8..=asked).contains(&most), "{most} of {asked} bits");

        for noticed in [Tear::PrefixLost, Tear::SomeBitsLost, Tear::MostBitsLost] {
            assert_eq!(torn(noticed), Err(NandErrorKind::Uncorrectable), "{noticed}");
        }
    }
}

#[test]
fn f01_the_place_where_a_prefix_ends_follows_from_the_seed() {
    let length = |seed| {
        let mut sim = tiny(seed);
        cut_program(&mut sim, FIRST, Tear::Prefix);
        sim.peek(FIRST)[..SIZE].iter().rposition(|&byte| byte != 0xFF)
    };
    let lengths: std::collections::BTreeSet<_> = (0..50).map(length).collect();
    assert!(lengths.len() > 25, "{lengths:?}");
    assert_eq!(length(3), length(3));
}

#[test]
fn f01_a_cut_partial_program_may_take_the_earlier_parts_with_it() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let page = PageAddr(64);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim.program(page, 0, &[1; 512]).unwrap();
    let mut fork = sim.clone();
    cut(&mut sim, Tear::EarlierParts, |sim| sim.program(page, 512, &[2; 512]));
    assert_eq!(sim.read(page, 0, &mut [0; 512]).unwrap_err().kind(), NandErrorKind::Uncorrectable);
    cut(&mut fork, Tear::SomeBitsLost, |sim| sim.program(page, 512, &[2; 512]));
    let mut first = [0; 512];
    let _ = fork.read(page, 0, &mut first).unwrap();
    assert_eq!(first, [1; 512]);
    assert_eq!(fork.read(page, 512, &mut first).unwrap_err().kind(), NandErrorKind::Uncorrectable);
}

#[test]
fn f02_unstable_bits_read_well_at_first_and_get_worse_with_every_read() {
    let mut sim = tiny(0);
    cut_program(&mut sim, FIRST, Tear::Unstable);
    let (bytes, status) = read(&mut sim, FIRST).unwrap();
    assert_eq!((bytes, status), (data(7), ReadStatus::Clean));
    let mut corrected = vec![];
    while let Ok((bytes, status)) = read(&mut sim, FIRST) {
        assert_eq!(bytes, data(7), "what is correctable is corrected");
        corrected.push(status.corrected_bits());
    }
    assert!(corrected.is_sorted() && corrected.len() == Decay::DEFAULT.reads as usize - 1, "{corrected:?}");
    assert_eq!(corrected.last(), Some(&4), "all that can be corrected, before it is lost");
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
}

#[test]
fn f02_unstable_bits_get_worse_with_time_alone() {
    let mut sim = tiny(0);
    cut_program(&mut sim, FIRST, Tear::Unstable);
    sim.advance_ns(Decay::DEFAULT.time_ns / 2);
    assert!(read(&mut sim, FIRST).unwrap().1.corrected_bits() > 0);
    sim.advance_ns(Decay::DEFAULT.time_ns / 2);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
}

#[test]
fn f02_first_one_codeword_goes_then_all_that_was_being_programmed() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let page = PageAddr(64);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    cut(&mut sim, Tear::Unstable, |sim| sim.program(page, 0, &[7; 2048]));
    let lost = |sim: &mut Sim| (0..4).filter(|at| sim.read(page, at * 512 + 100, &mut [0]).is_err()).count();
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(lost(&mut sim), 1);
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(lost(&mut sim), 4);
}

#[test]
fn f02_a_page_that_only_looks_erased_loses_what_is_programmed_into_it() {
    let mut sim = tiny(0);
    cut_program(&mut sim, FIRST, Tear::LooksErased);
    assert_eq!(read(&mut sim, FIRST).unwrap().0, [0xFF; SIZE]);
    sim.program(FIRST, 0, &data(1)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
    assert!((0..20).any(|_| read(&mut sim, FIRST).is_err()));
}

#[test]
fn f03_a_half_erased_block_holds_a_mixture() {
    let (mut old, mut other, mut lost, mut erased) = (0, 0, 0, 0);
    for seed in 0..10 {
        let mut sim = tiny(seed);
        for index in 0..8 {
            sim.program(PageAddr(8 + index), 0, &data(index as u8)).unwrap();
        }
        cut(&mut sim, Tear::HalfErased, |sim| sim.erase(BLOCK, CellMode::Slc));
        for index in 0..8 {
            match read(&mut sim, PageAddr(8 + index)) {
                Ok((bytes, _)) if bytes == data(index as u8) => old += 1,
                Ok((bytes, _)) if bytes == [0xFF; SIZE] => erased += 1,
                Ok(_) => other += 1,
                Err(_) => lost += 1,
            }
        }
    }
    assert!([old, other, lost, erased].iter().all(|&count| count > 5), "{old} {other} {lost} {erased}");
}

#[test]
fn f03_harm_done_before_is_gone_where_the_erase_reached() {
    let healed = (0..20).filter(|&seed| {
        let mut sim = tiny(seed);
        sim.program(FIRST, 0, &data(1)).unwrap();
        sim.inject(Fault::Uncorrectable, Trigger::Nth(0));
        assert!(read(&mut sim, FIRST).is_err());
        cut(&mut sim, Tear::HalfErased, |sim| sim.erase(BLOCK, CellMode::Slc));
        read(&mut sim, FIRST) == Ok(([0xFF; SIZE], ReadStatus::Clean))
    });
    assert!((1..15).contains(&healed.count()));
}

#[test]
fn f03_a_block_that_only_looks_erased_loses_what_is_programmed_until_it_is_erased_again() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    cut(&mut sim, Tear::WeaklyErased, |sim| sim.erase(BLOCK, CellMode::Slc));
    assert_eq!(sim.block_state(BLOCK).condition, Condition::WeaklyErased);
    assert_eq!(read(&mut sim, FIRST).unwrap().0, [0xFF; SIZE]);
    sim.program(FIRST, 0, &data(2)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(2));
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));

    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim.program(FIRST, 0, &data(3)).unwrap();
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(read(&mut sim, FIRST), Ok((data(3), ReadStatus::Clean)));
}

#[test]
fn f03_a_block_that_does_not_look_erased_fades() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    cut(&mut sim, Tear::FadingContent, |sim| sim.erase(BLOCK, CellMode::Slc));
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
}

#[test]
fn f04_an_erased_page_shows_a_few_zero_bits_and_can_be_used() {
    let mut sim = tiny(0);
    sim.inject(Fault::ErasedZeros(3), Trigger::Nth(0));
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    for index in 0..8 {
        let (bytes, status) = read(&mut sim, PageAddr(8 + index)).unwrap();
        assert_eq!((zero_bits(&bytes), status), (3, ReadStatus::Clean));
    }
    sim.program(FIRST, 0, &data(1)).unwrap();
    let (bytes, status) = read(&mut sim, FIRST).unwrap();
    assert_eq!((bytes, status.corrected_bits()), (data(1), 3));
}

#[test]
fn f05_cut_msb_program_destroys_its_lsb_partner() {
    let msb = PageAddr(12);
    let torn = |tear| {
        let mut sim = tiny_mlc(0);
        cut_program(&mut sim, msb, tear);
        sim
    };
    let mut sim = torn(Tear::PairLost);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
    assert_eq!(read(&mut sim, msb), Err(NandErrorKind::Uncorrectable));
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(1), "the other pages stay");

    let mut sim = torn(Tear::PairGarbled);
    let (bytes, status) = read(&mut sim, FIRST).unwrap();
    assert!(bytes != data(0) && status == ReadStatus::Clean, "error correction notices nothing");

    let mut sim = torn(Tear::PairUnstable);
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(0));
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
}

#[test]
fn f05_failed_msb_program_destroys_its_lsb_partner() {
    let mut sim = tiny_mlc(0);
    sim.inject(Fault::ProgramFails, Trigger::Page(PageAddr(12)));
    assert_eq!(sim.program(PageAddr(12), 0, &data(4)).unwrap_err().kind(), NandErrorKind::ProgramFailed);
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(1));
}

#[test]
fn f05_slc_mode_has_no_partner_to_lose() {
    let mut sim = Sim::new(Chip::TINY_MLC);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    for index in [0, 1, 2] {
        sim.program(PageAddr(8 + index), 0, &data(index as u8)).unwrap();
    }
    sim.cut_at(sim.operation_count(), Tear::PairLost);
    sim.program(PageAddr(11), 0, &data(3)).unwrap_err();
    assert_eq!(sim.last_cut().unwrap().tear, Tear::SomeBitsLost, "the record says what was applied");
    sim.power_on();
    for index in [0, 1, 2] {
        assert_eq!(read(&mut sim, PageAddr(8 + index)).unwrap().0, data(index as u8));
    }
}

#[test]
fn f05_the_vendors_procedure_may_bring_the_lsb_page_back() {
    let mut sim = tiny_mlc(0);
    cut_program(&mut sim, PageAddr(12), Tear::PairLost);
    let mut buf = [0; SIZE];
    assert!(sim.recover_lsb(FIRST, &mut buf).unwrap().is_some());
    assert_eq!(buf, data(0));
    let mut sim = tiny(0);
    assert_eq!(sim.recover_lsb(FIRST, &mut buf).unwrap(), None, "this chip has none");
}

#[test]
fn f06_flipped_bits_are_corrected_and_counted() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.inject(Fault::BitFlips(3), Trigger::Page(FIRST));
    for _ in 0..3 {
        let (bytes, status) = read(&mut sim, FIRST).unwrap();
        assert_eq!((bytes, status), (data(1), ReadStatus::Corrected { bits: 3, max: 4 }));
    }
}

/// A chip that corrects eight bits in a codeword, aging typically; its block erased this often, a page programmed.
fn aged(erases: u32, age_ns: u64) -> Sim {
    let mut sim = Sim::new(Chip::W25N02KV.with_blocks(4));
    for _ in 0..erases {
        sim.erase(BLOCK, CellMode::Slc).unwrap();
    }
    for index in 0..64 {
        sim.program(PageAddr(64 + index), 0, &[0x5A; 2048]).unwrap();
    }
    sim.set_aging(Aging::typical());
    sim.advance_ns(age_ns);
    sim
}

/// Corrected bits of the worst page of the block, if none is lost.
fn worst(sim: &mut Sim) -> Option<u16> {
    (64..128).try_fold(0, |worst, page| {
        let status = sim.read(PageAddr(page), 0, &mut [0; 2048]).ok()?;
        Some(worst.max(status.corrected_bits()))
    })
}

#[test]
fn f06_corrected_bits_grow_with_wear_age_and_reads() {
    let fresh = worst(&mut aged(1, 0)).unwrap();
    let worn = worst(&mut aged(60_000, 0)).unwrap();
    let old = worst(&mut aged(1, 5 * YEAR_NS)).unwrap();
    let worn_and_old = worst(&mut aged(60_000, YEAR_NS)).unwrap();
    assert!(fresh <= 1 && worn > fresh && old > fresh && worn_and_old > worn, "{fresh} {worn} {old} {worn_and_old}");
    assert_eq!(worst(&mut aged(60_000, 20 * YEAR_NS)), None, "and in the end the page is lost");

    let mut sim = aged(1, 0);
    sim.set_aging(Aging { disturb_reads_slc: 5000, ..Aging::typical() });
    let before = worst(&mut sim).unwrap();
    for _ in 0..1000 {
        let _ = sim.read(PageAddr(64), 0, &mut [0; 1]);
    }
    assert!(worst(&mut sim).unwrap() > before);
}

#[test]
fn f06_without_aging_nothing_ages() {
    let mut sim = aged(60_000, 100 * YEAR_NS);
    sim.set_aging(Aging::NONE);
    assert_eq!(worst(&mut sim), Some(0));
}

#[test]
fn f07_beyond_correction_a_read_fails_until_the_block_is_erased() {
    for fault in [Fault::Uncorrectable, Fault::BitFlips(5)] {
        let mut sim = tiny(0);
        sim.program(FIRST, 0, &data(1)).unwrap();
        sim.program(NEXT, 0, &data(2)).unwrap();
        sim.inject(fault, Trigger::Operation(sim.operation_count()));
        for _ in 0..2 {
            assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
        }
        assert_eq!(read(&mut sim, NEXT).unwrap().0, data(2));
        sim.erase(BLOCK, CellMode::Slc).unwrap();
        sim.program(FIRST, 0, &data(3)).unwrap();
        assert_eq!(read(&mut sim, FIRST).unwrap().0, data(3));
    }
}

#[test]
fn f08_reads_of_one_page_flip_bits_of_the_others() {
    let mut sim = tiny(0);
    sim.set_aging(Aging { disturb_reads_slc: 1000, ..Aging::NONE });
    for index in 0..8 {
        sim.program(PageAddr(8 + index), 0, &data(index as u8)).unwrap();
    }
    for _ in 0..600 {
        assert_eq!(read(&mut sim, FIRST).unwrap().1, ReadStatus::Clean, "the page read is not disturbed");
    }
    assert_eq!(sim.block_state(BLOCK).counters.reads_since_erase, 600);
    assert!(read(&mut sim, NEXT).unwrap().1.corrected_bits() >= 1);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim.program(FIRST, 0, &data(0)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().1, ReadStatus::Clean, "an erase heals it");
}

#[test]
fn f08_a_single_read_disturbs_on_demand() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(0)).unwrap();
    sim.program(NEXT, 0, &data(1)).unwrap();
    sim.inject(Fault::ReadDisturb(2), Trigger::Nth(0));
    assert_eq!(read(&mut sim, FIRST).unwrap().1, ReadStatus::Clean);
    assert_eq!(read(&mut sim, NEXT).unwrap().1.corrected_bits(), 2);
}

#[test]
fn f09_a_partial_program_breaks_an_earlier_codeword() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let page = PageAddr(64);
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim.inject(Fault::PartialDisturb(2), Trigger::Probability(1.0));
    let mut buf = [0; 512];
    sim.program(page, 0, &[1; 512]).unwrap();
    assert_eq!(sim.read(page, 0, &mut buf).unwrap(), ReadStatus::Clean, "the first program has nothing to break");
    sim.program(page, 512, &[2; 512]).unwrap();
    assert_eq!(sim.read(page, 0, &mut buf).unwrap_err().kind(), NandErrorKind::Uncorrectable);
    assert_eq!(sim.read(page, 512, &mut buf).unwrap(), ReadStatus::Clean);
    assert_eq!(buf, [2; 512]);
}

#[test]
fn f10_a_failed_program_loses_that_page_only() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.inject(Fault::ProgramFails, Trigger::Nth(0));
    assert_eq!(sim.program(NEXT, 0, &data(2)).unwrap_err().kind(), NandErrorKind::ProgramFailed);
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
    assert_eq!(read(&mut sim, NEXT), Err(NandErrorKind::Uncorrectable));
    sim.mark_bad(BLOCK).unwrap();
    assert!(sim.is_bad(BLOCK).unwrap());
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1), "a bad block can be read");
}

#[test]
#[should_panic(expected = "hold programmed bytes")]
fn f10_a_page_whose_program_failed_is_used_up() {
    let mut sim = tiny(0);
    sim.inject(Fault::ProgramFails, Trigger::Nth(0));
    sim.program(FIRST, 0, &data(2)).unwrap_err();
    let _ = sim.program(FIRST, 0, &data(2));
}

#[test]
fn f11_a_failed_erase_leaves_an_unusable_block() {
    let mut sim = tiny(0);
    for index in 0..8 {
        sim.program(PageAddr(8 + index), 0, &data(index as u8)).unwrap();
    }
    sim.inject(Fault::EraseFails, Trigger::Nth(0));
    for _ in 0..2 {
        assert_eq!(sim.erase(BLOCK, CellMode::Slc).unwrap_err().kind(), NandErrorKind::EraseFailed);
    }
    let intact = (0..8).filter(|&index| read(&mut sim, PageAddr(8 + index)).is_ok_and(|(b, _)| b == data(index as u8)));
    assert!(intact.count() < 8);
}

#[test]
fn f11_a_block_whose_erase_failed_stays_unusable_when_a_later_erase_is_cut() {
    for tear in [Tear::Before, Tear::Complete, Tear::HalfErased, Tear::WeaklyErased, Tear::FadingContent] {
        let mut sim = tiny(0);
        sim.program(FIRST, 0, &data(1)).unwrap();
        sim.inject(Fault::EraseFails, Trigger::Nth(0));
        sim.erase(BLOCK, CellMode::Slc).unwrap_err();
        cut(&mut sim, tear, |sim| sim.erase(BLOCK, CellMode::Slc));
        assert_eq!(sim.block_state(BLOCK).condition, Condition::EraseFailed, "{tear:?}");
        assert_eq!(sim.erase(BLOCK, CellMode::Slc).unwrap_err().kind(), NandErrorKind::EraseFailed, "{tear:?}");
    }
}

#[test]
#[should_panic(expected = "the last erase of the block failed")]
fn f11_programming_after_a_failed_erase_panics() {
    let mut sim = tiny(0);
    sim.inject(Fault::EraseFails, Trigger::Block(BLOCK));
    sim.erase(BLOCK, CellMode::Slc).unwrap_err();
    let _ = sim.program(FIRST, 0, &data(1));
}

#[test]
fn f12_factory_bad_blocks_lie_anywhere_and_are_marked() {
    let mut hit_first = false;
    for seed in 0..100 {
        let mut sim = Sim::with_seed(Chip::W25N01GV, seed).with_factory_bad(2.0, false);
        let bad: Vec<u32> = (0..1024).filter(|&block| sim.is_bad(BlockAddr(block)).unwrap()).collect();
        assert_eq!(bad.len(), 20, "at most two percent");
        hit_first |= bad[0] == 0;
        let mut mark = [0xFF];
        let _ = sim.read(sim.geometry().first_page(BlockAddr(bad[0])), 2048, &mut mark).unwrap();
        assert_eq!(mark, [0], "the mark stands in the first spare byte of the first page");
    }
    assert!(hit_first, "block 0 is no exception");
}

#[test]
fn f13_a_good_block_looks_bad_and_the_reverse() {
    let mut sim = tiny(0);
    let factory_bad = BlockAddr(3);
    sim.mark_factory_bad(factory_bad);
    assert!(!sim.is_bad(BLOCK).unwrap() && sim.is_bad(factory_bad).unwrap());
    sim.inject(Fault::MarkInverted, Trigger::Block(BLOCK));
    assert!(sim.is_bad(BLOCK).unwrap());
    sim.invert_mark(factory_bad);
    assert!(!sim.is_bad(factory_bad).unwrap());
    // The caller could not know, so it is not blamed; the block is as bad as it was.
    assert_eq!(sim.erase(factory_bad, CellMode::Slc).unwrap_err().kind(), NandErrorKind::EraseFailed);
    let mut sim = tiny(0);
    sim.mark_bad(BLOCK).unwrap();
    sim.invert_mark(BLOCK);
    assert_eq!(sim.program(FIRST, 0, &data(1)).unwrap_err().kind(), NandErrorKind::ProgramFailed);
}

#[test]
fn f14_a_lost_program_is_reported_as_done() {
    let mut sim = tiny(0);
    sim.inject(Fault::NothingHappens, Trigger::Operation(sim.operation_count()));
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.program(NEXT, 0, &data(2)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, [0xFF; SIZE]);
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(2));
}

#[test]
fn f14_a_lost_erase_is_reported_as_done() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.inject(Fault::NothingHappens, Trigger::Nth(0));
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1), "the old content is still there");
    // For the caller the page is erased; what it programs collides with what is there.
    sim.program(FIRST, 0, &data(2)).unwrap();
    assert!(read(&mut sim, FIRST).is_err() || read(&mut sim, FIRST).unwrap().0 != data(2));
}

#[test]
fn f15_a_misdirected_program_or_read_hits_another_page() {
    let mut sim = tiny(0);
    let elsewhere = PageAddr(13);
    sim.inject(Fault::Misdirected(Some(elsewhere)), Trigger::Nth(0));
    sim.program(FIRST, 0, &data(1)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, [0xFF; SIZE]);
    assert_eq!(read(&mut sim, elsewhere).unwrap().0, data(1));
    sim.inject(Fault::Misdirected(Some(elsewhere)), Trigger::Nth(0));
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(1), "right data, wrong place");
    assert_eq!(read(&mut sim, NEXT).unwrap().0, [0xFF; SIZE]);
}

#[test]
fn f15_by_the_seed_one_address_bit_is_wrong() {
    for seed in 0..20 {
        let mut sim = tiny(seed);
        sim.inject(Fault::Misdirected(None), Trigger::Nth(0));
        sim.program(FIRST, 0, &data(1)).unwrap();
        let hit: Vec<u32> = (0..128).filter(|&page| sim.page_state(PageAddr(page)).held).collect();
        assert!(matches!(hit[..], [page] if (page ^ FIRST.0).count_ones() == 1), "{hit:?}");
    }
}

#[test]
fn f16_a_stale_read_returns_the_page_read_before() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.program(NEXT, 0, &data(2)).unwrap();
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
    sim.inject(Fault::Stale, Trigger::Nth(0));
    assert_eq!(read(&mut sim, NEXT), Ok((data(1), ReadStatus::Clean)));
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(2));
    sim.inject(Fault::Stale, Trigger::Nth(1));
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
    assert_eq!(read(&mut sim, NEXT).unwrap().0, data(1), "after a read off the fast path as well");
}

#[test]
fn f17_after_a_bus_error_the_operation_may_have_happened_or_not() {
    for (tear, left) in [(Tear::Before, [0xFF; SIZE]), (Tear::Complete, data(1))] {
        let mut sim = tiny(0);
        sim.inject(Fault::Bus(tear), Trigger::Nth(0));
        assert_eq!(sim.program(FIRST, 0, &data(1)).unwrap_err().kind(), NandErrorKind::Bus);
        assert_eq!(read(&mut sim, FIRST).unwrap().0, left);
        sim.program(NEXT, 0, &data(2)).unwrap();

        sim.inject(Fault::Bus(tear), Trigger::Nth(0));
        assert_eq!(sim.erase(BLOCK, CellMode::Slc).unwrap_err().kind(), NandErrorKind::Bus);
        let expected = if tear == Tear::Complete { [0xFF; SIZE] } else { data(2) };
        assert_eq!(read(&mut sim, NEXT).unwrap().0, expected);

        sim.inject(Fault::Bus(tear), Trigger::Nth(0));
        assert_eq!(read(&mut sim, NEXT), Err(NandErrorKind::Bus));
        assert_eq!(read(&mut sim, NEXT).unwrap().0, expected, "a read can be tried again");
    }
}

#[test]
#[should_panic(expected = "hold programmed bytes")]
fn f17_a_page_whose_program_is_unknown_is_used_up() {
    let mut sim = tiny(0);
    sim.inject(Fault::Bus(Tear::Before), Trigger::Nth(0));
    sim.program(FIRST, 0, &data(1)).unwrap_err();
    let _ = sim.program(FIRST, 0, &data(1));
}

#[test]
fn f17_a_reset_in_the_middle_tears_the_operation() {
    let mut sim = tiny(0);
    sim.inject(Fault::Bus(Tear::SomeBitsLost), Trigger::Nth(0));
    assert_eq!(sim.program(FIRST, 0, &data(1)).unwrap_err().kind(), NandErrorKind::Bus);
    assert!(!sim.is_off());
    assert_eq!(read(&mut sim, FIRST), Err(NandErrorKind::Uncorrectable));
}

#[test]
fn f18_cuts_wait_for_the_recovery_after_the_first_one() {
    let mut sim = tiny(0);
    let start = sim.operation_count();
    for offset in [0, 1, 3] {
        sim.cut_at(start + offset, Tear::WeaklyErased);
    }
    let mut attempts = 0;
    while sim.erase(BLOCK, CellMode::Slc).is_err() || sim.program(FIRST, 0, &data(1)).is_err() {
        attempts += 1;
        sim.power_on();
    }
    assert_eq!(attempts, 3);
    assert_eq!(sim.operation_count(), start + 6);
}

#[test]
fn f19_a_chip_can_be_small_enough_to_be_filled() {
    let mut sim = Sim::new(Chip::TINY.with_blocks(1));
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    for page in 0..8 {
        sim.program(PageAddr(page), 0, &data(page as u8)).unwrap();
    }
    assert_eq!(sim.block_state(BlockAddr(0)).pages_programmed, sim.geometry().page_count());
}

#[test]
fn f20_a_sequence_near_its_end_needs_nothing_but_a_page_that_says_so() {
    // Sequence numbers are the business of storage code: the chip only has to take a page as given.
    let mut sim = tiny(0);
    sim.poke(FIRST, &u64::MAX.to_le_bytes());
    let (bytes, status) = read(&mut sim, FIRST).unwrap();
    assert_eq!((&bytes[..8], status), (&u64::MAX.to_le_bytes()[..], ReadStatus::Clean));
}

#[test]
fn f21_content_of_another_format_version_can_be_put_in_place() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.corrupt(FIRST, 8 * 4 + 3);
    let mut expected = data(1);
    expected[4] ^= 8;
    assert_eq!(read(&mut sim, FIRST), Ok((expected, ReadStatus::Clean)), "error correction does not object");
}

#[test]
fn f22_content_moves_to_a_chip_with_other_bad_blocks() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.erase(BlockAddr(2), CellMode::Slc).unwrap();
    sim.program(PageAddr(16), 0, &data(2)).unwrap();
    let mut target = Sim::with_seed(Chip::TINY, 9);
    target.mark_factory_bad(BLOCK);
    let mut moved = sim.transplant(target);
    assert!(moved.is_bad(BLOCK).unwrap());
    assert_eq!(read(&mut moved, PageAddr(16)).unwrap().0, data(2));
    assert_eq!(read(&mut moved, FIRST).unwrap().0, [0xFF; SIZE], "what lay there is lost");
    moved.program(PageAddr(17), 0, &data(3)).unwrap();
    assert_eq!((moved.seed(), moved.counters().programs), (9, 1));
}

#[test]
fn f23_blocks_die_faster_and_faster_past_their_endurance() {
    let mut sim = Sim::new(Chip::TINY);
    sim.set_aging(Aging { failure: 0.2, ..Aging::NONE });
    let mut lives: Vec<u32> = (0..16)
        .map(|block| (0..).take_while(|_| sim.erase(BlockAddr(block), CellMode::Slc).is_ok()).count() as u32)
        .collect();
    lives.sort_unstable();
    assert!(lives[0] >= Chip::TINY.geometry.endurance, "none dies within its rated life: {lives:?}");
    assert!(lives[15] < 200 && lives[0] < lives[15], "all die in the end, not all at once: {lives:?}");
}

#[test]
fn f23_programs_of_worn_blocks_fail_too() {
    let mut sim = Sim::new(Chip::TINY);
    for round in 0..200 * 16 {
        sim.erase(BlockAddr(round % 16), CellMode::Slc).unwrap();
    }
    sim.set_aging(Aging { failure: 1.0, ..Aging::NONE });
    // Erases of such blocks always fail, programs once in the eight pages of a block.
    let failed = (0..128).filter(|&page| sim.program(PageAddr(page), 0, &data(0)).is_err()).count();
    assert!((6..32).contains(&failed), "{failed}");
    assert!((0..16).all(|block| sim.erase(BlockAddr(block), CellMode::Slc).is_err()));
}

#[test]
fn f24_any_bytes_at_all_can_be_put_anywhere() {
    let mut sim = Sim::new(Chip::TINY);
    let hostile: Vec<u8> = (0..264u32).map(|at| (at * at) as u8).collect();
    sim.poke(PageAddr(127), &hostile);
    assert_eq!(sim.peek(PageAddr(127)), hostile);
    assert_eq!(read(&mut sim, PageAddr(127)).unwrap().0, hostile[..SIZE]);
    assert_eq!(sim.counters().programs, 0);
}

#[test]
fn f25_what_was_acknowledged_last_before_a_cut_is_weak() {
    let mut sim = tiny(0);
    (0..3).for_each(|nth| sim.program(PageAddr(8 + nth), 0, &data(nth as u8)).unwrap());
    let newest = sim.operation_count() - 1;
    sim.cut_at(sim.operation_count(), Tear::Before);
    assert!(sim.program(PageAddr(11), 0, &data(3)).is_err());
    sim.power_on();
    // The newest page is sound, the one before it is not.
    let mut lost = sim.clone();
    assert_eq!(lost.sag(Sag { sound: 1, weak: 1, weakness: Weakness::Lost }), Some(newest - 1));
    assert_eq!(read(&mut lost, PageAddr(9)), Err(NandErrorKind::Uncorrectable));
    assert!(read(&mut lost, PageAddr(8)).is_ok() && read(&mut lost, PageAddr(10)).is_ok());
    // Down to the erase: what stands in the block fades, and so does what is programmed into it from now on.
    let mut faint = sim.clone();
    assert_eq!(faint.sag(Sag { sound: 0, weak: 4, weakness: Weakness::Unstable }), Some(newest - 3));
    faint.program(PageAddr(11), 0, &data(3)).unwrap();
    assert!((8..12).all(|page| read(&mut faint, PageAddr(page)).is_ok()));
    faint.advance_ns(Decay::DEFAULT.time_ns);
    assert!((8..12).all(|page| read(&mut faint, PageAddr(page)).is_err()));
    assert_eq!(sim.sag(Sag { sound: 0, weak: 5, weakness: Weakness::Lost }), None, "it did four things");
}

#[test]
fn f25_what_was_erased_since_is_not_weak() {
    let mut sim = tiny(0);
    sim.program(FIRST, 0, &data(0)).unwrap();
    sim.erase(BLOCK, CellMode::Slc).unwrap();
    sim.sag(Sag { sound: 1, weak: 2, weakness: Weakness::Lost });
    sim.program(FIRST, 0, &data(1)).unwrap();
    sim.advance_ns(Decay::DEFAULT.time_ns);
    assert_eq!(read(&mut sim, FIRST).unwrap().0, data(1));
}

#[test]
fn every_tear_of_every_operation_can_be_applied() {
    for chip in [Chip::TINY, Chip::TINY_MLC, Chip::PAPER_GRR.with_blocks(4)] {
        for kind in OperationKind::ALL {
            for tear in Tear::all_for(kind, &chip.geometry) {
                let geometry = Geometry { copies: CopyRule::Die, ..chip.geometry };
                let mut sim = Sim::new(Chip { geometry, ..chip });
                sim.erase(BLOCK, chip.full_mode()).unwrap();
                let page = |index| chip.geometry.page_at(BLOCK, index);
                let unit = vec![0x5A; chip.geometry.program_unit as usize];
                (0..4).for_each(|index| sim.program(page(index), 0, &unit).unwrap());
                sim.cut_at(sim.operation_count(), tear);
                let result = match kind {
                    OperationKind::Read => sim.read(page(0), 0, &mut [0; 8]).map(|_| ()),
                    // A second part where the chip takes parts, else the partner of page 0.
                    OperationKind::Program if chip.geometry.programs_per_page > 1 => {
                        sim.program(page(3), chip.geometry.program_unit, &unit)
                    }
                    OperationKind::Program => sim.program(page(4), 0, &unit),
                    OperationKind::Erase => sim.erase(BLOCK, chip.full_mode()),
                    OperationKind::CheckBad => sim.is_bad(BLOCK).map(|_| ()),
                    OperationKind::MarkBad => sim.mark_bad(BLOCK),
                    OperationKind::Copy => sim.copy(page(0), page(4)).map(|_| ()),
                };
                assert_eq!(result.unwrap_err().kind(), NandErrorKind::Gone);
                let record = sim.last_cut().unwrap();
                assert_eq!((record.kind, record.tear), (kind, tear), "{}", chip.name);
            }
        }
    }
}

#[test]
fn any_fault_comes_by_number_by_chance_or_by_address() {
    for trigger in
        [Trigger::Operation(1), Trigger::Nth(0), Trigger::Probability(1.0), Trigger::Page(FIRST), Trigger::Block(BLOCK)]
    {
        let mut sim = tiny(0);
        let id = sim.inject(Fault::ProgramFails, trigger);
        assert!(sim.program(FIRST, 0, &data(1)).is_err(), "{trigger:?}");
        let standing = sim.withdraw(id);
        assert_eq!(standing, !matches!(trigger, Trigger::Operation(_) | Trigger::Nth(_)));
        sim.program(NEXT, 0, &data(1)).unwrap();
    }
}
