//! Which figures of an experiment are drawn, as data.

/// A picture of some figures of one experiment.
///
/// Which figures and where says a pattern over their cases: words between slashes, of which `{x}` is the place along the
/// horizontal axis, `{series}` the line or the group of bars, `*` any word, and others stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plot {
    /// What is seen, in one line.
    pub title: &'static str,
    /// The metric that is drawn.
    pub metric: &'static str,
    /// The pattern, as `{x}/insertion/{series}`.
    pub cases: &'static str,
    /// What stands along the horizontal axis, with its unit, as `cache (KiB, read + write)`.
    pub x: &'static str,
    /// What stands along the vertical axis, with its unit.
    pub y: &'static str,
    /// How it is drawn.
    pub kind: PlotKind,
}

/// How figures are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// Bars side by side for each place along the horizontal axis; a place is a word.
    Bars,
    /// Lines; a place is the number in front of the word, as 16 in `16KiB`, times 1000 for `k`, a million for `M`.
    Lines,
    /// As `Lines`, with a logarithmic horizontal axis.
    LogLines,
}

impl Plot {
    /// Where a case stands: its place along the horizontal axis and its series. `None` if it is not drawn.
    ///
    /// ```
    /// use nandu_bench::{Plot, PlotKind};
    ///
    /// let plot = Plot {
    ///     title: "Insertion",
    ///     metric: "reads_per_op",
    ///     cases: "{x}/insertion/{series}",
    ///     x: "cache (KiB)",
    ///     y: "reads per operation",
    ///     kind: PlotKind::Bars,
    /// };
    /// assert_eq!(plot.place("8+8/insertion/mu"), Some(("8+8", "mu")));
    /// assert_eq!(plot.place("8+8/deletion/mu"), None);
    /// ```
    pub fn place<'c>(&self, case: &'c str) -> Option<(&'c str, &'c str)> {
        let (mut place, mut series) = ("", "");
        let (mut pattern, mut words) = (self.cases.split('/'), case.split('/'));
        loop {
            match (pattern.next(), words.next()) {
                (None, None) => return Some((place, series)),
                (Some("{x}"), Some(word)) => place = word,
                (Some("{series}"), Some(word)) => series = word,
                (Some(wanted), Some(word)) if wanted == "*" || wanted == word => {}
                _ => return None,
            }
        }
    }
}
