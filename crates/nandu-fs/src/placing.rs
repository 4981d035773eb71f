//! The policies of placement, and what they need to know of the file system.

use crate::Time;
use crate::placement::{Class, Placement};

/// The policies, and what they need to know of the file system.
pub(crate) struct Placing<'m> {
    pub(crate) policies: Placement<'m>,
    /// What is promised of pages that are written.
    pub(crate) class: Class,
    pub(crate) now_us: u64,
    /// When the request was over that made the first of the changes that wait for a sync.
    pub(crate) waiting_since_us: Option<u64>,
}

impl Placing<'_> {
    fn write_back_due_us(&self) -> Option<u64> {
        let write_back_us = self.policies.options().write_back_us;
        self.waiting_since_us
            .and_then(|since_us| self.policies.late_step_due_us(since_us.saturating_add(write_back_us)))
    }

    pub(crate) fn step_due_us(&self) -> Option<u64> {
        let due = [self.policies.step_due_us(), self.write_back_due_us()];
        due.into_iter().flatten().min()
    }

    /// Whether changes have waited long enough; those of which nobody said when a request ended have.
    pub(crate) fn is_write_back_due(&self) -> bool {
        self.write_back_due_us().is_none_or(|due_us| due_us <= self.now_us)
    }
}

pub(crate) fn microseconds(time: Time) -> u64 {
    let seconds = u64::try_from(time.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(u64::from(time.nanoseconds) / 1000)
}

pub(crate) fn time(us: u64) -> Time {
    Time { seconds: (us / 1_000_000) as i64, nanoseconds: (us % 1_000_000) as u32 * 1000 }
}
