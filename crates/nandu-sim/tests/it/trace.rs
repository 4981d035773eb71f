//! Traces: what was recorded can be repeated, and what cannot is said.

use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};
use nandu_sim::trace::{Content, IllegalUse, Recording, Replayer, TraceError};
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};
use proptest::prelude::*;

use crate::activity::{carry_out, chips, steps};

fn replay(trace: &[u8], sim: Option<Sim>) -> Result<nandu_sim::trace::Replay, TraceError> {
    Replayer::new(trace)?.run(sim, &mut |_| {})
}

/// A short trace of each kind of operation.
fn recorded(chip: Chip, content: Content) -> (Vec<u8>, Sim) {
    let mut sim = Sim::with_seed(chip, 5).with_factory_bad(7.0, false);
    let recording = Recording::start(&mut sim, Vec::new(), content).unwrap();
    let geometry = *sim.geometry();
    let good: Vec<BlockAddr> =
        (0..geometry.block_count).map(BlockAddr).filter(|&block| !sim.block_state(block).reads_bad).take(3).collect();
    sim.attribute(Cause::Host);
    for &block in &good {
        assert!(!sim.is_bad(block).unwrap());
        sim.erase(block, CellMode::Slc).unwrap();
    }
    let page = geometry.first_page(good[0]);
    sim.program(page, 0, &vec![0x3C; geometry.page_size as usize]).unwrap();
    sim.advance_ns(1_000_000);
    sim.attribute(Cause::Gc);
    let _ = sim.read(page, 16, &mut [0; 32]).unwrap();
    let _ = sim.copy(page, geometry.first_page(good[1])).unwrap();
    sim.mark_bad(good[2]).unwrap();
    sim.advance_ns(77);
    (recording.finish(&mut sim).unwrap(), sim)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to a chip while it is recorded happens again, faults and cuts included.
    #[test]
    fn a_trace_repeats_what_was_recorded(chip in chips(), seed: u64, before in steps(), during in steps()) {
        let mut sim = Sim::with_seed(chip, seed).with_factory_bad(10.0, false);
        let mut next = vec![0; chip.geometry.block_count as usize];
        for step in before.iter().filter(|step| !step.is_operation()) {
            carry_out(&mut sim, &mut next, step);
        }
        let recording = Recording::start(&mut sim, Vec::new(), Content::Bytes).unwrap();
        for step in during.iter().filter(|step| step.is_operation()) {
            carry_out(&mut sim, &mut next, step);
        }
        let trace = recording.finish(&mut sim).unwrap();
        let replay = replay(&trace, None).unwrap();
        prop_assert!(replay.complete && replay.compared_content);
        prop_assert_eq!(replay.sim.state_hash(), sim.state_hash());
        prop_assert_eq!(replay.operation_count, sim.operation_count());
    }

    /// A trace that someone changed is refused or repeated; it does no harm.
    #[test]
    fn a_changed_trace_does_no_harm(at: prop::sample::Index, byte in prop::sample::select(b"0159 \nrpemby=~!d".to_vec())) {
        let (mut trace, _) = recorded(Chip::TINY_MLC, Content::Bytes);
        // Behind the state, whose bytes the tests of images flip.
        let first = trace.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
        let place = first + at.index(trace.len() - first);
        trace[place] = byte;
        let _ = replay(&trace, None);
    }
}

#[test]
fn a_trace_reads_as_one_operation_a_line() {
    let (trace, sim) = recorded(Chip::W25N01GV.with_blocks(16), Content::Checksum);
    let text = String::from_utf8(trace.clone()).unwrap();
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("state") && !line.starts_with("start")).collect();
    let (last, lines) = lines.split_last().unwrap();
    let bad = lines[2].strip_prefix("bad ").unwrap();
    let is_good = |block: &&u32| !bad.split(' ').any(|number| number == block.to_string());
    let good: Vec<u32> = (0..16u32).filter(|block| is_good(&block)).take(3).collect();
    let checksum = |bytes: &[u8]| crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(bytes);
    let expected = [
        "nandu-trace 1".to_owned(),
        "chip w25n01gv seed 5".to_owned(),
        format!("bad {bad}"),
        "cause host".to_owned(),
        format!("b {}", good[0]),
        format!("e {} slc", good[0]),
        format!("b {}", good[1]),
        format!("e {} slc", good[1]),
        format!("b {}", good[2]),
        format!("e {} slc", good[2]),
        format!("p {} 0 2048 ={:08x}", good[0] * 64, checksum(&[0x3C; 2048])),
        "cause gc".to_owned(),
        "idle 1000000".to_owned(),
        format!("r {} 16 32 ={:08x}", good[0] * 64, checksum(&[0x3C; 32])),
        format!("y {} {}", good[0] * 64, good[1] * 64),
        format!("m {}", good[2]),
        "idle 77".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!(*last, format!("end 10 {} {:016x}", sim.clock_ns(), sim.state_hash()));
}

#[test]
fn a_replay_tells_costs_and_time_of_the_trace_alone() {
    let mut sim = Sim::new(Chip::TINY);
    sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
    let started = sim.clone();
    let recording = Recording::start(&mut sim, Vec::new(), Content::Checksum).unwrap();
    sim.attribute(Cause::Tree);
    sim.program(PageAddr(8), 0, &[1; 256]).unwrap();
    let trace = recording.finish(&mut sim).unwrap();

    let replayer = Replayer::new(trace.as_slice()).unwrap();
    assert!(replayer.needs_chip() && replayer.chip().name == "tiny");
    assert!(matches!(replay(&trace, None), Err(TraceError::NeedsChip)));
    assert!(matches!(replay(&trace, Some(Sim::new(Chip::TINY))), Err(TraceError::OtherChip)));
    let replay = replay(&trace, Some(started)).unwrap();
    assert_eq!((replay.counters().erases, replay.counters().programs, replay.duration_ns), (0, 1, 1000));
    assert_eq!(replay.sim.ledger().of(Cause::Tree).programs, 1);
    assert!(replay.complete && !replay.compared_content);
}

#[test]
fn a_cut_is_repeated_and_power_comes_back_by_itself() {
    let mut sim = Sim::new(Chip::TINY);
    sim.cut_at(2, Tear::SomeBits);
    let recording = Recording::start(&mut sim, Vec::new(), Content::Bytes).unwrap();
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    sim.program(PageAddr(0), 0, &[0; 256]).unwrap();
    sim.program(PageAddr(1), 0, &[0; 256]).unwrap_err();
    sim.read(PageAddr(0), 0, &mut [0; 4]).unwrap_err();
    sim.power_on();
    let _ = sim.read(PageAddr(1), 0, &mut [0; 256]).unwrap();
    let trace = recording.finish(&mut sim).unwrap();
    let text = String::from_utf8(trace.clone()).unwrap();
    assert!(text.lines().any(|line| line.starts_with("p 1 0 256 =") && line.ends_with(" !gone")), "{text}");
    let replay = replay(&trace, None).unwrap();
    assert_eq!(replay.sim.state_hash(), sim.state_hash());
    assert_eq!(replay.sim.last_cut(), sim.last_cut());
}

#[test]
fn what_ends_otherwise_is_named_with_its_line() {
    let (trace, _) = recorded(Chip::TINY, Content::Bytes);
    let text = String::from_utf8(trace).unwrap();
    let changed = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        replay(changed.as_bytes(), None).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let program_line = text.lines().position(|line| line.starts_with("p ")).unwrap() + 1;
    let program = text.lines().nth(program_line - 1).unwrap();
    assert_eq!(
        changed(program, &format!("{program} !program-failed")),
        format!("line {program_line} was `{program} !program-failed` and is now `{program}`")
    );
    let wrong_page = program.replace("p ", "p 9999");
    assert!(changed(program, &wrong_page).starts_with(&format!("line {program_line} cannot be done")));
    assert!(changed("idle 1000000", "idle 1000001").contains("`end "));
    assert!(changed("idle 1000000", "idle 18446744073709551615").contains("the clock ends before that"));
    assert!(changed("data 3c", "data 3d").contains(&format!("line {program_line} was")));
    assert!(changed("seed 5", "seed 6").contains("line 2: it is not the chip"));
    assert!(changed("nandu-trace 1", "nandu-trace 2").contains("format 2"));
    assert_eq!(changed("nandu-trace 1", "\u{1}"), "not a trace");
}

#[test]
fn a_trace_cut_short_is_repeated_as_far_as_it_goes() {
    let (trace, _) = recorded(Chip::TINY, Content::Bytes);
    let header = trace.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(4).unwrap().0 + 1;
    for size in (header..trace.len()).step_by(5) {
        let replay = replay(&trace[..size], None).unwrap();
        assert!(!replay.complete);
    }
    for size in 0..header {
        assert!(replay(&trace[..size], None).is_err());
    }
}

#[test]
fn a_failing_writer_is_reported_at_the_end() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut sim = Sim::new(Chip::TINY);
    let recording = Recording::start(&mut sim, Full(8_000), Content::Checksum).unwrap();
    for _ in 0..2_000 {
        let _ = sim.is_bad(BlockAddr(0)).unwrap();
    }
    let error = recording.finish(&mut sim).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

/// Asking first must agree with what happens: whatever may be done does not panic, and whatever may not does.
#[test]
fn permission_agrees_with_the_chip() {
    for chip in [Chip::TINY, Chip::TINY_MLC, Chip::W25N01GV.with_blocks(4), Chip::PAPER_GRR.with_blocks(4)] {
        let geometry = chip.geometry;
        let mut sim = Sim::new(chip);
        sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
        sim.erase(BlockAddr(2), chip.full_mode()).unwrap();
        sim.mark_bad(BlockAddr(3)).unwrap();
        let unit = geometry.program_unit;
        sim.program(geometry.page_at(BlockAddr(1), 2), 0, &vec![0; unit as usize]).unwrap();
        sim.inject(Fault::EraseFails, Trigger::Nth(0));
        sim.erase(BlockAddr(0), CellMode::Slc).unwrap_err();
        let lengths = [
            0,
            1,
            unit,
            geometry.page_size,
            geometry.page_size + 1,
            geometry.column_count(),
            geometry.column_count() + 1,
        ];
        let last = geometry.pages_per_block - 1;
        let indices = [0, 1, 2, 3, last];
        for page in (0..4 * 5).map(|at| geometry.page_at(BlockAddr(at / 5), indices[at as usize % 5])) {
            for column in [0, 1, unit, geometry.page_size - unit, geometry.page_size, u32::MAX] {
                for length in lengths {
                    let data = vec![0; length as usize];
                    agree(sim.may_program(page, column, data.len()), &sim, |sim| {
                        sim.program(page, column, &data).is_ok()
                    });
                    agree(sim.may_read(page, column, data.len()), &sim, |sim| {
                        sim.read(page, column, &mut data.clone()).is_ok()
                    });
                }
            }
        }
        for block in (0..4).map(BlockAddr) {
            agree(sim.may_erase(block), &sim, |sim| sim.erase(block, CellMode::Slc).is_ok());
        }
        assert_eq!(sim.may_erase(BlockAddr(geometry.block_count)), Err(IllegalUse::Address));
        assert_eq!(sim.may_read(PageAddr(geometry.page_count()), 0, 0), Err(IllegalUse::Address));
    }
}

fn agree(permission: Result<(), IllegalUse>, sim: &Sim, operation: impl FnOnce(&mut Sim) -> bool) {
    let mut twin = sim.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| operation(&mut twin)));
    assert_eq!(permission.is_ok(), outcome.is_ok(), "{permission:?}");
}
