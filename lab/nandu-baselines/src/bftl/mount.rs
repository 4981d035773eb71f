//! Finding the tree again: the table from the headers and units of all pages.
//!
//! A mount programs nothing that counts until its settle page is there, and erases nothing until then but blocks whose pages
//! can never count. So a mount that is cut leaves what it found, however often that happens.

use std::collections::{BTreeMap, BTreeSet};

use nandu_nand::{BlockAddr, Nand, PageAddr};

use super::page::{HEADER_SIZE, Header, Kind};
use super::store::{State, Store, Void};
use super::table::Place;
use super::unit::decode;
use crate::BaselineError;
use crate::pages::Result;

/// Bits of an erased page that may read as zero.
const ERASED_ZERO_BITS_MAX: u32 = 8;

/// A group that was found.
#[derive(Clone, Copy, Debug)]
struct FoundGroup {
    node: u32,
    level: u8,
    ordinal: u8,
    commit: u64,
    place: Place,
}

/// Everything that was found.
#[derive(Debug, Default)]
struct Scan {
    /// In the order of blocks and of programming.
    pages: Vec<(BlockAddr, Header)>,
    groups: Vec<FoundGroup>,
    /// Blocks with pages that do not verify.
    torn: BTreeSet<BlockAddr>,
}

/// What of it counts.
struct Verdict {
    /// All commits up to this are complete, but for the void ones.
    complete_to: u64,
    void: Void,
    /// Commits that are complete although no page calls them so.
    complete: BTreeSet<u64>,
}

impl Verdict {
    fn counts(&self, header: &Header) -> bool {
        match header.kind {
            Kind::Settle | Kind::Move => true,
            Kind::Repair => header.commit <= self.complete_to,
            Kind::Data => {
                let is_complete = header.commit <= self.complete_to || self.complete.contains(&header.commit);
                is_complete && !self.void.contains(header.commit)
            }
        }
    }
}

fn is_erased(bytes: &[u8]) -> bool {
    bytes.iter().map(|byte| byte.count_zeros()).sum::<u32>() <= ERASED_ZERO_BITS_MAX
}

impl<N: Nand> Store<N> {
    /// Finds everything and leaves the chip such that nothing depends on what a cut may have torn. Returns the number for the
    /// next new node and how many pages the search read.
    pub(super) fn mount(&mut self) -> Result<(u32, u64), N::Error> {
        let scan = self.scan()?;
        let scan_reads = self.stats.reads;
        let corrupt = |why| BaselineError::Corrupt { page: PageAddr(0), why };
        let settles = scan.pages.iter().filter(|(_, header)| header.kind == Kind::Settle);
        let newest_settle = settles.max_by_key(|(_, header)| header.commit).ok_or(BaselineError::NotFormatted)?.1;
        let verdict = judge(&scan, &newest_settle);
        let top = scan.pages.iter().map(|(_, header)| header.commit).max().unwrap_or(0);
        self.void = self.void_range(&scan, &verdict, top).ok_or(corrupt("the numbers of its commits cannot be"))?;
        let top = top.max(newest_settle.void_from.saturating_add(u64::from(newest_settle.void_count)));
        self.next_commit = top + 2;
        self.next_sequence = scan.groups.iter().map(|group| group.place.sequence).max().unwrap_or(0) + 1;
        let next_node = scan.groups.iter().map(|group| group.node).max().unwrap_or(0) + 1;
        let counted = scan.pages.iter().filter(|(_, header)| verdict.counts(header) && header.kind != Kind::Repair);
        let newest = counted.max_by_key(|(_, header)| (header.commit, header.index)).map(|&(_, header)| header);
        self.records = newest.map_or(0, |header| header.records);
        self.build_table(&scan, &verdict);
        self.drop_unreachable()?;
        self.sort_blocks(&scan, &verdict, &newest_settle)?;
        if let Some(header) = newest.filter(|header| header.kind != Kind::Settle) {
            self.repair(&header)?;
        }
        self.settle()?;
        Ok((next_node, scan_reads))
    }

    /// Reads every block to its first erased page.
    fn scan(&mut self) -> Result<Scan, N::Error> {
        let mut scan = Scan::default();
        let volume = self.options.volume;
        let units_per_page = self.units_per_page();
        for block in self.blocks().filter(|&block| self.state(block) != State::Bad).collect::<Vec<_>>() {
            for page in self.pages_of(block) {
                let Some(bytes) = self.read(page)? else {
                    scan.torn.insert(block);
                    continue;
                };
                if is_erased(bytes) {
                    break;
                }
                let header = Header::parse(bytes, page, volume);
                let header = header.filter(|header| usize::from(header.unit_count) <= units_per_page);
                let found =
                    header.and_then(|header| Some((header, decode(&bytes[HEADER_SIZE..], header.unit_count.into())?)));
                let Some((header, groups)) = found else {
                    scan.torn.insert(block);
                    continue;
                };
                scan.pages.push((block, header));
                scan.groups.extend(groups.iter().map(|group| FoundGroup {
                    node: group.node,
                    level: group.level,
                    ordinal: group.ordinal,
                    commit: header.commit,
                    place: Place { sequence: group.sequence, page, units: group.changes.len() as u32 },
                }));
            }
        }
        Ok(scan)
    }

    /// Which numbers are void from now on. A commit that was cut may show nothing of itself, so the number behind the highest
    /// is always among them; as long as no commit followed, the range that a settle page named goes on.
    fn void_range(&mut self, scan: &Scan, verdict: &Verdict, top: u64) -> Option<Void> {
        let is_discarded = |header: &Header| header.kind == Kind::Data && !verdict.counts(header);
        let discarded = scan.pages.iter().filter(|(_, header)| is_discarded(header));
        self.suspects = discarded.clone().map(|&(block, _)| block).chain(scan.torn.iter().copied()).collect();
        self.suspects.sort_unstable();
        self.suspects.dedup();
        let is_inherited = verdict.void.count > 0;
        if self.suspects.is_empty() && !is_inherited {
            return Some(Void::default());
        }
        let lowest = discarded.map(|(_, header)| header.commit).min().unwrap_or(top + 1);
        let from = if is_inherited { verdict.void.from } else { lowest };
        let is_counted = |header: &Header| header.kind == Kind::Data && verdict.counts(header) && header.commit >= from;
        if scan.pages.iter().any(|(_, header)| is_counted(header)) {
            return None;
        }
        let end = (top + 1).max(from + u64::from(verdict.void.count));
        u32::try_from(end - from + 1).ok().map(|count| Void { from, count })
    }

    /// The newest copy of each group, from the newest base of its node on. A node of which a group is missing is left out:
    /// either it is not reached any more, or the walk will miss it.
    fn build_table(&mut self, scan: &Scan, verdict: &Verdict) {
        let counted: BTreeSet<PageAddr> =
            scan.pages.iter().filter(|(_, header)| verdict.counts(header)).map(|(_, header)| header.page).collect();
        let mut nodes: BTreeMap<u32, BTreeMap<u64, FoundGroup>> = BTreeMap::new();
        for group in scan.groups.iter().filter(|group| counted.contains(&group.place.page)) {
            let list = nodes.entry(group.node).or_default();
            let known = list.entry(group.place.sequence).or_insert(*group);
            if known.commit < group.commit {
                *known = *group;
            }
        }
        for (node, list) in nodes {
            let groups: Vec<FoundGroup> = list.into_values().collect();
            let Some(base) = groups.iter().rposition(|group| group.ordinal == 0) else { continue };
            let groups = &groups[base..];
            let is_whole = groups
                .iter()
                .enumerate()
                .all(|(at, group)| usize::from(group.ordinal) == at && group.level == groups[0].level);
            if is_whole {
                for (at, group) in groups.iter().enumerate() {
                    self.table.add(node, group.level, at == 0, group.place);
                }
            }
        }
    }

    /// Removes nodes from the table that the root does not lead to. Reads every node above the leaves.
    fn drop_unreachable(&mut self) -> Result<(), N::Error> {
        let mut reached = BTreeSet::from([0]);
        let mut waiting = vec![0];
        while let Some(id) = waiting.pop() {
            let corrupt = BaselineError::Corrupt { page: PageAddr(0), why: "a node is missing or reached twice" };
            let Some(listed) = self.table.get(id) else { return Err(corrupt) };
            if listed.level == 0 {
                continue;
            }
            let level = listed.level;
            for entry in self.load(id, None)?.entries {
                let is_below = self.table.get(entry.value).is_some_and(|listed| listed.level + 1 == level);
                if !is_below || !reached.insert(entry.value) {
                    return Err(corrupt);
                }
                waiting.push(entry.value);
            }
        }
        let ids: Vec<u32> = self.table.ids().filter(|id| !reached.contains(id)).collect();
        for id in ids {
            self.table.remove(id);
        }
        Ok(())
    }

    /// Says which blocks may be filled before the settle page is there, and erases those of them that hold something.
    fn sort_blocks(&mut self, scan: &Scan, verdict: &Verdict, newest: &Header) -> Result<(), N::Error> {
        // A settle page with another page behind it in its block was not torn. If the newest was, that one is found.
        let is_proven = |(at, (block, header)): (usize, &(BlockAddr, Header))| {
            let is_followed = scan.pages.get(at + 1).is_some_and(|(next, _)| next == block);
            (header.kind == Kind::Settle && is_followed).then_some(header.commit)
        };
        let proven = scan.pages.iter().enumerate().filter_map(is_proven).max();
        let mut needed: BTreeSet<BlockAddr> = BTreeSet::new();
        let mut dirty = scan.torn.clone();
        for &(block, header) in &scan.pages {
            let is_needed = match header.kind {
                Kind::Settle => header.commit == newest.commit || Some(header.commit) == proven,
                // Copies made by a mount that did not end would count once a later settle page is there.
                Kind::Repair => verdict.counts(&header),
                Kind::Data | Kind::Move => true,
            };
            if is_needed {
                needed.insert(block);
            }
            if header.kind == Kind::Repair && !is_needed {
                dirty.insert(block);
            }
        }
        for &(block, header) in &scan.pages {
            if header.kind == Kind::Repair && !verdict.counts(&header) && needed.contains(&block) {
                return Err(BaselineError::Corrupt { page: header.page, why: "copies of a mount that did not end" });
            }
        }
        for &block in &needed {
            self.set_state(block, State::Closed);
        }
        for block in dirty {
            if !needed.contains(&block) {
                let _ = self.erase(block)?;
            }
        }
        Ok(())
    }

    /// Programs what counts of the newest page once more, since it may be the one that the cut tore.
    fn repair(&mut self, header: &Header) -> Result<(), N::Error> {
        let mut groups = self.groups(header.page)?;
        groups.retain(|group| self.table.holds(group.node, group.sequence, header.page));
        if groups.is_empty() { Ok(()) } else { self.copy(Kind::Repair, &groups) }
    }
}

/// Which pages count.
fn judge(scan: &Scan, newest_settle: &Header) -> Verdict {
    let headers = || scan.pages.iter().map(|(_, header)| header);
    let told = headers().filter(|header| header.kind != Kind::Repair).map(|header| header.complete_to);
    let complete_to = told.max().unwrap_or(0);
    let mut places: BTreeMap<u64, (u16, BTreeSet<u16>)> = BTreeMap::new();
    for header in headers().filter(|header| header.kind == Kind::Data && header.commit > complete_to) {
        places.entry(header.commit).or_insert((header.page_count, BTreeSet::new())).1.insert(header.index);
    }
    let is_complete = |(commit, (page_count, indices)): (u64, (u16, BTreeSet<u16>))| {
        (indices.len() == usize::from(page_count)).then_some(commit)
    };
    let complete = places.into_iter().filter_map(is_complete).collect();
    let void = Void { from: newest_settle.void_from, count: newest_settle.void_count };
    let mut verdict = Verdict { complete_to, void, complete };
    // Before a commit follows, the pages of the void ones are gone.
    let is_after = |header: &Header| {
        header.kind == Kind::Data && verdict.counts(header) && header.commit >= void.from + u64::from(void.count)
    };
    if headers().any(is_after) {
        verdict.void = Void::default();
    }
    verdict
}
