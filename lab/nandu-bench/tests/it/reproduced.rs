//! What papers measured, and what goes beyond it: the small forms of these experiments, exactly.

use nandu_bench::{Context, Figure, Scale, Verdict, experiments};

use crate::snapshots::{figures, lines};

/// Every figure that is held against anything, and how many there are.
fn judged(name: &str, figures: &[Figure]) -> usize {
    let experiment = experiments::find(name).next().unwrap();
    let mut count = 0;
    for figure in figures {
        for judgement in experiment.judge(figure, Scale::Full) {
            assert_eq!(judgement.verdict, Verdict::Within, "{}: {}", figure.to_json(), judgement.demand);
            count += 1;
        }
    }
    count
}

#[test]
fn the_papers_chips_have_the_papers_shapes_and_times() {
    assert_eq!(judged("paper/mutree-table1", &figures("paper/mutree-table1", true)), 14);
}

#[test]
fn operations_cost_what_the_paper_states_by_height() {
    let figures = figures("paper/mutree-table3", false);
    assert_eq!(judged("paper/mutree-table3", &figures), 36);
}

#[test]
fn full_trees_have_the_height_and_the_pages_of_the_closed_forms() {
    let figures = figures("paper/mutree-figure7", false);
    assert_eq!(judged("paper/mutree-figure7", &figures), 29);
}

#[test]
fn paper_mutree_table5() {
    insta::assert_snapshot!(lines(&figures("paper/mutree-table5", false)));
}

#[test]
fn paper_mutree_figure8() {
    insta::assert_snapshot!(lines(&figures("paper/mutree-figure8", false)));
}

#[test]
fn paper_mutree_figure9() {
    insta::assert_snapshot!(lines(&figures("paper/mutree-figure9", false)));
}

#[test]
fn beyond_table5() {
    let figures = figures("beyond/table5", false);
    // Whatever the size, nandu costs less than the better of the paper's trees.
    let gains: Vec<f64> = figures.iter().filter(|figure| figure.metric == "gain").map(|figure| figure.value).collect();
    assert!(gains.len() == 18 && gains.iter().all(|gain| *gain > 1.0), "{gains:?}");
    insta::assert_snapshot!(lines(&figures));
}

#[test]
fn beyond_skew() {
    insta::assert_snapshot!(lines(&figures("beyond/skew", false)));
}

#[test]
fn beyond_groupcommit() {
    insta::assert_snapshot!(lines(&figures("beyond/groupcommit", false)));
}

#[test]
fn beyond_scale() {
    insta::assert_snapshot!(lines(&figures("beyond/scale", false)));
}

#[test]
fn the_same_seed_gives_the_same_figures_of_every_structure() {
    let run = |seed| {
        let experiment = experiments::find("beyond/skew").next().unwrap();
        experiment.run(&mut Context::small(seed)).unwrap()
    };
    assert!(run(5) == run(5) && run(5) != run(6));
}
