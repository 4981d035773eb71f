//! What is known of a metric by its name: which way is better, and how it is called in prose.

/// Which of two values of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The smaller one: costs.
    Less,
    /// The greater one.
    More,
    /// Neither: it describes.
    Neither,
}

/// Metrics of which more is better.
const MORE: [&str; 14] = [
    "evenness",
    "evenness_over_wa",
    "gain",
    "speedup_over_ubifs",
    "speedup_over_nandu",
    "speedup_over_ipl",
    "hit_ratio",
    "hit_ratio_over_ipl",
    "least_step_over_m",
    "mb_per_s",
    "mb_per_s_slowest",
    "alpha",
    "falls_at_percent",
    "usable_percent",
];
/// Metrics that say how the case was, not how good it was.
const NEITHER: [&str; 6] =
    ["live_share", "erase_count_mean", "rank", "records", "best_log_pages", "programs_over_model"];

impl Better {
    /// Which way is better for a metric. What is not named above is a cost.
    ///
    /// ```
    /// use nandu_bench::Better;
    ///
    /// assert_eq!(Better::of("reads_per_op"), Better::Less);
    /// assert_eq!(Better::of("evenness"), Better::More);
    /// ```
    pub fn of(metric: &str) -> Better {
        let is_in = |list: &[&str]| {
            list.iter().any(|name| metric == *name || metric.strip_suffix(name).is_some_and(|rest| rest.ends_with('_')))
        };
        if is_in(&MORE) {
            Better::More
        } else if is_in(&NEITHER) {
            Better::Neither
        } else {
            Better::Less
        }
    }

    /// By how much a value is worse than another, in the unit of the metric; not positive if it is not worse.
    pub fn worse_by(self, before: f64, after: f64) -> f64 {
        match self {
            Better::Less => after - before,
            Better::More => before - after,
            Better::Neither => 0.0,
        }
    }
}
