//! Reading: the page read last, and nodes kept in memory.
//!
//! A page number may lead to another page later: a page dies, its block is erased, and the number is given again. So the page read last is
//! forgotten when its number is given to a page that is programmed, and a node leaves the memory when another takes its place.

use core::ops::Range;

use nandu_cells::{Cache, Cells};
use nandu_log::{Log, PageInfo};
use nandu_media::PageKind;
use nandu_media::checksum::page_checksum;
use nandu_media::path::PathBody;
use nandu_media::section::{SectionKind, Sections};
use nandu_media::tree::Malformed;
use nandu_media::value::ValueBody;
use nandu_nand::{Nand, PageAddr};

use crate::error::{Outcome, corrupt};
use crate::shape::TreeShape;

/// The checksum of a raw page.
pub(crate) fn raw_check(bytes: &[u8]) -> u32 {
    page_checksum(bytes)
}

/// Where a node is, until the reader is used again.
#[derive(Clone, Debug)]
pub(crate) enum NodePlace {
    Read(Range<usize>),
    Kept(Range<usize>),
}

/// The page read last, and nodes kept in memory.
pub(crate) struct Reader<'m, C> {
    shape: TreeShape<C>,
    bytes: &'m mut [u8],
    /// The page that `bytes` holds, sound in its front.
    page: Option<u32>,
    body: PathBody,
    /// Level of a node in it that was found sound.
    checked: u8,
    /// Leaves that had to be read; wraps.
    misses: u8,
    cache: Cache<'m>,
    /// The page that `bytes` holds, if it is one of a value, and its sequence.
    value: Option<(u32, u64)>,
}

/// In place of the sequence: it is a raw page, which has the checksum that was asked for.
const RAW: u64 = u64::MAX;

impl<'m, C: Cells> Reader<'m, C> {
    pub(crate) fn new(shape: TreeShape<C>, bytes: &'m mut [u8], cache: Cache<'m>) -> Self {
        debug_assert!(bytes.len() == shape.page_size(), "the buffer is a page");
        Reader { shape, bytes, page: None, body: PathBody::EMPTY, checked: u8::MAX, misses: 0, cache, value: None }
    }

    /// The volume is one of this shape.
    pub(crate) fn reshape(&mut self, shape: &TreeShape<C>) {
        debug_assert!(shape.page_size() == self.bytes.len() && self.page.is_none(), "nothing was read yet");
        self.shape = *shape;
    }

    /// Reads a page, unless it is the one read last, and lends what it says of itself. Reads at most 1 page.
    pub(crate) fn body<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> Outcome<&PathBody, N> {
        if self.page == Some(page) {
            return Ok(&self.body);
        }
        let info = self.fetch(log, page)?;
        if !matches!(info.kind, PageKind::Commit | PageKind::Node) {
            self.value = (info.kind == PageKind::Value).then_some((page, info.sequence));
            return Err(corrupt(page, Malformed::Levels));
        }
        self.body.read(self.bytes, self.shape.header_size(), info.kind).map_err(|why| corrupt(page, why))?;
        if self.body.format() != self.shape.format() {
            return Err(corrupt(page, Malformed::Cells));
        }
        self.page = Some(page);
        self.checked = u8::MAX;
        Ok(&self.body)
    }

    /// Reads a page.
    fn fetch<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> Outcome<PageInfo, N> {
        self.forget();
        if page >= self.shape.page_count() {
            return Err(corrupt(page, Malformed::PageNumber));
        }
        Ok(log.read(PageAddr(page), self.bytes)?)
    }

    /// The sequence of this page, if it was read last and is one of a value.
    pub(crate) fn value_sequence(&self, page: u32) -> Option<u64> {
        self.value.filter(|&(held, sequence)| held == page && sequence != RAW).map(|(_, sequence)| sequence)
    }

    /// Reads a page of a value, unless it is the one read last: what it says. Reads at most 1 page.
    pub(crate) fn value<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> Outcome<ValueBody, N> {
        if self.value_sequence(page).is_none() {
            let info = self.fetch(log, page)?;
            if info.kind != PageKind::Value {
                return Err(corrupt(page, Malformed::Levels));
            }
            self.value = Some((page, info.sequence));
        }
        ValueBody::parse(self.bytes, self.shape.header_size()).map_err(|_| corrupt(page, Malformed::Short))
    }

    /// Reads a raw page, which has to have this checksum, unless it is the one read last. Reads at most 1 page.
    pub(crate) fn raw<N: Nand>(&mut self, log: &mut Log<'_, N>, (page, check): (u32, u32)) -> Outcome<(), N> {
        if self.value == Some((page, RAW)) {
            return Ok(());
        }
        self.forget();
        if page >= self.shape.page_count() {
            return Err(corrupt(page, Malformed::PageNumber));
        }
        log.read_raw(PageAddr(page), self.bytes)?;
        if raw_check(self.bytes) != check {
            return Err(corrupt(page, Malformed::Short));
        }
        self.value = Some((page, RAW));
        debug_assert!(self.page.is_none(), "the buffer holds one page");
        Ok(())
    }

    /// The value in a commit, which has so many bytes and this checksum. Reads at most 1 page.
    pub(crate) fn blob<N: Nand>(
        &mut self,
        log: &mut Log<'_, N>,
        (page, check): (u32, u32),
        length: usize,
    ) -> Outcome<Range<usize>, N> {
        debug_assert!(length > 0, "a value has bytes");
        let sections = self.sections(log, page)?;
        let range = sections.find(SectionKind::Value).filter(|range| range.len() == length);
        range
            .filter(|range| raw_check(self.lent(range.clone())) == check)
            .ok_or_else(|| corrupt(page, Malformed::Short))
    }

    /// Makes the value in a commit a raw page in the buffer, as [`Reader::raw`] reads one. Returns its checksum.
    pub(crate) fn blob_as_raw<N: Nand>(
        &mut self,
        log: &mut Log<'_, N>,
        named: (u32, u32),
        length: usize,
    ) -> Outcome<u32, N> {
        let range = self.blob(log, named, length)?;
        self.forget();
        self.bytes.copy_within(range, 0);
        self.bytes[length..].fill(0xFF);
        Ok(raw_check(self.bytes))
    }

    /// Whether a page is one of a value, if it was read last, or is a commit with a value. Reads at most 1 page.
    pub(crate) fn has_value<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> bool {
        let has_blob = |it: Sections| it.find(SectionKind::Value).is_some();
        self.value_sequence(page).is_some() || self.shape.has_raw() && self.sections(log, page).is_ok_and(has_blob)
    }

    /// Of what was read nothing is here.
    fn forget(&mut self) {
        (self.page, self.value) = (None, None);
    }

    /// A part of the page of a value that was read last.
    pub(crate) fn of_value(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(self.value.is_some(), "a page of a value was read");
        &self.bytes[range]
    }

    /// What a page says besides its path. Reads at most 1 page.
    pub(crate) fn sections<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> Outcome<Sections, N> {
        self.body(log, page)?;
        self.body.sections(self.bytes).map_err(|why| corrupt(page, why))
    }

    /// A part of the page read last.
    pub(crate) fn lent(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(self.page.is_some(), "a page was read");
        &self.bytes[range]
    }

    /// The locator of the page read last.
    pub(crate) fn locator(&self) -> &[u8] {
        debug_assert!(self.page.is_some(), "a page was read");
        &self.bytes[self.body.locator()]
    }

    /// A node that is safe to use, read from flash. Reads at most 1 page.
    pub(crate) fn read_node<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32, level: u8) -> Outcome<NodePlace, N> {
        let range = self.body(log, page)?.node(level).map_err(|why| corrupt(page, why))?;
        if self.checked != level {
            if !self.shape.is_sound(level, &self.bytes[range.clone()]) {
                return Err(corrupt(page, Malformed::Node));
            }
            self.checked = level;
        }
        debug_assert!(range.end <= self.bytes.len(), "a node is in its page");
        Ok(NodePlace::Read(range))
    }

    /// A node that is safe to use. Reads at most 1 page.
    pub(crate) fn node<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32, level: u8) -> Outcome<NodePlace, N> {
        match self.kept(page, level) {
            Some(place) => Ok(place),
            None => self.read_node(log, page, level),
        }
    }

    /// A node that is in memory.
    pub(crate) fn kept(&mut self, page: u32, level: u8) -> Option<NodePlace> {
        self.cache.find(page, level).map(NodePlace::Kept)
    }

    /// A leaf that is safe to use. One that had to be read is kept where there is memory that nothing stands in, and now and then where another leaf makes room. Reads at most 1 page.
    pub(crate) fn leaf<N: Nand>(&mut self, log: &mut Log<'_, N>, page: u32) -> Outcome<NodePlace, N> {
        let was_read = self.page == Some(page);
        if !was_read && let Some(place) = self.kept(page, 0) {
            return Ok(place);
        }
        let place = self.read_node(log, page, 0)?;
        if !was_read && let NodePlace::Read(range) = &place {
            self.misses = self.misses.wrapping_add(1);
            let leaf = &self.bytes[range.clone()];
            // Most leaves are not looked up again soon. Where there is no room for all, one that is gets in at its fourth miss or so,
            // and the others do not cost a copy each.
            if self.misses.is_multiple_of(4) {
                self.cache.insert_looked_up(page, leaf);
            } else {
                self.cache.insert_leaf_beside(page, leaf);
            }
        }
        Ok(place)
    }

    pub(crate) fn at(&self, place: &NodePlace) -> &[u8] {
        match place {
            NodePlace::Read(range) => &self.bytes[range.clone()],
            NodePlace::Kept(range) => self.cache.bytes(range.clone()),
        }
    }

    /// Keeps an inner node that was read.
    pub(crate) fn keep(&mut self, page: u32, level: u8, place: &NodePlace) {
        debug_assert!(level > 0, "an inner node");
        if let NodePlace::Read(range) = place {
            self.cache.insert(page, level, &self.bytes[range.clone()]);
        }
    }

    /// The buffer, for a node that is put together; what was read is forgotten.
    pub(crate) fn lend(&mut self) -> &mut [u8] {
        self.forget();
        self.bytes
    }

    /// A node was programmed anew, and is kept if the old one was, or if it is an inner node.
    pub(crate) fn renew(&mut self, old_page: u32, level: u8, page: u32, node: &[u8]) {
        self.cache.renew(old_page, level, page, node);
    }

    /// Another node takes the place of this one.
    pub(crate) fn drop_node(&mut self, page: u32, level: u8) {
        self.cache.drop_node(page, level);
    }

    /// This number was given to a page that was programmed now.
    pub(crate) fn programmed(&mut self, page: u32) {
        debug_assert!(page < self.shape.page_count(), "the log keeps to its own size");
        if self.page == Some(page) || self.value.is_some_and(|(held, _)| held == page) {
            self.forget();
        }
    }

    /// Forgets all that was read.
    pub(crate) fn clear(&mut self) {
        self.forget();
        self.cache.clear();
    }
}
