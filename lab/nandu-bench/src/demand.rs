//! What is demanded of figures: limits of the project, and how far from the numbers of others is accepted.

use std::fmt;

use crate::{Better, Figure};

/// Whether a case is meant by a pattern: words between slashes, of which `*` stands for any one.
///
/// `*/insertion/mu` means `8+8/insertion/mu` and `0+0/insertion/mu`.
pub(crate) fn is_meant(pattern: &str, case: &str) -> bool {
    let (mut pattern, mut case) = (pattern.split('/'), case.split('/'));
    loop {
        match (pattern.next(), case.next()) {
            (None, None) => return true,
            (Some(wanted), Some(word)) if wanted == "*" || wanted == word => {}
            _ => return false,
        }
    }
}

/// The words of a case for which `*` stands in a pattern that means it; `None` if it does not.
pub(crate) fn captured<'c>(pattern: &str, case: &'c str) -> Option<Vec<&'c str>> {
    let words = || pattern.split('/').zip(case.split('/'));
    is_meant(pattern, case).then(|| words().filter(|(wanted, _)| *wanted == "*").map(|(_, word)| word).collect())
}

/// A pattern with words in place of each `*`, in their order.
pub(crate) fn filled_in(pattern: &str, words: &[&str]) -> String {
    let mut words = words.iter();
    let filled = pattern.split('/').map(|word| if word == "*" { words.next().copied().unwrap_or(word) } else { word });
    filled.collect::<Vec<_>>().join("/")
}

/// As [`is_meant`], with numbers taken for each other: small runs have other sizes in the names of cases.
pub(crate) fn is_meant_in_any_size(pattern: &str, case: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let words = pattern.split('/').zip(case.split('/'));
    pattern.split('/').count() == case.split('/').count()
        && words
            .into_iter()
            .all(|(wanted, word)| wanted == "*" || wanted == word || is_number(wanted) && is_number(word))
}

/// How a figure stands to what is demanded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Good enough.
    Within,
    /// Not good enough.
    Missed,
}

impl Verdict {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Missed => "MISSED",
        }
    }

    const fn of(is_within: bool) -> Verdict {
        if is_within { Verdict::Within } else { Verdict::Missed }
    }
}

/// What the project demands of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The metric.
    pub metric: &'static str,
    /// The cases it is for, as a pattern with `*` for a word between slashes; all of them if there is none.
    pub case: Option<&'static str>,
    /// Least value that is good enough.
    pub least: f64,
    /// Greatest value that is good enough.
    pub most: f64,
}

impl Limit {
    /// In every case at most this.
    pub const fn at_most(metric: &'static str, most: f64) -> Limit {
        Limit { metric, case: None, least: f64::NEG_INFINITY, most }
    }

    /// In every case at least this.
    pub const fn at_least(metric: &'static str, least: f64) -> Limit {
        Limit { metric, case: None, least, most: f64::INFINITY }
    }

    /// The same for the cases of a pattern only.
    pub const fn in_case(self, case: &'static str) -> Limit {
        Limit { case: Some(case), ..self }
    }

    /// Whether it is for this figure.
    pub fn is_for(&self, figure: &Figure) -> bool {
        self.metric == figure.metric && self.case.is_none_or(|case| is_meant(case, &figure.case))
    }

    /// How a value stands to the limit.
    pub fn judge(&self, value: f64) -> Verdict {
        Verdict::of(value >= self.least && value <= self.most)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.most.is_finite() { write!(f, "<= {}", self.most) } else { write!(f, ">= {}", self.least) }
    }
}

/// Whose number a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// It has to be near the published number or near the model's: whichever there is, and one suffices.
    Either,
    /// The published number.
    Published,
    /// The model's number.
    Model,
}

/// How far from a published or modelled number a figure may be.
///
/// Without such a number beside the figure nothing is demanded of it. A published number that is doubted ([`Doubt`]) does
/// not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accept {
    /// The metric.
    pub metric: &'static str,
    /// The cases it is for, as a pattern with `*` for a word between slashes; all of them if there is none.
    pub case: Option<&'static str>,
    /// Whose number counts.
    pub beside: Beside,
    /// Accepted difference in the unit of the metric.
    pub absolute: f64,
    /// Accepted difference as a share of that number, added to the absolute one.
    pub relative: f64,
    /// Whether any difference for the better is accepted, too.
    pub or_better: bool,
}

impl Accept {
    /// In every case so near, in the unit of the metric, to the published number or the model's.
    pub const fn absolute(metric: &'static str, absolute: f64) -> Accept {
        Accept { metric, case: None, beside: Beside::Either, absolute, relative: 0.0, or_better: false }
    }

    /// In every case so near to the published number or the model's, as a share of it.
    pub const fn relative(metric: &'static str, relative: f64) -> Accept {
        Accept { metric, case: None, beside: Beside::Either, absolute: 0.0, relative, or_better: false }
    }

    /// The same for the cases of a pattern only.
    pub const fn in_case(self, case: &'static str) -> Accept {
        Accept { case: Some(case), ..self }
    }

    /// The same with only the published number counting, or only the model's.
    pub const fn beside(self, beside: Beside) -> Accept {
        Accept { beside, ..self }
    }

    /// The same with any better value accepted, too.
    pub const fn or_better(self) -> Accept {
        Accept { or_better: true, ..self }
    }

    /// Whether it is for this figure.
    pub fn is_for(&self, figure: &Figure) -> bool {
        self.metric == figure.metric && self.case.is_none_or(|case| is_meant(case, &figure.case))
    }

    /// How a figure stands to it, and to what it was held; `None` if nobody states a number that counts.
    fn judge(&self, figure: &Figure, doubt: Option<&Doubt>) -> Option<Judgement> {
        let published = figure.published.filter(|_| doubt.is_none() && self.beside != Beside::Model);
        let model = figure.model.filter(|_| self.beside != Beside::Published);
        let judged = |stated: f64, whose| {
            let verdict = Verdict::of(self.is_near(figure, stated));
            Judgement { demand: format!("{stated} {} {whose}", self.margin()), verdict }
        };
        let judgements =
            [published.map(|stated| judged(stated, "published")), model.map(|stated| judged(stated, "model"))];
        // The one it keeps to, if any; else the first.
        judgements.into_iter().flatten().min_by_key(|judgement| judgement.verdict)
    }

    fn is_near(&self, figure: &Figure, stated: f64) -> bool {
        let margin = self.absolute + self.relative * stated.abs();
        // Figures have six decimals, and a difference of two of them a rounding error beyond.
        let is_near = (figure.value - stated).abs() <= margin + 5e-7;
        is_near || self.or_better && Better::of(&figure.metric).worse_by(stated, figure.value) <= 0.0
    }

    fn margin(&self) -> String {
        let mut text = String::from("+-");
        if self.absolute > 0.0 || self.relative == 0.0 {
            text.push_str(&self.absolute.to_string());
        }
        if self.relative > 0.0 {
            let plus = if self.absolute > 0.0 { "+" } else { "" };
            text.push_str(&format!("{plus}{} %", (self.relative * 1e4).round() / 1e2));
        }
        if self.or_better { text + " or better" } else { text }
    }
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.beside {
            Beside::Either => "published or modelled number",
            Beside::Published => "published number",
            Beside::Model => "modelled number",
        };
        write!(f, "{} beside the {whose}", self.margin())
    }
}

/// A published number that cannot be right, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The metric.
    pub metric: &'static str,
    /// The cases, as a pattern with `*` for a word between slashes.
    pub case: &'static str,
    /// Why, in a sentence.
    pub why: &'static str,
}

impl Doubt {
    /// Whether it is about the published number of this figure.
    pub fn is_for(&self, figure: &Figure) -> bool {
        self.metric == figure.metric && is_meant(self.case, &figure.case)
    }
}

/// A figure held against something that is demanded of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is demanded, as `<= 1.03` or `2.49 +-0.06 published`.
    pub demand: String,
    /// Whether it is met.
    pub verdict: Verdict,
}

impl Judgement {
    pub(crate) fn by_limit(limit: &Limit, figure: &Figure) -> Judgement {
        Judgement { demand: limit.to_string(), verdict: limit.judge(figure.value) }
    }

    pub(crate) fn by_acceptance(accept: &Accept, figure: &Figure, doubt: Option<&Doubt>) -> Option<Judgement> {
        accept.judge(figure, doubt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(case: &str, value: f64) -> Figure {
        Figure::new("x", case, "reads_per_op", value, "reads")
    }

    fn verdict(accept: Accept, figure: &Figure) -> Option<Verdict> {
        accept.judge(figure, None).map(|judgement| judgement.verdict)
    }

    #[test]
    fn a_pattern_means_cases_word_for_word() {
        assert!(is_meant("*/insertion/mu", "8+8/insertion/mu") && is_meant("a", "a"));
        for case in ["8+8/insertion", "8+8/insertion/mu/x", "8+8/deletion/mu", "insertion/mu"] {
            assert!(!is_meant("*/insertion/mu", case), "{case}");
        }
    }

    #[test]
    fn words_go_from_one_pattern_to_another() {
        assert_eq!(captured("*/insertion/*", "8+8/insertion/mu"), Some(vec!["8+8", "mu"]));
        assert_eq!(captured("*/insertion/*", "8+8/deletion/mu"), None);
        assert_eq!(filled_in("*/retrieval/*", &["8+8", "mu"]), "8+8/retrieval/mu");
        assert!(is_meant_in_any_size("100/*", "10/mu") && !is_meant_in_any_size("100/mu", "a/mu"));
    }

    #[test]
    fn near_one_of_two_numbers_suffices_unless_one_is_named() {
        let accept = Accept::absolute("reads_per_op", 0.06);
        let figure = figure("a", 2.30).with_published(Some(2.08)).with_model(Some(2.31));
        assert_eq!(verdict(accept, &figure), Some(Verdict::Within));
        assert_eq!(verdict(accept.beside(Beside::Model), &figure), Some(Verdict::Within));
        assert_eq!(verdict(accept.beside(Beside::Published), &figure), Some(Verdict::Missed));
        assert_eq!(accept.judge(&figure, None).unwrap().demand, "2.31 +-0.06 model");
    }

    #[test]
    fn the_margin_includes_its_edge_and_nothing_beyond() {
        let accept = Accept::absolute("reads_per_op", 0.06);
        let at = |value| verdict(accept, &figure("a", value).with_published(Some(2.49)));
        assert_eq!((at(2.55), at(2.43)), (Some(Verdict::Within), Some(Verdict::Within)));
        assert_eq!((at(2.550_01), at(2.429_99)), (Some(Verdict::Missed), Some(Verdict::Missed)));
        let share = Accept::relative("reads_per_op", 0.1).or_better();
        let at = |value| verdict(share, &figure("a", value).with_model(Some(2.0)));
        assert_eq!((at(0.3), at(2.2), at(2.21)), (Some(Verdict::Within), Some(Verdict::Within), Some(Verdict::Missed)));
    }

    #[test]
    fn nothing_is_demanded_beside_numbers_that_are_doubted_or_not_there() {
        let accept = Accept::absolute("reads_per_op", 0.06);
        assert_eq!(verdict(accept, &figure("a", 1.0)), None);
        let doubt = Doubt { metric: "reads_per_op", case: "a", why: "It contradicts the times." };
        let figure = figure("a", 2.05).with_published(Some(1.82));
        assert_eq!(accept.judge(&figure, Some(&doubt)), None);
        let figure = figure.with_model(Some(2.06));
        assert_eq!(accept.judge(&figure, Some(&doubt)).unwrap().verdict, Verdict::Within);
    }
}
