//! Moving what lives out of a block that is to be erased.

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::features::{BLOBS, FILES, GROUP, SNAPSHOTS};
use nandu_nand::PageAddr;

use crate::copies::SETTLED_MAX;
use crate::descent::Seek;
use crate::group::Lift;
use crate::journals::Node;
use crate::pages::{Examine, Examined, Need, Pages, Placement};
use crate::tree::Tree;
use crate::trees::{Target, TreeSet};
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Lets the medium make room. What it asks about is moved if it lives. With snapshots a delete frees no page for certain: the
    /// medium keeps room for as many pages as they share ([`Pages::note_snapshots`]).
    pub(crate) fn prepare(&mut self, need: Need) -> Result<(), TreeError<P::Error>> {
        self.view(None);
        self.rescue()?;
        // Programs and erases follow, after which another page may stand where the list that was read last stood.
        self.values.holds = None;
        let mut settled = 0;
        loop {
            match self.pages.prepare(need) {
                Ok(None) => return Ok(()),
                Ok(Some(examine)) => {
                    let outcome = self.examine(examine)?;
                    self.pages.examined(examine, outcome)?;
                }
                // What was copied counts twice, and may be all that keeps blocks from being free.
                Err(error) if self.can_name_for_room(&error) && settled < SETTLED_MAX => {
                    settled += 1;
                    self.name_for_room()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn can_name_for_room(&self, error: &P::Error) -> bool {
        self.pages.is_full(error) && !self.copies.is_empty() && self.changes.unsynced() == 0
    }

    /// Answers the medium's question about a page.
    pub fn examine(&mut self, examine: Examine) -> Result<Examined, TreeError<P::Error>> {
        let Examine { page, moves, may_wait } = examine;
        self.values.holds = None;
        self.view(None);
        if moves && self.changes.unsynced() > 0 {
            // A move is no promise, and changes that wait for a sync are not to be in it.
            return Ok(Examined::Live);
        }
        if self.is_known_dead(page) {
            return Ok(Examined::Dead);
        }
        let kind = if self.pages.is_bare(page) { Ok(PageKind::Summary) } else { self.kind_of(page) };
        let found = match kind {
            // Or one of the pages that it names.
            Ok(PageKind::Summary) if FILES => self.examine_bare(page, moves),
            Ok(PageKind::Notes) if FILES => self.examine_notes(page, moves),
            Ok(kind @ (PageKind::Value | PageKind::ValueIndex)) if BLOBS => self.examine_value(page, kind, moves),
            Ok(PageKind::Snapshots) if SNAPSHOTS => self.examine_table(page, moves),
            Ok(PageKind::Snapshots) => Ok(Examined::Dead),
            Ok(PageKind::Journal) if GROUP && FILES && self.journals.place_of(page.0).is_none() => {
                self.examine_resident(page, moves)
            }
            Ok(PageKind::Tree) if GROUP && moves && may_wait && self.journals.place_of(page.0).is_none() => {
                self.lift_or_relocate(page)
            }
            Ok(_) if moves => self.relocate(page).map(|lived| if lived { Examined::Moved } else { Examined::Dead }),
            Ok(_) => self.is_live(page).map(|lives| if lives { Examined::Live } else { Examined::Dead }),
            Err(error) => Err(error),
        };
        match found {
            Err(TreeError::Pages(error)) => Ok(self.pages.excuse(page, error)?),
            // Only what the tree appended can be part of it, and that is sound.
            Err(TreeError::Corrupt { page: corrupt, .. }) if corrupt == page => Ok(Examined::Unreadable),
            found => found,
        }
    }

    /// Leaves a leaf for the next sync to take along, the first time; the second time moves it, if that has not happened.
    #[inline(never)]
    fn lift_or_relocate(&mut self, page: PageAddr) -> Result<Examined, TreeError<P::Error>> {
        let was_asked = self.lift.get().is_some_and(|lift| lift.page == page.0);
        self.lift.clear();
        let may_ride = self.is_grouped() && self.snapshots.is_empty();
        if may_ride && !was_asked && self.find_live(page)? == Some(0) {
            self.lift_leaf(page.0);
            return Ok(Examined::Later);
        }
        self.relocate(page).map(|lived| if lived { Examined::Moved } else { Examined::Dead })
    }

    #[inline(never)]
    fn lift_leaf(&mut self, page: u32) {
        let mut key = KeyBuf::EMPTY;
        self.low_key(0, &mut key);
        self.lift.set(Lift { page, key });
    }

    /// What a page holds; it is in the reading buffer then, unless what it holds is known.
    fn kind_of(&mut self, page: PageAddr) -> Result<PageKind, TreeError<P::Error>> {
        let leaf = self.path[0];
        if page.0 == self.state.root || (leaf.present && leaf.page == page.0) {
            return Ok(PageKind::Tree);
        }
        if self.journals.place_of(page.0).is_some() {
            return Ok(PageKind::Journal);
        }
        Ok(self.fetch(page.0)?.kind)
    }

    /// Whether a page lives, and if so programs its lowest node, with the path above it, elsewhere; that is a commit of
    /// its own, after which the page is dead.
    ///
    /// A page lives exactly while its lowest node does (T3), and a node is found from the root by a key of its own: so
    /// this reads the page and at most the path to it, and programs 1 page, rarely 2. A page that snapshots reach takes a
    /// search in each of their trees, and a program for each of these that reaches it, unless its root is moved with
    /// another one's, and one for their table.
    ///
    /// A leaf takes the changes of its range with it, a journal page becomes a new one. Syncs first.
    pub fn relocate(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        self.sync()?;
        if let Some(place) = self.journals.place_of(page.0) {
            return self.move_journal(place, page).map(|()| true);
        }
        if !self.snapshots.is_empty()
            && let Some(lived) = self.relocate_shared(page)?
        {
            return Ok(lived);
        }
        let Some(level) = self.find_live(page)? else {
            return Ok(false);
        };
        self.move_node(level, page)?;
        Ok(true)
    }

    /// As [`Tree::relocate`], where there are snapshots; `None` if the newest tree alone reaches the page, and nothing was done.
    #[inline(never)]
    fn relocate_shared(&mut self, page: PageAddr) -> Result<Option<bool>, TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        match self.reach_page(page, &mut key)? {
            (_, TreeSet::NEWEST) => Ok(None),
            (_, TreeSet::NONE) => Ok(Some(false)),
            (level, trees) => {
                self.move_jointly(trees, &Target { from: page, level, key: &key, stored: None })?;
                Ok(Some(true))
            }
        }
    }

    #[inline(never)]
    fn is_reached(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        Ok(self.reach_page(page, &mut key)?.1 != TreeSet::NONE)
    }

    /// Lowest level of a page, and which trees reach it by a key of its own, which is put in place of `key`.
    fn reach_page(&mut self, page: PageAddr, key: &mut KeyBuf) -> Result<(u8, TreeSet), TreeError<P::Error>> {
        let level = self.whereabouts(page, key)?;
        Ok((level, self.reach(page.0, level, key.as_slice())?))
    }

    /// Programs the lowest node of a page elsewhere; the path above it is present.
    fn move_node(&mut self, level: u8, from: PageAddr) -> Result<(), TreeError<P::Error>> {
        let placement = Some(Placement::Moved { from });
        if level == 0 && !self.journals.is_empty() {
            return self.move_merged(placement);
        }
        let outcome = self.touch(level);
        self.conclude(outcome, placement)
    }

    /// Programs the path's leaf with its changes.
    #[inline(never)]
    fn move_merged(&mut self, placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        self.low_key(0, &mut key);
        self.merge_at(key.as_slice(), placement)
    }

    /// Programs what a journal page holds elsewhere: its changes, and its lowest node if it is a page of the tree that lives.
    /// Programs 1 page, or 2 if the node leaves no room for the changes.
    #[inline(never)]
    fn move_journal(&mut self, place: u8, from: PageAddr) -> Result<(), TreeError<P::Error>> {
        self.prove_journal(place)?;
        let is_by_itself = self.journals.find_mut(from.0).is_some_and(|listed| listed.is_by_itself);
        if is_by_itself {
            // The value first: what moves it leaves the page on the list, or empties it.
            if self.move_listed_resident(from)? {
                return Ok(());
            }
            return self.rewrite_journal(from);
        }
        let node = self.journals.find_mut(from.0).map_or(Node::Absent, |listed| listed.node);
        let level = if matches!(node, Node::Absent | Node::Dead) { None } else { self.find_live(from)? };
        if let Some(listed) = self.journals.find_mut(from.0).filter(|listed| listed.node == Node::Unknown) {
            listed.node = if level.is_some() { Node::Live } else { Node::Dead };
        }
        self.journals.force(Some(place));
        let outcome = match level {
            // What the page holds of other leaves goes with its own.
            Some(0) => self.move_node(0, from),
            _ => self.write_journal(Placement::Moved { from }),
        };
        self.journals.force(None);
        outcome?;
        self.stats.moved_rides += u64::from(level.is_some());
        match level {
            Some(1..) => match self.find_live(from)? {
                Some(level) => self.move_node(level, from),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Programs the changes of a journal page elsewhere.
    fn rewrite_journal(&mut self, from: PageAddr) -> Result<(), TreeError<P::Error>> {
        self.journals.force(self.journals.place_of(from.0));
        let outcome = self.write_journal(Placement::Moved { from });
        self.journals.force(None);
        outcome
    }

    /// Whether a page lives. Reads the page and at most the path to it.
    pub fn is_live(&mut self, page: PageAddr) -> Result<bool, TreeError<P::Error>> {
        if self.journals.place_of(page.0).is_some() || self.notes.page == Some(page.0) {
            return Ok(true);
        }
        if self.pages.has_bare() && self.kind_of(page)? == PageKind::Journal {
            return self.is_resident_needed(page);
        }
        if !self.snapshots.is_empty() {
            return self.is_reached(page);
        }
        Ok(self.find_live(page)?.is_some())
    }

    /// The lowest level of a page that lives, with the path above that level present.
    #[inline(never)]
    pub(crate) fn find_live(&mut self, page: PageAddr) -> Result<Option<u8>, TreeError<P::Error>> {
        if page.0 == self.state.root {
            // Its lowest node is on the newest path, whatever is left of that.
            let lowest = self.lowest_of(page)?;
            if lowest == self.top() {
                self.load_root()?;
                return Ok(Some(lowest));
            }
        }
        let mut key = KeyBuf::EMPTY;
        let Some(lowest) = self.locate(page, &mut key)? else {
            return Ok(None);
        };
        if lowest >= self.top() {
            return Ok(None);
        }
        self.descend(Seek::At(key.as_slice()), lowest + 1)?;
        Ok((self.child(lowest) == page.0).then_some(lowest))
    }

    fn lowest_of(&mut self, page: PageAddr) -> Result<u8, TreeError<P::Error>> {
        let slot = self.path[self.top() as usize];
        if slot.present && slot.page == page.0 && slot.lowest != u8::MAX {
            return Ok(slot.lowest);
        }
        Ok(self.read_body(page.0)?.lowest)
    }

    /// Lowest level of a page, and puts in its place a key in the range of the node there: of a leaf the one in the middle, which is never spent as long as
    /// the leaf lives (T12).
    pub(crate) fn locate(&mut self, page: PageAddr, key: &mut KeyBuf) -> Result<Option<u8>, TreeError<P::Error>> {
        let slot = self.path[0];
        if slot.present && slot.page == page.0 {
            let leaf = &self.assembly[slot.range()];
            return Ok((self.cells.leaf_count(leaf) > 0).then(|| {
                self.cells.leaf_key(leaf, 0, key);
                0
            }));
        }
        if self.fetch(page.0)?.kind == PageKind::Journal {
            return Ok(None);
        }
        let body = self.read_body(page.0)?;
        let (lowest, locator) = (body.lowest, body.locator());
        let place = self.read_node(page.0, lowest)?;
        if lowest == 0 {
            let leaf = &self.reading.buf[place];
            if self.cells.leaf_count(leaf) == 0 {
                return Ok(None);
            }
            let at = if self.broken.seeks_first() { 0 } else { self.cells.leaf_count(leaf) / 2 };
            self.cells.leaf_key(leaf, at, key);
        } else {
            key.set(&self.reading.buf[locator]);
        }
        match self.check_key(key.as_slice()) {
            Ok(()) => Ok(Some(lowest)),
            Err(_) => Err(TreeError::Corrupt { page, why: Malformed::Node }),
        }
    }

    /// Puts the path down to this level into the buffers as it is, to be programmed again.
    pub(crate) fn touch(&mut self, level: u8) -> Result<(), TreeError<P::Error>> {
        if level == 0 {
            self.take_leaf()?;
        } else {
            let page = self.child(level);
            let slot = self.path[level as usize];
            if level < self.top() && !(slot.present && slot.page == page) {
                self.load_inner(level, page)?;
            }
            // Any key in its range locates it, also one that is not in the tree.
            let locator = self.read_body(page)?.locator();
            self.keys[0].set(&self.reading.buf[locator]);
        }
        self.pending.dirty = true;
        self.pending.lowest = level;
        self.pending.at_end = false;
        Ok(())
    }
}
