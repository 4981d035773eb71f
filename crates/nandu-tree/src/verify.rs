//! The whole tree, walked once.

use nandu_index::{KeyBuf, Violation};
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::descent::{PENDING, Seek, Slot};
use crate::journals::LISTED_MAX;
use crate::page_values::Owner;
use crate::pages::Pages;
use crate::tree::Tree;
use nandu_cells::Cells;
use nandu_media::PageKind;
use nandu_media::notes::NotesPage;
use nandu_media::tree::{HEIGHT_MAX, JournalAt};
use nandu_media::value::{PageValue, Resident};

/// The bounds between which the keys of a node must lie: not below the first, below the second.
struct Fences {
    low: Option<KeyBuf>,
    high: Option<KeyBuf>,
}

impl Fences {
    fn hold(&self, key: &[u8]) -> bool {
        self.low.is_none_or(|low| key >= low.as_slice()) && self.high.is_none_or(|high| key < high.as_slice())
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Checks T1 to T12 and reports each violation. Reads each live page once for each tree that reaches it (a page whose
    /// nodes serve several paths again when it no longer is the page read last), journal pages twice, and nothing from memory; with snapshots
    /// also what tells which pages they share.
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), TreeError<P::Error>> {
        self.walk(report, &mut |_| ())
    }

    /// Visits each live page once. Reads as [`Tree::verify`] does.
    pub fn live_pages(&mut self, visit: &mut dyn FnMut(PageAddr)) -> Result<(), TreeError<P::Error>> {
        self.walk(&mut |_| (), visit)
    }

    fn walk(
        &mut self,
        report: &mut dyn FnMut(Violation),
        live: &mut dyn FnMut(PageAddr),
    ) -> Result<(), TreeError<P::Error>> {
        self.discard_value();
        self.notes.cached = None;
        for listed in self.journals.listed.iter().flatten() {
            live(PageAddr(listed.page));
        }
        if let Some(page) = self.notes.page {
            live(PageAddr(page));
        }
        self.check_journals(report)?;
        self.walk_waiting_pages(report, live)?;
        if let Some(page) = self.snapshots.page.map(PageAddr) {
            live(page);
            match self.is_table_sound() {
                Ok(true) => {}
                Ok(false) | Err(TreeError::Corrupt { .. }) => {
                    report(Violation { invariant: "T8", page, level: 0, index: 0 });
                }
                Err(error) => return Err(error),
            }
        }
        for tree in 0..self.tree_count() {
            self.cache.clear();
            self.reading.forget();
            self.view(tree.checked_sub(1));
            self.path = [Slot::ABSENT; HEIGHT_MAX];
            let outcome = self.walk_leaves(tree, report, live);
            // What was loaded on the way may be unsound; nothing of it is used on.
            self.path = [Slot::ABSENT; HEIGHT_MAX];
            self.cache.clear();
            self.view(None);
            match outcome {
                Err(TreeError::Corrupt { page, .. }) => {
                    report(Violation { invariant: "T6", page, level: 0, index: 0 });
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Whether no tree before this one reaches the node of a level on the path. What is found unsound on the way is reported
    /// when that tree is walked.
    fn is_first_to_reach(&mut self, tree: usize, level: u8) -> Result<bool, TreeError<P::Error>> {
        if tree == 0 {
            return Ok(true);
        }
        let Fences { low, high } = self.fences(level);
        let mut minimum = KeyBuf::EMPTY;
        self.cells.minimum(&mut minimum);
        let fences = (&low.unwrap_or(minimum), high.as_ref());
        match self.is_reached_between(tree, self.child(level), level, fences) {
            Err(TreeError::Corrupt { .. }) => Ok(true),
            Err(error) => Err(error),
            Ok(is_reached) => Ok(!is_reached),
        }
    }

    fn walk_leaves(
        &mut self,
        tree: usize,
        report: &mut dyn FnMut(Violation),
        live: &mut dyn FnMut(PageAddr),
    ) -> Result<(), TreeError<P::Error>> {
        let mut fence = KeyBuf::EMPTY;
        self.cells.minimum(&mut fence);
        let mut seen = [PENDING; HEIGHT_MAX];
        let mut records = 0_u64;
        for _ in 0..self.page_count {
            self.descend(Seek::At(fence.as_slice()), 1)?;
            for level in (1..=self.top()).rev() {
                let page = self.path[level as usize].page;
                if seen[level as usize] != page {
                    seen[level as usize] = page;
                    let is_lowest = self.check_inner(level, report);
                    // A journal page was visited already.
                    if is_lowest && self.journals.place_of(page).is_none() && self.is_first_to_reach(tree, level)? {
                        live(PageAddr(page));
                    }
                }
            }
            records += self.check_leaf(report)?;
            self.check_values(tree, report, live)?;
            if tree == 0 {
                let (grown, shrunk) = self.weigh_changes()?;
                records = (records + grown).saturating_sub(shrunk);
            }
            if self.journals.place_of(self.child(0)).is_none() && self.is_first_to_reach(tree, 0)? {
                live(PageAddr(self.child(0)));
            }
            let before = fence;
            if self.fence_above(0, &mut fence).is_none() {
                break;
            }
            if before.as_slice() >= fence.as_slice() {
                // Separators that do not ascend would lead in circles; they were reported.
                return Ok(());
            }
        }
        if records != self.state.records {
            let (invariant, page) = match (tree, self.snapshots.page) {
                (1.., Some(table)) => ("T8", PageAddr(table)),
                _ => ("T5", self.root()),
            };
            report(Violation { invariant, page, level: self.top(), index: tree as u32 });
        }
        Ok(())
    }

    /// Looks at the pages of the large values in the leaf of the path.
    fn check_values(
        &mut self,
        tree: usize,
        report: &mut dyn FnMut(Violation),
        live: &mut dyn FnMut(PageAddr),
    ) -> Result<(), TreeError<P::Error>> {
        let page = PageAddr(self.child(0));
        let place = self.leaf_place(false)?;
        let mut key = KeyBuf::EMPTY;
        for index in self.unspent(self.bytes(&place)) {
            // What was looked at for the entry before may stand where the leaf did.
            let place = self.leaf_place(false)?;
            self.cells.leaf_key(self.bytes(&place), index, &mut key);
            let key = key;
            // What a change hides is counted until the leaf has taken the change, and read by nobody.
            let is_hidden = self.changes.find(key.as_slice()).is_ok_and(|at| !self.changes.home(at).is_unproved);
            let mut violated = |invariant, page| report(Violation { invariant, page, level: 0, index: index as u32 });
            let place = self.leaf_place(false)?;
            if let Some(value) = PageValue::parse(self.cells.leaf_value(self.bytes(&place), index)) {
                if !is_hidden && !self.is_page_value_sound(key.as_slice(), value)? {
                    violated("T9", PageAddr(value.page));
                }
                live(PageAddr(value.page));
                continue;
            }
            let place = self.leaf_place(false)?;
            if let Some(value) = Resident::parse(self.cells.leaf_value(self.bytes(&place), index)) {
                if !is_hidden && !self.is_resident_sound(key.as_slice(), value)? {
                    violated("T11", PageAddr(value.page));
                }
                self.visit_resident(value.page, live);
                continue;
            }
            let descriptor = match self.leaf_descriptor(key.as_slice(), index) {
                Ok(None) => continue,
                Ok(Some(descriptor)) => descriptor,
                Err(()) => {
                    violated("T7", page);
                    continue;
                }
            };
            let mut is_first = true;
            for earlier in 0..tree {
                match self.descriptor_at(earlier, key.as_slice()) {
                    Ok(Some(other)) if other.stamp == descriptor.stamp => {
                        is_first = false;
                        if other != descriptor {
                            violated("T8", page);
                        }
                    }
                    Ok(_) | Err(TreeError::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let outcome = match is_first {
                true => self.walk_value(key.as_slice(), &descriptor, live),
                false => Ok(()),
            };
            match outcome {
                Err(TreeError::Corrupt { page, .. }) => violated("T7", page),
                other => other?,
            }
        }
        Ok(())
    }

    /// Holds the changes in memory against the journal pages that are said to hold them, and looks at what the newest commit
    /// names. Reads each of these pages and the newest commit.
    fn check_journals(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), TreeError<P::Error>> {
        let Some(newest) = self.journals.newest_page() else { return Ok(()) };
        let mut violated = |page, index: usize| {
            report(Violation { invariant: "T10", page: PageAddr(page), level: 0, index: index as u32 });
        };
        match self.named_journal() {
            Ok(named) if named == Some(newest) => {}
            Ok(_) | Err(TreeError::Corrupt { .. }) => violated(newest, 0),
            Err(error) => return Err(error),
        }
        for place in 0..LISTED_MAX {
            let Some(listed) = self.journals.listed[place] else { continue };
            let list = match self.load_journal(listed.page) {
                Err(TreeError::Corrupt { .. }) => {
                    violated(listed.page, 0);
                    continue;
                }
                other => other?.list,
            };
            let mut count = 0;
            for (index, change) in list.changes(self.reading.buf).enumerate() {
                let Ok(at) = self.changes.find(change.key) else { continue };
                let home = self.changes.home(at);
                if usize::from(home.journal) != place || usize::from(home.index) != index {
                    continue;
                }
                count += 1;
                let resident = Self::resident_of(listed.page, &change);
                let change = resident.as_ref().map_or(change, |bytes| Self::as_stored(change.key, bytes));
                if self.changes.change(at) != change {
                    violated(listed.page, index);
                }
            }
            let is_there = |&at: &usize| usize::from(self.changes.home(at).journal) == place;
            if list.count != listed.count || (0..self.changes.len()).filter(is_there).count() != count {
                violated(listed.page, usize::from(list.count));
            }
        }
        Ok(())
    }

    /// The journal page that the newest commit names, or is.
    fn named_journal(&mut self) -> Result<Option<u32>, TreeError<P::Error>> {
        let Some(committed) = self.pages.committed() else { return Ok(None) };
        Ok(match self.fetch(committed.0)?.kind {
            PageKind::Journal => Some(committed.0),
            PageKind::Notes => {
                let said = NotesPage::parse(self.reading.buf, self.header_size);
                said.map_err(|why| TreeError::Corrupt { page: committed, why })?.journal
            }
            _ => match self.read_body(committed.0)?.journal {
                Some(JournalAt::Page(page)) => Some(page),
                Some(JournalAt::Here) => Some(committed.0),
                None => None,
            },
        })
    }

    /// Looks at the page values of changes that no leaf holds yet, and at those that such changes replace.
    fn walk_waiting_pages(
        &mut self,
        report: &mut dyn FnMut(Violation),
        live: &mut dyn FnMut(PageAddr),
    ) -> Result<(), TreeError<P::Error>> {
        self.notes
            .doomed()
            .filter(|&page| self.journals.place_of(page).is_none())
            .for_each(|page| live(PageAddr(page)));
        self.copies.pages().for_each(|page| live(PageAddr(page)));
        let mut index = 0;
        while index < self.changes.len() {
            let mut key = KeyBuf::EMPTY;
            key.set(self.changes.key(index));
            if self.changes.home(index).is_unproved {
                // Of what a leaf holds already, that leaf tells. Others of that leaf may turn out to be there, too.
                let found = self.find_change(key.as_slice())?;
                index = self.changes.lower(key.as_slice());
                if found.is_none() {
                    continue;
                }
            }
            if let Some(value) = self.changes.stored(index).and_then(PageValue::parse)
                && self.tag_size() > 0
            {
                if !self.is_page_value_sound(key.as_slice(), value)? {
                    report(Violation { invariant: "T9", page: PageAddr(value.page), level: 0, index: index as u32 });
                }
                live(PageAddr(value.page));
            }
            if let Some(value) = self.changes.stored(index).and_then(Resident::parse)
                && self.tag_size() > 0
            {
                if !self.is_resident_sound(key.as_slice(), value)? {
                    report(Violation { invariant: "T11", page: PageAddr(value.page), level: 0, index: index as u32 });
                }
                self.visit_resident(value.page, live);
            }
            index += 1;
        }
        Ok(())
    }

    /// Whether a page value is where its entry says, and named by a note or a Summary. Reads the page and Summaries of its block.
    fn is_page_value_sound(&mut self, key: &[u8], value: PageValue) -> Result<bool, TreeError<P::Error>> {
        let page = PageAddr(value.page);
        if value.page >= self.page_count || !self.pages.is_bare(page) {
            return Ok(false);
        }
        match self.read_page_value(value, 0, &mut []) {
            Err(TreeError::Corrupt { .. }) => return Ok(false),
            other => other?,
        };
        match self.named_by_summary(page)? {
            Owner::Key(note) => Ok(note.key() == key),
            Owner::Nobody | Owner::Unknown => Ok(false),
        }
    }

    /// How many entries the changes of the path's leaf add, and how many they take away.
    fn weigh_changes(&mut self) -> Result<(u64, u64), TreeError<P::Error>> {
        if self.changes.is_empty() {
            return Ok((0, 0));
        }
        self.prove_path()?;
        let place = self.leaf_place(false)?;
        let leaf = self.bytes(&place);
        let (mut grown, mut shrunk) = (0, 0);
        for index in self.path_changes() {
            let change = self.changes.change(index);
            match (self.cells.leaf_find(leaf, change.key).is_ok(), change.value) {
                (false, Some(_)) => grown += 1,
                (true, None) => shrunk += 1,
                _ => {}
            }
        }
        Ok((grown, shrunk))
    }

    fn fences(&self, level: u8) -> Fences {
        let (mut low, mut high) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        let has_low = self.fence_below(level, &mut low).is_some();
        let has_high = self.fence_above(level, &mut high).is_some();
        Fences { low: has_low.then_some(low), high: has_high.then_some(high) }
    }

    /// Checks an inner node of the path and returns whether it is the lowest in its page.
    fn check_inner(&self, level: u8, report: &mut dyn FnMut(Violation)) -> bool {
        let slot = self.path[level as usize];
        let page = PageAddr(slot.page);
        let mut violated = |invariant, index: usize| {
            report(Violation { invariant, page, level, index: index as u32 });
        };
        let node = &self.assembly[slot.range()];
        let count = self.cells.inner_count(node);
        let path = self.cells.inner_path(node);
        if level == self.top() && count < 2 {
            violated("T4", 0);
        }
        if path.is_none() != (slot.lowest == level) {
            violated("T3", path.unwrap_or(0));
        }
        let fences = self.fences(level);
        let (mut separator, mut before) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        for index in 0..count - 1 {
            self.cells.inner_separator(node, index, &mut separator);
            if index > 0 && separator.as_slice() <= before.as_slice() {
                violated("T1", index);
            }
            let above_low = fences.low.is_none_or(|low| separator.as_slice() > low.as_slice());
            if !above_low || !fences.hold(separator.as_slice()) {
                violated("T2", index);
            }
            before = separator;
        }
        for index in (0..count).filter(|&index| Some(index) != path) {
            if self.cells.inner_child(node, index, u32::from(self.format.page_bits)) >= self.page_count {
                violated("T6", index);
            }
        }
        path.is_none()
    }

    /// Checks the leaf of the path and returns the number of its entries.
    fn check_leaf(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u64, TreeError<P::Error>> {
        let place = self.leaf_place(false)?;
        let page = PageAddr(self.child(0));
        let mut violated = |invariant, index: usize| {
            report(Violation { invariant, page, level: 0, index: index as u32 });
        };
        let leaf = self.bytes(&place);
        let count = self.cells.leaf_count(leaf);
        let entries = self.unspent(leaf);
        if entries.is_empty() && self.top() > 0 {
            violated("T4", 0);
        }
        if count > 0 && !entries.contains(&(count / 2)) {
            violated("T12", count / 2);
        }
        let fences = self.fences(0);
        let (mut key, mut before) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        for index in 0..count {
            self.cells.leaf_key(leaf, index, &mut key);
            if index > 0 && key.as_slice() <= before.as_slice() {
                violated("T1", index);
            }
            // With T1 all between the first and the last of them are.
            if entries.contains(&index) && !fences.hold(key.as_slice()) {
                violated("T2", index);
            }
            before = key;
        }
        Ok(entries.len() as u64)
    }
}
