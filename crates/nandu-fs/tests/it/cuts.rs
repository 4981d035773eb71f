//! Power cuts by the driver.

use nandu_fs::{Allocation, Broken, Fs, Ino, Options, RenameMode, SetAttributes};
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim};
use nandu_suite::counts::{self, SWARM, Tried};
use nandu_suite::cuts::{check, fixed, recover, workload};
use nandu_suite::{Op, Promise, SMALL, violations};

use crate::rig::{Nandu, OPTIONS, formatted_with, memory};

/// How many cases somebody asks for.
pub(crate) fn chains(default: u64) -> u64 {
    std::env::var("NANDU_FS_CHAINS").map_or(default, |count| count.parse().unwrap())
}

/// Files that are too large to be cut or removed with one batch.
fn large_files() -> Vec<Op> {
    let pages = |count: usize| (0..count * 512).map(|at| (at / 100) as u8 | 1).collect::<Vec<u8>>();
    vec![
        Op::Create(vec![b"a"]),
        Op::Write(vec![b"a"], 0, pages(36)),
        Op::Sync,
        Op::Truncate(vec![b"a"], 700),
        Op::Truncate(vec![b"a"], 20_000),
        Op::Create(vec![b"b"]),
        Op::Write(vec![b"b"], 100, pages(36)),
        Op::Rename(vec![b"a"], vec![b"b"], RenameMode::Replace),
        Op::Allocate(vec![b"b"], Allocation::Extend, 0, 22_000),
        Op::Allocate(vec![b"b"], Allocation::PunchHole, 300, 20_000),
        Op::Unlink(vec![b"b"]),
        Op::Sync,
    ]
}

#[test]
fn cuts_while_large_files_are_cut_and_removed() {
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
    let summary = driver.every(fixed(Nandu(OPTIONS), large_files()), check(Nandu(OPTIONS)));
    assert!(summary.cases > 400, "{summary:?}");
}

/// What has more records beside its content than go with one batch: until it is gone, a part of them is not wrong.
#[test]
fn cuts_while_attributes_and_targets_go_in_steps() {
    let bytes = |size: usize| (0..size).map(|at| (at / 100) as u8 | 1).collect::<Vec<u8>>();
    let ops = vec![
        Op::Create(vec![b"a"]),
        Op::SetXattr(vec![b"a"], b"user.x", bytes(700)),
        Op::SetXattr(vec![b"a"], b"user.yy", bytes(800)),
        Op::Sync,
        Op::Symlink(vec![b"b"], bytes(1200)),
        Op::Unlink(vec![b"a"]),
        Op::Unlink(vec![b"b"]),
        Op::Sync,
    ];
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
    let summary = driver.every(fixed(Nandu(OPTIONS), ops), check(Nandu(OPTIONS)));
    assert!(summary.cases > 100, "{summary:?}");
}

/// A list of who may do what says the same as permissions, whatever is cut: they change in one step, and what has lists is made with them. On
/// small pages, on which one does not fit.
#[test]
fn an_attribute_and_its_inode_change_together_at_every_cut() {
    const LIST: &[u8] = b"system.posix_acl_access";
    const DEFAULT: &[u8] = b"system.posix_acl_default";
    let list = |entries: usize, first: u8| (0..4 + 8 * entries).map(|at| at as u8 ^ first).collect::<Vec<u8>>();
    let mode = |mode| SetAttributes { mode: Some(mode), ..SetAttributes::default() };
    let ops = vec![
        Op::Create(vec![b"a"]),
        Op::SetBoth(vec![b"a"], LIST, Some(list(5, 1)), mode(0o640)),
        Op::Sync,
        // Longer than a page of 512 bytes, and short again.
        Op::SetBoth(vec![b"a"], LIST, Some(list(90, 2)), mode(0o660)),
        Op::SetBoth(vec![b"a"], LIST, Some(list(6, 3)), SetAttributes { uid: Some(9), ..mode(0o600) }),
        Op::Sync,
        Op::SetBoth(vec![b"a"], LIST, None, mode(0o700)),
        Op::SetBoth(vec![b"a"], LIST, None, mode(0o777)),
        Op::MkdirWith(vec![b"b"], vec![(DEFAULT, list(80, 4)), (LIST, list(80, 5))]),
        Op::CreateWith(vec![b"b", b"c"], vec![(LIST, list(5, 6))]),
        Op::CreateWith(vec![b"b", b"a"], vec![(LIST, list(100, 7))]),
        Op::Unlink(vec![b"b", b"c"]),
        Op::Sync,
    ];
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
    let summary = driver.every(fixed(Nandu(OPTIONS), ops), check(Nandu(OPTIONS)));
    assert!(summary.cases > 100, "{summary:?}");
}

/// A file whose truncation was cut is opened, other things are changed, and it grows: nothing of what was there comes to light.
#[test]
fn what_a_cut_truncation_left_is_gone_before_an_open_file_grows() {
    let pages = vec![7; 36 * 512];
    let ops =
        vec![Op::Create(vec![b"a"]), Op::Write(vec![b"a"], 0, pages), Op::Sync, Op::Truncate(vec![b"a"], 0), Op::Sync];
    let grows = |chip: &mut Sim, _: &Promise| {
        let mut memory = memory(&chip.chip().geometry, &OPTIONS);
        let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
        let Ok(found) = fs.lookup(Ino::ROOT, b"a") else { return };
        fs.open(found).unwrap();
        // Each change removes a step of what a cut left over.
        for mode in [0o700, 0o755] {
            fs.chmod(Ino::ROOT, mode).unwrap();
        }
        if fs.stat(found).unwrap().size == 0 {
            fs.truncate(found, 700).unwrap();
            let mut content = [1; 700];
            fs.read_at(found, 0, &mut content).unwrap();
            assert_eq!(content, [0; 700]);
        }
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    };
    let summary = Driver::new(formatted_with(SMALL, OPTIONS)).every(fixed(Nandu(OPTIONS), ops), grows);
    assert!(summary.cases > 100, "{summary:?}");
}

/// What is removed goes in steps, and a step may end between a page and the fragments over it.
#[test]
fn what_is_removed_in_steps_is_sound_at_every_cut() {
    let pages = vec![7; 20 * 512];
    let mut ops = vec![Op::Create(vec![b"a"]), Op::Write(vec![b"a"], 0, pages), Op::Sync];
    // Over every page but the first, so that sixteen records end with a page.
    ops.extend((1..20).flat_map(|page| [Op::Write(vec![b"a"], page * 512 + 97, vec![8; 24]), Op::Sync]));
    for removal in [Op::Truncate(vec![b"a"], 0), Op::Unlink(vec![b"a"])] {
        let ops: Vec<Op> = ops.iter().cloned().chain([removal, Op::Sync, Op::Sync, Op::Sync, Op::Sync]).collect();
        let verifies = |chip: &mut Sim, _: &Promise| {
            let mut memory = memory(&chip.chip().geometry, &OPTIONS);
            let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
            assert_eq!(violations(&mut fs), Vec::<String>::new());
        };
        let summary = Driver::new(formatted_with(SMALL, OPTIONS)).every(fixed(Nandu(OPTIONS), ops), verifies);
        assert!(summary.cases > 100, "{summary:?}");
    }
}

/// With little memory the parts of a target go in several steps, and the first ones first.
#[test]
fn a_target_that_goes_in_steps_is_sound_at_every_cut() {
    let options = Options { pending_size: 300, ..OPTIONS };
    let ops = vec![Op::Symlink(vec![b"a"], vec![7; 1200]), Op::Sync, Op::Unlink(vec![b"a"]), Op::Sync, Op::Sync];
    let verifies = |chip: &mut Sim, _: &Promise| {
        let mut memory = memory(&chip.chip().geometry, &options);
        let mut fs = Fs::mount(chip, options, &mut memory).unwrap();
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    };
    let summary = Driver::new(formatted_with(SMALL, options)).every(fixed(Nandu(options), ops), verifies);
    assert!(summary.cases > 20, "{summary:?}");
}

/// Whether the driver finds something wrong with these operations.
fn is_caught(ops: &[Op], options: Options) -> bool {
    let driver = Driver::new(formatted_with(SMALL, options));
    let run = std::panic::AssertUnwindSafe(|| driver.every(fixed(Nandu(options), ops.to_vec()), check(Nandu(options))));
    std::panic::catch_unwind(run).is_err()
}

/// The rules of the name space are what the promises rest on: without any one of them, the driver finds a case that breaks them.
#[test]
fn each_rule_left_out_is_found_out() {
    let names = [
        Op::Create(vec![b"a"]),
        Op::Write(vec![b"a"], 0, vec![1; 20]),
        Op::Create(vec![b"b"]),
        Op::Sync,
        Op::Rename(vec![b"a"], vec![b"b"], RenameMode::Replace),
        Op::Mkdir(vec![b"c"]),
    ];
    let large = large_files();
    assert!(!is_caught(&names, OPTIONS), "nothing is wrong with them");
    let with = |broken| Options { broken, ..OPTIONS };
    assert!(is_caught(&names, with(Broken { without_sync: true, ..Broken::default() })), "S11");
    assert!(is_caught(&names, with(Broken { name_first: true, ..Broken::default() })), "S12");
    assert!(is_caught(&names, with(Broken { replace_in_parts: true, ..Broken::default() })), "S13");
    assert!(is_caught(&large, with(Broken { without_orphans: true, ..Broken::default() })), "S14");
}

#[test]
fn every_operation_with_every_tear() {
    for seed in [1, 2] {
        let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
        let summary = driver.every(workload(Nandu(OPTIONS), 80, Some(seed)), check(Nandu(OPTIONS)));
        assert!(summary.cases > 400, "{summary:?}");
    }
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).limit(1_200);
    let summary = driver.pairs(workload(Nandu(OPTIONS), 60, Some(3)), recover(Nandu(OPTIONS)), check(Nandu(OPTIONS)));
    assert!(summary.cases > 600, "{summary:?}");
}

#[test]
fn random_chains_of_cuts() {
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).seed(11).resume();
    let summary =
        driver.random(chains(400), workload(Nandu(OPTIONS), 60, None), recover(Nandu(OPTIONS)), check(Nandu(OPTIONS)));
    assert!(summary.cuts >= summary.cases, "{summary:?}");
    println!("{} chains, {} cuts", summary.cases, summary.cuts);
}

#[test]
fn random_chains_of_cuts_on_pages_of_two_kilobytes() {
    let chip = formatted_with(Chip::W25N01GV.with_blocks(24), Options::DEFAULT);
    let driver = Driver::new(chip).seed(12).resume();
    let options = Options::DEFAULT;
    let summary =
        driver.random(chains(60), workload(Nandu(options), 80, None), recover(Nandu(options)), check(Nandu(options)));
    assert!(summary.cuts >= summary.cases, "{summary:?}");
}

#[test]
fn a_cut_on_a_chip_whose_pages_are_paired() {
    let chip =
        Chip { geometry: Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, ..SMALL.geometry }, ..SMALL };
    let driver = Driver::new(formatted_with(chip, OPTIONS)).resume();
    let summary = driver.every(workload(Nandu(OPTIONS), 50, Some(5)), check(Nandu(OPTIONS)));
    assert!(summary.cases > 200, "{summary:?}");
}

/// A twentieth of the cases that somebody asks for, in workloads of their own length.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    let from_environment = |name, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let (cases, seed): (u64, u64) =
        (from_environment("NANDU_SWARM_CASES", 1_000_000), from_environment("NANDU_SWARM_SEED", 1));
    let started = std::time::Instant::now();
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).seed(seed).resume().progress(move |done, total| {
        // Once for each thousandth, so that a file that this goes to stays small.
        if done % (total / 1_000).max(1) == 0 {
            eprint!("\r{done} of {total} chains, {:.0} s", started.elapsed().as_secs_f64());
        }
    });
    let operations = 20 + seed % 100;
    let summary = driver.random(
        cases / 20,
        workload(Nandu(OPTIONS), operations, None),
        recover(Nandu(OPTIONS)),
        check(Nandu(OPTIONS)),
    );
    eprintln!();
    println!("seed {seed}");
    let counts = [(summary.cases, "chains"), (summary.cuts, "cuts")];
    let what = "files, in chains of one to four cuts";
    Tried { promise: counts::KEPT, what, against: counts::CUTS, command: SWARM, counts: &counts }.tell();
}
