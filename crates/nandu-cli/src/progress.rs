//! A bar on the error stream for whatever takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
        // The template is a constant; should it not be understood, the default bar does as well.
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:32}] {percent} %") {
            bar.set_style(style.progress_chars("=> "));
        }
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
