//! The experiments that can be run, by name.

mod beyond;
mod core;
mod paper;
pub(crate) mod volume;
mod vs;

use crate::Experiment;

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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{all, core, find};

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
    fn no_two_experiments_have_one_name_and_each_says_what_it_is_about() {
        let names: HashSet<&str> = all().map(|experiment| experiment.name).collect();
        assert_eq!(names.len(), all().count());
        for experiment in all() {
            assert!(!experiment.about.is_empty() && experiment.parts > 0, "{}", experiment.name);
        }
    }
}
