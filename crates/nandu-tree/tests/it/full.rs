//! A chip that is full.

use nandu_sim::{Chip, Sim};
use nandu_tree::{ByteCells, Edit, EngineError, FixedCells, LogError};

use crate::bench::{Bench, OPTIONS, chance, contents};
use crate::group::waiting;

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

#[test]
fn a_full_chip_refuses_and_still_deletes() {
    // A quarter and 45 percent of all pages, with room for 13 records in each.
    for (chip, least) in [(Chip::TINY, 32 * 12), (Chip::TINY.with_blocks(24), 86 * 12)] {
        let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 4>, OPTIONS);
        let mut known = 0;
        for round in 0..3 {
            let mut count = 0_u32;
            let refused = loop {
                match bench.engine().put(&key(count), &count.to_be_bytes()) {
                    Ok(_) => count += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(refused, EngineError::Log(LogError::Full)), "{refused}");
            println!("full at {count} records, {:?}", bench.engine().log().stats());
            assert!(count > least, "{count}");
            assert!(round == 0 || count.abs_diff(known) < known / 10, "{count}, and {known} at first");
            known = count;
            assert_eq!(bench.engine().record_count(), u64::from(count));
            for number in 0..count {
                let value = number.to_be_bytes();
                assert_eq!(
                    bench.engine().get(&key(number)).unwrap(),
                    Some(&value[..]),
                    "a put refused changed nothing"
                );
            }
            // What takes no more room is not refused either.
            for number in 0..count {
                bench.engine().put(&key(number), &(number + 1).to_be_bytes()).unwrap();
            }
            bench.check_exact();
            for number in 0..count {
                assert!(bench.engine().delete(&key(number)).unwrap());
            }
            assert_eq!(bench.engine().record_count(), 0);
            bench.check_exact();
        }
    }
}

#[test]
fn where_every_second_record_was_deleted_others_have_room() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(24)), FixedCells::<4, 4>, OPTIONS);
    let mut count = 0_u32;
    while bench.engine().put(&key(count), &count.to_be_bytes()).is_ok() {
        count += 1;
    }
    for number in (0..count).step_by(2) {
        assert!(bench.engine().delete(&key(number)).unwrap());
    }
    let mut more = 0;
    while bench.engine().put(&key(1_000_000 + more), &more.to_be_bytes()).is_ok() {
        more += 1;
    }
    println!("{count} records, half of them deleted, and {more} others");
    assert!(more > count / 3, "{count} {more}");
    bench.check();
}

#[test]
fn byte_strings_of_many_sizes_come_and_go_on_a_full_chip() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(32)), ByteCells, OPTIONS);
    let (mut refused, mut count) = (0, 0_u32);
    let mut model = std::collections::BTreeMap::new();
    for round in 0..6000_u32 {
        let number = chance(round, 1) % 900;
        let key = format!("{number} {}", "x".repeat((number % 7) as usize));
        if chance(round, 2).is_multiple_of(4) {
            assert_eq!(bench.engine().delete(key.as_bytes()).unwrap(), model.remove(&key).is_some(), "deletes succeed");
            continue;
        }
        let value = vec![round as u8; (chance(round, 3) % 30) as usize];
        match bench.engine().put(key.as_bytes(), &value) {
            Ok(existed) => assert_eq!(existed, model.insert(key, value).is_some()),
            Err(EngineError::Log(LogError::Full)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        count += 1;
    }
    println!("{refused} of {count} puts refused, {} records", model.len());
    for (key, value) in &model {
        assert_eq!(bench.engine().get(key.as_bytes()).unwrap(), Some(&value[..]));
    }
    bench.check();
}

/// Keys that ascend leave full leaves behind, and the paths above them grow. Where such a leaf does not fit beside its ancestors any more, moving it takes two
/// programs; in short blocks that must not use up what moving gains.
#[test]
fn a_chip_filled_with_ascending_keys_takes_changes_for_ever() {
    let geometries = [(19, 8, 512, 40), (24, 8, 512, 16), (33, 16, 512, 4), (41, 16, 1024, 16), (21, 32, 2048, 20)];
    // Where the tree gets a level more when the chip is nearly full.
    let higher = [38, 41, 45]
        .into_iter()
        .flat_map(|blocks| [(blocks, 8, 512, 4), (blocks, 8, 512, 16), (blocks - 12, 16, 512, 4)]);
    for (blocks, pages, page_size, value) in geometries.into_iter().chain(higher) {
        let mut chip = Chip::TINY.with_blocks(blocks);
        let geometry = &mut chip.geometry;
        (geometry.page_size, geometry.program_unit, geometry.pages_per_block) = (page_size, page_size, pages);
        let mut bench = Bench::new(Sim::new(chip), ByteCells, OPTIONS);
        let mut count = 0_u32;
        while bench.engine().put(&count.to_be_bytes(), &[1; 40][..value]).is_ok() {
            count += 1;
        }
        let before = bench.engine().log().stats();
        for round in 0..3_000_u32 {
            let key = chance(round, 9) % count;
            let put = bench.engine().put(&key.to_be_bytes(), &[2; 40][..value]);
            assert_eq!(put, Ok(true), "round {round} of {blocks} x {pages} x {page_size}, {before:?}");
        }
        let programs = bench.engine().log().stats().programs_total() - before.programs_total();
        println!("{blocks} x {pages} x {page_size}: {count} records, {programs} programs");
        assert!(programs < 15 * 3_000, "{programs} programs for 3,000 changes");
        bench.check();
    }
}

/// Keys that ascend fill leaves to the brim; then half of them are deleted, and others come.
#[test]
fn where_every_second_record_was_deleted_of_leaves_that_were_full_others_have_room() {
    for options in [waiting(512, 0), waiting(512, 60), waiting(512, 400), waiting(512, 8192)] {
        let mut chip = Chip::W25N01GV.with_blocks(24);
        chip.geometry.pages_per_block = 16;
        let mut bench = Bench::new(Sim::new(chip), ByteCells, options);
        let fill = |bench: &mut Bench<ByteCells>, from: u32| {
            (from..).take_while(|number| bench.engine().put(&number.to_be_bytes(), &[1; 20]).is_ok()).count() as u32
        };
        let count = fill(&mut bench, 0);
        println!("{count} records, {} height {}", bench.told(), bench.engine().height());
        // Such leaves do not fit beside their ancestors. Moved one by one, each takes two programs, and two thirds of the pages are all that can live.
        let log = bench.engine().log().stats();
        assert!(log.live_pages * 5 >= log.capacity_pages * 4, "{log:?}");
        for number in (1..count).step_by(2) {
            assert_eq!(bench.engine().delete(&number.to_be_bytes()), Ok(true), "{number} {}", bench.told());
        }
        bench.engine().merge().unwrap();
        let others = fill(&mut bench, 1 << 20);
        let log = bench.engine().log().stats();
        println!("{others} others, {log:?}");
        // Two leaves that are half full do not fit one page, so that only pages that were free take others.
        assert!(others >= count / 20, "{others} after {} of {count}", count / 2);
        assert!(log.live_pages * 5 >= log.capacity_pages * 4, "pages are full, not refused");
        bench.check();
    }
}

/// Where changes wait, a full chip refuses puts alone: overwriting, deleting and syncing go on, and members of the window, which do not move, leave blocks that are needed.
#[test]
fn a_full_chip_where_changes_wait_refuses_and_still_deletes_and_syncs() {
    for (chip, pending) in
        [(Chip::TINY, 9), (Chip::TINY, 400), (Chip::TINY.with_blocks(24), 60), (Chip::TINY.with_blocks(24), 8192)]
    {
        let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 4>, waiting(512, pending));
        for round in 0..3 {
            let mut count = 0_u32;
            let refused = loop {
                match bench.engine().put(&key(count), &chance(count, 9).to_be_bytes()) {
                    Ok(_) => count += 1,
                    Err(error) => break error,
                }
                if count.is_multiple_of(7) {
                    bench.engine().sync().unwrap();
                }
            };
            assert!(matches!(refused, EngineError::Log(LogError::Full)), "{refused}");
            println!("round {round}: full at {count} records, {:?}", bench.engine().log().stats());
            assert!(count > 150, "{count}");
            for number in 0..4 * count {
                let number = chance(number, round) % count;
                bench.engine().put(&key(number), &chance(number, round).to_be_bytes()).unwrap();
                if number % 8 < 3 {
                    bench.engine().sync().unwrap();
                }
            }
            bench.check();
            let before = contents(bench.engine()).unwrap();
            assert_eq!(before.len(), count as usize);
            bench.engine().sync().unwrap();
            let chip = bench.cut();
            bench.reopen_on(chip);
            assert!(contents(bench.engine()).unwrap() == before, "all that was put before the sync");
            for number in 0..count {
                assert!(bench.engine().delete(&key(number)).unwrap());
                if number % 5 == 0 {
                    bench.engine().sync().unwrap();
                }
            }
            bench.engine().merge().unwrap();
            assert_eq!((bench.engine().record_count(), bench.engine().pending_count()), (0, 0));
            bench.check();
        }
    }
}

/// Each cut takes a block for the copy of the newest commit, and members of the window pin one each. Where no block may be opened for survivors, moves are commits: what they did before the next cut
/// stays done, and what was synced is there.
#[test]
fn a_full_chip_that_is_cut_after_every_few_changes_stays_usable() {
    let mut moved_by_commit = 0;
    for (blocks, pages, pending, changes) in [(22, 64, 8192, 1), (22, 64, 8192, 4), (26, 8, 400, 1), (26, 8, 400, 4)] {
        let mut chip = Chip::W25N01GV.with_blocks(blocks);
        chip.geometry.pages_per_block = pages;
        let mut bench = Bench::new(Sim::new(chip), ByteCells, waiting(512, pending));
        let count = (0..).take_while(|&number| bench.engine().put(&key(number), &[1; 40]).is_ok()).count() as u32;
        bench.engine().sync().unwrap();
        let mut synced = vec![1; count as usize];
        for round in 0..80 {
            let mut now = synced.clone();
            for change in 0..changes {
                let number = chance(round * 50 + change, 3) % count;
                now[number as usize] = round as u8;
                let put = bench.engine().put(&key(number), &[round as u8; 40]);
                assert_eq!(put, Ok(true), "{blocks} x {pages}, round {round}: {}", bench.told());
            }
            // Now and then nothing is synced, and what was moved meanwhile is lost.
            if chance(round, 4).is_multiple_of(4) {
                bench.engine().sync().unwrap();
                synced = now.clone();
            }
            moved_by_commit += bench.engine().stats().moved_by_commit;
            let chip = bench.cut();
            bench.reopen_on(chip);
            // A move as a commit makes durable what was unsynced.
            for change in 0..changes {
                let number = chance(round * 50 + change, 3) % count;
                let found = bench.engine().get(&key(number)).unwrap().map(|value| value[0]);
                let (before, after) = (synced[number as usize], now[number as usize]);
                assert!(found == Some(before) || found == Some(after), "{found:?}, not {before} or {after}");
                synced[number as usize] = found.unwrap_or_default();
            }
        }
        for (number, value) in synced.iter().enumerate() {
            assert_eq!(bench.engine().get(&key(number as u32)).unwrap(), Some(&[*value; 40][..]), "{number}");
        }
        bench.check();
    }
    assert!(moved_by_commit > 0);
}

/// A page holds only so long a path. A tree that is as high as can be refuses what would make it grow, and nothing else: what frees may divide leaves on the way, as a record does that says what is to go.
#[test]
fn a_tree_that_is_as_high_as_can_be_refuses_growth_and_still_deletes() {
    let mut chip = Chip::TINY.with_blocks(160);
    chip.geometry.pages_per_block = 64;
    for (durability, options) in [("at once", OPTIONS), ("waits", waiting(512, 60)), ("waits", waiting(512, 4096))] {
        let mut bench = Bench::new(Sim::new(chip), ByteCells, options);
        let name = |number: u32| (u64::from(chance(number, 7)) << 8 | u64::from(number % 251)).to_be_bytes();
        let mut count = 0_u32;
        let refused = loop {
            match bench.engine().put(&name(count), &[count as u8; 12]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        println!("{durability}: {refused} at {count} records, height {}, {}", bench.engine().height(), bench.told());
        assert_eq!(refused, EngineError::TooHigh, "{durability}");
        bench.check();
        // A record comes in another place than those that go.
        for number in 0..count / 8 {
            let mut goes =
                [[name(2 * number), name(1_000_000 + number)], [name(2 * number + 1), name(1_000_000 + number)]];
            goes.iter_mut().for_each(|keys| keys.sort());
            for (nth, keys) in goes.iter().enumerate() {
                let value = |key: &[u8]| (nth == 0 && *key == name(1_000_000 + number)).then_some(&[9; 12][..]);
                let edits = keys.each_ref().map(|key| Edit { key, value: value(key) });
                let freed = bench.engine().batch_freeing(&edits);
                assert_eq!(freed, Ok(()), "{durability}: {number} of {count}, {}", bench.told());
            }
        }
        bench.engine().sync().unwrap();
        let chip = bench.unmount();
        bench.reopen_on(chip);
        bench.check();
        let left: Vec<_> = contents(bench.engine()).unwrap().into_keys().collect();
        assert_eq!(left.len() as u32, count - count / 8 * 2);
        for key in left {
            assert_eq!(bench.engine().delete(&key), Ok(true));
        }
        bench.engine().merge().unwrap();
        bench.check();
        let again = (0..count).take_while(|&number| bench.engine().put(&name(number), &[1; 12]).is_ok()).count() as u32;
        assert!(again > count * 3 / 4, "{again} after {count}");
    }
}
