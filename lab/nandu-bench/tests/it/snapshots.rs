//! Every figure of every experiment, exactly: a single program or read more in one of a million operations is seen here.
//!
//! After a change that is meant to change costs, look at the figures of `nandu lab run NAME`, and renew the snapshots with
//!
//! ```text
//! INSTA_UPDATE=always cargo test -p nandu-bench
//! ```
//!
//! What the new figures are belongs into the message of the commit. `core/million`, `core/skew` and `core/groupcommit` run on smaller
//! chips here than `nandu lab` runs them on, and `core/mount` mounts less often.

use nandu_bench::{Context, Figure, Scale, Verdict, experiments};

use crate::small;

/// Runs an experiment; `lab` says whether it is run as `nandu lab` runs it. In its small form each is run once, for all tests.
pub(crate) fn figures(name: &str, lab: bool) -> Vec<Figure> {
    let experiment = experiments::find(name).next().unwrap();
    if lab { experiment.run(&mut Context::full(0)).unwrap() } else { small::figures(experiment) }
}

pub(crate) fn lines(figures: &[Figure]) -> String {
    figures
        .iter()
        .map(|figure| format!("{} {} {} {}\n", figure.case, figure.metric, figure.value, figure.unit))
        .collect()
}

/// The limits are for full runs. Those in `known` are missed as yet: exactly those, so that this list is kept short.
fn assert_missed(name: &str, figures: &[Figure], known: &[&str]) {
    let experiment = experiments::find(name).next().unwrap();
    let is_missed = |figure: &&Figure| {
        experiment.limit_of(figure, Scale::Full).is_some_and(|limit| limit.judge(figure.value) == Verdict::Missed)
    };
    let missed: Vec<&str> = figures.iter().filter(is_missed).map(|figure| &*figure.metric).collect();
    assert_eq!(missed, known, "{}", lines(figures));
}

/// Runs an experiment in its small form, which has limits of its own: what is reached keeps to them, and a twentieth more
/// would not. So they cannot be forgotten when costs change, whichever way.
fn watched(name: &str) -> Vec<Figure> {
    let experiment = experiments::find(name).next().unwrap();
    let figures = figures(name, false);
    let mut count = 0;
    for figure in &figures {
        let Some(limit) = experiment.limit_of(figure, Scale::Small) else { continue };
        count += 1;
        assert_eq!(limit.judge(figure.value), Verdict::Within, "{limit}: {}", figure.to_json());
        let worse = if limit.most.is_finite() { figure.value * 1.05 } else { figure.value / 1.05 };
        assert_eq!(limit.judge(worse), Verdict::Missed, "{limit} is too far: {}", figure.to_json());
    }
    assert!(count >= experiment.small_limits.len() && count > 0, "{name}: {count} figures have limits");
    figures
}

/// This one is small enough to be run whole, so that it is held against what is demanded of full runs, too.
#[test]
fn core_peers_500() {
    let figures = watched("core/peers-500");
    assert_missed("core/peers-500", &figures, &[]);
    insta::assert_snapshot!(lines(&figures));
}

#[test]
fn core_million() {
    insta::assert_snapshot!(lines(&watched("core/million")));
}

#[test]
fn core_skew() {
    insta::assert_snapshot!(lines(&watched("core/skew")));
}

#[test]
fn core_groupcommit() {
    insta::assert_snapshot!(lines(&watched("core/groupcommit")));
}

#[test]
fn core_mount() {
    insta::assert_snapshot!(lines(&watched("core/mount")));
}

/// No snapshot: the figures of workloads have limits, each a tenth above what was measured. Missed are reads, since a batch divides only leaves that are full and more changes wait; which of both, and where they come from, was not looked at.
#[test]
fn core_workloads() {
    let experiment = experiments::named("core/workloads").unwrap();
    let figures = figures("core/workloads", false);
    let limits: Vec<_> =
        figures.iter().filter_map(|figure| Some((figure, experiment.limit_of(figure, Scale::Small)?))).collect();
    assert_eq!(limits.len(), experiment.small_limits.len());
    let missed = limits.iter().filter(|(figure, limit)| limit.judge(figure.value) == Verdict::Missed);
    let missed: Vec<String> =
        missed.map(|(figure, limit)| format!("{} {} {} {limit}", figure.case, figure.metric, figure.value)).collect();
    let known = [
        "postmark/tags reads_per_op 0.281015 <= 0.276",
        "postmark/250k/delete reads_per_op 0.069767 <= 0.064",
        "mobile reads_per_op 0.975658 <= 0.953",
        "unpack/write reads_per_op 0.335 <= 0.333",
        "small-files reads_per_op 0.04875 <= 0.0427",
    ];
    assert_eq!(missed, known);
}

#[test]
fn beyond_indexes() {
    let figures = figures("beyond/indexes", false);
    assert_missed("beyond/indexes", &figures, &[]);
    insta::assert_snapshot!(lines(&figures));
}

/// On small indexes the papers' numbers do not come out; what is held here is that nothing changes unseen.
#[test]
fn paper_grr() {
    let found: Vec<String> =
        experiments::find("paper/grr").map(|experiment| lines(&figures(experiment.name, false))).collect();
    assert_eq!(found.len(), 6);
    insta::assert_snapshot!(found.join("\n"));
}

/// What the kernel's file systems took stands beside full runs alone; the work of small ones is a twentieth. A synced create takes more than
/// one program, since leaves are split and checkpoints made.
#[test]
fn vs_kernel() {
    let figures = figures("vs/kernel", false);
    assert_missed("vs/kernel", &figures, &["programs_per_op"]);
    insta::assert_snapshot!(lines(&figures));
}

/// Models of others and ours, each on little work.
#[test]
fn paper_dffs() {
    let found: Vec<String> =
        experiments::find("paper/dffs").map(|experiment| lines(&figures(experiment.name, false))).collect();
    assert_eq!(found.len(), 6);
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let run = |seed| {
        let experiment = experiments::find("core/skew").next().unwrap();
        experiment.run(&mut Context::small(seed)).unwrap().iter().map(Figure::to_json).collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
