//! A folder of pages in Markdown: one for each group of experiments, and the table of the papers' claims.
//!
//! ```text
//! README.md           what there is, and how to make it again
//! claims.md           every claim of the four papers, and what became of it
//! paper-mutree.md ..  a page for each group
//! plots/              pictures, one file each
//! raw.csv             every figure
//! runs.csv            where they come from
//! ```
//!
//! **The key decision** is that pages are made of the figures in `raw.csv` and of what this build knows, and of nothing else: the same
//! bytes come of them each time, so a test can hold what is committed against them.

mod claimed;
mod group;

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use crate::folder::{PLOTS, pictures};
use crate::origin::{self, Origin};
use crate::results::{Cell, RAW_FILE, Results, of_experiment};
use crate::{draw, experiments};

type Failure = Box<dyn Error + Send + Sync>;

/// A group of experiments that has a page.
struct Group {
    /// What the names of its experiments begin with.
    name: &'static str,
    title: &'static str,
}

const GROUPS: [Group; 7] = [
    Group { name: "paper/mutree", title: "The mu-Tree paper" },
    Group { name: "paper/grr", title: "The paper on group round robin" },
    Group { name: "paper/dffs", title: "The DFFS paper" },
    Group { name: "paper/flexfs", title: "The FlexFS paper" },
    Group { name: "beyond", title: "Beyond the papers" },
    Group { name: "core", title: "nandu's own costs" },
    Group { name: "vs", title: "Beside file systems of today" },
];

impl Group {
    fn file(&self) -> String {
        format!("{}.md", self.name.replace('/', "-"))
    }

    /// The page on which an experiment stands, and its place there.
    fn link_to(experiment: &str) -> Option<String> {
        let group = GROUPS.iter().find(|group| experiments::find(group.name).any(|found| found.name == experiment))?;
        Some(format!("{}#{}", group.file(), experiment.replace('/', "")))
    }
}

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its path in the folder.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// What all pages are made of.
struct Sources<'s> {
    cells: &'s [Cell],
    origins: &'s [Origin],
}

impl Sources<'_> {
    fn origin(&self, experiment: &str) -> Option<&Origin> {
        self.origins.iter().find(|origin| origin.experiment == experiment)
    }
}

/// All files but those of figures and origins.
///
/// # Errors
///
/// What the drawing library says.
pub fn render(results: &Results, origins: &[Origin]) -> Result<Vec<Page>, Failure> {
    let cells = results.clone().restated().cells();
    let sources = Sources { cells: &cells, origins };
    let mut pages = vec![
        Page { path: "README.md".to_owned(), text: readme(&sources) },
        Page { path: "claims.md".to_owned(), text: claimed::page(&sources) },
    ];
    for group in &GROUPS {
        pages.push(Page { path: group.file(), text: group::page(group, &sources) });
    }
    for experiment in experiments::all() {
        for picture in pictures(experiment.name, &of_experiment(experiment.name, &cells))? {
            let path = format!("{PLOTS}/{}", picture.file);
            pages.push(Page { path, text: draw::standalone(&picture.svg) });
        }
    }
    Ok(pages)
}

/// Writes figures and origins, of which the rest can be made.
///
/// # Errors
///
/// Which file could not be written and why.
pub fn write_figures(folder: &Path, results: &Results, origins: &[Origin]) -> Result<(), Failure> {
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    let raw = folder.join(RAW_FILE);
    let file = File::create(&raw).map_err(|error| at(&raw, error))?;
    results.write_csv(&mut BufWriter::new(file)).map_err(|error| at(&raw, error))?;
    origin::write(folder, origins).map_err(|error| at(&folder.join(origin::ORIGIN_FILE), error))?;
    Ok(())
}

/// Writes all files but those of figures and origins. Pictures that are drawn no more are removed.
///
/// # Errors
///
/// Which file could not be written and why, or what the drawing library says.
pub fn write(folder: &Path, results: &Results, origins: &[Origin]) -> Result<Vec<Page>, Failure> {
    let pages = render(results, origins)?;
    let plots = folder.join(PLOTS);
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    match fs::remove_dir_all(&plots) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(at(&plots, error).into()),
        _ => fs::create_dir_all(&plots).map_err(|error| at(&plots, error))?,
    }
    for page in &pages {
        let path = folder.join(&page.path);
        fs::write(&path, &page.text).map_err(|error| at(&path, error))?;
    }
    Ok(pages)
}

/// The command that makes everything anew, and the one that makes what has changed.
const ALL: &str = "nandu lab report docs/results --pages --run";

fn readme(sources: &Sources<'_>) -> String {
    let mut page = String::from(
        "# Results\n\n\
         What the lab finds, in pages that it makes itself. Nothing here is written by hand.\n\n\
         * [claims.md](claims.md): every claim of the four papers: confirmed, refuted or not decidable, with our figure beside theirs\n",
    );
    for group in &GROUPS {
        let (kept, missed) = group::judged(group, sources);
        let missed = if missed == 0 { String::new() } else { format!(", {missed} missed") };
        let (title, file) = (group.title, group.file());
        page.push_str(&format!("* [{file}]({file}): {title} (`{}`); {kept} demands kept{missed}\n", group.name));
    }
    page.push_str(&format!(
        "* `raw.csv`: every figure; `runs.csv`: the commit and the machine of each experiment's run, and checksums of what its small form \
         found then\n\n\
         ```sh\n\
         {ALL}                # runs every experiment, with a progress bar, and makes all pages\n\
         {ALL} paper          # those of the papers alone\n\
         {ALL} --changed      # those whose small form finds something else than it did\n\
         nandu lab report docs/results --pages                      # makes the pages of the figures that are here\n\
         nandu lab run paper                                        # shows the figures of the papers, and keeps nothing\n\
         ```\n\n\
         Costs are counted on simulated chips, so the same commit, command and seed give the same bytes on any machine, but for the lines that \
         name the commit and the machine. A test makes the pages of `raw.csv` and holds them against what is committed; another runs the small \
         form of each experiment on which a claim rests, and fails if it finds something else than when the figures were found.\n"
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Scale};

    #[test]
    fn every_experiment_has_a_page() {
        for experiment in experiments::all() {
            assert!(Group::link_to(experiment.name).is_some(), "{}", experiment.name);
        }
        let link = Group::link_to("paper/grr-figure6");
        assert_eq!(link.as_deref(), Some("paper-grr.md#papergrr-figure6"));
    }

    #[test]
    fn the_same_figures_give_the_same_pages_and_nothing_that_is_not_there() {
        let figure = Figure::new("paper/mutree-table1", "slc", "read_us", 77.8, "us");
        let results = Results { figures: vec![Figure { seed: Some(0), ..figure }], scale: Scale::Full };
        let place = tempfile::tempdir().unwrap();
        write_figures(place.path(), &results, &[]).unwrap();
        fs::create_dir(place.path().join(PLOTS)).unwrap();
        fs::write(place.path().join(PLOTS).join("old.svg"), "").unwrap();
        let pages = write(place.path(), &results, &[]).unwrap();
        assert!(!place.path().join(PLOTS).join("old.svg").exists());
        assert_eq!(pages, render(&Results::read(place.path()).unwrap(), &[]).unwrap());
        let text = |path: &str| &pages.iter().find(|page| page.path == path).unwrap().text;
        assert!(text("paper-mutree.md").contains("| slc | read_us | 77.8 | us | 77.8 |"));
        assert!(text("core.md").contains("## core/peers-500\n\nNot run: "));
    }
}
