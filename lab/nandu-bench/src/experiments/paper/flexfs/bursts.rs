//! The loads of the paper's section 5.1.1: bursts of 4 MiB, so many seconds apart.

use nandu::fs::placement::{Class, Hotness, PlacementOptions, Policy, Reference};
use nandu_sim::Chip;

use crate::flexfs::{Choice, Done, Setup, Volume};
use crate::{BenchError, Context};

/// Pages of a burst: 4 MiB, as many as a window of dynamic allocation has.
pub(super) const BURST_PAGES: u64 = 1024;
pub(super) const MIB: f64 = 1_048_576.0;
/// Time of the processor of the paper's board for a page of the host, microseconds: what makes its SLC throughput come out.
pub(super) const HOST_CPU_US: u64 = 855;
/// The same for a page that is moved: with it the mean move takes the 1.5 ms that the paper's idle shares imply.
pub(super) const MOVE_CPU_US: u64 = 97;
/// The file whose pages are written again and again.
pub(super) const HOT_INO: u32 = 1;
/// Its pages: 1 MiB.
pub(super) const HOT_PAGES: u64 = 256;
/// The first of the files that are written once, one in each burst.
pub(super) const COLD_INO: u32 = 100;

/// What is written.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) period_s: u64,
    /// Every fourth page goes to the hot file.
    pub(super) has_hot: bool,
    pub(super) until: Until,
}

/// When a load ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// So many percent of the capacity were written.
    Written(u64),
    /// So many percent of the capacity live.
    Live(u64),
}

pub(super) const IDLE: Load = Load { period_s: 25, has_hot: false, until: Until::Written(95) };
pub(super) const BUSY: Load = Load { period_s: 10, ..IDLE };
pub(super) const LOCALITY: Load = Load { has_hot: true, ..BUSY };

/// The scheme of an experiment.
#[derive(Clone, Copy)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) policy: Policy,
    pub(super) is_urgent_paced: bool,
}

impl Scheme {
    /// As the paper has it: no cap, one SLC block for hot and cold pages, and compulsory migration paced.
    pub(super) const fn published(name: &'static str, policy: Policy) -> Scheme {
        Scheme { name, policy: policy.published(), is_urgent_paced: true }
    }

    /// With what nandu decides otherwise.
    pub(super) const fn decided(name: &'static str, policy: Policy) -> Scheme {
        Scheme { name, policy, is_urgent_paced: false }
    }
}

/// What a burst was like.
#[derive(Clone, Copy)]
pub(super) struct Burst {
    pub(super) pages: u64,
    /// Time within requests.
    pub(super) busy_us: u64,
    /// Share of the capacity that was written when it ended, percent.
    pub(super) written: f64,
    /// What idle time permitted.
    pub(super) alpha: f64,
    pub(super) free_blocks: u32,
}

impl Burst {
    pub(super) fn mb_per_s(&self) -> f64 {
        rate(self.pages, self.busy_us)
    }
}

/// MiB per second.
pub(super) fn rate(pages: u64, busy_us: u64) -> f64 {
    pages as f64 * 4096.0 / MIB / (busy_us as f64 / 1e6)
}

/// What all bursts together reached.
pub(super) fn rate_of(bursts: &[Burst]) -> f64 {
    rate(bursts.iter().map(|burst| burst.pages).sum(), bursts.iter().map(|burst| burst.busy_us).sum())
}

/// A run.
pub(super) struct Run {
    pub(super) bursts: Vec<Burst>,
    pub(super) done: Done,
}

impl Run {
    /// The first burst that is slower than nine tenths of the first.
    pub(super) fn fall(&self) -> Option<usize> {
        let full = self.bursts.first()?.mb_per_s();
        self.bursts.iter().position(|burst| burst.mb_per_s() < 0.9 * full)
    }

    pub(super) fn slowest(&self) -> f64 {
        self.bursts.iter().map(Burst::mb_per_s).fold(f64::INFINITY, f64::min)
    }
}

/// The setup of the experiments with a chip of so many blocks: the paper's board.
pub(super) fn setup(scheme: &Scheme, blocks: u32, context: &Context<'_>) -> Setup {
    // Without a cap there is no need to collect for it.
    let gc_free_blocks = if scheme.policy.cap { PlacementOptions::DEFAULT.gc_free_blocks } else { 16 };
    Setup {
        chip: Chip::PAPER_FLEX.with_blocks(blocks),
        placement: PlacementOptions { policy: scheme.policy, gc_free_blocks, ..PlacementOptions::DEFAULT },
        promise: None,
        host_cpu_us: HOST_CPU_US,
        move_cpu_us: MOVE_CPU_US,
        is_urgent_paced: scheme.is_urgent_paced,
        choice: Choice::LeastWorn,
        forced: None,
        seed: context.seed,
    }
}

/// Memory for the queues that tell hot files from others.
pub(super) fn queues() -> Vec<Reference> {
    vec![Reference::default(); Hotness::HOT_COUNT + Hotness::COLD_COUNT]
}

/// Runs a load on 64 MiB. In a small run on 24 MiB, which is filled less: as many blocks have to be free there, so they are a larger part.
pub(super) fn run(scheme: &Scheme, load: Load, context: &mut Context<'_>) -> Result<Run, BenchError> {
    let blocks = context.scaled(128, 48);
    let mut memory = queues();
    let mut volume = Volume::format(setup(scheme, blocks, context), &mut memory)?;
    let capacity = u64::from(blocks) * 128;
    let room = context.scaled(capacity, capacity * 5 / 6);
    let (mut written, mut bursts) = (0, Vec::new());
    let since_us = volume.now_us();
    let mut is_over = false;
    while !is_over {
        let nth = bursts.len() as u64;
        volume.idle_until(since_us + nth * load.period_s * 1_000_000)?;
        let begun_us = volume.now_us();
        let before = written;
        let mut cold = 0;
        for place in 0..BURST_PAGES {
            if load.has_hot && place % 4 == 3 {
                volume.write(HOT_INO, (place / 4 % HOT_PAGES) as u32, Class::Normal)?;
            } else {
                volume.write(COLD_INO + nth as u32, cold, Class::Normal)?;
                cold += 1;
            }
            written += 1;
            let (done, percent) = match load.until {
                Until::Written(percent) => (written, percent),
                Until::Live(percent) => (volume.live_pages(), percent),
            };
            is_over = done * 100 >= room * percent;
            if is_over {
                break;
            }
        }
        bursts.push(Burst {
            pages: written - before,
            busy_us: volume.now_us() - begun_us,
            written: written as f64 * 100.0 / capacity as f64,
            alpha: f64::from(volume.placement().allocation().alpha().millionths()) / 1e6,
            free_blocks: volume.free_blocks(),
        });
        context.tell(written.min(room), room);
    }
    volume.verify()?;
    Ok(Run { bursts, done: volume.done() })
}
