//! Listing a directory.
//!
//! Entries come in the order of their buckets, second hashes and numbers. None of these changes while the name stays, so an entry's place in
//! the list is the same whatever comes and goes, and in whichever page of the chain it stands.

use core::ops::ControlFlow;

use nandu_media::dffs as media;
use nandu_media::{Field, Malformed};
use nandu_nand::Nand;

use crate::dffs::{Dffs, Result};
use crate::error::Error;
use crate::hash::Place;
use crate::node::{Directory, Node};
use crate::pages::{CHAIN, NODE, OLD};

/// What is found in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// What it leads to.
    pub node: Node,
    /// Where to go on behind it: above 2^32, below 2^56.
    pub cookie: u64,
}

/// Bytes of an entry that is gathered: second hash, pointer.
const GATHERED_SIZE: usize = 8;

impl<N: Nand> Dffs<'_, N> {
    /// Visits the names of a directory until the visitor breaks off. Begins behind the entry with this cookie, 0: with the first. Costs
    /// a read for each entry, whose name stands in its inode, and one for each page of the chain in each bucket that is not in memory.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Corrupt`], [`Error::Nand`].
    pub fn read_dir(
        &mut self,
        directory: Directory,
        cookie: u64,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), N> {
        let directory = self.number_of(directory)?;
        let (mut second, mut number) = ((cookie >> 32) as u8, cookie as u32);
        for bucket in (cookie >> 40) as usize..self.bucket_count {
            let flow = self.list_bucket(directory, bucket as u16, second, number, visit)?;
            if flow.is_break() {
                return Ok(());
            }
            (second, number) = (0, 0);
        }
        Ok(())
    }

    /// Visits what is in a bucket behind a second hash and number.
    fn list_bucket(
        &mut self,
        directory: u32,
        bucket: u16,
        second: u8,
        number: u32,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, N> {
        let (mut from, mut behind) = (second, number);
        loop {
            // One walk along the chain finds those with the lowest second hashes, as many as a frame takes.
            let (count, left_out) = self.gather(directory, bucket, from)?;
            let mut at = 0;
            while at < count {
                let here = self.gathered(at).0;
                if left_out.is_some_and(|left_out| here >= left_out) {
                    break;
                }
                let end = (at..count).find(|&other| self.gathered(other).0 != here).unwrap_or(count);
                let after = if here == from { behind } else { 0 };
                if self.list_group((directory, bucket, here), at..end, after, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                at = end;
            }
            let Some(left_out) = left_out else { return Ok(ControlFlow::Continue(())) };
            if at == 0 {
                let page = self.mapped(directory);
                return Err(Error::Corrupt { page, why: Malformed::Range(Field::SecondHash) });
            }
            (from, behind) = (left_out, 0);
        }
    }

    fn gathered(&self, at: usize) -> (u8, u32) {
        (self.word(OLD, at * GATHERED_SIZE) as u8, self.word(OLD, at * GATHERED_SIZE + 4))
    }

    /// Collects second hashes and pointers of a bucket in [`OLD`], in the order of the hashes, from this one on; returns how many, and the lowest
    /// hash of those that did not fit.
    fn gather(&mut self, directory: u32, bucket: u16, from: u8) -> Result<(usize, Option<u8>), N> {
        let room = self.page_size() / GATHERED_SIZE;
        let (mut count, mut left_out) = (0, None);
        self.walk(directory, CHAIN, |fs, _| {
            let (pointer, second) = (fs.pointer(CHAIN, bucket), fs.second(CHAIN, bucket));
            if pointer == 0 {
                return Ok(Some(()));
            }
            if second < from {
                return Ok(None);
            }
            let at = (0..count).find(|&at| fs.gathered(at).0 > second).unwrap_or(count);
            if count == room {
                let highest = if at == count { second } else { fs.gathered(count - 1).0 };
                left_out = Some(left_out.map_or(highest, |left_out: u8| left_out.min(highest)));
                if at == count {
                    return Ok(None);
                }
                count -= 1;
            }
            let bytes = fs.pages.get_mut(OLD);
            bytes.copy_within(at * GATHERED_SIZE..count * GATHERED_SIZE, (at + 1) * GATHERED_SIZE);
            media::set_word(bytes, at * GATHERED_SIZE, second.into());
            media::set_word(bytes, at * GATHERED_SIZE + 4, pointer);
            count += 1;
            Ok(None)
        })?;
        Ok((count, left_out))
    }

    /// Visits those with one second hash, in the order of their numbers, behind this one.
    fn list_group(
        &mut self,
        (directory, bucket, second): (u32, u16, u8),
        group: core::ops::Range<usize>,
        after: u32,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, N> {
        let mut after = after;
        loop {
            let mut next: Option<(u32, u32)> = None;
            for at in group.clone() {
                let pointer = self.gathered(at).1;
                let id = self.load(self.target(pointer), NODE)?.id;
                if id > after && next.is_none_or(|(lowest, _)| id < lowest) {
                    next = Some((id, pointer));
                }
            }
            let Some((id, pointer)) = next else { return Ok(ControlFlow::Continue(())) };
            let fields = self.load(self.target(pointer), NODE)?;
            after = id;
            // As a lookup has it: not what was renamed by something that failed half way.
            let (name, place) = (media::name(self.pages.get(NODE)), Place { bucket, second });
            if fields.parent != directory || self.place_of(name) != place {
                continue;
            }
            let node = Node::of(&fields, directory, place);
            let cookie = u64::from(bucket) << 40 | u64::from(second) << 32 | u64::from(id);
            let entry = Entry { name, node, cookie };
            if visit(entry).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}
