//! A folder of results: raw figures, a summary to read, pictures, and how it came about.
//!
//! ```text
//! README.md    the command that made it
//! raw.csv      every figure
//! summary.md   the same as tables, held against what others state and what is demanded
//! plots/       pictures, one file each
//! ```
//!
//! The same figures and command give the same bytes.

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::results::{self, Cell, RAW_FILE, Results};
use crate::{Plot, Scale, draw, experiments, summary, text};

/// The folder for pictures.
pub(crate) const PLOTS: &str = "plots";

/// Writes a folder, which need not be there, and says where what is. Results of other experiments that it holds from a run of
/// the same size stay, so that several commands can fill one folder; others are written over.
///
/// # Errors
///
/// Which file could not be written and why, or what the drawing library says.
pub fn write(folder: &Path, results: &Results, command: &str) -> Result<Vec<PathBuf>, Box<dyn Error + Send + Sync>> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| format!("{}: {error}", path.display())
    };
    let (results, commands) = beside_what_is_there(folder, results, command);
    let results = &results;
    let plots = folder.join(PLOTS);
    fs::create_dir_all(&plots).map_err(at(&plots))?;
    let mut written = Vec::new();
    let mut put = |path: PathBuf, text: &str| -> Result<(), Box<dyn Error + Send + Sync>> {
        fs::write(&path, text).map_err(at(&path))?;
        written.push(path);
        Ok(())
    };
    put(folder.join("README.md"), &readme(results, &commands))?;
    put(folder.join("summary.md"), &summary::markdown(results))?;
    let cells = results.cells();
    for name in results.experiments() {
        for picture in pictures(name, &results::of_experiment(name, &cells))? {
            put(plots.join(&picture.file), &draw::standalone(&picture.svg))?;
        }
    }
    let raw = folder.join(RAW_FILE);
    let file = File::create(&raw).map_err(at(&raw))?;
    results.write_csv(&mut BufWriter::new(file)).map_err(at(&raw))?;
    written.push(raw);
    Ok(written)
}

/// The results with those of other experiments in the folder before them, and the commands that gave them, the newest last.
fn beside_what_is_there(folder: &Path, results: &Results, command: &str) -> (Results, String) {
    let new = results.experiments();
    let there = Results::read(folder).ok().filter(|there| there.scale == results.scale);
    let kept = there.into_iter().flat_map(|there| there.figures);
    let kept: Vec<_> = kept.filter(|figure| !new.contains(&&*figure.experiment)).collect();
    if kept.is_empty() {
        return (results.clone(), command.to_owned());
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    let before = readme.split_once(COMMANDS_BEGIN).and_then(|(_, rest)| rest.split_once(COMMANDS_END));
    let before = before.map(|(commands, _)| commands.lines()).into_iter().flatten();
    let commands: Vec<&str> = before.filter(|line| *line != command).chain([command]).collect();
    let figures = kept.into_iter().chain(results.figures.iter().cloned()).collect();
    (Results { figures, scale: results.scale }, commands.join("\n"))
}

const COMMANDS_BEGIN: &str = "```sh\n";
const COMMANDS_END: &str = "\n```";

/// A picture of an experiment.
pub(crate) struct Picture {
    /// The name of its file.
    pub(crate) file: String,
    pub(crate) title: &'static str,
    pub(crate) svg: String,
}

/// The pictures of one experiment, given its cells.
pub(crate) fn pictures(name: &str, cells: &[&Cell]) -> Result<Vec<Picture>, Box<dyn Error + Send + Sync>> {
    let mut pictures = Vec::new();
    for (file, plot) in drawn(name, cells) {
        let svg = draw::svg(plot, cells).map_err(|error| error.to_string())?;
        pictures.push(Picture { file, title: plot.title, svg });
    }
    Ok(pictures)
}

/// The plots of an experiment for which there are figures, and the names of their files.
pub(crate) fn drawn(name: &str, cells: &[&Cell]) -> Vec<(String, &'static Plot)> {
    let plots = experiments::named(name).map(|experiment| experiment.plots).unwrap_or_default();
    let drawn = plots.iter().zip(1..).filter(|(plot, _)| draw::is_drawn(plot, cells));
    drawn.map(|(plot, number)| (format!("{}-{number}.svg", text::slug(name)), plot)).collect()
}

fn readme(results: &Results, commands: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut seeds: Vec<u64> = results.figures.iter().filter_map(|figure| figure.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let small = match results.scale {
        Scale::Full => "",
        Scale::Small => {
            "\nThis was a small run, on smaller chips with fewer records: limits and the numbers of others do not apply.\n"
        }
    };
    format!(
        "# Results of nandu lab\n\n\
         Made by nandu {version} with\n\n{COMMANDS_BEGIN}{commands}{COMMANDS_END}\n\n\
         Seeds: {}. Costs are counted on simulated chips, so the same version, command and seed give the same bytes on any \
         machine.\n{small}\n\
         * `raw.csv`: every figure\n\
         * `summary.md`: the same as tables\n\
         * `plots/`: pictures\n\n\
         `nandu lab report` makes a page of them, `nandu lab compare` holds them against others.\n",
        if seeds.is_empty() { "none named".to_owned() } else { seeds.join(", ") }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;

    #[test]
    fn a_folder_is_read_as_it_was_written_and_written_the_same_again() {
        let figure = |case: &str, value| Figure {
            seed: Some(3),
            ..Figure::new("core/mount", case, "mount_loads_cut", value, "reads")
        };
        let results =
            Results { figures: vec![figure("w25n01gv/10", 22.5), figure("8gib/10", 0.1)], scale: Scale::Small };
        let place = tempfile::tempdir().unwrap();
        let written = |name: &str| {
            let paths = write(&place.path().join(name), &results, "nandu lab run x").unwrap();
            paths.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
        };
        let first = written("a");
        // README.md, summary.md, one picture, raw.csv.
        assert_eq!(first.len(), 4);
        assert!(first == written("b") && first == written("a"));
        assert_eq!(Results::read(&place.path().join("a")).unwrap(), results);
    }

    #[test]
    fn a_second_run_takes_nothing_of_the_first_away() {
        let results = |experiment: &'static str, value| Results {
            figures: vec![Figure { seed: Some(0), ..Figure::new(experiment, "case", "metric", value, "reads") }],
            scale: Scale::Small,
        };
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &results("core/mount", 1.0), "first").unwrap();
        write(place.path(), &results("core/skew", 2.0), "second").unwrap();
        write(place.path(), &results("core/skew", 3.0), "second").unwrap();
        let there = Results::read(place.path()).unwrap();
        let values: Vec<_> = there.figures.iter().map(|figure| (&*figure.experiment, figure.value)).collect();
        assert_eq!(values, [("core/mount", 1.0), ("core/skew", 3.0)]);
        let readme = fs::read_to_string(place.path().join("README.md")).unwrap();
        assert!(readme.contains("```sh\nfirst\nsecond\n```"), "{readme}");
    }
}
