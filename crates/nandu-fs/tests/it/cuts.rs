//! Power cuts: what is found is what the operations made up to one of them, which is not before the last that was acknowledged as
//! durable. Of a write some bytes may be there and others not.

use nandu_fs::{Allocation, Broken, Fs, Ino, Options, RenameMode, SetAttributes, Time};
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use crate::model::Model;
use crate::operation::{Chance, Op, Slots, apply};
use crate::rig::{Everything, OPTIONS, SMALL, everything, formatted_with, memory, violations};

/// What may be found after a cut.
#[derive(Clone, Default)]
pub(crate) struct Promise {
    /// What there was when something was durable last, and after each operation since, the one under way included.
    states: Vec<Model>,
    /// Operations begun, over all runs on this chip.
    count: u64,
}

/// The operation of a number: most often one that succeeds.
pub(crate) fn choose(model: &Model, seed: u64, count: u64, page_size: usize) -> Op {
    let mut chance = Chance::with_paths(seed.wrapping_mul(1_000_003).wrapping_add(count), model.all_paths());
    loop {
        let op = chance.op(page_size);
        if model.clone().apply(&op).is_ok() || chance.below(6) == 0 {
            return op;
        }
    }
}

/// So many operations by the chip's seed, or by another.
pub(crate) fn workload(count: u64, options: Options, seed: Option<u64>) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    operations(count, options, move |model, chip_seed, number, page_size| {
        choose(model, seed.unwrap_or(chip_seed), number, page_size)
    })
}

/// These operations; those that a cut prevented come when the workload runs again.
pub(crate) fn fixed(ops: Vec<Op>, options: Options) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    operations(ops.len() as u64, options, move |_, _, number, _| ops[number as usize % ops.len()].clone())
}

fn operations(
    count: u64,
    options: Options,
    choose: impl Fn(&Model, u64, u64, usize) -> Op,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let seed = chip.seed();
        let geometry = chip.chip().geometry;
        let mut memory = memory(&geometry, &options);
        let mut fs = Fs::mount(&mut *chip, options, &mut memory)?;
        let mut model = Model::of(&everything(&mut fs)?);
        promise.states = vec![model.clone()];
        let mut slots = Slots::default();
        for _ in 0..count {
            let op = choose(&model, seed, promise.count, geometry.page_size as usize);
            promise.count += 1;
            model.now = 1000 + promise.count as i64;
            fs.set_now(Time::from_seconds(model.now));
            let before = model.everything();
            let expected = model.apply(&op);
            // What changes nothing that is seen does not stand between two writes either.
            if model.everything() != before {
                promise.states.push(model.clone());
            }
            match apply(&mut fs, &mut slots, &op) {
                Ok(()) => assert_eq!(expected, Ok(()), "{op:?}"),
                Err(error) if expected == Err(error.errno()) => {}
                // The chip no longer answers; the driver takes anything else for a fault.
                Err(error) => return Err(format!("{op:?}: {error}").into()),
            }
            if op.is_durable() && expected.is_ok() {
                promise.states = vec![model.clone()];
            }
        }
        fs.unmount()?;
        model.remount();
        promise.states = vec![model];
        Ok(())
    }
}

pub(crate) fn recover(options: Options) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut memory = memory(&chip.chip().geometry, &options);
        Fs::mount(chip, options, &mut memory)?;
        Ok(())
    }
}

/// Whether a write between two states, in which nothing else changed, can have left this.
fn is_between(found: &Everything, states: &[Model], written: usize) -> bool {
    let (Some(first), Some(last)) = (states.first(), states.last()) else { return false };
    let paths = last.paths(written);
    let seen: Vec<Everything> = states.iter().map(Model::everything).collect();
    let expected = last.everything();
    let is_same = |path: &Vec<u8>| paths.contains(path) || found.get(path) == expected.get(path);
    if found.len() != expected.len() || !expected.keys().all(is_same) || first.paths(written) != paths {
        return false;
    }
    paths.iter().all(|path| {
        let Some(there) = found.get(path) else { return false };
        let versions: Vec<_> = seen.iter().map(|state| &state[path]).collect();
        // A size is never without its bytes, so that zeros are there only if somebody wrote them or left a hole.
        let has = |version: &[u8], at: usize, found: u8| version.get(at) == Some(&found);
        let mut rest = there.clone();
        let last = versions[versions.len() - 1];
        (rest.content, rest.size) = (last.content.clone(), last.size);
        (rest.times[1], rest.times[2]) = (last.times[1], last.times[2]);
        let sizes = versions.iter().map(|version| version.content.len());
        rest == *last
            && versions.iter().any(|version| version.times == there.times)
            && there.size == there.content.len() as u64
            && sizes.clone().min() <= Some(there.content.len())
            && Some(there.content.len()) <= sizes.max()
            && there
                .content
                .iter()
                .enumerate()
                .all(|(at, &found)| versions.iter().any(|version| has(&version.content, at, found)))
    })
}

pub(crate) fn is_allowed(found: &Everything, states: &[Model]) -> bool {
    if states.iter().any(|state| state.everything() == *found) {
        return true;
    }
    states.windows(2).any(|pair| pair[1].written.is_some_and(|written| is_between(found, pair, written)))
}

/// Mounts, checks what is found against the promise and returns it.
pub(crate) fn check(options: Options) -> impl Fn(&mut Sim, &Promise) -> Everything {
    move |chip, promise| {
        let mut memory = memory(&chip.chip().geometry, &options);
        let mut fs = Fs::mount(chip, options, &mut memory).unwrap();
        let found = everything(&mut fs).unwrap();
        if !is_allowed(&found, &promise.states) && !promise.states.is_empty() {
            let (first, last) = (promise.states[0].everything(), promise.states[promise.states.len() - 1].everything());
            let differs =
                |(path, seen): &(&Vec<u8>, &_)| first.get(*path) != Some(seen) || last.get(*path) != Some(seen);
            let wrong: Vec<_> = found.iter().filter(differs).collect();
            panic!("found\n{wrong:?}\nthe last durable state\n{first:?}\nthe last state\n{last:?}");
        }
        let wrong = violations(&mut fs);
        assert_eq!(wrong, Vec::<String>::new());
        found
    }
}

/// How many cases somebody asks for.
fn chains(default: u64) -> u64 {
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
    let summary = driver.every(fixed(large_files(), OPTIONS), check(OPTIONS));
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
    let summary = driver.every(fixed(ops, OPTIONS), check(OPTIONS));
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
    let summary = driver.every(fixed(ops, OPTIONS), check(OPTIONS));
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
    let summary = Driver::new(formatted_with(SMALL, OPTIONS)).every(fixed(ops, OPTIONS), grows);
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
        let summary = Driver::new(formatted_with(SMALL, OPTIONS)).every(fixed(ops, OPTIONS), verifies);
        assert!(summary.cases > 100, "{summary:?}");
    }
}

/// Whether the driver finds something wrong with these operations.
fn is_caught(ops: &[Op], options: Options) -> bool {
    let driver = Driver::new(formatted_with(SMALL, options));
    let run = std::panic::AssertUnwindSafe(|| driver.every(fixed(ops.to_vec(), options), check(options)));
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
    assert!(is_caught(&names, with(Broken { without_sync: true, ..Broken::default() })), "R2");
    assert!(is_caught(&names, with(Broken { name_first: true, ..Broken::default() })), "R3");
    assert!(is_caught(&names, with(Broken { replace_in_parts: true, ..Broken::default() })), "R4");
    assert!(is_caught(&large, with(Broken { without_orphans: true, ..Broken::default() })), "R5");
}

#[test]
fn every_operation_with_every_tear() {
    for seed in [1, 2] {
        let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
        let summary = driver.every(workload(80, OPTIONS, Some(seed)), check(OPTIONS));
        assert!(summary.cases > 400, "{summary:?}");
    }
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).limit(1_200);
    let summary = driver.pairs(workload(60, OPTIONS, Some(3)), recover(OPTIONS), check(OPTIONS));
    assert!(summary.cases > 600, "{summary:?}");
}

#[test]
fn random_chains_of_cuts() {
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).seed(11).resume();
    let summary = driver.random(chains(400), workload(60, OPTIONS, None), recover(OPTIONS), check(OPTIONS));
    assert!(summary.cuts >= summary.cases, "{summary:?}");
    println!("{} chains, {} cuts", summary.cases, summary.cuts);
}

#[test]
fn random_chains_of_cuts_on_pages_of_two_kilobytes() {
    let chip = formatted_with(Chip::W25N01GV.with_blocks(24), Options::DEFAULT);
    let driver = Driver::new(chip).seed(12).resume();
    let options = Options::DEFAULT;
    let summary = driver.random(chains(60), workload(80, options, None), recover(options), check(options));
    assert!(summary.cuts >= summary.cases, "{summary:?}");
}

#[test]
fn a_cut_on_a_chip_whose_pages_are_paired() {
    let chip =
        Chip { geometry: Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, ..SMALL.geometry }, ..SMALL };
    let driver = Driver::new(formatted_with(chip, OPTIONS)).resume();
    let summary = driver.every(workload(50, OPTIONS, Some(5)), check(OPTIONS));
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
    let summary = driver.random(cases / 20, workload(operations, OPTIONS, None), recover(OPTIONS), check(OPTIONS));
    eprintln!();
    println!(
        "{} chains of cuts over files, {} cuts, seed {seed}: nothing acknowledged was lost",
        summary.cases, summary.cuts
    );
}
