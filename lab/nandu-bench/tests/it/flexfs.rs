//! FlexFS's experiments, as `nandu lab` runs them: they take seconds, so what is demanded of full runs is held here.

use nandu_bench::{Figure, Scale, Verdict, experiments};

use crate::snapshots::{figures, lines};

/// The figures of an experiment, all within what is demanded of them, and how many something is demanded of.
fn judged(name: &str) -> (Vec<Figure>, usize) {
    let experiment = experiments::named(name).unwrap();
    let figures = figures(name, true);
    let mut count = 0;
    for figure in &figures {
        for judgement in experiment.judge(figure, Scale::Full) {
            assert_eq!(judgement.verdict, Verdict::Within, "{}: {}", figure.to_json(), judgement.demand);
            count += 1;
        }
    }
    (figures, count)
}

/// Without the series that are drawn.
fn whole(figures: &[Figure]) -> String {
    let whole: Vec<Figure> = figures.iter().filter(|figure| !figure.case.contains("/at/")).cloned().collect();
    lines(&whole)
}

#[test]
fn the_papers_chip_takes_the_papers_times_in_either_mode() {
    let (figures, count) = judged("paper/flexfs-table1");
    assert_eq!(count, 6);
    assert_eq!(
        figures.iter().filter(|figure| figure.metric == "pages").map(|figure| figure.value).sum::<f64>(),
        64.0 + 128.0
    );
}

#[test]
fn throughput_falls_and_holds_where_the_paper_says() {
    let demanded = [
        ("paper/flexfs-e1", 6),
        ("paper/flexfs-e2", 2),
        ("paper/flexfs-e3", 3),
        ("paper/flexfs-e4", 4),
        ("paper/flexfs-e5", 1),
        ("paper/flexfs-e10", 4),
    ];
    let mut found = String::new();
    for (name, count) in demanded {
        let (figures, judged) = judged(name);
        assert_eq!(judged, count, "{name}");
        found.push_str(&format!("{name}\n{}\n", whole(&figures)));
    }
    insta::assert_snapshot!(found);
}

#[test]
fn a_promised_lifetime_is_kept() {
    let ((budget, windows), (evenness, evenly)) = (judged("paper/flexfs-e7"), judged("paper/flexfs-e8"));
    assert_eq!((windows, evenly), (11, 4));
    insta::assert_snapshot!(lines(&budget) + "\n" + &lines(&evenness));
}

#[test]
fn a_sync_in_an_mlc_block_costs_what_the_model_says() {
    let (figures, count) = judged("paper/flexfs-e12");
    assert_eq!(count, 7);
    insta::assert_snapshot!(lines(&figures));
}

/// What is demanded of each figure of an experiment, and whether it is missed.
fn verdicts(name: &str, figures: &[Figure]) -> String {
    let experiment = experiments::named(name).unwrap();
    let mut found = String::new();
    for figure in figures {
        for judgement in experiment.judge(figure, Scale::Full) {
            found += &format!("{} {}: {:?} {}\n", figure.case, figure.metric, judgement.verdict, judgement.demand);
        }
    }
    found
}

/// The chip's time for calls on files; which of what is demanded is missed stands in the snapshot, too.
#[test]
fn calls_cost_what_the_snapshot_says() {
    let figures = figures("paper/flexfs-calls", true);
    insta::assert_snapshot!(lines(&figures) + &verdicts("paper/flexfs-calls", &figures));
}

/// On five rounds instead of two hundred, of which the shares are not held against anything.
#[test]
fn requests_wait_for_one_step_at_most() {
    let figures = figures("paper/flexfs-e6", false);
    let most = figures.iter().filter(|figure| figure.metric == "response_us_most").map(|figure| figure.value);
    // A request of its own, and the read, the MSB program and the processor's time of a page that is moved.
    assert!(most.clone().all(|most| most <= 1286.0 + 409.0 + 1557.0 + 97.0), "{figures:?}");
    insta::assert_snapshot!(whole(&figures));
}

#[test]
fn half_an_hour_of_a_phone_is_nearly_as_fast_as_slc_blocks_alone() {
    let (figures, count) = judged("paper/flexfs-e9");
    assert_eq!(count, 6);
    let all: Vec<Figure> = figures.into_iter().filter(|figure| figure.case.ends_with("/all")).collect();
    insta::assert_snapshot!(lines(&all));
}

/// Forty days on a quarter of the chip, with a promise as tight.
#[test]
fn forty_days_of_a_phone_wear_as_promised() {
    let figures = figures("beyond/flexfs-decade", false);
    let at_the_end = |case: &str| {
        let is_it = |figure: &&Figure| figure.case == case && figure.metric == "wear_percent";
        figures.iter().find(is_it).map(|figure| figure.value).unwrap()
    };
    let (managed, unmanaged) = (at_the_end("managed/all"), at_the_end("unmanaged/all"));
    assert!((90.0..=101.0).contains(&managed) && unmanaged > 130.0, "{}", lines(&figures));
    insta::assert_snapshot!(lines(&figures));
}

#[test]
fn the_file_system_does_as_the_volume_of_pages_does() {
    let figures = figures("paper/flexfs-files", true);
    insta::assert_snapshot!(whole(&figures) + "\n" + &verdicts("paper/flexfs-files", &figures));
}
