//! A node of several pages: what it has beyond the first.
//!
//! The bytes of the node go on behind a front in each further page, which says volume, address and the sequence of the node. So a
//! page that was torn, lost, or read from elsewhere is told from what belongs to the node, and a node of which one page is
//! missing is none: a cut among its programs leaves the version before.

use nandu_media::Malformed;
use nandu_media::inpage::{FRONT_SIZE, FrontFields, Kind};
use nandu_nand::{Nand, PageAddr};

use crate::arena::Frame;
use crate::chip::Read;
use crate::descent::WALK;
use crate::inpage::{InPage, Result};
use crate::node::{Node, NodeMut};

/// What was found behind the first page of a node.
pub(crate) struct Parts {
    /// Bytes of the node in all.
    pub(crate) size: u32,
    /// A page needed so much correction that the node should be programmed elsewhere soon.
    pub(crate) is_worn: bool,
}

impl<N: Nand> InPage<'_, N> {
    /// Reads the further pages of a node whose first page is in a frame and was checked. Costs a read for each.
    pub(crate) fn read_parts(
        &mut self,
        front: &FrontFields,
        frame: Frame,
    ) -> Result<core::result::Result<Parts, Malformed>, N> {
        let mut parts = Parts { size: front.size, is_worn: false };
        for number in 1..self.node_pages() {
            let page = PageAddr(front.page + number);
            match Self::read(&mut self.nand, page, 0, self.log)? {
                Read::Unreadable => return Ok(Err(Malformed::Unreadable)),
                Read::Worn => parts.is_worn = true,
                Read::Fine => {}
            }
            let found = FrontFields::parse(self.log).and_then(|found| found.expect(self.volume, page.0));
            let found = match found {
                Ok(found) => found,
                Err(why) => return Ok(Err(why)),
            };
            if found.kind != Kind::Part {
                return Ok(Err(Malformed::Kind(found.kind as u8)));
            }
            if found.sequence != front.sequence {
                return Ok(Err(Malformed::Sequence));
            }
            let size = found.size as usize - FRONT_SIZE;
            // Only the last page with anything in it may be less than full.
            if size > 0 && parts.size as usize != self.part_at(number) {
                return Ok(Err(Malformed::Size));
            }
            let at = self.part_at(number);
            let content = &self.log[FRONT_SIZE..FRONT_SIZE + size];
            self.buffer.arena.frame_mut(frame)[at..at + size].copy_from_slice(content);
            parts.size += size as u32;
        }
        NodeMut::new(self.buffer.arena.frame_mut(frame), self.options.cells).set_size(parts.size as usize);
        Ok(Ok(parts))
    }

    /// Where in the bytes of a node those of a page begin.
    fn part_at(&self, number: u32) -> usize {
        let page_size = self.page_size();
        if number == 0 { 0 } else { page_size + (number as usize - 1) * (page_size - FRONT_SIZE) }
    }

    /// Programs the node in a frame to its pages, of which this front, but for its size, is the first one's; `false` if a program
    /// failed. Costs a program for each page.
    ///
    /// The first page comes first: it is in order, and a cut among them leaves a node that does not count.
    pub(crate) fn program_parts(&mut self, front: FrontFields, frame: Frame) -> Result<bool, N> {
        let page_size = self.page_size();
        let bytes = self.buffer.arena.frame_mut(frame);
        let size = Node::new(bytes, self.options.cells).size();
        FrontFields { size: size.min(page_size) as u32, ..front }.seal(&mut bytes[..page_size]);
        let read_back = self.options.read_back.then_some(&mut *self.log);
        let mut is_done = Self::program(&mut self.nand, PageAddr(front.page), 0, &bytes[..page_size], read_back)?;
        // What memory says of the node, and flash only of its first page.
        NodeMut::new(bytes, self.options.cells).set_size(size);
        for number in 1..self.node_pages() {
            if !is_done {
                break;
            }
            let at = self.part_at(number);
            let content = size.saturating_sub(at).min(page_size - FRONT_SIZE);
            let source = &self.buffer.arena.frame(frame)[at.min(size)..][..content];
            self.log[FRONT_SIZE..FRONT_SIZE + content].copy_from_slice(source);
            let page = PageAddr(front.page + number);
            FrontFields { kind: Kind::Part, page: page.0, size: (FRONT_SIZE + content) as u32, ..front }.seal(self.log);
            let scratch = self.buffer.arena.scratch(WALK);
            let read_back = self.options.read_back.then(|| self.buffer.arena.frame_mut(scratch));
            is_done = Self::program(&mut self.nand, page, 0, self.log, read_back)?;
        }
        Ok(is_done)
    }
}
