//! Promises that an experiment of the lab measures already.

use nandu_bench::{BenchError, Context, Figure, Scale, experiments};

use crate::measure::{Form, Values, Wrong};

/// Where the number of a case comes from.
struct Source {
    promise: &'static str,
    case: &'static str,
    experiment: &'static str,
    /// The part of the experiment that finds it.
    part: &'static str,
    /// The case of the figure.
    figure: &'static str,
    metric: &'static str,
}

const fn source(
    promise: &'static str,
    case: &'static str,
    experiment: &'static str,
    part: &'static str,
    figure: &'static str,
    metric: &'static str,
) -> Source {
    Source { promise, case, experiment, part, figure, metric }
}

const SOURCES: &[Source] = &[
    source("update", "k = 1", "core/groupcommit", "k1", "k1", "programs_per_update"),
    source("update", "k = 4", "core/groupcommit", "k4", "k4", "programs_per_update"),
    source("update", "k = 16", "core/groupcommit", "k16", "k16", "programs_per_update"),
    source("update", "k = 256", "core/groupcommit", "k256", "k256", "programs_per_update"),
    source("million-update", "", "core/million", "whole-blocks", "whole-blocks", "programs_per_update"),
    source("million-lookup", "", "core/million", "whole-blocks", "whole-blocks", "reads_per_lookup"),
    source("small-file", "", "core/workloads", "small-files", "small-files", "programs_per_op"),
    source("small-write", "", "core/workloads", "updates/1", "updates/1", "programs_per_op"),
    source("postmark", "tagged", "vs/kernel", "postmark-512", "postmark-512/both", "of_ubifs"),
    source("postmark", "untagged", "vs/kernel", "postmark-512/untagged", "postmark-512/both/untagged", "of_ubifs"),
    source("amplification", "95/5", "core/skew", "95-5", "95-5", "write_amplification"),
    source("amplification", "Zipf", "core/skew", "zipf-0.99", "zipf-0.99", "write_amplification"),
];

/// The numbers of a promise.
pub(crate) fn values(promise: &str, form: Form) -> Result<Values, Wrong> {
    let mut values = Values::new();
    for source in SOURCES.iter().filter(|source| source.promise == promise) {
        let figures = run(source.experiment, source.part, form)?;
        values.insert(source.case.to_owned(), value(&figures, source.figure, source.metric)?);
    }
    Ok(values)
}

/// Bursts through the file system with pages migrated in idle time, over what cells with one bit take of the same chip.
pub(crate) fn flexfs(form: Form) -> Result<Values, Wrong> {
    let files = run("paper/flexfs-files", "idle", form)?;
    let cells = run("paper/flexfs-e9", "slc", form)?;
    let ratio = value(&files, "idle/migrated/all", "mb_per_s")? / value(&cells, "slc/all", "mb_per_s")?;
    Ok(Values::from([(String::new(), ratio)]))
}

fn run(experiment: &str, part: &str, form: Form) -> Result<Vec<Figure>, BenchError> {
    let missing = || BenchError::Other(format!("there is no part `{part}` of an experiment `{experiment}`"));
    let experiment = experiments::named(experiment).ok_or_else(missing)?;
    let part = experiment.part_named(part).ok_or_else(missing)?;
    experiment.run_part(&mut context(form), part)
}

fn context(form: Form) -> Context<'static> {
    Context { seed: 0, scale: form.pick(Scale::Small, Scale::Full), progress: None }
}

fn value(figures: &[Figure], case: &str, metric: &str) -> Result<f64, BenchError> {
    let found = figures.iter().find(|figure| figure.case == case && figure.metric == metric);
    found.map(|figure| figure.value).ok_or_else(|| BenchError::Other(format!("no figure {metric} of {case}")))
}
