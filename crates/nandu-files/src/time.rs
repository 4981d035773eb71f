//! Points in time, which the caller supplies: there is no clock below.

/// Time since the beginning of 1970, without leap seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds beyond them, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// The beginning of 1970.
    pub const EPOCH: Time = Time { seconds: 0, nanoseconds: 0 };

    /// Whole seconds.
    pub const fn from_seconds(seconds: i64) -> Time {
        Time { seconds, nanoseconds: 0 }
    }
}
