//! What an experiment is: data, what others state about it, what is demanded, and a function that runs it.

use std::fmt;

use crate::demand::is_meant;
use crate::{Accept, BenchError, Context, Doubt, Figure, Judgement, Limit, Plot, Scale};

/// An experiment that can be run by its name.
///
/// It consists of parts that know nothing of each other, so that they can be run at the same time: usually one for each
/// structure and setting. A part gives the figures of one case or of several.
///
/// An experiment names what it has and leaves the rest to [`PLAIN`](Experiment::PLAIN):
///
/// ```text
/// pub(crate) const EXPERIMENT: Experiment = Experiment {
///     name: "paper/mutree-table5",
///     about: "page operations of both trees with the paper's caches",
///     source: Some("Table 5 of the mu-Tree paper (EMSOFT 2007)"),
///     setup: &[("chip", "paper-mlc"), ("records", "1,000,000 with random keys")],
///     parts: CASES.len(),
///     run: |context, part| run_case(&CASES[part], context),
///     stated: &[Stated::published("0+0/retrieval/mu", "reads_per_op", 2.97).modelled(2.97)],
///     accept: &[Accept::absolute("reads_per_op", 0.06).in_case("*/*/mu")],
///     notes: "What differs from the paper, and why.",
///     ..Experiment::PLAIN
/// };
/// ```
#[derive(Clone, Copy)]
pub struct Experiment {
    /// The name, as `core/million`.
    pub name: &'static str,
    /// What it finds out, in one line.
    pub about: &'static str,
    /// Where the published numbers stand, for those who want to look.
    pub source: Option<&'static str>,
    /// Chip, memory, structure, workload: what is given, each with its name.
    pub setup: &'static [(&'static str, &'static str)],
    /// What differs from the publication or the model, and why. Paragraphs are parted by empty lines, lines of a list begin
    /// with `* `, and what stands between backticks is code.
    pub notes: &'static str,
    /// How many parts there are.
    pub parts: usize,
    /// What a part is called, where parts are asked for by name.
    pub part_name: fn(usize) -> String,
    /// What others state. It is put beside the figures of full runs; a figure that brings its own keeps it.
    pub stated: &'static [Stated],
    /// Published numbers that cannot be right.
    pub doubts: &'static [Doubt],
    /// How far from published or modelled numbers is accepted; the first that fits a figure counts.
    pub accept: &'static [Accept],
    /// What the project demands of its figures; the first that fits a figure counts.
    pub limits: &'static [Limit],
    /// The same for small runs, which every change goes through: so near to what is reached that a twentieth more is missed.
    pub small_limits: &'static [Limit],
    /// What is drawn.
    pub plots: &'static [Plot],
    /// Runs a part: the seed, the scale and whom to tell are given, and the number of the part, from 0.
    pub run: fn(&mut Context<'_>, usize) -> Result<Vec<Figure>, BenchError>,
}

/// What others state about a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The cases, as a pattern with `*` for a word between slashes.
    pub case: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// The number of a publication.
    pub published: Option<f64>,
    /// The number of an independent model.
    pub model: Option<f64>,
}

impl Stated {
    /// What a publication states.
    pub const fn published(case: &'static str, metric: &'static str, published: f64) -> Stated {
        Stated { case, metric, published: Some(published), model: None }
    }

    /// What an independent model gives, where nothing is published.
    pub const fn model(case: &'static str, metric: &'static str, model: f64) -> Stated {
        Stated { case, metric, published: None, model: Some(model) }
    }

    /// The same with what an independent model gives beside it.
    pub const fn modelled(self, model: f64) -> Stated {
        Stated { model: Some(model), ..self }
    }

    fn is_for(&self, figure: &Figure) -> bool {
        self.metric == figure.metric && is_meant(self.case, &figure.case)
    }
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Experiment {
    /// One part that finds nothing, and nothing stated or demanded: what an experiment does not name.
    pub const PLAIN: Experiment = Experiment {
        name: "",
        about: "",
        source: None,
        setup: &[],
        notes: "",
        parts: 1,
        part_name: |_| String::new(),
        stated: &[],
        doubts: &[],
        accept: &[],
        limits: &[],
        small_limits: &[],
        plots: &[],
        run: |_, _| Ok(Vec::new()),
    };

    /// Runs all parts, one after the other, and returns the figures, always in the same order. [`runner`](crate::runner)
    /// runs them at the same time, with the same figures.
    ///
    /// # Errors
    ///
    /// [`BenchError`]: a structure that does not do what it should on a sound chip.
    pub fn run(&self, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
        let mut figures = Vec::new();
        for part in 0..self.parts {
            figures.extend(self.run_part(context, part)?);
        }
        Ok(figures)
    }

    /// Runs one part, counted from 0. The context is told how far this part is.
    ///
    /// # Errors
    ///
    /// As [`run`](Experiment::run).
    pub fn run_part(&self, context: &mut Context<'_>, part: usize) -> Result<Vec<Figure>, BenchError> {
        let mut figures = (self.run)(context, part)?;
        if context.scale == Scale::Full {
            for figure in &mut figures {
                self.state(figure);
            }
        }
        Ok(figures)
    }

    /// The number of the part of a name.
    pub fn part_named(&self, name: &str) -> Option<usize> {
        (0..self.parts).find(|&part| (self.part_name)(part) == name)
    }

    /// Puts beside a figure what others state about it.
    fn state(&self, figure: &mut Figure) {
        if let Some(stated) = self.stated.iter().find(|stated| stated.is_for(figure)) {
            figure.published = figure.published.or(stated.published);
            figure.model = figure.model.or(stated.model);
        }
    }

    /// Puts what others state now in place of what was put beside a figure when it was found.
    pub(crate) fn state_again(&self, figure: &mut Figure) {
        if let Some(stated) = self.stated.iter().find(|stated| stated.is_for(figure)) {
            figure.published = stated.published.or(figure.published);
            figure.model = stated.model.or(figure.model);
        }
    }

    /// The limit set for a figure of a run at this scale, if there is one.
    pub fn limit_of(&self, figure: &Figure, scale: Scale) -> Option<&'static Limit> {
        let limits = match scale {
            Scale::Full => self.limits,
            Scale::Small => self.small_limits,
        };
        limits.iter().find(|limit| limit.is_for(figure))
    }

    /// Why the published number beside a figure is not believed, if it is not.
    pub fn doubt_of(&self, figure: &Figure) -> Option<&'static Doubt> {
        self.doubts.iter().find(|doubt| figure.published.is_some() && doubt.is_for(figure))
    }

    /// The figure held against its limit and, in a full run, against what is accepted beside the numbers of others; empty if
    /// nothing is demanded of it.
    pub fn judge(&self, figure: &Figure, scale: Scale) -> Vec<Judgement> {
        let by_limit = self.limit_of(figure, scale).map(|limit| Judgement::by_limit(limit, figure));
        let accept = self.accept.iter().find(|accept| scale == Scale::Full && accept.is_for(figure));
        let doubt = self.doubt_of(figure);
        let by_acceptance = accept.and_then(|accept| Judgement::by_acceptance(accept, figure, doubt));
        by_limit.into_iter().chain(by_acceptance).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const FOUR: Experiment = Experiment {
        name: "test/four",
        parts: 2,
        stated: &[Stated::published("*/mu", "reads_per_op", 2.97).modelled(2.96)],
        doubts: &[Doubt { metric: "reads_per_op", case: "1/mu", why: "Why not." }],
        accept: &[Accept::absolute("reads_per_op", 0.06)],
        limits: &[Limit::at_most("reads_per_op", 3.0)],
        small_limits: &[Limit::at_most("reads_per_op", 3.1)],
        run: |context, part| {
            let figure = |case: String| Figure::new("test/four", &case, "reads_per_op", 3.02, "reads");
            context.tell(1, 1);
            Ok(vec![figure(format!("{part}/mu")), figure(format!("{part}/bplus")).with_model(Some(1.0))])
        },
        ..Experiment::PLAIN
    };

    #[test]
    fn what_others_state_stands_beside_the_figures_of_full_runs() {
        let stated = |mut context| {
            let figures = FOUR.run(&mut context).unwrap();
            figures.iter().map(|figure| (figure.published, figure.model)).collect::<Vec<_>>()
        };
        let (mu, bplus) = ((Some(2.97), Some(2.96)), (None, Some(1.0)));
        assert_eq!(stated(Context::full(0)), [mu, bplus, mu, bplus]);
        assert_eq!(stated(Context::small(0))[0], (None, None));
    }

    #[test]
    fn a_figure_is_held_against_everything_that_is_demanded() {
        let figures = FOUR.run(&mut Context::full(0)).unwrap();
        let demands = |index: usize| {
            FOUR.judge(&figures[index], Scale::Full).into_iter().map(|j| (j.demand, j.verdict)).collect::<Vec<_>>()
        };
        let missed = ("<= 3".to_owned(), Verdict::Missed);
        assert_eq!(demands(0), [missed.clone(), ("2.97 +-0.06 published".to_owned(), Verdict::Within)]);
        assert_eq!(demands(1), [missed.clone(), ("1 +-0.06 model".to_owned(), Verdict::Missed)]);
        // The published number is doubted here, so only the model's counts.
        assert_eq!(demands(2), [missed, ("2.96 +-0.06 model".to_owned(), Verdict::Within)]);
        // Small runs have limits of their own, and nobody's numbers beside them.
        let small: Vec<_> = FOUR.judge(&figures[0], Scale::Small).into_iter().map(|j| (j.demand, j.verdict)).collect();
        assert_eq!(small, [("<= 3.1".to_owned(), Verdict::Within)]);
    }
}
