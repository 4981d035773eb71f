//! Holding the invariants against the whole volume.

use core::fmt;

use nandu_media::dffs::{self as media, Kind, POINTER_BASE};
use nandu_nand::{Nand, PageAddr};

use crate::blocks::Area;
use crate::dffs::{Dffs, Result};
use crate::pages::{COPY, NODE};

/// An invariant that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A logical number leads to a page that cannot be read or is another's.
    Unreadable {
        /// The logical number.
        id: u32,
        /// The page.
        page: PageAddr,
    },
    /// A logical number leads to a page, and the parent or predecessor that it names does not lead back.
    NoCounterPointer {
        /// The logical number.
        id: u32,
    },
    /// The count of a page's buckets in use is wrong.
    Used {
        /// The logical number of the page.
        id: u32,
        /// What it says.
        stated: u32,
        /// What there are.
        found: u32,
    },
    /// A bucket leads to an inode that cannot be read, names another parent, or belongs in another bucket.
    Entry {
        /// The logical number of the page.
        id: u32,
        /// The bucket.
        bucket: u16,
        /// Where it leads.
        page: PageAddr,
    },
    /// A bucket is in use behind a page of the chain in which it is not.
    Prefix {
        /// The logical number of the page.
        id: u32,
        /// The bucket.
        bucket: u16,
    },
    /// A file has a page of data in a block that is not for data.
    Data {
        /// The number of the file.
        number: u32,
        /// The page.
        page: PageAddr,
    },
    /// More or fewer pages live in a block than it is counted for.
    Live {
        /// The block.
        block: u32,
        /// Pages that are counted and that nothing leads to, or below 0 pages that something leads to and that are not counted.
        excess: i32,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unreadable { id, page } => {
                write!(f, "logical number {id} leads to page {page}, which cannot be read or is another's")
            }
            Violation::NoCounterPointer { id } => {
                write!(f, "nothing leads back to logical number {id}")
            }
            Violation::Used { id, stated, found } => {
                write!(f, "page {id} says that {stated} of its buckets are in use, and {found} are")
            }
            Violation::Entry { id, bucket, page } => {
                write!(f, "bucket {bucket} of page {id} leads to page {page}, whose inode does not lead back")
            }
            Violation::Prefix { id, bucket } => {
                write!(f, "bucket {bucket} of page {id} is in use behind a page in which it is not")
            }
            Violation::Data { number, page } => {
                write!(f, "file {number} has page {page}, whose block is not for data")
            }
            Violation::Live { block, excess } => {
                write!(f, "block {block} counts {excess} live pages too many")
            }
        }
    }
}

impl<N: Nand> Dffs<'_, N> {
    /// Walks the whole volume, reports each invariant that does not hold, and returns how many. Changes nothing on the chip. Costs a few reads for
    /// each directory's page and each file, three times over.
    ///
    /// # Errors
    ///
    /// [`Error::Nand`](crate::Error::Nand).
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u64, N> {
        let mut count = 0;
        let mut note = |violation| {
            count += 1;
            report(violation);
        };
        for id in 1..self.map.len() as u32 {
            let page = self.mapped(id);
            if page.0 != 0 {
                self.verify_page(id, page, &mut note)?;
            }
        }
        if !self.is_rough {
            self.verify_counts(&mut note)?;
        }
        Ok(count)
    }

    fn verify_page(&mut self, id: u32, page: PageAddr, note: &mut dyn FnMut(Violation)) -> Result<(), N> {
        let fields = match self.inspect(page, COPY)? {
            Ok(fields) if matches!(fields.kind, Kind::Directory | Kind::Virtual) && fields.id == id => fields,
            _ => {
                note(Violation::Unreadable { id, page });
                return Ok(());
            }
        };
        if !self.is_mutual(id)? {
            note(Violation::NoCounterPointer { id });
            return Ok(());
        }
        let directory = if fields.kind == Kind::Virtual { fields.parent } else { id };
        let mut found = 0;
        for bucket in 0..self.bucket_count as u16 {
            let pointer = self.pointer(COPY, bucket);
            if pointer == 0 {
                continue;
            }
            found += 1;
            let target = self.target(pointer);
            let child = self.inspect(target, NODE)?;
            let place = self.place_of(media::name(self.pages.get(NODE)));
            let is_right = child.is_ok_and(|child| {
                let is_kind = if pointer < POINTER_BASE {
                    child.kind == Kind::Directory && child.id == pointer
                } else {
                    child.kind == Kind::File
                };
                is_kind && child.parent == directory
            });
            if !is_right || place.bucket != bucket || place.second != self.second(COPY, bucket) {
                note(Violation::Entry { id, bucket, page: target });
            } else if pointer >= POINTER_BASE {
                self.verify_data(note)?;
            }
            if fields.kind == Kind::Virtual && self.find_pointer(directory, bucket, pointer, NODE)?.is_none() {
                note(Violation::Prefix { id, bucket });
            }
        }
        if found != u32::from(fields.used) {
            note(Violation::Used { id, stated: fields.used.into(), found });
        }
        Ok(())
    }

    /// What the inode in [`NODE`] has is in blocks of data.
    fn verify_data(&mut self, note: &mut dyn FnMut(Violation)) -> Result<(), N> {
        let number = self.fields(NODE)?.id;
        for index in 0..self.pointer_count {
            let page = PageAddr(self.word(NODE, media::FRONT_SIZE + index * 4));
            let is_right = page.0 == 0
                || self.geometry.contains_page(page)
                    && self.blocks.get(self.geometry.block_of(page)).area() == Area::Data;
            if !is_right {
                note(Violation::Data { number, page });
            }
        }
        Ok(())
    }

    /// Counts the live pages of each block anew and holds them against what was counted all along. The difference is in the table meanwhile.
    fn verify_counts(&mut self, note: &mut dyn FnMut(Violation)) -> Result<(), N> {
        const MIDDLE: u16 = 1 << 15;
        for block in self.blocks.addresses() {
            self.blocks.update(block, |entry| entry.live = MIDDLE.saturating_sub(entry.live));
        }
        self.count_all()?;
        for block in self.blocks.addresses() {
            let excess = i32::from(MIDDLE) - i32::from(self.blocks.get(block).live);
            if excess != 0 {
                note(Violation::Live { block: block.0, excess });
            }
            self.blocks.update(block, |entry| entry.live = 0);
        }
        self.count_all()
    }
}
