//! Values that are too large for a leaf, in pages of their own.
//!
//! What a leaf of byte strings holds for a key begins with a tag: the value follows, or a descriptor that says where its
//! pages are. All pages of a value, and the index pages that list them, are appended before the commit that puts the
//! descriptor into the tree; the pages of the value before are dead only after it. So a cut leaves the old value or the
//! new one, wholly, and what an interrupted put appended is garbage that no descriptor leads to.
//!
//! A value stays in its leaf as long as an entry of the tree may be large, a quarter of a page. Measured on pages of
//! 2 KiB (500 random keys of 4 bytes, 1,000 overwrites, no collection): 1.00 programs a put and 0.15, 0.21, 0.28, 0.29
//! live pages a value at 200, 300, 400 and 423 bytes, which is the limit; 2.00 programs and 1.01 pages at 424 and above. So a
//! value in its leaf costs less of both as long as a leaf takes it.
//!
//! Until the commit, nothing found from the root leads to the pages of a put under way; they are **pinned**, so that the
//! collector leaves their blocks alone while it makes room for the rest.

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::features::{BLOBS, FILES};
use nandu_media::value::{
    DESCRIPTOR_SIZE_MAX, Descriptor, PageValue, Resident, TAG_HERE, TAG_INLINE, TAG_LARGE, TAG_PAGE, TAG_RESIDENT,
    ValueBody, ValueFields, ValueLayout,
};
use nandu_nand::PageAddr;

use crate::apply::Retire;
use crate::descent::Seek;
use crate::merge::{Own, OwnEdit};
use crate::pages::{Need, Pages, Placement};
use crate::part::Part;
use crate::tree::Tree;
use crate::trees::{Target, TreeSet};
use crate::{Malformed, TreeError};
use nandu_cells::Cells;

/// In the journal, beside a page number: an index page, with which the pages it lists are dead. Chips have fewer pages.
pub(crate) const LISTS: u32 = 1 << 31;

/// What a leaf holds for a key.
pub(crate) enum Stored<'a> {
    Inline(&'a [u8]),
    /// Bytes of a large value, or of a resident one.
    Large(u32),
    /// A page value.
    Page,
}

/// A large value that is being put.
#[derive(Clone, Copy)]
pub(crate) struct Writing {
    descriptor: Descriptor,
    layout: ValueLayout,
    /// Pages appended.
    pages: u32,
    /// Page numbers in the index page under construction.
    listed: u32,
    /// A page of the value before, for the medium to guess by.
    supersedes: Option<PageAddr>,
}

/// A page buffer for what large values need: an index page under construction or read last, or a small value with its
/// tag on the way to its leaf.
pub(crate) struct Values<'m> {
    pub(crate) buf: &'m mut [u8],
    /// The index page that the buffer holds.
    pub(crate) holds: Option<u32>,
    pub(crate) writing: Part<Writing, { BLOBS as usize }>,
}

/// A page under examination, as it says of itself.
struct Claim {
    page: PageAddr,
    is_index: bool,
    key: KeyBuf,
    number: u32,
    stamp: u32,
    /// The trees that have the value.
    holders: TreeSet,
}

impl Values<'_> {
    /// Whether an index page is under construction in the buffer.
    pub(crate) fn is_building(&self) -> bool {
        self.writing.get().is_some_and(|writing| writing.listed > 0)
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Bytes in front of a value in its leaf.
    pub(crate) fn tag_size(&self) -> usize {
        usize::from(self.cells.key_size() == 0 && self.cells.value_size() == 0)
    }

    pub(crate) fn layout(&self, key: &[u8]) -> Option<ValueLayout> {
        ValueLayout::new(self.assembly.len(), self.header_size, key.len())
    }

    /// What stands for a key in a leaf; `None` if it is nothing that was ever put there.
    pub(crate) fn stored<'a>(&self, key: &[u8], stored: &'a [u8]) -> Option<Stored<'a>> {
        if self.tag_size() == 0 {
            return Some(Stored::Inline(stored));
        }
        match stored.split_first()? {
            (&TAG_INLINE, value) => Some(Stored::Inline(value)),
            (&TAG_LARGE, _) if BLOBS => Some(Stored::Large(Descriptor::parse(stored, self.layout(key)?)?.length)),
            (&TAG_RESIDENT, _) if self.pages.has_bare() => {
                Resident::parse(stored).map(|value| Stored::Large(value.length.into()))
            }
            // In memory alone.
            (&TAG_HERE, value) if self.pages.has_bare() => Some(Stored::Large(value.len() as u32)),
            (&TAG_PAGE, _) if self.pages.has_bare() => PageValue::parse(stored).map(|_| Stored::Page),
            _ => None,
        }
    }

    /// Whether a value goes to pages of its own.
    pub(crate) fn is_large(&self, key: &[u8], length: usize) -> bool {
        self.tag_size() > 0 && key.len() + length > self.entry_size_max()
    }

    /// Bytes that the value of a key may have: 16 MiB on pages of 2 KiB and more, less on smaller ones.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        match self.layout(key) {
            _ if self.tag_size() == 0 => usize::from(self.cells.value_size()),
            Some(layout) => layout.length_max(self.root_count_max(key)) as usize,
            None => self.entry_size_max().saturating_sub(key.len()),
        }
    }

    fn root_count_max(&self, key: &[u8]) -> usize {
        Descriptor::root_count_max(self.limits.entry_size_max.saturating_sub(key.len()))
    }

    /// The descriptor of a key's value, if it has a large one. Reads what a get does.
    pub(crate) fn descriptor(&mut self, key: &[u8]) -> Result<Option<Descriptor>, TreeError<P::Error>> {
        self.check_key(key)?;
        self.descend(Seek::At(key), 1)?;
        let place = self.leaf_place(false)?;
        let leaf = self.bytes(&place);
        let Ok(index) = self.cells.leaf_find(leaf, key) else { return Ok(None) };
        let stored = self.cells.leaf_value(leaf, index);
        if !BLOBS || self.tag_size() == 0 || stored.first() != Some(&TAG_LARGE) {
            return Ok(None);
        }
        match self.layout(key).and_then(|layout| Descriptor::parse(stored, layout)) {
            Some(descriptor) => Ok(Some(descriptor)),
            None => Self::corrupt(self.child(0), Malformed::Node),
        }
    }

    /// Bytes of a key's value. Reads what a get does.
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, TreeError<P::Error>> {
        match self.get(key) {
            Ok(value) => Ok(value.map(<[u8]>::len)),
            Err(TreeError::LargeValue(length)) => Ok(Some(length)),
            Err(error) => Err(error),
        }
    }

    /// Copies what the value of a key has from `offset` on into `out`, and returns how many bytes: fewer than asked for at
    /// the value's end, none behind it. `None` if there is no such key. Reads what a get does, one page for each page of
    /// a large value that the part touches, and one for each index page of these, unless it was the last one read.
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, TreeError<P::Error>> {
        self.check_key(key)?;
        if let Some(value) = self.page_value(key)? {
            return self.read_page_value(value, offset, out).map(Some);
        }
        if let Some(size) = self.read_resident(key, offset, out)? {
            return Ok(Some(size));
        }
        // A change that waits hides what the leaf holds.
        let descriptor = if self.find_change(key)?.is_some() { None } else { self.descriptor(key)? };
        let (Some(descriptor), Some(layout)) = (descriptor, self.layout(key)) else {
            return Ok(self.get(key)?.map(|value| {
                let rest = value.get(offset..).unwrap_or_default();
                let size = rest.len().min(out.len());
                out[..size].copy_from_slice(&rest[..size]);
                size
            }));
        };
        self.discard_value();
        let end = (descriptor.length as usize).min(offset.saturating_add(out.len()));
        let mut at = offset;
        while at < end {
            let number = at as u32 / layout.payload;
            let page = self.value_page(key, &descriptor, layout, number)?;
            let content = self.read_value(page, PageKind::Value, key, &descriptor, number)?;
            if content.len() != layout.size(descriptor.length, number) as usize {
                return Self::corrupt(page, Malformed::Short);
            }
            let skipped = at % layout.payload as usize;
            let size = (content.len() - skipped).min(end - at);
            out[at - offset..][..size].copy_from_slice(&self.scratch[content][skipped..][..size]);
            at += size;
        }
        Ok(Some(end.saturating_sub(offset)))
    }

    /// The address of a page of a value. Reads an index page into the value buffer, unless it is there.
    fn value_page(
        &mut self,
        key: &[u8],
        descriptor: &Descriptor,
        layout: ValueLayout,
        number: u32,
    ) -> Result<u32, TreeError<P::Error>> {
        let roots = descriptor.roots();
        let page = if layout.is_direct(descriptor.length) {
            roots.get(number as usize).copied()
        } else {
            let index = number / layout.fanout;
            match roots.get(index as usize) {
                Some(&root) => {
                    let content = self.index_page(key, descriptor, layout, index, root)?;
                    entry(&self.values.buf[content], (number % layout.fanout) as usize)
                }
                None => None,
            }
        };
        match page {
            Some(page) if page < self.page_count => Ok(page),
            _ => Self::corrupt(self.child(0), Malformed::PageNumber),
        }
    }

    /// Has an index page in the value buffer and returns where its list is.
    fn index_page(
        &mut self,
        key: &[u8],
        descriptor: &Descriptor,
        layout: ValueLayout,
        index: u32,
        root: u32,
    ) -> Result<core::ops::Range<usize>, TreeError<P::Error>> {
        if self.values.holds != Some(root) {
            self.values.holds = None;
            self.notes.cached = None;
            core::mem::swap(&mut self.values.buf, &mut self.scratch);
            let found = self.read_value(root, PageKind::ValueIndex, key, descriptor, index);
            core::mem::swap(&mut self.values.buf, &mut self.scratch);
            found?;
            self.values.holds = Some(root);
        }
        match ValueBody::parse(self.values.buf, self.header_size) {
            Ok(body) if body.content.len() == 4 * layout.listed(descriptor.length, index) as usize => Ok(body.content),
            _ => Self::corrupt(root, Malformed::Node),
        }
    }

    /// Reads a page that has to belong to this value into the scratch buffer and returns where its content is.
    fn read_value(
        &mut self,
        page: u32,
        kind: PageKind,
        key: &[u8],
        descriptor: &Descriptor,
        number: u32,
    ) -> Result<core::ops::Range<usize>, TreeError<P::Error>> {
        if page >= self.page_count {
            return Self::corrupt(page, Malformed::PageNumber);
        }
        let found = self.pages.read(PageAddr(page), self.scratch)?.kind;
        match ValueBody::parse(self.scratch, self.header_size) {
            Ok(body)
                if found == kind
                    && self.scratch[body.key.clone()] == *key
                    && (body.length, body.stamp, body.number) == (descriptor.length, descriptor.stamp, number) =>
            {
                Ok(body.content)
            }
            _ => Self::corrupt(page, Malformed::Node),
        }
    }

    /// Begins to put a value whose bytes come in pieces: [`Tree::append_value`], then [`Tree::finish_value`]. Makes sure
    /// that there is room for all of it. The value before stays until the last of these. Syncs first: the value is going to
    /// be durable when it is finished, and so is all that came before it.
    pub fn begin_value(&mut self, key: &[u8], length: usize) -> Result<(), TreeError<P::Error>> {
        if !BLOBS {
            return Err(TreeError::NotCompiled { feature: "blobs" });
        }
        self.discard_value();
        self.check_key(key)?;
        let layout = self.layout(key).filter(|_| length <= self.value_size_max(key) && length > 0);
        let layout = layout.filter(|layout| layout.root_count(length as u32) as usize <= self.root_count_max(key));
        let Some(layout) = layout.filter(|_| self.tag_size() > 0) else { return Err(TreeError::ValueSize(length)) };
        // Nothing is moved to make room while changes wait for a sync.
        self.sync()?;
        let length = length as u32;
        self.make_room_for_value(layout, length)?;
        self.note_writing(key, layout, length)
    }

    fn make_room_for_value(&mut self, layout: ValueLayout, length: u32) -> Result<(), TreeError<P::Error>> {
        let pages = layout.page_count(length) + layout.index_count(length) + self.split_pages_max() + 1;
        while let Some(examine) = self.pages.prepare_value(pages)? {
            let outcome = self.examine(examine)?;
            self.pages.examined(examine, outcome)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn note_writing(&mut self, key: &[u8], layout: ValueLayout, length: u32) -> Result<(), TreeError<P::Error>> {
        let before = self.descriptor(key)?;
        self.values.holds = None;
        self.notes.cached = None;
        self.values.writing.set(Writing {
            descriptor: Descriptor::new(length, self.pages.stamp()),
            layout,
            pages: 0,
            listed: 0,
            supersedes: before.map(|before| PageAddr(before.roots()[0])),
        });
        Ok(())
    }

    /// Bytes in a full page of a key's value: what [`Tree::append_value`] takes each time but the last.
    pub fn value_page_size(&self, key: &[u8]) -> usize {
        self.layout(key).map_or(0, |layout| layout.payload as usize)
    }

    /// Appends the next page of a value. Programs 1 page, when an index page is complete 2. If it fails, the put is over and
    /// nothing has changed.
    pub fn append_value(&mut self, key: &[u8], bytes: &[u8]) -> Result<(), TreeError<P::Error>> {
        let outcome = self.append_value_page(key, bytes);
        if outcome.is_err() {
            self.discard_value();
        }
        outcome
    }

    fn append_value_page(&mut self, key: &[u8], bytes: &[u8]) -> Result<(), TreeError<P::Error>> {
        self.prepare(Need { pages: 1, pages_max: 2, live_max: 2, shrinks: false })?;
        let Some(writing) = self.values.writing.get().copied() else { return Err(TreeError::ValueSize(bytes.len())) };
        let Writing { descriptor: Descriptor { length, stamp, .. }, layout, pages: number, .. } = writing;
        if bytes.is_empty() || bytes.len() != layout.size(length, number) as usize {
            return Err(TreeError::ValueSize(bytes.len()));
        }
        let fields = ValueFields { length, stamp, number, key, size: bytes.len() };
        let content = fields.write(self.scratch, self.header_size);
        self.scratch[content].copy_from_slice(bytes);
        let placement = Placement::Update { supersedes: writing.supersedes };
        let page = self.pages.append(self.scratch, PageKind::Value, placement, false)?.0;
        self.pages.pin(PageAddr(page));
        self.reading.forget_page(page);
        let Some(writing) = self.values.writing.get_mut() else { return Ok(()) };
        writing.pages += 1;
        if layout.is_direct(length) {
            writing.descriptor.push(page);
            return Ok(());
        }
        let index = number / layout.fanout;
        let listed = layout.listed(length, index);
        let fields = ValueFields { length, stamp, number: index, key, size: 4 * listed as usize };
        if writing.listed == 0 {
            fields.write(self.values.buf, self.header_size);
        }
        let at = self.header_size + nandu_media::value::FRONT_SIZE + key.len() + 4 * writing.listed as usize;
        self.values.buf[at..at + 4].copy_from_slice(&page.to_le_bytes());
        writing.listed += 1;
        if writing.listed < listed {
            return Ok(());
        }
        self.prepare(Need { pages: 1, pages_max: 2, live_max: 2, shrinks: false })?;
        let page = self.pages.append(self.values.buf, PageKind::ValueIndex, placement, false)?.0;
        self.pages.pin(PageAddr(page));
        self.reading.forget_page(page);
        if let Some(writing) = self.values.writing.get_mut() {
            writing.descriptor.push(page);
            writing.listed = 0;
        }
        Ok(())
    }

    /// Puts the value whose pages were appended; returns whether the key was there before. Programs what a put does.
    pub fn finish_value(&mut self, key: &[u8]) -> Result<bool, TreeError<P::Error>> {
        let outcome = self.commit_value(key);
        if outcome.is_err() {
            self.discard_value();
        }
        outcome
    }

    fn commit_value(&mut self, key: &[u8]) -> Result<bool, TreeError<P::Error>> {
        let pages_max = self.split_pages_max() + 1;
        self.prepare(Need { pages: 1, pages_max, live_max: self.live_pages_max(), shrinks: false })?;
        self.link_value(key)
    }

    #[inline(never)]
    fn link_value(&mut self, key: &[u8]) -> Result<bool, TreeError<P::Error>> {
        let Some(writing) = self.values.writing.get().copied() else { return Err(TreeError::ValueSize(0)) };
        let Writing { descriptor, layout, pages, .. } = writing;
        if pages != layout.page_count(descriptor.length) {
            return Err(TreeError::ValueSize((pages * layout.payload) as usize));
        }
        let mut bytes = [0; DESCRIPTOR_SIZE_MAX];
        let own = Own::Edit(OwnEdit { key, stored: descriptor.write(&mut bytes), retire: Retire::All });
        let outcome = self.merge_with(key, Some(own), None)?;
        self.values.writing.clear();
        self.pages.unpin_all();
        Ok(outcome)
    }

    /// Gives up the value that is being put, if there is one: its pages are dead.
    pub fn discard_value(&mut self) {
        let Some(writing) = self.values.writing.take() else { return };
        let roots = writing.descriptor.roots();
        if writing.listed > 0
            && let Ok(body) = ValueBody::parse(self.values.buf, self.header_size)
        {
            for number in 0..writing.listed as usize {
                if let Some(page) = entry(&self.values.buf[body.content.clone()], number) {
                    self.pages.supersede(PageAddr(page));
                }
            }
        }
        self.values.holds = None;
        let lists = if writing.layout.is_direct(writing.descriptor.length) { 0 } else { LISTS };
        for &root in roots {
            self.bury(root | lists);
        }
        self.pages.unpin_all();
    }

    /// Says that a page is dead; with an index page, all that it lists. One that cannot be read leaves the pages that it
    /// lists counted. Uses the scratch buffer.
    pub(crate) fn bury(&mut self, entry_or_page: u32) {
        let page = entry_or_page & !LISTS;
        if BLOBS && entry_or_page & LISTS != 0 {
            // Not to the value buffer: an index page may be under construction there, while the collector merges changes.
            let found = self.pages.read(PageAddr(page), self.scratch).map(|found| found.kind);
            let body = ValueBody::parse(self.scratch, self.header_size);
            if let (Ok(PageKind::ValueIndex), Ok(body)) = (found, body) {
                for number in 0..body.content.len() / 4 {
                    if let Some(page) = entry(&self.scratch[body.content.clone()], number) {
                        self.pages.supersede(PageAddr(page));
                    }
                }
            }
        }
        self.bury_page(page);
    }

    /// Notes the pages of a value that is going to be replaced as dead once the change commits. Reads its index pages, so that
    /// nothing is said to be dead by a page that is not this value's.
    #[inline(never)]
    pub(crate) fn retire_value(
        &mut self,
        key: &[u8],
        index: usize,
        value: Option<&[u8]>,
        retire: Retire,
    ) -> Result<(), TreeError<P::Error>> {
        if self.tag_size() == 0 || retire == Retire::Nothing {
            return Ok(());
        }
        let place = self.leaf_place(false)?;
        let stored = self.cells.leaf_value(self.bytes(&place), index);
        if let Some(before) = PageValue::parse(stored).filter(|_| FILES) {
            return self.retire_page_value(before, value, retire);
        }
        if let Some(before) = Resident::parse(stored).filter(|_| FILES) {
            return self.retire_resident(before, value, retire);
        }
        if !BLOBS || stored.first() != Some(&TAG_LARGE) {
            return Ok(());
        }
        let Some(layout) = self.layout(key) else { return Ok(()) };
        // What is no descriptor can be replaced, but has no pages.
        let Some(descriptor) = Descriptor::parse(stored, layout) else { return Ok(()) };
        if self.is_value_kept(key, descriptor.stamp)? {
            return Ok(());
        }
        let is_direct = layout.is_direct(descriptor.length);
        for (number, &root) in (0..).zip(descriptor.roots()) {
            if !self.journal.has_room() {
                return if retire == Retire::All { Err(TreeError::JournalFull) } else { Ok(()) };
            }
            if is_direct {
                self.journal.supersede(root);
            } else if self.read_value(root, PageKind::ValueIndex, key, &descriptor, number).is_ok() {
                self.journal.supersede(root | LISTS);
            }
        }
        Ok(())
    }

    /// Says that the pages of a value are dead. Reads its index pages.
    pub(crate) fn bury_value(&mut self, key: &[u8], descriptor: &Descriptor) {
        let Some(layout) = self.layout(key) else { return };
        let is_direct = layout.is_direct(descriptor.length);
        for (number, &root) in (0..).zip(descriptor.roots()) {
            if is_direct {
                self.bury(root);
            } else if self.read_value(root, PageKind::ValueIndex, key, descriptor, number).is_ok() {
                self.bury(root | LISTS);
            }
        }
    }

    /// Finds out about a page of a large value, which is in the reading buffer, and moves it if it lives, with other pages of
    /// the value in the same block.
    #[inline(never)]
    pub(crate) fn examine_value(
        &mut self,
        page: PageAddr,
        kind: PageKind,
        moves: bool,
    ) -> Result<crate::Examined, TreeError<P::Error>> {
        use crate::Examined::{Dead, Live, Moved, Unreadable};
        let Ok(body) = ValueBody::parse(self.reading.buf, self.header_size) else { return Ok(Unreadable) };
        let is_index = kind == PageKind::ValueIndex;
        let (number, stamp) = (body.number, body.stamp);
        let mut claim = Claim { page, is_index, key: KeyBuf::EMPTY, number, stamp, holders: TreeSet::NONE };
        claim.key.set(&self.reading.buf[body.key]);
        let key = &claim.key;
        if self.check_key(key.as_slice()).is_err() || self.tag_size() == 0 {
            return Ok(Unreadable);
        }
        if self.values.writing.get().is_some_and(|writing| writing.descriptor.stamp == claim.stamp) {
            return Ok(Live);
        }
        let mut descriptor = Descriptor::new(0, 0);
        let holders = self.holders(key.as_slice(), claim.stamp, &mut descriptor)?;
        let Some(layout) = self.layout(key.as_slice()).filter(|_| holders != TreeSet::NONE) else { return Ok(Dead) };
        let is_direct = layout.is_direct(descriptor.length);
        let root = if is_index || is_direct { claim.number } else { claim.number / layout.fanout };
        let Some(&root_page) = descriptor.roots().get(root as usize) else { return Ok(Dead) };
        if is_index || is_direct {
            if root_page != page.0 || is_index == is_direct {
                return Ok(Dead);
            }
        } else {
            let list = match self.read_value(root_page, PageKind::ValueIndex, key.as_slice(), &descriptor, root) {
                Ok(list) => list,
                // Nobody knows without it; the page stays for those who may mend it.
                Err(TreeError::Corrupt { .. }) => return Ok(Live),
                Err(TreeError::Pages(error)) => {
                    return match self.pages.excuse(PageAddr(root_page), error)? {
                        Unreadable => Ok(Live),
                        other => Ok(other),
                    };
                }
                Err(error) => return Err(error),
            };
            if entry(&self.scratch[list], (claim.number % layout.fanout) as usize) != Some(page.0) {
                return Ok(Dead);
            }
        }
        // An index page and the leaf, which may need a page more. The block was chosen since all of it has room elsewhere; what several trees
        // share does not use up what deletions need.
        let room = match holders == TreeSet::NEWEST {
            true => self.pages.room_in_all().saturating_sub(3),
            false => self.pages.move_room().saturating_sub(self.split_pages_max() + 2 * holders.count()),
        };
        if !moves || room == 0 {
            return Ok(Live);
        }
        if self.find_change(key.as_slice())?.is_some() {
            // The leaf is going to lose this value, and whatever programs the leaf takes that change along.
            self.merge_at(key.as_slice(), Some(Placement::Moved { from: page }))?;
            return Ok(Dead);
        }
        claim.holders = holders;
        if is_index || is_direct {
            self.move_roots(&claim, &descriptor, room)?;
        } else {
            self.move_listed(&claim, &mut descriptor, layout, room)?;
        }
        Ok(Moved)
    }

    /// Moves a page named in the descriptor, with the pages named behind it that stand in the same block.
    #[inline(never)]
    fn move_roots(&mut self, claim: &Claim, old: &Descriptor, room: u32) -> Result<(), TreeError<P::Error>> {
        let mut new = *old;
        let mut outcome = Ok(());
        let kind = if claim.is_index { PageKind::ValueIndex } else { PageKind::Value };
        let block = self.pages.block_of(claim.page);
        for number in (claim.number as usize..old.roots().len()).take(room as usize) {
            let from = PageAddr(old.roots()[number]);
            if from.0 >= self.page_count || self.pages.block_of(from) != block {
                continue;
            }
            match self.copy_value(claim, kind, from, number as u32) {
                Ok(page) => new.replace(number, page),
                // What cannot be read is left for its own turn.
                Err(_) if from != claim.page && !self.pages.is_lost() => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let outcome = outcome.and_then(|()| self.relink(claim, &new));
        for (&before, &after) in old.roots().iter().zip(new.roots()).filter(|(before, after)| before != after) {
            self.pages.supersede(PageAddr(if outcome.is_ok() { before } else { after }));
        }
        outcome
    }

    /// Moves a page listed in an index page, with the pages listed behind it that stand in the same block; the index page is
    /// in the scratch buffer, and is moved with them.
    #[inline(never)]
    fn move_listed(
        &mut self,
        claim: &Claim,
        descriptor: &mut Descriptor,
        layout: ValueLayout,
        room: u32,
    ) -> Result<(), TreeError<P::Error>> {
        let root = (claim.number / layout.fanout) as usize;
        let old_index = descriptor.roots()[root];
        let block = self.pages.block_of(claim.page);
        let list = self.header_size + nandu_media::value::FRONT_SIZE + claim.key.as_slice().len();
        let listed = layout.listed(descriptor.length, root as u32);
        let mut outcome = Ok(());
        for place in (claim.number % layout.fanout..listed).take(room as usize) {
            let at = list + 4 * place as usize;
            let Some(from) = entry(&self.scratch[at..at + 4], 0).map(PageAddr) else { break };
            if from.0 >= self.page_count || self.pages.block_of(from) != block {
                continue;
            }
            match self.copy_value(claim, PageKind::Value, from, root as u32 * layout.fanout + place) {
                Ok(page) => self.scratch[at..at + 4].copy_from_slice(&page.to_le_bytes()),
                Err(_) if from != claim.page && !self.pages.is_lost() => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let mut new_index = None;
        let outcome = outcome.and_then(|()| {
            let placement = Placement::Moved { from: PageAddr(old_index) };
            let page = self.pages.append(self.scratch, PageKind::ValueIndex, placement, false)?;
            self.reading.forget_page(page.0);
            new_index = Some(page);
            descriptor.replace(root, page.0);
            self.relink(claim, descriptor)
        });
        self.bury_list(PageAddr(old_index), new_index, outcome.is_ok());
        outcome
    }

    /// After a move: of the pages in which two lists differ, those of one are dead, and so is that list. The new list is in the
    /// scratch buffer, or, if it has a page, there.
    fn bury_list(&mut self, old: PageAddr, new: Option<PageAddr>, is_committed: bool) {
        self.reading.forget();
        let is_read = match new {
            Some(page) => self.pages.read(page, self.scratch).is_ok(),
            None => true,
        };
        if is_read && self.pages.read(old, self.reading.buf).is_ok() {
            let bodies = [&*self.reading.buf, &*self.scratch].map(|page| ValueBody::parse(page, self.header_size).ok());
            if let [Some(before), Some(after)] = bodies {
                for number in 0..before.content.len() / 4 {
                    let before = entry(&self.reading.buf[before.content.clone()], number);
                    let after = entry(&self.scratch[after.content.clone()], number);
                    if let (Some(before), Some(after), true) = (before, after, before != after) {
                        self.pages.supersede(PageAddr(if is_committed { before } else { after }));
                    }
                }
            }
        }
        match (is_committed, new) {
            (true, _) => self.pages.supersede(old),
            (false, Some(new)) => self.pages.supersede(new),
            (false, None) => {}
        }
    }

    /// Appends the content of a page again, after a look at whether it is what it should be.
    #[inline(never)]
    fn copy_value(
        &mut self,
        claim: &Claim,
        kind: PageKind,
        from: PageAddr,
        number: u32,
    ) -> Result<u32, TreeError<P::Error>> {
        self.reading.forget();
        let found = self.pages.read(from, self.reading.buf)?.kind;
        match ValueBody::parse(self.reading.buf, self.header_size) {
            Ok(body) if found == kind && (body.stamp, body.number) == (claim.stamp, number) => {}
            _ => return Self::corrupt(from.0, Malformed::Node),
        }
        Ok(self.pages.append(self.reading.buf, kind, Placement::Moved { from }, false)?.0)
    }

    /// Commits a descriptor that says the same from other places.
    fn relink(&mut self, claim: &Claim, descriptor: &Descriptor) -> Result<(), TreeError<P::Error>> {
        let mut bytes = [0; DESCRIPTOR_SIZE_MAX];
        let stored = descriptor.write(&mut bytes);
        if claim.holders != TreeSet::NEWEST {
            let target = Target { from: claim.page, level: 0, key: &claim.key, stored: Some(stored) };
            return self.move_jointly(claim.holders, &target);
        }
        let key = claim.key.as_slice();
        let own = Own::Edit(OwnEdit { key, stored, retire: Retire::Nothing });
        self.merge_with(key, Some(own), Some(Placement::Moved { from: claim.page })).map(|_| ())
    }

    /// A small value to its leaf, with its tag in front.
    pub(crate) fn edit_inline(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<bool, TreeError<P::Error>> {
        let (Some(value), 1) = (value, self.tag_size()) else { return self.edit(key, value, Retire::All) };
        self.notes.cached = None;
        let buf = core::mem::take(&mut self.values.buf);
        buf[0] = TAG_INLINE;
        buf[1..1 + value.len()].copy_from_slice(value);
        let outcome = self.edit(key, Some(&buf[..1 + value.len()]), Retire::All);
        self.values.buf = buf;
        outcome
    }

    /// Puts a large value that is there in one piece.
    pub(crate) fn put_large(&mut self, key: &[u8], value: &[u8]) -> Result<bool, TreeError<P::Error>> {
        self.begin_value(key, value.len())?;
        for bytes in value.chunks(self.value_page_size(key).max(1)) {
            self.append_value(key, bytes)?;
        }
        self.finish_value(key)
    }

    /// Visits the pages of a large value, index pages too; a page that is not this value's is an error.
    pub(crate) fn walk_value(
        &mut self,
        key: &[u8],
        descriptor: &Descriptor,
        live: &mut dyn FnMut(PageAddr),
    ) -> Result<(), TreeError<P::Error>> {
        let Some(layout) = self.layout(key) else { return Ok(()) };
        for number in 0..layout.page_count(descriptor.length) {
            let page = self.value_page(key, descriptor, layout, number)?;
            let content = self.read_value(page, PageKind::Value, key, descriptor, number)?;
            if content.len() != layout.size(descriptor.length, number) as usize {
                return Self::corrupt(page, Malformed::Short);
            }
            live(PageAddr(page));
        }
        if !layout.is_direct(descriptor.length) {
            descriptor.roots().iter().for_each(|&root| live(PageAddr(root)));
        }
        Ok(())
    }

    /// The descriptor of an entry of the leaf that the path leads to; an error if what stands there is neither that nor a
    /// value.
    pub(crate) fn leaf_descriptor(&mut self, key: &[u8], index: usize) -> Result<Option<Descriptor>, ()> {
        let Ok(place) = self.leaf_place(false) else { return Err(()) };
        let stored = self.cells.leaf_value(self.bytes(&place), index);
        match self.stored(key, stored) {
            Some(Stored::Inline(_) | Stored::Page) => Ok(None),
            Some(Stored::Large(_)) if matches!(stored.first(), Some(&(TAG_RESIDENT | TAG_HERE))) => Err(()),
            Some(Stored::Large(_)) => Ok(self.layout(key).and_then(|layout| Descriptor::parse(stored, layout))),
            None => Err(()),
        }
    }
}

/// A page number of a list.
fn entry(list: &[u8], number: usize) -> Option<u32> {
    let bytes = list.get(4 * number..4 * number + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
