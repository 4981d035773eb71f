//! Cuts as a failure prints them, and as a reader pastes them.

use std::fmt;
use std::str::FromStr;

use crate::Tear;

/// Names the seed of the one case to run.
pub(super) const SEED_VARIABLE: &str = "NANDU_SEED";
/// Names the cuts of the one case to run.
pub(super) const CUTS_VARIABLE: &str = "NANDU_CUTS";

/// A cut to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Operations since the chip got power.
    pub(super) operation: u64,
    pub(super) tear: Tear,
}

/// The cuts of a case, in the order in which they happen. Printed as `3:prefix,12:unstable`, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cuts(pub(super) Vec<Cut>);

impl Cuts {
    pub(super) fn of(cuts: &[Cut]) -> Cuts {
        Cuts(cuts.to_vec())
    }
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, cut) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", cut.operation, cut.tear)?;
        }
        Ok(())
    }
}

impl FromStr for Cuts {
    type Err = String;

    fn from_str(text: &str) -> Result<Cuts, String> {
        if text.trim() == "none" {
            return Ok(Cuts::default());
        }
        let cut = |part: &str| {
            let (operation, tear) = part.trim().split_once(':')?;
            Some(Cut { operation: operation.parse().ok()?, tear: tear.parse().ok()? })
        };
        let cuts = text.split(',').map(|part| cut(part).ok_or_else(|| format!("`{part}` is no cut, as 3:prefix is")));
        Ok(Cuts(cuts.collect::<Result<_, _>>()?))
    }
}

/// One case to be run alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replay {
    /// `None` leaves the seed to the driver.
    pub(super) seed: Option<u64>,
    pub(super) cuts: Cuts,
}

impl Replay {
    pub(super) fn new(seed: u64, cuts: &str) -> Replay {
        Replay::or_panic(Replay::parse(Some(&seed.to_string()), cuts))
    }

    /// The case that the environment asks for, if it names cuts.
    pub(super) fn from_environment() -> Option<Replay> {
        let cuts = std::env::var(CUTS_VARIABLE).ok()?;
        let seed = std::env::var(SEED_VARIABLE).ok();
        Some(Replay::or_panic(Replay::parse(seed.as_deref(), &cuts)))
    }

    fn parse(seed: Option<&str>, cuts: &str) -> Result<Replay, String> {
        let seed = match seed {
            Some(text) => Some(text.trim().parse().map_err(|_| format!("`{text}` is no seed"))?),
            None => None,
        };
        Ok(Replay { seed, cuts: cuts.parse()? })
    }

    #[expect(
        clippy::panic,
        reason = "a driver speaks by panics, and running another case than asked for would mislead"
    )]
    fn or_panic(parsed: Result<Replay, String>) -> Replay {
        parsed.unwrap_or_else(|message| panic!("power_cut: {SEED_VARIABLE}, {CUTS_VARIABLE}: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_read_as_they_are_printed() {
        let every: Vec<Cut> = Tear::ALL.into_iter().zip(7..).map(|(tear, operation)| Cut { operation, tear }).collect();
        for cuts in [Cuts(every), Cuts(vec![Cut { operation: 3, tear: Tear::Prefix }]), Cuts::default()] {
            assert_eq!(cuts.to_string().parse(), Ok(cuts));
        }
        assert_eq!(" 3:prefix , 12:most-bits".parse::<Cuts>().unwrap().to_string(), "3:prefix,12:most-bits");
    }

    #[test]
    fn what_is_no_case_is_refused() {
        for text in ["", "3", "3:", ":prefix", "x:prefix", "3:torn", "3:prefix,"] {
            assert!(text.parse::<Cuts>().is_err(), "{text}");
        }
        assert!(Replay::parse(Some("x"), "none").is_err());
        assert_eq!(Replay::parse(None, "none"), Ok(Replay { seed: None, cuts: Cuts::default() }));
    }
}
