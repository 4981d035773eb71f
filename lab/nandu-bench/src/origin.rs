//! Where figures come from: by which commit, on which machine, and what the small form of their experiment found then.
//!
//! Full runs take long, so figures that are kept in a folder go out of date. A small run takes seconds: if it finds something else than
//! when the figures were found, they are to be found again.

use std::fs::File;
use std::io;
use std::path::Path;

use flate2::Crc;
use serde::{Deserialize, Serialize};

use crate::Figure;
use crate::claims;
use crate::runner::Run;

/// The file of a folder of pages that says where its figures come from.
pub const ORIGIN_FILE: &str = "runs.csv";

/// Where the figures of an experiment come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The experiment.
    pub experiment: String,
    /// Seeds of the run, as a range `0..5` or a number.
    pub seeds: String,
    /// The commit of what was run.
    pub commit: String,
    /// The machine it was run on.
    pub machine: String,
    /// Tells what the small form found from anything else that it might find.
    pub small: String,
    /// The same of those figures on which claims rest; empty if none does.
    pub claimed: String,
}

/// Reads the origins of a folder; none if it has none.
///
/// # Errors
///
/// What the file cannot be read for.
pub fn read(folder: &Path) -> io::Result<Vec<Origin>> {
    match File::open(folder.join(ORIGIN_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(file) => {
            csv::Reader::from_reader(file).into_deserialize().map(|row| row.map_err(io::Error::other)).collect()
        }
    }
}

/// Writes them, in the order in which experiments are listed.
///
/// # Errors
///
/// What the file cannot be written for.
pub fn write(folder: &Path, origins: &[Origin]) -> io::Result<()> {
    let mut csv = csv::Writer::from_path(folder.join(ORIGIN_FILE))?;
    for experiment in crate::experiments::all() {
        for origin in origins.iter().filter(|origin| origin.experiment == experiment.name) {
            csv.serialize(origin).map_err(io::Error::other)?;
        }
    }
    csv.flush()
}

/// What tells figures from others: a checksum over their lines, as eight hexadecimal digits; empty if there are none.
pub fn fingerprint<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> String {
    let mut crc = Crc::new();
    for figure in figures {
        crc.update(format!("{} {} {}\n", figure.case, figure.metric, figure.value).as_bytes());
    }
    if crc.amount() == 0 { String::new() } else { format!("{:08x}", crc.sum()) }
}

/// The same over the figures on which claims rest.
pub fn claimed_fingerprint(figures: &[Figure]) -> String {
    fingerprint(figures.iter().filter(|figure| claims::all().any(|claim| claim.rests_on(figure))))
}

impl Origin {
    /// The origin of a run, of which this is the small form.
    pub fn new(seeds: String, commit: String, machine: String, small: &Run) -> Origin {
        Origin {
            experiment: small.experiment.name.to_owned(),
            seeds,
            commit,
            machine,
            small: fingerprint(&small.figures),
            claimed: claimed_fingerprint(&small.figures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_is_another_fingerprint() {
        let figure = |value| Figure::new("paper/mutree-table1", "slc", "read_us", value, "us");
        let ours = Figure::new("paper/mutree-table5", "0+0/retrieval/nandu", "reads_per_op", 1.0, "reads");
        assert_eq!(fingerprint([&figure(1.0)]), fingerprint([&figure(1.0)]));
        assert_ne!(fingerprint([&figure(1.0)]), fingerprint([&figure(2.0)]));
        assert_eq!(claimed_fingerprint(&[figure(1.0), ours.clone()]), fingerprint([&figure(1.0)]));
        assert_eq!((claimed_fingerprint(&[ours]), fingerprint([])), (String::new(), String::new()));
    }

    #[test]
    fn origins_are_read_as_they_were_written() {
        let origin = |experiment: &str| Origin {
            experiment: experiment.to_owned(),
            seeds: "0".to_owned(),
            commit: "0123456789".to_owned(),
            machine: "2 cores, x86_64".to_owned(),
            small: "01234567".to_owned(),
            claimed: String::new(),
        };
        let place = tempfile::tempdir().unwrap();
        assert_eq!(read(place.path()).unwrap(), []);
        write(place.path(), &[origin("vs/kernel"), origin("core/skew")]).unwrap();
        assert_eq!(read(place.path()).unwrap(), [origin("core/skew"), origin("vs/kernel")]);
    }
}
