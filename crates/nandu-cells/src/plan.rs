//! How nodes that overflow are divided among new ones.

use core::ops::Range;

use nandu_index::KeyBuf;

use crate::cells::Cells;
use crate::run::{InnerRun, LeafRun, RunEdit, Stretch};

/// Most leaves that one overflow makes.
pub const PARTS_MAX: usize = 3;

/// Two neighbours share, rather than become three, while they fill less than this many hundredths of two leaves.
const SHARE_BELOW: usize = 96;

/// How the entries of a run are divided: part `p` is the entries from `cuts[p]` to `cuts[p + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where parts begin and end.
    pub cuts: [usize; PARTS_MAX + 1],
    /// How many there are.
    pub parts: usize,
    /// The part that holds the change, and stays on the path.
    pub path: usize,
    /// Whether the neighbour's entries are among them.
    pub is_shared: bool,
}

/// Bytes for a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// In the page of its path.
    pub path: usize,
    /// In a page of its own.
    pub own: usize,
}

impl Plan {
    /// The entries of a part.
    pub fn part(&self, index: usize) -> Range<usize> {
        self.cuts[index]..self.cuts[index + 1]
    }
}

/// How an overflowing leaf is divided. `right` says on which side of it the neighbour is, if there is one. With memory for two keys.
pub fn choose<'a, C: Cells>(
    cells: C,
    (leaf, neighbour, edit): (Stretch<'a>, Stretch<'a>, RunEdit<'a>),
    right: Option<bool>,
    room: Room,
    keys: &mut [KeyBuf; 2],
) -> (LeafRun<'a>, Plan) {
    if let Some(right) = right {
        let (first, second) = if right { (leaf, neighbour) } else { (neighbour, leaf) };
        let at = edit.at + if right { 0 } else { neighbour.count() };
        let run = LeafRun::new(first, second, Some(RunEdit { at, ..edit }));
        let size = cells.leaf_size(&run, 0..run.count());
        let mut chosen = None;
        if size * 100 <= 2 * room.path * SHARE_BELOW {
            chosen = plan(cells, &run, at, (2, room.path), keys);
        }
        if let Some(plan) = chosen.or_else(|| plan(cells, &run, at, (3, room.path), keys)) {
            return (run, Plan { is_shared: true, ..plan });
        }
    }
    let run = LeafRun::new(leaf, Stretch::NONE, Some(edit));
    let plan = plan(cells, &run, edit.at, (2, room.own), keys).unwrap_or_else(|| plan_apart(&run, edit));
    (run, plan)
}

/// The separators between the parts of a plan. Their memory is off the stack then.
#[inline(never)]
pub fn separate<C: Cells>(cells: C, run: &LeafRun<'_>, plan: &Plan, out: &mut [KeyBuf; PARTS_MAX - 1]) {
    for part in 1..plan.parts {
        separator_at(cells, run, plan.cuts[part], (&mut out[part - 1], &mut { KeyBuf::EMPTY }));
    }
}

/// The separator before the entry at a cut, with memory for another key.
fn separator_at<C: Cells>(cells: C, run: &LeafRun<'_>, cut: usize, (out, below): (&mut KeyBuf, &mut KeyBuf)) {
    debug_assert!(cut > 0 && cut < run.count(), "an entry on either side");
    run.key(cells, cut - 1, below);
    run.key(cells, cut, out);
    cells.separator(below.as_slice(), out);
}

/// Divides a run into parts of about the same size, each at most `room`; `None` if that does not work out. A cut may
/// move a little to where a separator is cheap.
fn plan<C: Cells>(
    cells: C,
    run: &LeafRun<'_>,
    at: usize,
    (parts, room): (usize, usize),
    keys: &mut [KeyBuf; 2],
) -> Option<Plan> {
    let count = run.count();
    if count < parts {
        return None;
    }
    let fits = |cuts: &[usize]| cuts.windows(2).all(|part| cells.leaf_size(run, part[0]..part[1]) <= room);
    let even = even_cuts(cells, run, parts, &mut keys[0]);
    let mut cuts = even;
    let slack = if cells.key_size() == 0 { count / parts / 8 } else { count / parts / 32 };
    for part in 1..parts {
        cuts[part] = cheapest_cut(cells, run, even[part], slack.min(even[part] - 1).min(count - 1 - even[part]), keys);
    }
    if !fits(&cuts[..=parts]) {
        cuts = even;
        if !fits(&cuts[..=parts]) {
            return None;
        }
    }
    let path = (0..parts).find(|&part| at < cuts[part + 1])?;
    Some(Plan { cuts, parts, path, is_shared: false })
}

fn even_cuts<C: Cells>(cells: C, run: &LeafRun<'_>, parts: usize, key: &mut KeyBuf) -> [usize; PARTS_MAX + 1] {
    let count = run.count();
    let mut cuts = [0; PARTS_MAX + 1];
    cuts[parts] = count;
    if cells.key_size() > 0 {
        for (part, cut) in cuts[..parts].iter_mut().enumerate() {
            *cut = count * part / parts;
        }
        return cuts;
    }
    let mut weight = |index| {
        run.key(cells, index, key);
        cells.entry_size(key.as_slice(), run.value(cells, index))
    };
    let total: usize = (0..count).map(&mut weight).sum();
    let (mut sum, mut part) = (0, 1);
    for index in 0..count {
        // Every part has an entry at least, also where a few large ones weigh more than all others.
        let must = count - index <= parts - part;
        if part < parts && index > cuts[part - 1] && (must || sum >= total * part / parts) {
            cuts[part] = index;
            part += 1;
        }
        sum += weight(index);
    }
    cuts
}

fn cheapest_cut<C: Cells>(
    cells: C,
    run: &LeafRun<'_>,
    cut: usize,
    slack: usize,
    [separator, below]: &mut [KeyBuf; 2],
) -> usize {
    let mut cost = |cut: usize| {
        separator_at(cells, run, cut, (separator, below));
        cells.separator_cost(separator.as_slice())
    };
    let mut best = (cost(cut), cut);
    for distance in 1..=slack {
        for candidate in [cut - distance, cut + distance] {
            let cost = cost(candidate);
            if cost < best.0 {
                best = (cost, candidate);
            }
        }
    }
    best.1
}

/// What always fits: the entries before the change, the change, the entries behind it.
fn plan_apart(run: &LeafRun<'_>, edit: RunEdit<'_>) -> Plan {
    let mut plan = Plan { cuts: [0; PARTS_MAX + 1], parts: 0, path: 0, is_shared: false };
    for end in [edit.at, edit.at + 1, run.count()] {
        if end > plan.cuts[plan.parts] {
            plan.parts += 1;
            plan.cuts[plan.parts] = end;
            if end == edit.at + 1 {
                plan.path = plan.parts - 1;
            }
        }
    }
    plan
}

/// Where an inner node is split whose children come in ascending order: as late as may be, so that a full node is left
/// behind; with byte strings, within the last third, where the separator that goes up is cheap.
pub fn ascending_cut<C: Cells>(cells: C, run: &InnerRun<'_>, separator: &mut KeyBuf) -> usize {
    let count = run.count(cells);
    if cells.key_size() > 0 {
        return count - 1;
    }
    let mut cost = |cut: usize| {
        run.separator(cells, cut - 1, separator);
        cells.separator_cost(separator.as_slice())
    };
    let low = (count - count / 3).min(count - 1).max(1);
    (low..count).rev().min_by_key(|&cut| cost(cut)).unwrap_or(count - 1)
}

/// Where an inner node is split: about the middle, by count if separators have one size, else by bytes; and there
/// where the separator that goes up is cheap.
pub fn inner_cut<C: Cells>(cells: C, run: &InnerRun<'_>, separator: &mut KeyBuf) -> usize {
    let count = run.count(cells);
    let mut cost = |cut: usize| {
        run.separator(cells, cut - 1, separator);
        cells.separator_cost(separator.as_slice()) as usize
    };
    let mut middle = count / 2;
    if cells.key_size() == 0 {
        let total: usize = (1..count).map(|cut| 3 + cost(cut)).sum();
        let mut sum = 0;
        middle = (1..count)
            .find(|&cut| {
                sum += 3 + cost(cut);
                2 * sum >= total
            })
            .unwrap_or(1);
    }
    // Byte strings differ much in what they cost, and what goes up is paid for in every page: half of the node is looked
    // through for a short one. Integers cost about the same.
    let slack = if cells.key_size() == 0 { count / 4 } else { count / 16 };
    let low = (middle - slack.min(middle - 1)).max(1);
    let high = (middle + slack).min(count - 1);
    (low..=high).min_by_key(|&cut| (cost(cut), cut.abs_diff(middle))).unwrap_or(middle)
}
