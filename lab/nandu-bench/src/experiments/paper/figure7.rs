//! Heights and pages of full trees, beside the closed forms.

use nandu_baselines::{Cache, TreeKind};
use nandu_sim::Chip;

use super::table3::name;
use crate::subject::{self, PAPER_CHIP, Structure, Subject};
use crate::{Accept, BenchError, Context, Experiment, Figure, Limit, Plot, PlotKind};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "paper/mutree-figure7",
    about: "height and pages of both trees of the mu-Tree paper when every node is full, beside the closed forms",
    source: Some(super::MUTREE),
    setup: &[
        ("chip", "paper-mlc: 64 MB, pages of 4 KiB"),
        ("memory", "no cache"),
        ("workload", "inserts in an order that leaves every node full, but those on the right edge"),
    ],
    parts: 3,
    run: |context, part| match part {
        0 => run(TreeKind::BPlus, context),
        1 => run(TreeKind::Mu, context),
        _ => Ok(closed_forms()),
    },
    accept: &[Accept::absolute("height", 0.0), Accept::absolute("pages_live", 0.0)],
    limits: &[Limit::at_most("height_difference_most", 1.0)],
    plots: &[Plot {
        title: "Height by records",
        metric: "height",
        cases: "{x}/{series}",
        x: "records",
        y: "levels",
        kind: PlotKind::LogLines,
    }],
    notes: "\
The closed forms are those of the paper's section 4: the height is log_f(n) for the B+-tree and \
-log2(sqrt(2)/f) - sqrt(log2(sqrt(2)/f)^2 - 2 log2(n/2)) for the mu-Tree, rounded up; pages are the sum of n/f^i, each rounded \
up, and n/(f/2). f = 512. `closed` is what they say by themselves of up to a billion records, where no tree is built: by how many \
levels the mu-Tree is higher at most.

Ascending inserts leave half-full nodes behind, so a node is first filled half, then its right neighbour until they are parted, \
and then the node's other half is inserted. At last a record below each node above the leaves is put again: a split leaves half of \
such a node in a page without a leaf, which the closed form does not count and the next change below it ends.

The mu-Tree's root is split when it becomes full and not when it overflows, so that tree grows within the last node before the \
record where the closed form says so; the numbers of records are chosen beside that.",
    ..Experiment::PLAIN
};

/// Records at which the trees are looked at: within a level, and on both sides of where one is added, which is at 512 and
/// 262,144 for the B+-tree, 65,536 for the mu-Tree.
const SIZES: [u32; 9] = [200, 1_000, 10_000, 65_000, 66_000, 100_000, 261_000, 263_000, 1_000_000];
/// With pages of 512 bytes, f = 64: levels are added at 64 and 4,096, and at 1,024 and 8,192.
const SIZES_SMALL: [u32; 7] = [50, 500, 900, 1_100, 4_000, 4_200, 7_600];

fn small_pages() -> Chip {
    let mut chip = PAPER_CHIP;
    chip.geometry.page_size = 512;
    chip.geometry.program_unit = 512;
    chip
}

fn run(kind: TreeKind, context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = context.scaled(PAPER_CHIP, small_pages());
    let f = chip.geometry.page_size / 8;
    let sizes: &[u32] = context.scaled(&SIZES[..], &SIZES_SMALL[..]);
    let mut figures = Vec::new();
    for (nth, &size) in sizes.iter().enumerate() {
        context.tell(nth as u64, sizes.len() as u64);
        let structure = Structure::Paper(kind, Cache::NONE);
        let (height, pages) = subject::with(structure, chip, context, |subject, _| {
            fill(subject, kind, f, size)?;
            Ok((subject.height(), subject.live_pages()))
        })?;
        let case = format!("{size}/{}", name(kind));
        let figure = |metric, value, model, unit| {
            Figure::new(EXPERIMENT.name, &case, metric, value, unit).with_published(Some(model))
        };
        figures.push(figure("height", f64::from(height), closed_height(kind, f, size), "levels"));
        figures.push(figure("pages_live", pages as f64, closed_pages(kind, f, size), "pages"));
    }
    Ok(figures)
}

/// Most records that the paper reckons with.
const RECORDS_MOST: u64 = 1_000_000_000;

/// Most records of a tree of this height whose nodes are full: the paper's equations 2 and 5.
fn closed_capacity(kind: TreeKind, f: u64, height: u32) -> u64 {
    match kind {
        TreeKind::BPlus => f.saturating_pow(height),
        TreeKind::Mu => (1..=height).map(|level| f >> level).fold(2, u64::saturating_mul),
    }
}

/// By how many levels the mu-Tree is higher, where it is most. Heights change only next to capacities.
fn closed_forms() -> Vec<Figure> {
    const F: u64 = 512;
    const HEIGHTS: std::ops::RangeInclusive<u32> = 1..=8;
    let height = |kind, records| HEIGHTS.clone().find(|&height| closed_capacity(kind, F, height) >= records);
    let difference = |records| Some(height(TreeKind::Mu, records)? - height(TreeKind::BPlus, records)?);
    let full = HEIGHTS.flat_map(|height| [TreeKind::BPlus, TreeKind::Mu].map(|kind| closed_capacity(kind, F, height)));
    let beside = full.flat_map(|records| [records, records.saturating_add(1)]).chain([1, RECORDS_MOST]);
    let most = beside.filter(|&records| records <= RECORDS_MOST).filter_map(difference).max();
    let figure = |metric, value, unit| Figure::new(EXPERIMENT.name, "closed", metric, value, unit);
    vec![
        figure("height_difference_most", f64::from(most.unwrap_or(u32::MAX)), "levels"),
        figure("records", RECORDS_MOST as f64, "records"),
    ]
}

fn closed_height(kind: TreeKind, f: u32, records: u32) -> f64 {
    let (f, n) = (f64::from(f), f64::from(records));
    let height = match kind {
        TreeKind::BPlus => n.log2() / f.log2(),
        TreeKind::Mu => {
            let a = (2_f64.sqrt() / f).log2();
            -a - (a * a - 2.0 * (n / 2.0).log2()).sqrt()
        }
    };
    height.ceil().max(1.0)
}

fn closed_pages(kind: TreeKind, f: u32, records: u32) -> f64 {
    let height = closed_height(kind, f, records) as u32;
    match kind {
        // A single node takes the whole page.
        TreeKind::Mu if height == 1 => 1.0,
        TreeKind::Mu => f64::from(records.div_ceil(f / 2)),
        TreeKind::BPlus => {
            (1..=height).map(|level| (f64::from(records) / f64::from(f).powi(level as i32)).ceil()).sum()
        }
    }
}

/// Inserts the records 0 to `count` so that nodes are full.
fn fill(subject: &mut dyn Subject, kind: TreeKind, f: u32, count: u32) -> Result<(), BenchError> {
    let height = closed_height(kind, f, count) as u32;
    let mut filler = Filler { kind, f, count, order: Vec::with_capacity(count as usize) };
    if height == 1 {
        filler.insert(0..count);
    } else {
        filler.root(height - 1);
    }
    for &key in &filler.order {
        subject.put(key, key)?;
    }
    // A split above the leaves leaves half of the node in a page without a leaf, until the next change below it.
    let span = filler.span(1.min(height - 1));
    for key in (0..count).step_by(span as usize) {
        subject.put(key, key)?;
    }
    Ok(())
}

/// Finds the order. A node is begun with so many children, or keys, as a split leaves to the left, and finished after
/// its right neighbour was begun, which parted them.
struct Filler {
    kind: TreeKind,
    f: u32,
    count: u32,
    order: Vec<u32>,
}

impl Filler {
    /// Children of a node at a level, or keys of a leaf, level 0.
    fn fanout(&self, level: u32) -> u32 {
        match self.kind {
            TreeKind::BPlus => self.f,
            TreeKind::Mu => self.f >> (level + 1),
        }
    }

    /// Of these, how many a split leaves in the left half.
    fn left_half(&self, level: u32) -> u32 {
        (self.fanout(level) + 1).div_ceil(2)
    }

    /// Records below a node at a level.
    fn span(&self, level: u32) -> u32 {
        (0..=level).map(|level| self.fanout(level)).fold(1, u32::saturating_mul)
    }

    fn insert(&mut self, keys: std::ops::Range<u32>) {
        self.order.extend(keys.start.min(self.count)..keys.end.min(self.count));
    }

    /// The children of the root, which are at the level below it.
    fn root(&mut self, level: u32) {
        let span = self.span(level - 1);
        let mut first = 0;
        self.begin(level - 1, first);
        while first.saturating_add(span) < self.count {
            self.begin(level - 1, first + span);
            self.finish(level - 1, first);
            first += span;
        }
        self.finish(level - 1, first);
    }

    /// Begins the node whose first key this is.
    fn begin(&mut self, level: u32, first: u32) {
        if first >= self.count {
            return;
        }
        let half = self.left_half(level);
        if level == 0 {
            return self.insert(first..first.saturating_add(half));
        }
        let span = self.span(level - 1);
        self.begin(level - 1, first);
        self.go_on(level, first, 1..half, span);
    }

    fn finish(&mut self, level: u32, first: u32) {
        if first >= self.count {
            return;
        }
        let (half, all) = (self.left_half(level), self.fanout(level));
        if level == 0 {
            return self.insert(first.saturating_add(half)..first.saturating_add(all));
        }
        let span = self.span(level - 1);
        self.go_on(level, first, half..all, span);
        self.finish(level - 1, first.saturating_add(span.saturating_mul(all - 1)));
    }

    /// Begins some children, and finishes the one before each.
    fn go_on(&mut self, level: u32, first: u32, children: std::ops::Range<u32>, span: u32) {
        for child in children {
            let start = first.saturating_add(span.saturating_mul(child));
            self.begin(level - 1, start);
            self.finish(level - 1, start - span);
        }
    }
}
