//! A bar on the error stream for whatever takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandu_bench::runner::Plan;

const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of one piece of work. Nothing is shown in its first second, and nothing ever where the error stream is not
/// a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(label: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(label);
        set_style(&bar);
        Progress { bar, started: Instant::now(), shown: false }
    }

    /// Says how much of how much is done.
    pub(crate) fn set(&mut self, done: u64, total: u64) {
        if !self.shown && self.started.elapsed() >= PATIENCE {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if self.shown {
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn set_style(bar: &ProgressBar) {
    // The template is a constant; should it not be understood, the default bar does as well.
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:32}] {percent} %") {
        bar.set_style(style.progress_chars("=> "));
    }
}

/// Pieces that a bar of an experiment has for each of its parts.
const PIECES: u64 = 1000;

/// Progress of experiments that run at the same time: a bar for each that has begun and not ended.
pub(crate) struct Bars {
    bars: MultiProgress,
    experiments: Vec<ExperimentBar>,
    started: Instant,
}

struct ExperimentBar {
    label: &'static str,
    /// Pieces done of each part.
    parts: Vec<u64>,
    bar: Option<ProgressBar>,
}

impl Bars {
    pub(crate) fn new(plan: &Plan) -> Bars {
        let experiments = plan.experiments.iter().enumerate();
        let experiments = experiments.map(|(index, experiment)| ExperimentBar {
            label: experiment.name,
            parts: vec![0; plan.part_count(index)],
            bar: None,
        });
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Bars { bars, experiments: experiments.collect(), started: Instant::now() }
    }

    /// Says how much of a part of an experiment is done.
    pub(crate) fn set(&mut self, experiment_index: usize, part_index: usize, done: u64, total: u64) {
        let experiment = &mut self.experiments[experiment_index];
        experiment.parts[part_index] = done.saturating_mul(PIECES) / total.max(1);
        let done: u64 = experiment.parts.iter().sum();
        let total = experiment.parts.len() as u64 * PIECES;
        if done >= total {
            if let Some(bar) = experiment.bar.take() {
                bar.finish_and_clear();
                self.bars.remove(&bar);
            }
        } else if self.started.elapsed() >= PATIENCE {
            let bar = experiment.bar.get_or_insert_with(|| {
                let bar = self.bars.add(ProgressBar::new(total).with_message(experiment.label));
                set_style(&bar);
                bar
            });
            bar.set_position(done);
        }
    }

    /// Takes the bars away while something is printed.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bars.suspend(print)
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        for bar in self.experiments.iter_mut().filter_map(|experiment| experiment.bar.take()) {
            bar.finish_and_clear();
        }
    }
}
