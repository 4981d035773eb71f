//! The experiments that can be run, by name.

mod core;

use crate::Experiment;

/// Every experiment, in the order in which they are listed.
pub const ALL: [Experiment; 4] =
    [core::peers_500::EXPERIMENT, core::million::EXPERIMENT, core::skew::EXPERIMENT, core::mount::EXPERIMENT];

/// The experiments of this name: one, or all of a group, as `core`.
pub fn find(name: &str) -> impl Iterator<Item = &'static Experiment> {
    let is_meant = move |experiment: &&Experiment| {
        let rest = experiment.name.strip_prefix(name.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    static EXPERIMENTS: [Experiment; 4] = ALL;
    EXPERIMENTS.iter().filter(is_meant)
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};

    #[test]
    fn experiments_are_found_by_name_and_by_group() {
        for experiment in ALL {
            assert_eq!(find(experiment.name).count(), 1, "{}", experiment.name);
        }
        assert_eq!(find("core").count(), ALL.len());
        assert_eq!(find("core/").count(), ALL.len());
        assert_eq!(find("cor").count() + find("core/mill").count() + find("").count(), 0);
    }
}
