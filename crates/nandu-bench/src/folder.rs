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

/// Writes a folder, which need not be there, and says where what is. Files of these names are written over, others are left.
///
/// # Errors
///
/// Which file could not be written and why, or what the drawing library says.
pub fn write(folder: &Path, results: &Results, command: &str) -> Result<Vec<PathBuf>, Box<dyn Error + Send + Sync>> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| format!("{}: {error}", path.display())
    };
    let plots = folder.join(PLOTS);
    fs::create_dir_all(&plots).map_err(at(&plots))?;
    let mut written = Vec::new();
    let mut put = |path: PathBuf, text: &str| -> Result<(), Box<dyn Error + Send + Sync>> {
        fs::write(&path, text).map_err(at(&path))?;
        written.push(path);
        Ok(())
    };
    put(folder.join("README.md"), &readme(results, command))?;
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

fn readme(results: &Results, command: &str) -> String {
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
         Made by nandu {version} with\n\n```sh\n{command}\n```\n\n\
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
}
