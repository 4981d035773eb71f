//! Runs experiments on all cores: parts at the same time, results in order.
//!
//! The parts of all experiments asked for, with all seeds, form one queue that is worked off from the front. Results are
//! handed on in the order of the queue, however they come in, so that the same run prints the same bytes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::{BenchError, Context, Experiment, Figure, Scale};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiments.
    pub experiments: Vec<&'static Experiment>,
    /// Each experiment is run with each of them.
    pub seeds: Range<u64>,
    /// How much of each is run.
    pub scale: Scale,
    /// How many parts run at the same time, at least one.
    pub thread_count: usize,
}

/// What happens in a run.
#[derive(Debug)]
pub enum Event {
    /// A part has come this far.
    Progress {
        /// Where the experiment stands in the plan.
        experiment_index: usize,
        /// Where this part of it, with this seed, stands among all its parts with all seeds.
        part_index: usize,
        /// Pieces done.
        done: u64,
        /// Pieces in all; as many as are done when the part has ended.
        total: u64,
    },
    /// An experiment with a seed has ended. These come in the order of the plan.
    Ended(Run),
}

/// An experiment that was run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which one.
    pub experiment: &'static Experiment,
    /// With which seed.
    pub seed: u64,
    /// What it found, part by part.
    pub figures: Vec<Figure>,
}

/// Which experiment failed, and why.
#[derive(Debug, thiserror::Error)]
#[error("{experiment}, seed {seed}: {error}")]
pub struct RunError {
    /// Its name.
    pub experiment: &'static str,
    /// The seed with which it failed.
    pub seed: u64,
    /// Why.
    pub error: BenchError,
}

impl Plan {
    /// Experiments with one seed at full scale, on as many threads as the machine has cores.
    pub fn new(experiments: Vec<&'static Experiment>, seed: u64) -> Plan {
        let thread_count = thread::available_parallelism().map_or(1, usize::from);
        Plan { experiments, seeds: seed..seed.saturating_add(1), scale: Scale::Full, thread_count }
    }

    /// How many parts an experiment of the plan has, over all seeds.
    pub fn part_count(&self, experiment_index: usize) -> usize {
        self.experiments[experiment_index].parts * self.seeds.clone().count()
    }

    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (experiment_index, experiment) in self.experiments.iter().enumerate() {
            let mut part_index = 0;
            for seed in self.seeds.clone() {
                for part in 0..experiment.parts {
                    let is_last = part + 1 == experiment.parts;
                    jobs.push(Job { experiment, experiment_index, seed, part, part_index, is_last });
                    part_index += 1;
                }
            }
        }
        jobs
    }
}

/// A part of an experiment with a seed.
#[derive(Clone, Copy)]
struct Job {
    experiment: &'static Experiment,
    experiment_index: usize,
    seed: u64,
    part: usize,
    part_index: usize,
    /// Whether the experiment ends with it.
    is_last: bool,
}

enum Message {
    Progress { job: usize, done: u64, total: u64 },
    Ended { job: usize, outcome: Result<Vec<Figure>, BenchError> },
}

/// Runs a plan and says what happens. The first error in the order of the plan ends it, as does one of `tell`.
///
/// # Errors
///
/// [`RunError`], or what `tell` returned.
pub fn run<E: From<RunError>>(plan: &Plan, tell: &mut dyn FnMut(Event) -> Result<(), E>) -> Result<(), E> {
    let jobs = plan.jobs();
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let queue = Queue { jobs: &jobs, scale: plan.scale, next, is_over };
    let (sender, messages) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..plan.thread_count.clamp(1, jobs.len().max(1)) {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || queue.work(&sender));
        }
        drop(sender);
        let mut results = Results::new(&jobs);
        let outcome = messages.iter().try_for_each(|message| results.take(message, tell));
        // What has begun is finished by its thread; nothing else is begun.
        queue.is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

struct Queue<'q> {
    jobs: &'q [Job],
    scale: Scale,
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl Queue<'_> {
    fn work(&self, sender: &Sender<Message>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(index) else { return };
            // Nobody listens any more only when the run is over.
            let mut progress = |done, total| {
                let _ = sender.send(Message::Progress { job: index, done, total });
            };
            let mut context = Context { seed: job.seed, scale: self.scale, progress: Some(&mut progress) };
            let outcome = job.experiment.run_part(&mut context, job.part);
            if outcome.is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            let _ = sender.send(Message::Ended { job: index, outcome });
        }
    }
}

/// Brings results into the order of the queue.
struct Results<'q> {
    jobs: &'q [Job],
    outcomes: Vec<Option<Result<Vec<Figure>, BenchError>>>,
    /// The first job whose result was not handed on.
    next: usize,
    /// Figures of the experiment that it belongs to, from its earlier parts.
    figures: Vec<Figure>,
}

impl<'q> Results<'q> {
    fn new(jobs: &'q [Job]) -> Results<'q> {
        Results { jobs, outcomes: jobs.iter().map(|_| None).collect(), next: 0, figures: Vec::new() }
    }

    fn take<E: From<RunError>>(
        &mut self,
        message: Message,
        tell: &mut dyn FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        match message {
            Message::Progress { job, done, total } => tell(self.progress(job, done, total)),
            Message::Ended { job, outcome } => {
                self.outcomes[job] = Some(outcome);
                tell(self.progress(job, 1, 1))?;
                self.hand_on(tell)
            }
        }
    }

    fn progress(&self, job: usize, done: u64, total: u64) -> Event {
        let Job { experiment_index, part_index, .. } = self.jobs[job];
        Event::Progress { experiment_index, part_index, done, total }
    }

    fn hand_on<E: From<RunError>>(&mut self, tell: &mut dyn FnMut(Event) -> Result<(), E>) -> Result<(), E> {
        while let Some(outcome) = self.outcomes.get_mut(self.next).and_then(Option::take) {
            let Job { experiment, seed, is_last, .. } = self.jobs[self.next];
            self.next += 1;
            let figures = outcome.map_err(|error| RunError { experiment: experiment.name, seed, error })?;
            self.figures.extend(figures);
            if is_last {
                tell(Event::Ended(Run { experiment, seed, figures: std::mem::take(&mut self.figures) }))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Five parts, of which later ones are done sooner; the fourth fails with seed 9.
    static SLOW_FIRST: Experiment = Experiment {
        name: "test/slow-first",
        parts: 5,
        run: |context, part| {
            context.tell(1, 2);
            thread::sleep(Duration::from_millis(5 * (5 - part as u64)));
            if context.seed == 9 && part >= 3 {
                return Err(BenchError::Wrong(part as u32));
            }
            let value = context.seed as f64 * 10.0 + part as f64;
            Ok(vec![Figure::new("test/slow-first", &part.to_string(), "x", value, "reads")])
        },
        ..Experiment::PLAIN
    };

    fn ended(plan: &Plan) -> Result<Vec<(u64, Vec<f64>)>, RunError> {
        let mut runs = Vec::new();
        run(plan, &mut |event| {
            if let Event::Ended(run) = event {
                runs.push((run.seed, run.figures.iter().map(|figure| figure.value).collect()));
            }
            Ok(())
        })
        .map(|()| runs)
    }

    fn plan(seeds: Range<u64>, thread_count: usize) -> Plan {
        Plan { experiments: vec![&SLOW_FIRST], seeds, scale: Scale::Full, thread_count }
    }

    #[test]
    fn results_come_in_the_order_of_the_plan_on_any_number_of_threads() {
        let expected = vec![(0, vec![0.0, 1.0, 2.0, 3.0, 4.0]), (1, vec![10.0, 11.0, 12.0, 13.0, 14.0])];
        for thread_count in [0, 1, 3, 100] {
            assert_eq!(ended(&plan(0..2, thread_count)).unwrap(), expected, "{thread_count} threads");
        }
        assert_eq!(ended(&plan(5..5, 2)).unwrap(), []);
    }

    #[test]
    fn the_first_error_in_the_order_of_the_plan_is_the_one_reported() {
        for thread_count in [1, 2, 5] {
            let error = ended(&plan(9..10, thread_count)).unwrap_err();
            assert_eq!(error.to_string(), "test/slow-first, seed 9: key 3 is not what was put");
        }
    }

    #[test]
    fn progress_ends_with_every_part_done() {
        let mut parts = [(0, 0); 10];
        run::<RunError>(&plan(0..2, 2), &mut |event| {
            if let Event::Progress { part_index, done, total, .. } = event {
                parts[part_index] = (done, total);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(parts, [(1, 1); 10]);
        assert_eq!(plan(0..2, 2).part_count(0), 10);
    }
}
