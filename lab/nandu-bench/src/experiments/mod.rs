//! The experiments that can be run, by name.

mod beyond;
mod core;
mod paper;
pub(crate) mod volume;
mod vs;

use crate::heart::Maker;
use crate::{BenchError, Context, Experiment, Figure};

/// Groups of experiments, in the order in which they are listed. Each is a folder.
const GROUPS: [&[Experiment]; 4] = [core::ALL, paper::ALL, beyond::ALL, vs::ALL];

/// Every experiment, in the order in which they are listed.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    static ALL: [&[Experiment]; GROUPS.len()] = GROUPS;
    ALL.iter().copied().flatten()
}

/// The experiment of exactly this name.
pub fn named(name: &str) -> Option<&'static Experiment> {
    all().find(|experiment| experiment.name == name)
}

/// The experiments of this name: one, or all whose names begin with it and go on with a new word, as those of a group,
/// `core`, or of one paper, `paper/mutree`.
pub fn find(name: &str) -> impl Iterator<Item = &'static Experiment> {
    all().filter(move |experiment| {
        let rest = experiment.name.strip_prefix(name.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '-']))
    })
}

/// Runs one part of an experiment on file systems of somebody else, as of the new heart: any part of `vs/kernel`, and those of `core/workloads` in which programs do something to files.
/// The chips, the calls and the names of the figures are those of [`Experiment::run_part`]; what others state is not put beside them.
///
/// # Errors
///
/// As [`Experiment::run`], and where there is no such part or it makes its own.
pub fn run_part_on<M: Maker>(
    maker: &M,
    experiment: &str,
    part: &str,
    context: &mut Context<'_>,
) -> Result<Vec<Figure>, BenchError> {
    let figures = match experiment {
        "core/workloads" => core::workloads::run_on(maker, part, context),
        "vs/kernel" => vs::kernel::run_on(maker, part, context),
        _ => None,
    };
    figures.unwrap_or_else(|| Err(BenchError::Other(format!("no part `{part}` of `{experiment}` takes a file system"))))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{all, core, find, named, run_part_on};
    use crate::heart::OldFiles;
    use crate::{BenchError, Context};

    #[test]
    fn experiments_are_found_by_name_and_by_its_first_words() {
        for experiment in all() {
            assert!(find(experiment.name).any(|found| found.name == experiment.name), "{}", experiment.name);
        }
        assert_eq!(find("core").count(), core::ALL.len());
        assert_eq!(find("core/").count(), core::ALL.len());
        assert_eq!(find("core/peers").count(), 1);
        assert_eq!(find("cor").count() + find("core/mill").count() + find("").count(), 0);
    }

    #[test]
    fn a_part_on_file_systems_of_somebody_else_is_the_part_itself() {
        for (name, part) in
            [("core/workloads", "small-files"), ("core/workloads", "updates/1"), ("vs/kernel", "creates")]
        {
            let experiment = named(name).unwrap();
            let own = experiment.run_part(&mut Context::small(0), experiment.part_named(part).unwrap()).unwrap();
            assert_eq!(run_part_on(&OldFiles, name, part, &mut Context::small(0)).unwrap(), own, "{name} {part}");
        }
    }

    #[test]
    fn a_part_that_takes_no_file_system_is_refused() {
        for (name, part) in
            [("core/workloads", "grow"), ("core/workloads", "small"), ("vs/kernel", ""), ("core/million", "")]
        {
            let refused = run_part_on(&OldFiles, name, part, &mut Context::small(0)).unwrap_err();
            assert!(matches!(&refused, BenchError::Other(why) if why.contains(name)), "{name} {part}: {refused}");
        }
    }

    #[test]
    fn no_two_experiments_have_one_name_and_each_says_what_it_is_about() {
        let names: HashSet<&str> = all().map(|experiment| experiment.name).collect();
        assert_eq!(names.len(), all().count());
        for experiment in all() {
            assert!(!experiment.about.is_empty() && experiment.parts > 0, "{}", experiment.name);
        }
    }
}
