//! What a read found out besides the bytes.

/// Outcome of a read that delivered the right bytes.
///
/// Corrected bits are an outcome, not an error: the bytes are right, and the caller decides whether the page should be
/// moved before they no longer are. Bytes that are beyond correction are an error
/// ([`NandErrorKind::Uncorrectable`](crate::NandErrorKind::Uncorrectable)).
#[must_use = "a page that needs refreshing is lost if nobody looks"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// No bit had to be corrected.
    Clean,
    /// Some bits were corrected; the page may stay where it is.
    Corrected {
        /// Corrected bits in the worst codeword read.
        bits: u16,
        /// Bits that the chip can correct in a codeword.
        max: u16,
    },
    /// So many bits were corrected that the page should be programmed elsewhere soon.
    RefreshAdvised {
        /// Corrected bits in the worst codeword read.
        bits: u16,
        /// Bits that the chip can correct in a codeword.
        max: u16,
    },
}

impl ReadStatus {
    /// Judges a count of corrected bits: refresh is advised above three quarters of what can be corrected, and for a
    /// chip that corrects a single bit per codeword as soon as it had to.
    pub const fn from_bits(bits: u16, max: u16) -> ReadStatus {
        if bits == 0 {
            ReadStatus::Clean
        } else if bits as u32 * 4 > max as u32 * 3 {
            ReadStatus::RefreshAdvised { bits, max }
        } else {
            ReadStatus::Corrected { bits, max }
        }
    }

    /// Corrected bits in the worst codeword read.
    pub const fn corrected_bits(self) -> u16 {
        match self {
            ReadStatus::Clean => 0,
            ReadStatus::Corrected { bits, .. } | ReadStatus::RefreshAdvised { bits, .. } => bits,
        }
    }

    /// Whether the page should be programmed elsewhere soon.
    pub const fn refresh_advised(self) -> bool {
        matches!(self, ReadStatus::RefreshAdvised { .. })
    }

    /// The worse of two outcomes, for a read made in several parts.
    pub const fn worst(self, other: ReadStatus) -> ReadStatus {
        if other.corrected_bits() > self.corrected_bits() { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::ReadStatus;

    #[test]
    fn refresh_is_advised_above_three_quarters_of_the_limit() {
        assert_eq!(ReadStatus::from_bits(0, 8), ReadStatus::Clean);
        assert_eq!(ReadStatus::from_bits(6, 8), ReadStatus::Corrected { bits: 6, max: 8 });
        assert!(ReadStatus::from_bits(7, 8).refresh_advised());
        assert!(ReadStatus::from_bits(1, 1).refresh_advised());
    }

    #[test]
    fn the_worse_part_of_a_read_counts() {
        let good = ReadStatus::from_bits(1, 8);
        let bad = ReadStatus::from_bits(7, 8);
        assert_eq!(good.worst(bad), bad);
        assert_eq!(bad.worst(good), bad);
        assert_eq!(ReadStatus::Clean.worst(good), good);
    }
}
