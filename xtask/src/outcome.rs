//! How a verb ended: a check that could not run is no success.

/// How a verb ended that found nothing wrong.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All of it was run.
    Ran,
    /// All of it, or some of it, was not, since this machine lacks what the text names.
    Lacks(String),
}

/// The code of a process that could not do what it was asked to, as automake's tests have it.
pub(crate) const EXIT_LACKS: u8 = 77;

impl Outcome {
    /// What was run but for the parts that these texts name.
    pub(crate) fn without(lacks: &[String]) -> Outcome {
        if lacks.is_empty() { Outcome::Ran } else { Outcome::Lacks(lacks.join("; ")) }
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome::Ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_lacked_is_said_of_the_whole() {
        assert_eq!(Outcome::without(&[]), Outcome::Ran);
        let lacks = ["there is no gcc".to_owned(), "there is no cmake".to_owned()];
        assert_eq!(Outcome::without(&lacks), Outcome::Lacks("there is no gcc; there is no cmake".to_owned()));
    }
}
