//! Every sequence of two moves of every system.

use nandu_explore::{Bounds, merge, systems, table};

#[test]
fn no_sequence_of_two_moves_violates_anything() {
    let bounds = Bounds { depth: 2, shard: (0, 1), has_faults: true, sag_max: 0 };
    let reports: Vec<_> = systems().iter().map(|system| system.explore(bounds)).collect();
    assert!(reports.iter().all(|report| report.violations.is_empty()), "{}", table(&reports));
    for report in &reports {
        assert!(report.states > 500 && report.cuts_in_recovery > 100 && report.faults > 20, "{}", table(&reports));
    }
}

#[test]
fn shares_are_the_whole() {
    let of = |shard| systems()[0].explore(Bounds { depth: 2, shard, has_faults: false, sag_max: 0 });
    let whole = of((0, 1));
    let shares = merge((0..3).map(|nth| of((nth, 3))));
    let [shares] = &shares[..] else { panic!("{shares:?}") };
    assert_eq!((shares.shards, shares.cuts > whole.cuts), (3, true), "the first moves are made in each share");
    assert!(shares.states >= whole.states && shares.states < whole.states + whole.states / 4);
}

/// With one weak operation nothing is damaged. With more of them something may be, and then an error or the check says so.
#[test]
fn a_brown_out_takes_calls_back_or_is_told() {
    let of = ["store", "store-sync", "files-wait", "dffs"];
    for system in systems().into_iter().filter(|system| of.contains(&system.name())) {
        let report = system.explore(Bounds { depth: 2, shard: (0, 1), has_faults: false, sag_max: 2 });
        assert!(report.violations.is_empty(), "{}", table(&[report]));
        for row in &report.brown_outs {
            let is_sound = row.reach > 1 || (row.damage, row.fading) == (0, 0);
            assert!(is_sound && row.all > 0 && row.fading * 500 <= row.all, "{}: {row:?}", report.system);
        }
        assert!(report.brown_outs.iter().map(|row| row.older).sum::<u64>() > 0, "{}", report.system);
    }
}

/// Where commits are programmed twice, one weak operation takes nothing back, but what an unstable page showed to a recovery of which that operation is the last one.
#[test]
fn a_brown_out_of_one_operation_takes_nothing_back_where_commits_are_programmed_twice() {
    for system in systems().into_iter().filter(|system| system.name().ends_with("twice")) {
        let report = system.explore(Bounds { depth: 2, shard: (0, 1), has_faults: false, sag_max: 1 });
        assert!(report.violations.is_empty(), "{}", table(&[report]));
        assert_eq!(report.brown_outs.len(), 2, "each weakness is tried");
        for row in &report.brown_outs {
            assert!(row.all > 500 && (row.uncut, row.damage, row.fading) == (0, 0, 0), "{}: {row:?}", report.system);
        }
    }
}
