//! Ranges that are deleted in steps.

use std::collections::BTreeSet;
use std::ops::Bound;

use nandu::{Durability, Options, RangeDeleted, Store};
use nandu_sim::{Chip, Sim, power_cut};

fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.geometry, options)]
}

fn keys(store: &mut Store<'_, Sim>) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    store
        .range(all.0, all.1, nandu::Direction::Forward, |entry| {
            found.insert(entry.key.to_vec());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn ranges_of_all_bounds_and_key_sizes_go_as_from_a_set() {
    for durability in [Durability::Immediate, Durability::OnSync] {
        let chip = Chip::W25N01GV.with_blocks(64);
        let options = Options { durability, pending_size: 2048, ..Options::DEFAULT };
        let mut memory = memory(&chip, &options);
        let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
        let mut model = BTreeSet::new();
        let mut random = 7_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((u64::from(random) * u64::from(below)) >> 32) as u32
        };
        for round in 0..40 {
            for _ in 0..60 {
                let mut key = next(5_000).to_be_bytes().to_vec();
                key.resize(key.len() + [0, 5, 180][next(3) as usize], b'k');
                store.put(&key, b"value").unwrap();
                model.insert(key);
            }
            let (low, high) = (next(5_000).to_be_bytes(), next(5_000).to_be_bytes());
            let (low, high) = (low.min(high), low.max(high));
            let from = [Bound::Unbounded, Bound::Included(&low[..]), Bound::Excluded(&low[..])][round % 3];
            let to = [Bound::Excluded(&high[..]), Bound::Included(&high[..]), Bound::Unbounded][round / 3 % 3];
            let before = model.len();
            model.retain(|key| !std::ops::RangeBounds::contains(&(from, to), &key[..]));
            let mut deleted = 0;
            loop {
                let step = store.delete_range(from, to).unwrap();
                assert!(step.count <= 16 && (step.count > 0 || !step.more));
                deleted += step.count;
                if !step.more {
                    break;
                }
            }
            assert_eq!(deleted, before - model.len());
            assert_eq!(keys(&mut store), model);
            assert_eq!(store.delete_range(from, to).unwrap(), RangeDeleted { count: 0, more: false });
        }
        assert_eq!(store.record_count(), model.len() as u64);
        assert_eq!(store.verify(&mut |violation| println!("{violation}")).unwrap(), 0);
    }
}

#[test]
fn a_step_costs_a_page_for_each_leaf_and_not_for_each_record() {
    let chip = Chip::W25N01GV.with_blocks(128);
    let options = Options::DEFAULT;
    let mut memory = memory(&chip, &options);
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    for second in 0..4_000_u32 {
        store.put(&second.to_be_bytes(), &[1; 100]).unwrap();
    }
    let before = store.stats().programs_total();
    let (mut steps, mut worst) = (0, 0);
    loop {
        let at = store.stats().programs_total();
        let step = store.delete_range(Bound::Unbounded, Bound::Excluded(&2_000_u32.to_be_bytes())).unwrap();
        worst = worst.max(store.stats().programs_total() - at);
        steps += 1;
        if !step.more {
            break;
        }
    }
    let programs = store.stats().programs_total() - before;
    println!("{steps} steps, {programs} programs, at most {worst} in one");
    assert_eq!((steps, store.record_count()), (125, 2_000));
    assert!(programs <= 4 * steps, "{programs} programs");
    assert!(worst <= 16, "{worst} programs in one step");
}

#[test]
fn a_full_chip_with_large_values_is_emptied() {
    let chip = Chip::W25N01GV.with_blocks(32);
    let options = Options::DEFAULT;
    let mut memory = memory(&chip, &options);
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    let mut count = 0_u32;
    loop {
        let size = if count.is_multiple_of(3) { 20_000 } else { 100 };
        match store.put(&count.to_be_bytes(), &vec![count as u8; size]) {
            Ok(_) => count += 1,
            Err(nandu::Error::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    while store.delete_range(Bound::Unbounded, Bound::Unbounded).unwrap().more {}
    assert_eq!(store.record_count(), 0);
    assert_eq!(store.verify(&mut |violation| println!("{violation}")).unwrap(), 0);
}

#[test]
fn a_cut_leaves_whole_steps_and_the_next_call_goes_on() {
    let options = Options { cache_size: 1024, ..Options::DEFAULT };
    let memory = || memory(&Chip::TINY, &options);
    let count = 40_u32;
    let open = |chip: &mut Sim, memory: &mut [u8], then: &mut dyn FnMut(&mut Store<'_, &mut Sim>)| {
        let mut store = Store::open(chip, options, memory).expect("it opens after every cut");
        then(&mut store);
    };
    let summary = power_cut::every(
        Chip::TINY,
        |chip: &mut Sim, left: &mut Option<(u32, u32)>| {
            let mut memory = memory();
            let mut store = Store::format(chip, options, &mut memory)?;
            for key in 0..count {
                store.put(&key.to_be_bytes(), b"value")?;
            }
            // How many are gone for sure, and how many the step under way may take.
            let mut gone = 0;
            loop {
                *left = Some((gone, 16));
                let step = store.delete_range(Bound::Unbounded, Bound::Included(&34_u32.to_be_bytes()))?;
                gone += step.count as u32;
                *left = Some((gone, 0));
                if !step.more {
                    return Ok(());
                }
            }
        },
        |chip, left| {
            let Some((gone, step)) = *left else { return 0 };
            let mut lowest = 0;
            open(chip, &mut memory(), &mut |store| {
                lowest =
                    store.first().unwrap().map_or(count, |entry| u32::from_be_bytes(entry.key.try_into().unwrap()));
                assert!(lowest == gone || lowest == (gone + step).min(35), "{lowest} is the lowest, {gone} are gone");
                assert_eq!(store.record_count(), u64::from(count - lowest));
            });
            lowest
        },
    );
    println!("{} cuts", summary.cases);
}
