//! When background work may run: after a while without requests, one step at a time, at most one in each period.
//!
//! Time comes from the caller, who also does the steps: firmware asks between requests when the next step is due, a mount has a thread
//! that sleeps until then. From FlexFS, section 4.1.1 of its paper.

/// Follows requests and steps. Times are microseconds since any beginning, never going back.
#[derive(Clone, Debug)]
pub struct IdleClock {
    wait_us: u64,
    period_us: u64,
    /// Requests under way.
    active: u32,
    idle_since_us: u64,
    step_us: Option<u64>,
    /// Until the next request there is nothing to do.
    is_done: bool,
}

impl IdleClock {
    /// Work may begin `wait_us` after the last request, in steps that begin at least `period_us` apart.
    pub const fn new(wait_us: u64, period_us: u64, now_us: u64) -> IdleClock {
        IdleClock { wait_us, period_us, active: 0, idle_since_us: now_us, step_us: None, is_done: false }
    }

    /// A request begins. Returns the time before it that background work could have used: the gap since the last request less the
    /// waiting time, since in that no step may begin.
    pub fn request_begin(&mut self, now_us: u64) -> u64 {
        self.active = self.active.saturating_add(1);
        if self.active > 1 {
            return 0;
        }
        now_us.saturating_sub(self.idle_since_us).saturating_sub(self.wait_us)
    }

    /// A request ends. There may be work again: it may have made some.
    pub fn request_end(&mut self, now_us: u64) {
        self.active = self.active.saturating_sub(1);
        if self.active == 0 {
            self.idle_since_us = now_us;
            self.is_done = false;
        }
    }

    /// When the next step may begin, if no request comes before: `None` while one is under way, and when there is nothing to do. A time in
    /// the past says that it may begin now.
    pub fn step_due_us(&self) -> Option<u64> {
        if self.is_done { None } else { self.late_step_due_us(self.idle_since_us.saturating_add(self.wait_us)) }
    }

    /// When the last request ended.
    pub fn idle_since_us(&self) -> u64 {
        self.idle_since_us
    }

    /// When a step may begin for what may wait until this time and no longer: then, whatever else there is to do, and however short
    /// the time without requests. `None` while one is under way.
    pub fn late_step_due_us(&self, at_us: u64) -> Option<u64> {
        if self.active > 0 {
            return None;
        }
        Some(self.step_us.map_or(at_us, |step_us| at_us.max(step_us.saturating_add(self.period_us))))
    }

    /// A step begins now. There may be work again: it may make some.
    pub fn step_begins(&mut self, now_us: u64) {
        self.step_us = Some(now_us);
        self.is_done = false;
    }

    /// A step found nothing to do; none is due before the next request.
    pub fn nothing_to_do(&mut self) {
        self.is_done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn clock() -> IdleClock {
        IdleClock::new(SECOND, 15_000, 0)
    }

    #[test]
    fn steps_begin_after_the_wait_and_a_period_apart() {
        let mut clock = clock();
        assert_eq!(clock.step_due_us(), Some(SECOND));
        clock.step_begins(SECOND);
        assert_eq!(clock.step_due_us(), Some(SECOND + 15_000));
        // A step that was made late does not make the next one come sooner.
        clock.step_begins(SECOND + 20_000);
        assert_eq!(clock.step_due_us(), Some(SECOND + 35_000));
        clock.nothing_to_do();
        assert_eq!(clock.step_due_us(), None);
        clock.request_begin(9 * SECOND);
        clock.request_end(9 * SECOND + 5);
        assert_eq!(clock.step_due_us(), Some(10 * SECOND + 5));
    }

    #[test]
    fn no_step_begins_while_a_request_is_under_way() {
        let mut clock = clock();
        clock.request_begin(10);
        clock.request_begin(20);
        clock.request_end(30);
        assert_eq!(clock.step_due_us(), None);
        clock.request_end(40);
        assert_eq!(clock.step_due_us(), Some(SECOND + 40));
    }

    #[test]
    fn what_may_wait_no_longer_is_due_at_its_time_and_between_any_two_requests() {
        let mut clock = clock();
        clock.step_begins(SECOND);
        clock.nothing_to_do();
        assert_eq!((clock.step_due_us(), clock.late_step_due_us(30 * SECOND)), (None, Some(30 * SECOND)));
        clock.request_begin(29 * SECOND);
        assert_eq!(clock.late_step_due_us(30 * SECOND), None);
        clock.request_end(31 * SECOND);
        assert_eq!(clock.late_step_due_us(30 * SECOND), Some(30 * SECOND), "without a second of waiting");
        // If it could not be done, it is not tried again and again without a pause; what it made to be done is done.
        clock.nothing_to_do();
        clock.step_begins(31 * SECOND);
        assert_eq!(clock.late_step_due_us(30 * SECOND), Some(31 * SECOND + 15_000));
        assert_eq!(clock.step_due_us(), Some(32 * SECOND));
    }

    #[test]
    fn the_wait_is_not_usable_time() {
        let mut clock = clock();
        assert_eq!(clock.request_begin(500_000), 0);
        clock.request_end(600_000);
        assert_eq!(clock.request_begin(9 * SECOND), 9 * SECOND - 600_000 - SECOND);
        // A request within another one ends no gap.
        assert_eq!(clock.request_begin(20 * SECOND), 0);
    }
}
