//! Dynamic allocation: which share of what the host writes goes to SLC blocks, and which to MLC blocks at once.
//!
//! What goes to SLC blocks has to be moved later, in idle time. So the share follows the idle time to be expected: that of the
//! last ten *windows*, each the time in which the host writes so many pages. From FlexFS (Lee and others, USENIX ATC 2009),
//! section 4.1.2 and 4.1.3; the weights, when a window is closed, what counts as idle, how pages are spread, and the cap are ours.

use crate::{PlacementOptions, Region, Share};

/// Windows that are remembered.
const WINDOW_COUNT: usize = 10;
/// What they weigh, the newest first. The paper says only that the newest three weigh more.
const WEIGHTS: [u64; WINDOW_COUNT] = [4, 3, 2, 1, 1, 1, 1, 1, 1, 1];

/// What is seen of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    /// Idle time that migration could have used, microseconds.
    idle_us: u64,
    /// Pages the host wrote.
    pages: u32,
    /// Of these, pages of hot files that went to SLC blocks.
    hot_pages: u32,
}

/// What else bounds the share, as it is when a window begins.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Free blocks, if the share is to be capped so that they last for the window.
    pub free_blocks: Option<u32>,
    /// The wear index, if wear is managed.
    pub delta: Option<Share>,
    /// Whether hot files are told from others.
    pub locality: bool,
}

/// The allocator. Nothing of it has to outlast a mount.
#[derive(Clone, Debug)]
pub struct Allocation {
    options: PlacementOptions,
    /// Closed windows, the newest first.
    windows: [Window; WINDOW_COUNT],
    window_count: usize,
    open: Window,
    /// Whether the shares below are those of the open window.
    is_begun: bool,
    alpha: Share,
    limited: Share,
    cold_rate: Share,
    /// What is left of a page that is owed to SLC blocks, in 65,536ths.
    carry: u32,
}

impl Allocation {
    /// Begins without a past: everything may go to SLC blocks, as far as the limits permit.
    pub const fn new(options: PlacementOptions) -> Allocation {
        Allocation {
            options,
            windows: [Window { idle_us: 0, pages: 0, hot_pages: 0 }; WINDOW_COUNT],
            window_count: 0,
            open: Window { idle_us: 0, pages: 0, hot_pages: 0 },
            is_begun: false,
            alpha: Share::ONE,
            limited: Share::ONE,
            cold_rate: Share::ONE,
            carry: 0,
        }
    }

    /// Notes idle time that migration could use, microseconds: a gap between requests less the waiting time at its beginning.
    pub fn idled(&mut self, usable_us: u64) {
        self.open.idle_us = self.open.idle_us.saturating_add(usable_us);
    }

    /// Where the next page of the host goes. The first page of a window closes the one before it, so that the gap between the two
    /// counts for it; were it closed by its last page, the first window would have seen no idle time, and alpha would begin
    /// at nothing.
    pub fn place(&mut self, is_hot: bool, limits: Limits) -> Region {
        self.begin(limits);
        self.open.pages += 1;
        if is_hot && limits.locality {
            // Where nothing may go to SLC blocks there is no room for hot pages either.
            if self.limited.is_zero() {
                return Region::Mlc;
            }
            self.open.hot_pages += 1;
            return Region::Slc;
        }
        // Spread evenly, not first all that goes to one region and then the rest: so a burst that is shorter than a window has its
        // share of both.
        self.carry += self.cold_rate.parts();
        if self.carry >= Share::ONE.parts() {
            self.carry -= Share::ONE.parts();
            Region::Slc
        } else {
            Region::Mlc
        }
    }

    /// Counts a page of the host whose place was not free to choose, as one that has to be durable when the call returns. Says
    /// whether there is room for it in SLC blocks.
    pub fn place_synced(&mut self, is_hot: bool, limits: Limits) -> Region {
        self.begin(limits);
        self.open.pages += 1;
        if self.cap(limits, 1).is_zero() {
            return Region::Mlc;
        }
        self.open.hot_pages += u32::from(is_hot && limits.locality);
        Region::Slc
    }

    /// The share for SLC blocks that idle time permits, of the open window (equation 1).
    pub fn alpha(&self) -> Share {
        self.alpha
    }

    /// The same as the limits leave it.
    pub fn limited(&self) -> Share {
        self.limited
    }

    /// Idle time expected for the next window, microseconds: a mean of those seen, in which newer ones weigh more. `None` if none
    /// was seen.
    pub fn predicted_idle_us(&self) -> Option<u64> {
        let known = self.windows[..self.window_count].iter().zip(WEIGHTS);
        let (sum, weight) = known.fold((0u128, 0u64), |(sum, all), (window, weight)| {
            (sum + u128::from(window.idle_us) * u128::from(weight), all + weight)
        });
        (weight > 0).then(|| (sum / u128::from(weight)) as u64)
    }

    /// Time to migrate so many pages and to erase their blocks, microseconds (equations 2 and 4).
    pub fn migration_us(&self, pages: u32) -> u64 {
        let pages = u64::from(pages);
        pages * self.options.step_period_us
            + pages * self.options.slc_erase_us / u64::from(self.options.slc_pages_per_block.max(1))
    }

    /// Closes the window if it is full, and finds the shares of the new one.
    fn begin(&mut self, limits: Limits) {
        if self.open.pages >= self.options.window_pages {
            self.windows.rotate_right(1);
            self.windows[0] = self.open;
            self.window_count = (self.window_count + 1).min(WINDOW_COUNT);
            self.open = Window::default();
            self.is_begun = false;
        }
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let window_pages = self.options.window_pages;
        let hot_pages = if limits.locality { self.hot_pages() } else { 0 };
        self.alpha = match self.predicted_idle_us() {
            None => Share::ONE,
            Some(idle_us) => Share::of(idle_us, self.migration_us(window_pages - hot_pages)),
        };
        self.limited = self.alpha.min(limits.delta.unwrap_or(Share::ONE)).min(self.cap(limits, 1));
        // Of cold pages less, so that another window fits. Where idle time is scarce, pages that were not migrated before keep their
        // blocks over windows without end, since alpha takes all the idle time there is for new ones; closing SLC blocks to
        // cold pages a window early gives it to the old ones. Hot pages need no migration, and dead in MLC blocks they do harm.
        let cold = self.limited.min(self.cap(limits, 2));
        // Hot pages go to SLC blocks anyway, so the others get what is left of the share.
        let cold_pages = cold.times(u64::from(window_pages)).saturating_sub(u64::from(hot_pages));
        self.cold_rate = match hot_pages {
            0 => cold,
            _ => Share::of(cold_pages, u64::from(window_pages - hot_pages)),
        };
    }

    /// Hot pages to be expected: the mean of the windows, but fewer than a window has.
    fn hot_pages(&self) -> u32 {
        let sum: u64 = self.windows[..self.window_count].iter().map(|window| u64::from(window.hot_pages)).sum();
        let mean = sum.checked_div(self.window_count as u64).unwrap_or(0) as u32;
        mean.min(self.options.window_pages - 1)
    }

    /// The greatest share with which the free blocks do not fall below their minimum while so many windows are written, this one with
    /// the share and the others to MLC blocks. It sends pages to MLC blocks directly instead of having the host wait until others
    /// are migrated.
    fn cap(&self, limits: Limits, windows: u64) -> Share {
        let Some(free_blocks) = limits.free_blocks else { return Share::ONE };
        let spare = u64::from(free_blocks.saturating_sub(self.options.free_blocks_min));
        let pages = spare * u64::from(self.options.mlc_pages_per_block);
        let window = u64::from(self.options.window_pages);
        match pages.checked_sub(windows * window) {
            None => Share::ZERO,
            Some(beyond) => Share::of(beyond, window),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    const FREE: Limits = Limits { free_blocks: None, delta: None, locality: false };

    fn allocation() -> Allocation {
        Allocation::new(PlacementOptions::DEFAULT)
    }

    /// Writes a window of which the first so many pages are hot; returns how many went to SLC blocks.
    fn window(allocation: &mut Allocation, hot_pages: u32, limits: Limits) -> u32 {
        (0..1024).filter(|&page| allocation.place(page < hot_pages, limits) == Region::Slc).count() as u32
    }

    fn alphas(gaps_us: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let mut allocation = allocation();
        window(&mut allocation, 0, FREE);
        let each = gaps_us.into_iter().map(|gap_us| {
            allocation.idled(gap_us);
            window(&mut allocation, 0, FREE);
            (allocation.alpha().millionths() + 5000) / 10_000
        });
        each.collect()
    }

    #[test]
    fn alpha_is_idle_time_over_migration_time() {
        assert_eq!(allocation().migration_us(1024), 15_373_952);
        assert_eq!(alphas([7_400_000]), [48]);
        assert_eq!(alphas([15_373_952]), [100]);
        assert_eq!(alphas([0]), [0]);
    }

    #[test]
    fn hot_pages_need_no_migration_so_the_share_grows() {
        let mut allocation = allocation();
        let limits = Limits { locality: true, ..FREE };
        window(&mut allocation, 256, limits);
        allocation.idled(7_400_000);
        let slc = window(&mut allocation, 256, limits);
        assert_eq!(allocation.migration_us(1024 - 256), 11_530_464);
        assert_eq!((allocation.alpha().millionths() + 5000) / 10_000, 64);
        // As many as the share says, the hot ones included, but for the page that is owed to the next window.
        assert!(slc.abs_diff(allocation.alpha().times(1024) as u32) <= 1, "{slc}");
    }

    #[test]
    fn when_gaps_become_short_alpha_follows_within_ten_windows() {
        // Gaps of 23.7 s, then of 8.5 s, each less the waiting time of a second.
        let long = alphas([22_700_000; 10]);
        assert_eq!(long, [100; 10]);
        let gaps = [22_700_000; 10].into_iter().chain([7_500_000; 10]);
        assert_eq!(alphas(gaps)[10..], [100, 100, 92, 86, 80, 74, 67, 61, 55, 49]);
    }

    #[test]
    fn the_cap_leaves_room_for_a_window_in_mlc_blocks() {
        // A window takes 16 blocks in SLC mode or 8 in MLC mode, and another 8 are to be left.
        for (spare, share) in [(24, 1024), (20, 512), (16, 0), (3, 0), (400, 1024)] {
            let mut allocation = allocation();
            let slc = window(&mut allocation, 0, Limits { free_blocks: Some(5 + spare), ..FREE });
            assert_eq!(slc, share, "{spare} blocks to spare");
            assert_eq!(allocation.alpha(), Share::ONE);
        }
        // Hot pages and synced ones go there as long as this window has room.
        let little = Limits { free_blocks: Some(5 + 9), locality: true, ..FREE };
        assert_eq!([true, false].map(|is_hot| allocation().place(is_hot, little)), [Region::Slc, Region::Mlc]);
        assert_eq!(allocation().place_synced(false, little), Region::Slc);
        // Without room not even these.
        let none = Limits { free_blocks: Some(5), locality: true, ..FREE };
        let mut allocation = allocation();
        assert_eq!(allocation.place(true, none), Region::Mlc);
        assert_eq!(allocation.place_synced(true, none), Region::Mlc);
    }

    #[test]
    fn synced_pages_go_to_slc_blocks_whatever_idle_time_and_wear_permit() {
        let mut allocation = allocation();
        let worn = Limits { delta: Some(Share::ZERO), free_blocks: Some(100), ..FREE };
        assert_eq!(window(&mut allocation, 0, worn), 0);
        assert_eq!(allocation.place_synced(false, worn), Region::Slc);
        assert_eq!(allocation.place(false, worn), Region::Mlc);
    }

    #[test]
    fn pages_are_spread_evenly_and_none_is_lost_between_windows() {
        let mut allocation = allocation();
        let third = Limits { delta: Some(Share::of(1, 3)), ..FREE };
        let place = |_| {
            allocation.idled(1_000_000);
            allocation.place(false, third)
        };
        let places: Vec<Region> = (0..3072).map(place).collect();
        let slc = places.iter().filter(|place| **place == Region::Slc).count();
        assert!((1023..=1024).contains(&slc), "{slc}");
        // Of any four pages one or two.
        for four in places.windows(4) {
            let slc = four.iter().filter(|place| **place == Region::Slc).count();
            assert!((1..=2).contains(&slc));
        }
    }
}
