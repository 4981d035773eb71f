//! Figures on disk: as a table of comma-separated values, or as lines of JSON.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Experiment, Figure, Judgement, Scale, Verdict, experiments};

/// The file of a results folder that all others can be made from.
pub const RAW_FILE: &str = "raw.csv";

const COLUMNS: [&str; 9] = ["experiment", "case", "metric", "value", "unit", "published", "model", "seed", "scale"];

/// What one or several runs found.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Figure by figure, in the order in which they were found; those from a folder have their seed.
    pub figures: Vec<Figure>,
    /// How much was run; small if any of it was.
    pub scale: Scale,
}

/// Why results could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file could not be read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line is no figure.
    #[error("{}, line {line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        why: String,
    },
}

/// A line of `raw.csv`.
#[derive(Deserialize)]
struct Row {
    experiment: String,
    case: String,
    metric: String,
    value: f64,
    unit: String,
    published: Option<f64>,
    model: Option<f64>,
    seed: Option<u64>,
    scale: Option<String>,
}

impl Row {
    fn into_figure(self) -> Figure {
        Figure {
            experiment: self.experiment.into(),
            case: self.case,
            metric: self.metric.into(),
            value: self.value,
            unit: self.unit.into(),
            published: self.published,
            model: self.model,
            seed: self.seed,
        }
    }
}

impl Results {
    /// Reads a results folder, a file of comma-separated values with a header, or one of JSON lines.
    ///
    /// # Errors
    ///
    /// [`ResultsError`]: which file, and which line of it.
    pub fn read(path: &Path) -> Result<Results, ResultsError> {
        let path = if path.is_dir() { path.join(RAW_FILE) } else { path.to_owned() };
        let text = fs::read_to_string(&path).map_err(|error| ResultsError::Io { path: path.clone(), error })?;
        let parsed = if text.starts_with('{') { Results::from_lines(&text) } else { Results::from_csv(&text) };
        parsed.map_err(|(line, why)| ResultsError::Line { path, line, why })
    }

    /// Figures from JSON lines; the error is the line and what is wrong with it.
    fn from_lines(text: &str) -> Result<Results, (u64, String)> {
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let parsed = lines.map(|(line, number)| {
            serde_json::from_str(line).map_err(|error: serde_json::Error| (number, error.to_string()))
        });
        Ok(Results { figures: parsed.collect::<Result<_, _>>()?, scale: Scale::Full })
    }

    fn from_csv(text: &str) -> Result<Results, (u64, String)> {
        let mut results = Results { figures: Vec::new(), scale: Scale::Full };
        for (row, index) in csv::Reader::from_reader(text.as_bytes()).into_deserialize().zip(0..) {
            let row: Row = row.map_err(|error: csv::Error| {
                let line = error.position().map_or(index + 2, csv::Position::line);
                let why = match error.into_kind() {
                    csv::ErrorKind::Deserialize { err, .. } => {
                        let column = err.field().map(|field| format!("column {}: ", field + 1)).unwrap_or_default();
                        format!("{column}{}", err.kind())
                    }
                    other => format!("{other:?}"),
                };
                (line, why)
            })?;
            if row.scale.as_deref() == Some(Scale::Small.name()) {
                results.scale = Scale::Small;
            }
            results.figures.push(row.into_figure());
        }
        Ok(results)
    }

    /// Writes comma-separated values that [`read`](Results::read) understands.
    ///
    /// # Errors
    ///
    /// What the writer answers.
    pub fn write_csv(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        csv.write_record(COLUMNS)?;
        let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for figure in &self.figures {
            csv.write_record([
                &*figure.experiment,
                &figure.case,
                &figure.metric,
                &figure.value.to_string(),
                &figure.unit,
                &optional(figure.published),
                &optional(figure.model),
                &figure.seed.map(|seed| seed.to_string()).unwrap_or_default(),
                self.scale.name(),
            ])?;
        }
        csv.flush()
    }

    /// The same with what others state as this build knows it, which may be more than the build knew that found the figures.
    #[must_use]
    pub fn restated(mut self) -> Results {
        for figure in &mut self.figures {
            if let Some(experiment) = experiments::named(&figure.experiment)
                && self.scale == Scale::Full
            {
                experiment.state_again(figure);
            }
        }
        self
    }

    /// These with the figures of all experiments that are in `newer` replaced by those, in the order in which experiments are listed,
    /// so that it does not matter in which order they were run. Experiments that this build does not know are left out.
    #[must_use]
    pub fn replaced_by(self, newer: Results) -> Results {
        let mut by_name: HashMap<String, Vec<Figure>> = HashMap::new();
        let replaced: Vec<String> = newer.experiments().into_iter().map(str::to_owned).collect();
        let kept = self.figures.into_iter().filter(|figure| replaced.iter().all(|name| *name != figure.experiment));
        for figure in kept.chain(newer.figures) {
            by_name.entry(figure.experiment.to_string()).or_default().push(figure);
        }
        let figures = experiments::all().filter_map(|experiment| by_name.remove(experiment.name)).flatten().collect();
        Results { figures, scale: newer.scale }
    }

    /// Names of the experiments, in the order in which they come first.
    pub fn experiments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for figure in &self.figures {
            if !names.contains(&&*figure.experiment) {
                names.push(&figure.experiment);
            }
        }
        names
    }

    /// The figures of all experiments, those of different seeds together, and the cells of a case together.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        let mut places = HashMap::new();
        for figure in &self.figures {
            let place = (&figure.experiment, &figure.case, &figure.metric);
            let index = *places.entry(place).or_insert(cells.len());
            if index == cells.len() {
                cells.push(Cell { figures: Vec::new(), scale: self.scale });
            }
            cells[index].figures.push(figure.clone());
        }
        let mut cases = HashMap::new();
        for figure in &self.figures {
            let count = cases.len();
            cases.entry((figure.experiment.clone(), figure.case.clone())).or_insert(count);
        }
        // Stable, so that metrics and cases stay in the order in which they come first.
        cells.sort_by_key(|cell| cases.get(&(cell.figure().experiment.clone(), cell.figure().case.clone())).copied());
        cells
    }
}

/// A metric of a case of an experiment, with as many figures as there are seeds, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    figures: Vec<Figure>,
    scale: Scale,
}

impl Cell {
    /// The first of its figures: the others differ in value and seed only.
    pub fn figure(&self) -> &Figure {
        &self.figures[0]
    }

    /// How many seeds.
    pub fn count(&self) -> usize {
        self.figures.len()
    }

    /// The mean over the seeds, to six decimals.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.figures.iter().map(|figure| figure.value).sum();
        (sum / self.figures.len() as f64 * 1e6).round() / 1e6
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.figures.iter().map(|figure| figure.value).fold(f64::INFINITY, f64::min)
    }

    /// The greatest value.
    pub fn most(&self) -> f64 {
        self.figures.iter().map(|figure| figure.value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The experiment, if this build knows it.
    pub fn experiment(&self) -> Option<&'static Experiment> {
        experiments::named(&self.figure().experiment)
    }

    /// What is demanded of it at its scale, and whether every seed keeps to it.
    pub fn judge(&self) -> Option<Judgement> {
        let experiment = self.experiment()?;
        let all = self.figures.iter().map(|figure| experiment.judge(figure, self.scale));
        let joined = all.filter_map(|judgements| {
            let verdict = judgements.iter().map(|judgement| judgement.verdict).max()?;
            let demands: Vec<String> = judgements.into_iter().map(|judgement| judgement.demand).collect();
            Some(Judgement { demand: demands.join("; "), verdict })
        });
        // Of several seeds the first that misses is told, or else the last of them.
        joined.reduce(|worst, next| if worst.verdict == Verdict::Missed { worst } else { next })
    }

    /// By how much the mean differs from what others state, as a share of that, and whose number it is: the published one
    /// if it is not doubted, else the model's.
    pub fn difference(&self) -> Option<(f64, &'static str)> {
        let figure = self.figure();
        let is_doubted = self.experiment().is_some_and(|experiment| experiment.doubt_of(figure).is_some());
        let published = figure.published.filter(|_| !is_doubted).map(|stated| (stated, "published"));
        let (stated, whose) = published.or(figure.model.map(|stated| (stated, "model")))?;
        (stated != 0.0).then(|| ((self.mean() - stated) / stated, whose))
    }
}

/// Those of one experiment.
pub(crate) fn of_experiment<'c>(name: &str, cells: &'c [Cell]) -> Vec<&'c Cell> {
    cells.iter().filter(|cell| cell.figure().experiment == name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(case: &str, value: f64, seed: u64) -> Figure {
        let figure = Figure::new("core/million", case, "programs_per_update", value, "programs");
        Figure { seed: Some(seed), published: Some(1.5), ..figure }
    }

    fn results() -> Results {
        let figures = vec![figure("a,\"b", 1.0, 0), figure("c", 2.0, 0), figure("a,\"b", 1.5, 1)];
        Results { figures, scale: Scale::Full }
    }

    #[test]
    fn what_is_written_is_read_again_from_either_form() {
        let mut csv = Vec::new();
        let small = Results { scale: Scale::Small, ..results() };
        small.write_csv(&mut csv).unwrap();
        assert_eq!(Results::from_csv(std::str::from_utf8(&csv).unwrap()).unwrap(), small);
        let lines: String = results().figures.iter().map(|figure| figure.to_json() + "\n").collect();
        assert_eq!(Results::from_lines(&lines).unwrap(), results());
    }

    #[test]
    fn a_line_that_is_no_figure_is_named() {
        let lines = results().figures[0].to_json() + "\n{\"experiment\":\"x\"}\n";
        assert_eq!(Results::from_lines(&lines).unwrap_err().0, 2);
        let csv = "experiment,case,metric,value,unit,published,model\nx,y,z,1,reads,,\nx,y,z,one,reads,,\n";
        let (line, why) = Results::from_csv(csv).unwrap_err();
        assert_eq!((line, why.as_str()), (3, "column 4: invalid float literal"));
    }

    #[test]
    fn figures_of_several_seeds_are_one_cell() {
        let cells = results().cells();
        assert_eq!(cells.iter().map(Cell::count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((cells[0].least(), cells[0].mean(), cells[0].most()), (1.0, 1.25, 1.5));
        let (difference, whose) = cells[0].difference().unwrap();
        assert!((difference + 1.0 / 6.0).abs() < 1e-12 && whose == "published");
    }

    #[test]
    fn cells_of_a_case_stand_together() {
        let figure = |case, metric| Figure::new("x", case, metric, 1.0, "reads");
        let figures = vec![figure("b", "z"), figure("a", "z"), figure("b", "y"), figure("a", "x")];
        let cells = Results { figures, scale: Scale::Full }.cells();
        let order: Vec<_> = cells.iter().map(|cell| (&*cell.figure().case, &*cell.figure().metric)).collect();
        assert_eq!(order, [("b", "z"), ("b", "y"), ("a", "z"), ("a", "x")]);
    }

    #[test]
    fn newer_figures_take_the_place_of_older_ones_in_the_order_of_the_list() {
        let of = |experiments: &[(&'static str, f64)]| {
            let figure = |&(name, value): &(&'static str, f64)| Figure::new(name, "case", "metric", value, "reads");
            Results { figures: experiments.iter().map(figure).collect(), scale: Scale::Full }
        };
        let old = of(&[("vs/kernel", 1.0), ("core/skew", 2.0), ("elsewhere/unknown", 3.0)]);
        let all = old.replaced_by(of(&[("core/skew", 4.0), ("core/million", 5.0)]));
        assert_eq!(all, of(&[("core/million", 5.0), ("core/skew", 4.0), ("vs/kernel", 1.0)]));
    }

    #[test]
    fn what_is_stated_now_stands_beside_older_figures() {
        let figure = Figure::new("paper/mutree-table1", "slc", "read_us", 77.8, "us").with_published(Some(1.0));
        let results = Results { figures: vec![figure], scale: Scale::Full }.restated();
        assert_eq!(results.figures[0].published, Some(77.8));
    }

    #[test]
    fn a_cell_is_missed_if_one_seed_misses() {
        let at = |values: [f64; 2]| {
            let figures = values.iter().map(|&value| figure("whole-blocks", value, 0)).collect();
            Results { figures, scale: Scale::Full }.cells()[0].judge().map(|judgement| judgement.verdict)
        };
        assert_eq!(at([1.0, 1.02]), Some(Verdict::Within));
        assert_eq!((at([1.0, 1.04]), at([1.04, 1.0])), (Some(Verdict::Missed), Some(Verdict::Missed)));
    }
}
