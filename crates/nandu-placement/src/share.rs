//! Shares from nothing to all, in fixed point.

use core::fmt;

/// A share from 0 to 1 in steps of 1 / 65,536.
///
/// The core has no floating point: many small processors compute it in software, and its rounding is not worth being part of what
/// a seed reproduces. Sixteen binary digits are finer than anything that is decided here, one page of a window of 1,024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0);
    /// Half.
    pub const HALF: Share = Share(1 << 15);
    /// All.
    pub const ONE: Share = Share(1 << 16);

    /// `part` of `whole`, rounded down; all if the part is not smaller than the whole, so also of a whole of nothing.
    pub const fn of(part: u64, whole: u64) -> Share {
        if part >= whole {
            return Share::ONE;
        }
        Share((((part as u128) << 16) / whole as u128) as u32)
    }

    /// In 65,536ths.
    pub const fn parts(self) -> u32 {
        self.0
    }

    /// In millionths, rounded, for people.
    pub const fn millionths(self) -> u32 {
        ((self.0 as u64 * 1_000_000 + (1 << 15)) >> 16) as u32
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// So much of a number of things, rounded down.
    pub const fn times(self, count: u64) -> u64 {
        ((count as u128 * self.0 as u128) >> 16) as u64
    }
}

/// As a decimal with three places.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = (self.0 * 1000 + (1 << 15)) >> 16;
        write!(f, "{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::Share;

    #[test]
    fn a_share_is_rounded_down_and_never_above_all() {
        assert_eq!(Share::of(1, 2), Share::HALF);
        assert_eq!(Share::of(3, 2), Share::ONE);
        assert_eq!(Share::of(0, 0), Share::ONE);
        assert_eq!(Share::of(0, 7), Share::ZERO);
        assert_eq!(Share::of(u64::MAX - 1, u64::MAX).parts(), 65_535);
        assert_eq!(Share::of(1, 3).times(3), 0);
        assert_eq!(Share::HALF.times(1024), 512);
        assert_eq!(Share::of(481, 1000).to_string(), "0.481");
        assert_eq!(Share::of(7, 16).millionths(), 437_500);
    }
}
