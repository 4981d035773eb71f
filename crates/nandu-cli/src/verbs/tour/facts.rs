//! What a record of the tour says of a file.

/// Size, time and mode of a file: the value of a record.
///
/// The key is the number of the file's directory, high byte first, and the file's name: so the files of a directory
/// stand together, in order, and a path is followed from name to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) size: u64,
    /// Seconds since 1970 of the last change.
    pub(super) modified_s: i64,
    pub(super) mode: u32,
    /// Number of the directory that this is; 0 if it is none.
    pub(super) number: u32,
}

/// The key of a file in a directory.
pub(super) fn key(directory: u32, name: &[u8]) -> Vec<u8> {
    [&directory.to_be_bytes(), name].concat()
}

/// What a key is made of.
pub(super) fn parts(key: &[u8]) -> (u32, &[u8]) {
    key.split_first_chunk().map_or((0, &[]), |(directory, name)| (u32::from_be_bytes(*directory), name))
}

impl Facts {
    pub(super) const SIZE: usize = 24;

    pub(super) fn to_bytes(self) -> [u8; Facts::SIZE] {
        let mut bytes = [0; Facts::SIZE];
        bytes[..8].copy_from_slice(&self.size.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.modified_s.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.mode.to_be_bytes());
        bytes[20..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Facts> {
        let (size, rest) = bytes.split_first_chunk()?;
        let (modified, rest) = rest.split_first_chunk()?;
        let (mode, rest) = rest.split_first_chunk()?;
        let (number, []) = rest.split_first_chunk()? else { return None };
        Some(Facts {
            size: u64::from_be_bytes(*size),
            modified_s: i64::from_be_bytes(*modified),
            mode: u32::from_be_bytes(*mode),
            number: u32::from_be_bytes(*number),
        })
    }

    /// The day of the last change, as 2026-02-28.
    pub(super) fn day(self) -> String {
        // Days are counted in eras of 400 years, each from the first of March, so that the day that not every year has
        // comes last.
        let days = self.modified_s.div_euclid(86_400) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * months + 2) / 5 + 1;
        let month = if months < 10 { months + 3 } else { months - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Facts, key, parts};

    #[test]
    fn facts_survive_as_bytes_and_nothing_else_passes_for_them() {
        let facts = Facts { size: 1 << 40, modified_s: -1, mode: 0o100_755, number: 9 };
        assert_eq!(Facts::from_bytes(&facts.to_bytes()), Some(facts));
        assert_eq!(Facts::from_bytes(&[0; 23]), None);
        assert_eq!(Facts::from_bytes(&[0; 25]), None);
    }

    #[test]
    fn the_files_of_a_directory_stand_together() {
        assert_eq!(parts(&key(7, b"name")), (7, &b"name"[..]));
        assert!(key(7, b"zz") < key(8, b"") && key(255, b"zz") < key(256, b"a"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |modified_s| Facts { size: 0, modified_s, mode: 0, number: 0 }.day();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(-1), "1969-12-31");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(4_107_542_399), "2100-02-28");
        assert_eq!(day(4_107_542_400), "2100-03-01");
    }
}
