//! A promised lifetime, kept by a budget of programs for each span of time.
//!
//! What goes to SLC blocks is programmed twice, and in an SLC block a page takes the room of two: three pages of wear for a page of the
//! host's. Where that would wear the chip out before its time, a smaller share goes there. From FlexFS, section 4.2 of its
//! paper, equations 5 to 9.

use crate::{Region, Share};

/// Windows whose mean says how much the host will write in the next one.
const MEMORY: usize = 3;

/// What is promised, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WearPromise {
    /// Pages of wear that the chip has: pages in MLC mode times the erases that a block stands (`Ctotal * Ecycles`).
    pub budget_pages: u64,
    /// Length of a window, microseconds (`Ts`).
    pub window_us: u64,
    /// How many windows the lifetime has (`Lmin / Ts`).
    pub window_count: u64,
}

impl WearPromise {
    /// The promise that a chip of so many pages in MLC mode, whose blocks stand so many erases, lasts so long. Windows are ten minutes
    /// where nothing else is wanted. Times in seconds.
    pub const fn new(mlc_pages: u64, endurance: u32, lifetime_s: u64, window_s: u64) -> WearPromise {
        let window_s = if window_s == 0 { 1 } else { window_s };
        WearPromise {
            budget_pages: mlc_pages.saturating_mul(endurance as u64),
            window_us: window_s * 1_000_000,
            window_count: lifetime_s / window_s,
        }
    }
}

/// What of the promise was used up: to be kept on flash, in the checkpoint, and over a new format of the chip, which does not make it
/// younger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearUsed {
    /// Pages of wear (`W`): a page programmed in an SLC block counts two, in an MLC block one. Metadata and moved pages count, too.
    pub pages: u64,
    /// Windows that are over.
    pub windows: u64,
}

/// The budget.
#[derive(Clone, Debug)]
pub struct WearBudget {
    promise: WearPromise,
    used: WearUsed,
    /// When the window began.
    since_us: u64,
    /// What the host wrote in the open window.
    open: Window,
    /// Closed windows, the newest first.
    history: [Window; MEMORY],
    history_count: usize,
    delta: Share,
}

/// What a window saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    /// Pages that the host wrote.
    host_pages: u64,
    /// Pages of wear that equation 8 says of them.
    expected: u64,
    /// Pages of wear that there were; of the open window those used before it.
    worn: u64,
}

impl WearBudget {
    /// Goes on from what was used. The window that was open when the chip lost power begins anew, and time without power does not
    /// count: both make the budget last longer than promised, not shorter.
    pub fn new(promise: WearPromise, used: WearUsed, now_us: u64) -> WearBudget {
        WearBudget {
            promise,
            used,
            since_us: now_us,
            open: Window { worn: used.pages, ..Window::default() },
            history: [Window::default(); MEMORY],
            history_count: 0,
            delta: Share::ONE,
        }
    }

    /// What was used, to be kept.
    pub fn used(&self) -> WearUsed {
        self.used
    }

    /// Says what was used by another account, as the erases of all blocks are one: a block erased counts as many pages as it has in
    /// MLC mode. Never less than before.
    pub fn account(&mut self, pages: u64) {
        self.used.pages = self.used.pages.max(pages);
    }

    /// Whether a window is over, so that [`advance`](WearBudget::advance) finds a new index.
    pub fn is_over(&self, now_us: u64) -> bool {
        now_us.saturating_sub(self.since_us) >= self.promise.window_us
    }

    /// What is promised.
    pub fn promise(&self) -> &WearPromise {
        &self.promise
    }

    /// The wear index: the share of the host's pages that may go to SLC blocks in this window.
    pub fn delta(&self) -> Share {
        self.delta
    }

    /// Notes a page that the host wrote: one in an SLC block takes two pages there and another one when it is moved.
    pub fn host_wrote(&mut self, region: Region) {
        self.open.host_pages += 1;
        self.open.expected += match region {
            Region::Slc => 3,
            Region::Mlc => 1,
        };
    }

    /// Notes pages programmed or left out in a block of this region, by whomever.
    pub fn programmed(&mut self, region: Region, pages: u64) {
        self.used.pages += match region {
            Region::Slc => 2 * pages,
            Region::Mlc => pages,
        };
    }

    /// Closes the windows that are over and finds the index of the new one; says whether there is a new one. However long ago the
    /// last call was, it takes the same time.
    pub fn advance(&mut self, now_us: u64) -> bool {
        let passed = now_us.saturating_sub(self.since_us).checked_div(self.promise.window_us).unwrap_or(0);
        if passed == 0 {
            return false;
        }
        self.since_us += passed * self.promise.window_us;
        self.used.windows = self.used.windows.saturating_add(passed);
        let closed = Window { worn: self.used.pages - self.open.worn, ..self.open };
        // Of more windows than are remembered, those before them make no difference.
        for nth in 0..passed.min(MEMORY as u64 + 1) {
            self.history.rotate_right(1);
            self.history[0] = if nth == 0 { closed } else { Window::default() };
            self.history_count = (self.history_count + 1).min(MEMORY);
        }
        self.open = Window { worn: self.used.pages, ..Window::default() };
        self.delta = self.index();
        true
    }

    /// The share of what was promised that was not used.
    pub fn left(&self) -> Share {
        Share::of(self.promise.budget_pages.saturating_sub(self.used.pages), self.promise.budget_pages)
    }

    /// Pages of wear for the open window (equation 7): an equal share of what is left for each window that is left. When the
    /// promised time is over, all that is left may be used.
    pub fn window_budget(&self) -> u64 {
        let left = self.promise.budget_pages.saturating_sub(self.used.pages);
        left / self.promise.window_count.saturating_sub(self.used.windows).max(1)
    }

    /// Equation 9, solved from 8: `IW` pages of the host take `IW * (2 * delta + 1)` pages of wear; and by as much more as there was in
    /// the windows that are remembered, for what the equation knows nothing of: commits, collected pages, levelling, pages left out. Equation 7
    /// would make up for that in the windows that follow, but after the last there is none.
    fn index(&self) -> Share {
        let windows = &self.history[..self.history_count];
        let sum = |what: fn(&Window) -> u64| windows.iter().map(what).sum::<u64>();
        let host_pages = sum(|window| window.host_pages).checked_div(self.history_count as u64).unwrap_or(0);
        if host_pages == 0 {
            return Share::ONE;
        }
        let (expected, worn) = (sum(|window| window.expected), sum(|window| window.worn));
        let budget = u128::from(self.window_budget()) * u128::from(expected) / u128::from(worn.max(expected).max(1));
        match (budget as u64).checked_sub(host_pages) {
            None => Share::ZERO,
            Some(beyond) => Share::of(beyond, 2 * host_pages),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    const SECOND: u64 = 1_000_000;
    /// Pages of 4 KiB in a MiB.
    const MIB: u64 = 256;

    /// Runs the paper's ten windows of 400 s by the equations alone; returns the index of each, in hundredths, and the wear, in MiB.
    fn run(windows: &[u64]) -> (Vec<u32>, u64) {
        let promise = WearPromise::new(120 * MIB, 10, 4000, 400);
        let mut budget = WearBudget::new(promise, WearUsed::default(), 0);
        let mut deltas = Vec::new();
        for (nth, size) in windows.iter().enumerate() {
            budget.advance(nth as u64 * 400 * SECOND);
            deltas.push((budget.delta().millionths() + 5000) / 10_000);
            let pages = size * MIB;
            let slc = budget.delta().times(pages);
            (0..pages).for_each(|page| budget.host_wrote(if page < slc { Region::Slc } else { Region::Mlc }));
            budget.programmed(Region::Slc, slc);
            budget.programmed(Region::Mlc, slc);
            budget.programmed(Region::Mlc, pages - slc);
        }
        (deltas, budget.used().pages / MIB)
    }

    #[test]
    fn the_papers_ten_windows_end_within_the_promise() {
        let (deltas, wear) = run(&[40, 40, 40, 80, 80, 20, 20, 40, 40, 40]);
        assert_eq!(deltas, [100, 100, 100, 100, 44, 18, 38, 100, 100, 100]);
        assert_eq!(wear, 1172);
    }

    #[test]
    fn what_the_equation_knows_nothing_of_is_allowed_for_so_that_the_share_is_the_same_from_the_first_window_to_the_last()
     {
        let promise = WearPromise::new(100 * 2000, 1, 100, 1);
        let mut budget = WearBudget::new(promise, WearUsed::default(), 0);
        let mut deltas = Vec::new();
        for nth in 0..100 {
            budget.advance(nth * SECOND);
            deltas.push(budget.delta().millionths());
            let slc = budget.delta().times(1000);
            (0..1000).for_each(|page| budget.host_wrote(if page < slc { Region::Slc } else { Region::Mlc }));
            // A tenth more than the 1000 pages and the two for each that went to an SLC block.
            budget.programmed(Region::Mlc, (1000 + 2 * slc) * 11 / 10);
        }
        // In the first there was nothing to know it from.
        assert_eq!(deltas[0], 1_000_000);
        assert!(deltas[1..95].iter().all(|delta| (402_000..408_000).contains(delta)), "{deltas:?}");
        let used = budget.used().pages;
        assert!((199_000..=200_000).contains(&used), "{used}");
    }

    #[test]
    fn when_the_host_writes_more_than_the_budget_everything_goes_to_mlc() {
        let (deltas, _) = run(&[200, 200, 200]);
        assert_eq!(deltas, [100, 0, 0]);
    }

    #[test]
    fn what_was_used_outlasts_a_mount_and_time_without_power_does_not_count() {
        let promise = WearPromise::new(100, 10, 1000, 100);
        let mut budget = WearBudget::new(promise, WearUsed::default(), 5 * SECOND);
        budget.programmed(Region::Slc, 100);
        assert!(!budget.advance(104 * SECOND));
        assert!(budget.advance(105 * SECOND));
        assert_eq!(budget.window_budget(), 800 / 9);
        let kept = budget.used();
        assert_eq!(kept, WearUsed { pages: 200, windows: 1 });
        let mut again = WearBudget::new(promise, kept, 70_000 * SECOND);
        assert!(!again.advance(70_099 * SECOND));
        assert_eq!(again.window_budget(), 800 / 9);
        assert_eq!(again.delta(), Share::ONE);
    }

    #[test]
    fn long_silence_is_passed_over_in_one_step_and_the_end_of_the_promise_too() {
        let promise = WearPromise::new(1 << 40, 1, 10_000, 100);
        let mut budget = WearBudget::new(promise, WearUsed { pages: (1 << 40) - 30, windows: 0 }, 0);
        (0..60).for_each(|_| budget.host_wrote(Region::Mlc));
        assert!(budget.advance(200 * SECOND));
        assert_eq!(budget.delta(), Share::ZERO, "30 pages are expected, and fewer are left");
        assert!(budget.advance(u64::MAX));
        assert_eq!(budget.delta(), Share::ONE, "nothing is expected");
        assert_eq!(budget.window_budget(), 30);
    }
}
