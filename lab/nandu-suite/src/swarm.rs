//! Lives on every core, as many as somebody asks for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::counts::{self, Tried};
use crate::lives::Count;

/// Lives of every core, counted together.
struct Swarm {
    cases: u64,
    seed: u64,
    started: Instant,
    /// Lives begun.
    begun: AtomicU64,
    done: Mutex<Count>,
    /// Some life has failed: the others need not go on.
    has_failed: AtomicBool,
}

impl Swarm {
    /// Lives one life after another.
    fn run(&self, live: impl Fn(u64) -> Count) {
        let stop = StopOthers(&self.has_failed);
        while !self.has_failed.load(Ordering::Relaxed) && self.done.lock().unwrap().cuts < self.cases {
            let count = live((self.seed << 40) + self.begun.fetch_add(1, Ordering::Relaxed));
            let mut done = self.done.lock().unwrap();
            let step = (self.cases / 1_000).max(1);
            let is_shown = done.cuts / step < (done.cuts + count.cuts) / step;
            *done += count;
            // Once for each thousandth, so that a file that this goes to stays small.
            if is_shown {
                eprint!("\r{} of {} cuts, {:.0} s", done.cuts, self.cases, self.started.elapsed().as_secs_f64());
            }
        }
        drop(stop);
    }
}

/// Says so when a life fails.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Lives on every core until as many cuts were checked as `NANDU_SWARM_CASES` says, from `NANDU_SWARM_SEED` on; or the one life that `NANDU_LIFE` names.
/// Each core makes a world of its own, which lives the life of a seed. What lives, and the command that lets it, are for the [page of counts](counts).
pub fn swarm<L: Fn(u64) -> Count>((what, command): (&str, &str), world: impl Fn() -> L + Sync) {
    let from_environment = |name| std::env::var(name).map(|value| value.parse::<u64>().unwrap());
    if let Ok(seed) = from_environment("NANDU_LIFE") {
        println!("{} cuts in life {seed}: nothing was lost", world()(seed).cuts);
        return;
    }
    let swarm = Swarm {
        cases: from_environment("NANDU_SWARM_CASES").unwrap_or(1_000_000),
        seed: from_environment("NANDU_SWARM_SEED").unwrap_or(1),
        started: Instant::now(),
        begun: AtomicU64::new(0),
        done: Mutex::new(Count::default()),
        has_failed: AtomicBool::new(false),
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| swarm.run(world()));
        }
    });
    eprintln!();
    let (lives, done) = (swarm.begun.into_inner(), swarm.done.into_inner().unwrap());
    println!("seed {}", swarm.seed);
    let Count { cuts, erases, nested, tails, .. } = done;
    let counts = [
        (lives, "lives"),
        (cuts, "cuts"),
        (erases, "of erases"),
        (nested, "in recoveries"),
        (tails, "with pages that only tags told of"),
    ];
    Tried { promise: counts::KEPT, what, against: counts::CUTS, command, counts: &counts }.tell();
}
