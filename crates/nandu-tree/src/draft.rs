//! What goes into the next journal page: one by itself, or a section of the page of a leaf that is programmed with it.
//!
//! A page by itself says of every other journal page which of its changes are still needed. A section has not room for that:
//! it says so of the pages that came after the newest one by itself, its *base*, and leaves that what it said. What a leaf
//! took since then is found out when the leaf is read, as after any other page of the tree. Where what the base says is more than a
//! mount has memory for, the section has maps of the base and of what that names.
//!
//! The changes of a section become durable with its leaf, in one program, and none of them is of that leaf: so no tear leaves
//! one without the other, and the leaf's own sequence says nothing about them.

use nandu_media::PageKind;
use nandu_media::journal::{JournalFront, Older, SectionFront, front_size, mark, older_size, section_front_size};
use nandu_media::section::{SectionKind, SectionWriter};
use nandu_media::tree::CellFormat;
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::changes::{Changes, Home, UNSYNCED};
use crate::journals::{Journals, LISTED_MAX, Listed, Node, Stood, Tallies, Tally, count_changes};
use crate::pages::{Pages, Placement};
use crate::summaries::NotesPlace;
use crate::tree::Tree;
use nandu_cells::Cells;

/// What a journal page to be written does with one that is listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Stays,
    /// It takes its changes.
    Moved,
    /// It names it, with a map that is exact, or one that is not.
    Named { is_exact: bool },
}

/// A journal page to be written.
pub(crate) struct Draft {
    /// What it does with each; the last stands for no page.
    fates: [Fate; LISTED_MAX + 1],
    /// Bytes of the list of those that it names.
    list_size: usize,
    /// Changes that it takes, and their bytes.
    count: usize,
    size: usize,
    /// The newest page by itself, if a section needs it.
    base: Option<u32>,
    /// Bytes of the maps of that one and of those that it names, if they have to be written anew, and whether they are exact.
    maps_size: usize,
    is_exact: bool,
}

impl Draft {
    pub(crate) const EMPTY: Draft = Draft {
        fates: [Fate::Stays; LISTED_MAX + 1],
        list_size: 0,
        count: 0,
        size: 0,
        base: None,
        maps_size: 0,
        is_exact: false,
    };

    /// Takes what has to be in it.
    fn start(&mut self, forced: Option<u8>, tallies: &Tallies) {
        for place in forced.into_iter().chain([UNSYNCED]) {
            self.take(usize::from(place), tallies);
        }
    }

    fn take(&mut self, place: usize, tallies: &Tallies) {
        self.fates[place] = Fate::Moved;
        self.count += tallies[place].count;
        self.size += tallies[place].size;
    }

    fn is_moved(&self, place: usize) -> bool {
        self.fates[place] == Fate::Moved
    }

    fn name(&mut self, place: usize, listed: &Listed, tally: &Tally) {
        self.fates[place] = Fate::Named { is_exact: tally.unproved == 0 };
        self.list_size += older_size(usize::from(listed.count));
    }

    /// Those that it names, in the order of its list: the place of each, and what the list says of it.
    fn named(&self, journals: &Journals) -> impl Iterator<Item = (usize, Older)> {
        let fates = self.fates.iter().zip(&journals.listed).enumerate();
        fates.filter_map(|(place, (fate, listed))| match (fate, listed) {
            (&Fate::Named { is_exact }, &Some(Listed { page, count, .. })) => {
                Some((place, Older { page, count, is_exact }))
            }
            _ => None,
        })
    }

    /// What the list says of those that it names.
    fn older<'o>(&self, journals: &Journals, out: &'o mut [Older; LISTED_MAX]) -> &'o [Older] {
        let mut count = 0;
        for (out, (_, older)) in out.iter_mut().zip(self.named(journals)) {
            (*out, count) = (older, count + 1);
        }
        &out[..count]
    }

    /// Writes its changes to `body[at..]`, and which changes of other pages are needed to the list of these, with which `body`
    /// begins, and to the maps behind it. Returns where the changes end.
    fn fill(
        &self,
        changes: &Changes<'_>,
        journals: &Journals,
        format: &CellFormat,
        (body, older): (&mut [u8], &[Older]),
        mut at: usize,
    ) -> usize {
        let merged = journals.merged();
        let maps = if self.maps_size > 0 { journals.map_places() } else { [0; LISTED_MAX] };
        let mut places = [0_u8; LISTED_MAX];
        for (number, (place, _)) in self.named(journals).enumerate() {
            places[place] = number as u8;
        }
        for index in (0..changes.len()).filter(|index| !merged.contains(index)) {
            let home = changes.home(index);
            let journal = usize::from(home.journal);
            match self.fates[journal] {
                Fate::Moved => at += changes.change(index).write(format, &mut body[at..]),
                Fate::Named { .. } => mark(older, body, places[journal].into(), usize::from(home.index)),
                Fate::Stays if self.maps_size > 0 => {
                    body[self.list_size + maps[journal] + usize::from(home.index) / 8] |= 1 << (home.index % 8);
                }
                Fate::Stays => {}
            }
        }
        at
    }

    /// Bytes of its section.
    pub(crate) fn section_size(&self) -> usize {
        section_front_size() + self.list_size + self.maps_size + self.size
    }

    /// Writes its section, of which this is the content.
    #[inline(never)]
    pub(crate) fn write_section(
        &self,
        journals: &Journals,
        changes: &Changes<'_>,
        format: &CellFormat,
        content: &mut [u8],
    ) {
        let mut older = [Older::default(); LISTED_MAX];
        let older = self.older(journals, &mut older);
        let front = SectionFront {
            base: self.base,
            count: self.count as u16,
            older,
            maps_size: self.maps_size as u16,
            is_exact: self.is_exact,
        };
        let at = front.write(content);
        let list = section_front_size();
        let end = list + self.fill(changes, journals, format, (&mut content[list..], older), at - list);
        assert!(end == content.len(), "a section is as long as its changes");
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Programs a journal page with every change that none holds, those of the page that must go, and those of as many other journal
    /// pages as it has room for; these are needed no longer. That is a commit, also of pages appended before. Changes that go to
    /// their leaves with it are not among them.
    pub(crate) fn write_journal(&mut self, placement: Placement) -> Result<(), TreeError<P::Error>> {
        let mut draft = Draft::EMPTY;
        let notes_size = self.notes_size();
        self.draft_page(notes_size, &mut draft);
        let used = front_size(self.header_size) + draft.list_size + draft.size;
        let notes = self.place_notes(self.scratch.len().saturating_sub(used))?;
        self.compose_journal(&draft, notes);
        let is_commit = notes != NotesPlace::Page;
        let page = self.pages.append(self.scratch, PageKind::Journal, placement, is_commit)?.0;
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        let notes_page = if is_commit { Ok(None) } else { self.append_notes(Some(page), placement).map(Some) };
        if notes_page.is_err() {
            self.pages.supersede(PageAddr(page));
        }
        let notes_page = notes_page?;
        self.stats.journals += 1;
        self.finish();
        let node = if self.settle_resident(page) { Node::Live } else { Node::Absent };
        self.note_draft(page, &draft, node, true);
        self.replace_notes_page(notes_page);
        self.drop_empty_table();
        Ok(())
    }

    /// Puts a journal page by itself together.
    #[inline(never)]
    fn compose_journal(&mut self, draft: &Draft, notes: NotesPlace) {
        let list = front_size(self.header_size);
        let mut older = [Older::default(); LISTED_MAX];
        let older = draft.older(&self.journals, &mut older);
        let front = JournalFront {
            height: self.state.height,
            format: self.format,
            records: self.state.records,
            root: self.state.root,
            count: draft.count as u16,
            has_sections: notes.size() > 0,
            older,
        };
        let end = front.write(self.scratch, self.header_size) - list;
        let body = (&mut self.scratch[list..], older);
        let end = list + draft.fill(&self.changes, &self.journals, &self.format, body, end);
        let mut writer = SectionWriter::new(&mut self.scratch[end..]);
        if let NotesPlace::Section(size) = notes {
            self.notes.write(writer.add(SectionKind::Notes, size), &self.journal);
        }
        writer.finish();
    }

    /// Which changes go into the next journal page by itself, of which nothing was said.
    #[inline(never)]
    fn draft_page(&self, notes_size: usize, draft: &mut Draft) {
        let mut tallies = [Tally::default(); LISTED_MAX + 1];
        count_changes(&self.changes, &self.journals.merged(), &mut tallies);
        draft.start(self.journals.forced(), &tallies);
        assert!(self.journals.fit(draft.count, draft.size), "what must go into a journal page fits it");
        loop {
            // An unproved change may be obsolete, which a newer page would hide.
            let others = (0..LISTED_MAX)
                .filter(|&at| self.journals.listed[at].is_some() && !draft.is_moved(at) && tallies[at].unproved == 0);
            let Some(least) = others.min_by_key(|&place| tallies[place].size) else { break };
            // Rather a page more in the list than a Summary.
            let size = draft.size + tallies[least].size + notes_size;
            if !self.journals.fit(draft.count + tallies[least].count, size) {
                break;
            }
            draft.take(least, &tallies);
        }
        for (place, listed) in self.journals.listed.iter().enumerate() {
            if let (Some(listed), false) = (listed, draft.is_moved(place)) {
                draft.name(place, listed, &tallies[place]);
            }
        }
    }

    /// Which changes go into a section of so many bytes, of which nothing was said; false if those that have to go there are too many.
    #[inline(never)]
    pub(crate) fn draft_section(&self, room: usize, draft: &mut Draft) -> bool {
        let merged = self.journals.merged();
        let forced = self.journals.forced();
        if self.changes.residents() > 0 {
            return false;
        }
        let mut tallies = [Tally::default(); LISTED_MAX + 1];
        count_changes(&self.changes, &merged, &mut tallies);
        draft.start(forced, &tallies);
        let journals = &self.journals;
        let is_recent = |place: usize| journals.listed[place].is_some_and(|listed| listed.is_recent);
        let others = || (0..LISTED_MAX).filter(|&place| journals.listed[place].is_some() && !is_recent(place));
        if others().all(|place| tallies[place].count == 0) {
            others().for_each(|place| draft.fates[place] = Fate::Moved);
        } else if forced.is_some_and(|place| !is_recent(usize::from(place))) {
            // The base would still name it.
            return false;
        } else {
            draft.base = journals.base_page();
            if !journals.fits_mount(&tallies, self.changes.size()) {
                // By what the base says a mount would find more than there is room for.
                draft.maps_size = journals.maps_size();
                draft.is_exact = others().all(|place| tallies[place].unproved == 0);
            }
        }
        let list_size = |place: usize| journals.listed[place].map_or(0, |listed| older_size(usize::from(listed.count)));
        let mut needed = section_front_size() + draft.maps_size + draft.size;
        needed += (0..LISTED_MAX).filter(|&at| is_recent(at) && !draft.is_moved(at)).map(list_size).sum::<usize>();
        loop {
            let recent =
                (0..LISTED_MAX).filter(|&at| is_recent(at) && !draft.is_moved(at) && tallies[at].unproved == 0);
            let Some(least) = recent.min_by_key(|&place| tallies[place].size) else { break };
            let with_it = needed + tallies[least].size - list_size(least);
            let fits = journals.fit(draft.count + tallies[least].count, draft.size + tallies[least].size);
            if !fits || with_it > room && with_it > needed {
                break;
            }
            draft.take(least, &tallies);
            needed = with_it;
        }
        let left = (0..LISTED_MAX).filter(|&place| journals.listed[place].is_some() && !draft.is_moved(place)).count();
        if needed > room || left >= journals.listed_max || !journals.fit(draft.count, draft.size) {
            return false;
        }
        for place in (0..LISTED_MAX).filter(|&place| is_recent(place)) {
            if let (Some(listed), false) = (&journals.listed[place], draft.is_moved(place)) {
                draft.name(place, listed, &tallies[place]);
            }
        }
        true
    }

    /// A journal page is durable, and holds what was drafted.
    #[inline(never)]
    pub(crate) fn note_draft(&mut self, page: u32, draft: &Draft, node: Node, is_by_itself: bool) {
        let merged = self.journals.merged();
        let free = (0..LISTED_MAX).find(|&place| draft.is_moved(place) || self.journals.listed[place].is_none());
        let Some(place) = free else { return };
        let mut index = 0;
        for at in (0..self.changes.len()).filter(|at| !merged.contains(at)) {
            if draft.is_moved(usize::from(self.changes.home(at).journal)) {
                self.changes.set_home(at, Home { journal: place as u8, index, is_unproved: false });
                index += 1;
            }
        }
        let mut dropped = [None; LISTED_MAX];
        for (at, dropped) in dropped.iter_mut().enumerate().filter(|(at, _)| draft.is_moved(*at)) {
            *dropped = self.journals.listed[at].take().map(|listed| listed.stood());
        }
        let is_recent = !is_by_itself;
        if !is_recent {
            // Behind the new one, which is the first.
            let mut order = 0;
            for (listed, fate) in self.journals.listed.iter_mut().zip(&draft.fates) {
                order += u8::from(matches!(fate, Fate::Named { .. }));
                listed.iter_mut().for_each(|listed| listed.order = order);
            }
        }
        // Only what a mount finds has to be proved, so the sequence is not needed here.
        let (sequence, count) = (u64::MAX, draft.count as u16);
        let listed = Listed { page, sequence, count, node, is_by_itself, is_recent, order: 0 };
        self.journals.listed[place] = Some(listed);
        self.journals.set_newest(place as u8, page);
        if is_recent && draft.base.is_none() {
            self.journals.drop_base();
        }
        if !is_recent {
            let taken = |index| self.changes.required(&self.changes.change(index));
            let leaving: usize = merged.map(taken).sum();
            self.journals.rebase(place as u8, self.changes.size() - self.changes.free() - leaving);
        }
        for stood in dropped.iter().flatten() {
            self.drop_listed(stood);
        }
    }

    /// A commit left out a journal page. What else it is for may keep it alive. After a mount it is not known whether that lives; then this
    /// reads the page and at most the path to it.
    pub(crate) fn drop_listed(&mut self, stood: &Stood) {
        let page = PageAddr(stood.page);
        let lives = match stood.node {
            Node::Absent | Node::Dead => false,
            Node::Live => true,
            Node::Unknown => match self.is_still_live(page, stood.is_by_itself) {
                Ok(lives) => lives,
                // One that cannot be read stays counted, until the collector looks at it.
                Err(_) => {
                    self.pages.doubt();
                    true
                }
            },
        };
        if !lives {
            self.pages.supersede(page);
        }
    }

    fn is_still_live(&mut self, page: PageAddr, is_by_itself: bool) -> Result<bool, TreeError<P::Error>> {
        if is_by_itself { self.is_resident_needed(page) } else { Ok(self.find_live(page)?.is_some()) }
    }
}
