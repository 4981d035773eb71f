//! Snapshots: what they keep, what they cost, what lives because of them.

use std::ops::{Bound, ControlFlow};

use nandu_index::OrderedIndex;
use nandu_index::suite::{KeyKind, Pair, SnapshotSubject, Space, Subject, snapshot_conformance, verify};
use nandu_tree::{
    ByteCells, Cells, Direction, Examined, FixedCells, Options, SNAPSHOT_COUNT_MAX, Snapshot, Tree, TreeError,
};

use crate::medium::{Bench, Failure, Shared};

const SMALL: Options = Options { cache_size: 300, journal_pages: 256, ..Options::DEFAULT };
const NO_CACHE: Options = Options { cache_size: 0, journal_pages: 256, ..Options::DEFAULT };

type Error = TreeError<Failure>;

/// An index whose medium asks about some pages before every change, so that what lives is always on the move.
struct Busy<C: Cells> {
    bench: Bench<C>,
    turn: usize,
}

impl<C: Cells> Busy<C> {
    fn new(bench: Bench<C>) -> Busy<C> {
        Busy { bench, turn: 0 }
    }

    fn tree(&mut self) -> &mut Tree<'static, Shared, C> {
        self.bench.tree()
    }

    fn stir(&mut self) {
        let live = self.bench.medium.live_pages();
        self.turn += 1;
        let some = live.iter().skip(self.turn * 7 % live.len()).step_by(11).take(3);
        self.bench.medium.0.borrow_mut().to_examine = some.copied().collect();
    }

    fn find(&mut self, number: u32) -> Snapshot {
        let found = self.tree().snapshots().find(|snapshot| snapshot.number() == number);
        found.unwrap_or_else(|| released(number))
    }
}

/// A snapshot that is not there any more.
fn released(number: u32) -> Snapshot {
    let mut bench = Bench::new(Shared::new(256, 44, 20), FixedCells::<4, 4>, SMALL);
    while bench.medium.counts().programs < u64::from(number) {
        bench.tree().put(&[0; 4], &[0; 4]).unwrap();
    }
    bench.tree().snapshot().unwrap()
}

impl<C: Cells> Subject for Busy<C> {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self.stir();
        self.bench.index()
    }

    fn reopen(&mut self) {
        self.bench.reopen();
    }
}

impl<C: Cells> SnapshotSubject for Busy<C> {
    fn take(&mut self) -> Result<u32, Error> {
        self.stir();
        self.tree().snapshot().map(|snapshot| snapshot.number())
    }

    fn release(&mut self, number: u32) -> Result<(), Error> {
        self.stir();
        let snapshot = self.find(number);
        self.tree().release(snapshot)?;
        self.bench.check_lives();
        Ok(())
    }

    fn numbers(&mut self) -> Vec<u32> {
        self.tree().snapshots().map(|snapshot| snapshot.number()).collect()
    }

    fn count_max(&self) -> usize {
        SNAPSHOT_COUNT_MAX
    }

    fn get_at(&mut self, number: u32, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let snapshot = self.find(number);
        Ok(self.tree().at(&snapshot).get(key)?.map(<[u8]>::to_vec))
    }

    fn range_at(
        &mut self,
        number: u32,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>, Error> {
        let snapshot = self.find(number);
        let mut found = Vec::new();
        self.tree().at(&snapshot).range(from, to, direction, |entry| {
            if found.len() == limit {
                return ControlFlow::Break(());
            }
            found.push((entry.key.to_vec(), entry.value.to_vec()));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    fn ends_at(&mut self, number: u32) -> Result<(Option<Pair>, Option<Pair>, u64), Error> {
        let snapshot = self.find(number);
        let mut at = self.tree().at(&snapshot);
        let first =
            at.nearest(Bound::Unbounded, Direction::Forward)?.map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        let last =
            at.nearest(Bound::Unbounded, Direction::Backward)?.map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        Ok((first, last, at.record_count()?))
    }
}

fn fixed(key_count: u32) -> Space {
    Space { keys: KeyKind::Fixed(4), key_count, value_size_min: 4, value_size_max: 4, operations_max: 120 }
}

fn bytes(key_count: u32) -> Space {
    Space { keys: KeyKind::Bytes(12), key_count, value_size_min: 0, value_size_max: 20, operations_max: 120 }
}

#[test]
fn fixed_cells_conform() {
    snapshot_conformance(fixed(900), 200, || {
        Busy::new(Bench::new(Shared::new(256, 44, 8000), FixedCells::<4, 4>, SMALL))
    });
}

#[test]
fn fixed_cells_conform_without_cache_and_with_long_values() {
    let space = Space { keys: KeyKind::Fixed(8), value_size_min: 16, value_size_max: 16, ..fixed(500) };
    snapshot_conformance(space, 200, || {
        Busy::new(Bench::new(Shared::new(512, 44, 8000), FixedCells::<8, 16>, NO_CACHE))
    });
}

#[test]
fn byte_cells_conform() {
    snapshot_conformance(bytes(200), 200, || Busy::new(Bench::new(Shared::new(256, 44, 8000), ByteCells, SMALL)));
}

#[test]
fn byte_cells_conform_without_cache_on_larger_pages() {
    let space = Space { value_size_max: 60, keys: KeyKind::Bytes(24), ..bytes(2000) };
    snapshot_conformance(space, 200, || Busy::new(Bench::new(Shared::new(512, 44, 8000), ByteCells, NO_CACHE)));
}

fn scattered(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

/// A tree of several levels.
fn grown() -> Bench<FixedCells<4, 4>> {
    let mut bench = Bench::new(Shared::new(256, 44, 8000), FixedCells::<4, 4>, SMALL);
    for number in 0..1500 {
        bench.tree().put(&scattered(number), &number.to_be_bytes()).unwrap();
    }
    assert!(bench.tree().height() >= 4, "height {}", bench.tree().height());
    bench
}

#[test]
fn taking_and_releasing_cost_a_program_each_and_copy_nothing() {
    let mut bench = grown();
    let live = bench.medium.live_count();
    let mut taken = Vec::new();
    for count in 1..=SNAPSHOT_COUNT_MAX {
        let before = bench.medium.counts();
        taken.push(bench.tree().snapshot().unwrap());
        let after = bench.medium.counts();
        assert_eq!((after.programs - before.programs, after.reads - before.reads), (1, 0), "snapshot {count}");
        assert_eq!(bench.medium.live_count(), live + 1, "the table, however many snapshots are in it");
    }
    assert_eq!(bench.tree().snapshot(), Err(TreeError::TooManySnapshots));
    for snapshot in taken {
        let programs = bench.medium.counts().programs;
        bench.tree().release(snapshot).unwrap();
        assert_eq!(bench.medium.counts().programs, programs + 1);
        assert_eq!(bench.tree().release(snapshot), Err(TreeError::NoSnapshot(snapshot.number())));
    }
    bench.tree().put(&scattered(0), &[0; 4]).unwrap();
    assert_eq!(bench.medium.live_count(), live, "no table is kept for no snapshot");
}

#[test]
fn a_snapshot_holds_what_is_replaced_and_a_release_frees_it() {
    let mut bench = grown();
    let live = bench.medium.live_count();
    let before = bench.tree().snapshot().unwrap();
    // One leaf over and over: the snapshot holds one version of it.
    for round in 0..50_u32 {
        bench.tree().put(&scattered(7), &round.to_be_bytes()).unwrap();
    }
    bench.check_lives();
    assert!(bench.medium.live_count() <= live + 3, "{} pages, {live} before", bench.medium.live_count());
    for number in 0..1500 {
        bench.tree().delete(&scattered(number)).unwrap();
    }
    bench.check_lives();
    assert_eq!(bench.tree().record_count(), 0);
    assert_eq!(bench.tree().at(&before).record_count(), Ok(1500));
    assert_eq!(bench.tree().at(&before).get(&scattered(7)).unwrap(), Some(&7_u32.to_be_bytes()[..]));
    bench.tree().release(before).unwrap();
    // The empty tree, and the table that says there is no snapshot.
    assert_eq!(bench.medium.live_count(), 2);
    bench.check_lives();
}

#[test]
fn reading_a_snapshot_costs_what_reading_the_tree_does() {
    for options in [SMALL, NO_CACHE] {
        let mut bench = Bench::new(Shared::new(256, 44, 8000), FixedCells::<4, 4>, options);
        for number in 0..1500 {
            bench.tree().put(&scattered(number), &number.to_be_bytes()).unwrap();
        }
        let before = bench.tree().snapshot().unwrap();
        for number in 0..1500 {
            bench.tree().put(&scattered(number), &[9; 4]).unwrap();
        }
        let lookups = |bench: &mut Bench<FixedCells<4, 4>>, snapshot: Option<Snapshot>| {
            let reads = bench.medium.counts().reads;
            match snapshot {
                None => (0..1500).for_each(|number| {
                    assert_eq!(bench.tree().get(&scattered(number)).unwrap(), Some(&[9; 4][..]));
                }),
                Some(snapshot) => {
                    let mut at = bench.tree.as_mut().unwrap().at(&snapshot);
                    (0..1500_u32).for_each(|number| {
                        assert_eq!(at.get(&scattered(number)).unwrap(), Some(&number.to_be_bytes()[..]));
                    });
                }
            }
            bench.medium.counts().reads - reads
        };
        let own = lookups(&mut bench, None);
        let kept = lookups(&mut bench, Some(before));
        println!("1500 lookups: {own} reads in the tree, {kept} in the snapshot");
        // Its tree is another one, with other nodes in the cache; its root is read once.
        assert!(kept <= own + own / 20 + 1, "{kept} reads in the snapshot, {own} in the tree");
    }
}

/// Pages and commits that moving a page costs, and how many more pages live then.
fn cost_of_moving(bench: &mut Bench<FixedCells<4, 4>>, page: nandu_nand::PageAddr) -> (u64, u64, isize) {
    let (before, live) = (bench.medium.counts(), bench.medium.live_count() as isize);
    assert!(bench.tree().relocate(page).unwrap());
    let after = bench.medium.counts();
    let grown = bench.medium.live_count() as isize - live;
    (after.programs - before.programs, after.commits - before.commits, grown)
}

#[test]
fn moving_a_shared_page_costs_a_program_for_each_tree_and_one_for_the_table() {
    let mut bench = grown();
    bench.tree().put(&scattered(900), &[1; 4]).unwrap();
    // The page with the leaf of that key, wherever it goes.
    let mut page = bench.tree().root();
    bench.tree().put(&scattered(3), &[1; 4]).unwrap();
    assert_eq!(cost_of_moving(&mut bench, page), (1, 1, 0));
    page = bench.tree().root();
    // Snapshots of different trees that all share some leaf.
    for count in 1..=4_u64 {
        bench.tree().snapshot().unwrap();
        bench.tree().put(&scattered(3), &[count as u8; 4]).unwrap();
        let (programs, commits, grown) = cost_of_moving(&mut bench, page);
        page = bench.tree().root();
        println!("{count} snapshots: {programs} programs, {grown} pages more");
        assert_eq!((programs, commits), (1 + count + 1, 1), "{count} snapshots");
        assert!(grown <= count as isize, "inner nodes alone in their pages, until the next move");
        bench.check_lives();
    }
    verify(&mut Busy::new(bench));
}

#[test]
fn a_snapshot_that_is_the_tree_still_moves_with_it() {
    let mut bench = grown();
    let first = bench.tree().snapshot().unwrap();
    let second = bench.tree().snapshot().unwrap();
    for page in bench.medium.live_pages() {
        if bench.medium.live_pages().contains(&page) && !bench.medium.is_table(page) {
            // One page with the path, and the table: all three trees have one root.
            let detached = bench.tree().stats().detached;
            let programs = cost_of_moving(&mut bench, page).0;
            assert_eq!(programs, 2 + bench.tree().stats().detached - detached);
        }
    }
    bench.check_lives();
    for snapshot in [first, second] {
        assert_eq!(bench.tree().at(&snapshot).get(&scattered(8)).unwrap(), Some(&8_u32.to_be_bytes()[..]));
    }
}

/// However often everything is moved, nothing is doubled.
#[test]
fn moving_everything_many_times_makes_nothing_more() {
    let mut bench = grown();
    let mut kept = Vec::new();
    for round in 0..5_u32 {
        kept.push(bench.tree().snapshot().unwrap());
        for number in (round * 40)..(round * 40 + 60) {
            bench.tree().put(&scattered(number), &(round + 10_000).to_be_bytes()).unwrap();
        }
    }
    let mut counts = Vec::new();
    for _ in 0..4 {
        for page in bench.medium.live_pages() {
            bench.medium.0.borrow_mut().to_examine.push(page);
        }
        bench.tree().put(&scattered(1499), &[1; 4]).unwrap();
        bench.check_lives();
        counts.push(bench.medium.live_count());
    }
    println!("live pages after each round of moving everything: {counts:?}");
    // Inner nodes of different trees come to stand in pages of their own, once.
    assert!(counts[1..].iter().all(|&count| count <= counts[0] + counts[0] / 50), "{counts:?}");
    let moved = bench.medium.0.borrow().examined.iter().filter(|(_, outcome)| *outcome == Examined::Moved).count();
    assert!(moved > 4 * counts[0] * 9 / 10);
    for (round, snapshot) in kept.into_iter().enumerate() {
        let expected = if round == 0 { 0_u32 } else { 10_000 };
        assert_eq!(bench.tree().at(&snapshot).get(&scattered(0)).unwrap(), Some(&expected.to_be_bytes()[..]));
        bench.tree().release(snapshot).unwrap();
        bench.check_lives();
    }
}

/// Whatever append fails, everything is as before the call, in the tree and in the snapshots.
#[test]
fn an_append_that_fails_leaves_tree_and_snapshots_as_they_were() {
    let mut failures = 0;
    for fail_after in 0..12 {
        let mut bench = grown();
        let before = bench.tree().snapshot().unwrap();
        bench.tree().put(&scattered(2), &[2; 4]).unwrap();
        let later = bench.tree().snapshot().unwrap();
        bench.tree().put(&scattered(900), &[2; 4]).unwrap();
        let root = bench.tree().root();
        let pages = bench.medium.live_pages();
        let shared = pages.iter().copied().filter(|&page| page != root).take(2);
        for page in shared {
            bench.medium.0.borrow_mut().fail_after = Some(fail_after);
            failures += u32::from(bench.tree().relocate(page).is_err());
            bench.medium.0.borrow_mut().fail_after = None;
            bench.check_lives();
        }
        bench.medium.0.borrow_mut().fail_after = Some(fail_after);
        let numbers: Vec<u32> = bench.tree().snapshots().map(|snapshot| snapshot.number()).collect();
        match bench.tree().release(before) {
            Ok(()) => assert!(fail_after > 0),
            Err(error) => {
                assert_eq!(error, TreeError::Pages(Failure::Append));
                assert_eq!(bench.tree().snapshots().map(|snapshot| snapshot.number()).collect::<Vec<_>>(), numbers);
                failures += 1;
            }
        }
        bench.medium.0.borrow_mut().fail_after = Some(0);
        assert_eq!(bench.tree().snapshot(), Err(TreeError::Pages(Failure::Append)));
        bench.reopen();
        assert_eq!(bench.tree().at(&later).get(&scattered(2)).unwrap(), Some(&[2; 4][..]));
        assert_eq!(bench.tree().at(&later).get(&scattered(900)).unwrap(), Some(&900_u32.to_be_bytes()[..]));
        verify(&mut Busy::new(bench));
    }
    assert!(failures >= 6, "{failures} operations failed");
}

fn violations(bench: &mut Bench<FixedCells<4, 4>>) -> Vec<&'static str> {
    let mut found = Vec::new();
    bench.tree().verify(&mut |violation| found.push(violation.invariant)).unwrap();
    found
}

#[test]
fn t8_a_table_that_is_not_what_it_was() {
    // Behind the header of 44 bytes and the front of 20: number, root, records and height of the only snapshot.
    for (at, byte) in [(64, 1), (68, 1), (72, 1), (80, 7)] {
        let mut bench = grown();
        bench.tree().snapshot().unwrap();
        assert_eq!(violations(&mut bench), [""; 0]);
        let table = *bench.medium.live_pages().iter().find(|&&page| bench.medium.is_table(page)).unwrap();
        let old = bench.medium.bytes(table)[at];
        bench.medium.patch(table, at..at + 1, &[old ^ byte]);
        assert!(violations(&mut bench).contains(&"T8"), "byte {at}");
    }
}

#[test]
fn t8_a_snapshot_without_all_its_entries() {
    let mut bench = grown();
    bench.tree().snapshot().unwrap();
    let table = *bench.medium.live_pages().iter().find(|&&page| bench.medium.is_table(page)).unwrap();
    bench.medium.patch(table, 72..73, &[1]);
    bench.tree().put(&scattered(5000), &[1; 4]).unwrap();
    // Opened again, memory says what flash says; only the tree tells.
    let medium = bench.tree.take().unwrap().close();
    let memory = crate::medium::memory(256, &SMALL);
    bench.tree = Some(Tree::open(medium, FixedCells::<4, 4>, SMALL, memory).unwrap());
    assert_eq!(violations(&mut bench), ["T8"]);
}

#[test]
fn damage_in_a_snapshot_is_found_by_the_invariant_it_breaks() {
    let mut bench = grown();
    let pages = bench.medium.live_pages();
    let before = bench.tree().snapshot().unwrap();
    for number in 0..1500 {
        bench.tree().put(&scattered(number), &[1; 4]).unwrap();
    }
    // Leaves that only the snapshot has.
    for page in pages {
        let body = nandu_tree::TreeBody::parse(&bench.medium.bytes(page), 44).unwrap();
        if body.lowest == 0 {
            let node = body.node(0).unwrap();
            bench.medium.patch(page, node.start + 7..node.start + 15, &[0; 8]);
        }
    }
    let found = violations(&mut bench);
    assert!(found.contains(&"T1"), "{found:?}");
    assert!(bench.tree().at(&before).record_count().is_ok());
}
