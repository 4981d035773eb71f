//! The whole file system, walked through.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::below::{LogViolation, TreeViolation};
use crate::check::walk::Tally;
use crate::fragments::FRAGMENTS_FOUND_MAX;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{INO_END, Key, Meaning};
use crate::names::{Search, parse as parse_name};
use crate::page_records::{Base, base_of};
use crate::{FileKind, FsError, Ino, fragments};

/// An invariant that does not hold on the chip, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One of the log: N1, N2, N5 or N7.
    Log(LogViolation),
    /// One of the tree: T1 to T7.
    Tree(TreeViolation),
    /// One of the file system: S1 to S10.
    Fs {
        /// Its number, as the crate's documentation lists them.
        invariant: &'static str,
        /// The inode concerned.
        ino: Ino,
        /// What is wrong.
        what: &'static str,
        /// The byte of the file at which it is wrong, where that is known.
        offset: Option<u64>,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Log(violation) => violation.fmt(f),
            Violation::Tree(violation) => violation.fmt(f),
            Violation::Fs { invariant, ino, what, offset } => {
                write!(f, "{invariant} violated by inode {ino}: {what}")?;
                offset.map_or(Ok(()), |offset| write!(f, ", at byte {offset}"))
            }
        }
    }
}

/// Where violations go, and how many there were.
struct Report<'a> {
    to: &'a mut dyn FnMut(Violation),
    count: u64,
}

impl Report<'_> {
    fn tell(&mut self, violation: Violation) {
        self.count += 1;
        (self.to)(violation);
    }

    fn check(&mut self, holds: bool, invariant: &'static str, ino: u64, what: &'static str) {
        if !holds {
            self.tell(Violation::Fs { invariant, ino: Ino(ino), what, offset: None });
        }
    }
}

/// What the records of one inode are together.
struct Summary {
    inode: Option<Inode>,
    names: u64,
    directories: u64,
    pages: u64,
    /// Whether there is content behind the end of the file.
    is_beyond: bool,
    /// Whether there are fragments that lie over no page, before the end of the file and behind it.
    has_strays: [bool; 2],
    /// Bytes of the target; `None` if its parts do not follow each other.
    target: Option<u64>,
    target_parts: u64,
    /// The page passed last, whether it is on flash, how many fragments lie over it, and the end of the last of them.
    page: Option<(u32, bool, usize, usize)>,
}

impl<N: Nand> Fs<'_, N> {
    /// Walks log, tree and file system, reads only, and reports every invariant that does not hold; returns how many. What is
    /// partly written in memory goes to the tree first.
    ///
    /// Counting the names of inodes takes 12 bytes for each inode, and looking for chunks of numbers that two directories have a byte for
    /// each directory, or as many walks over all records as that exceeds `scratch`, which may be empty.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn verify(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(Violation)) -> Result<u64, FsError<N::Error>> {
        if !self.options.read_only {
            self.flush()?;
        }
        let mut report = Report { to: report, count: 0 };
        self.tree.verify_log(&mut |violation| report.tell(Violation::Log(violation)))?;
        self.tree.verify(&mut |violation| report.tell(Violation::Tree(violation)))?;
        let outcome = self.verify_files(scratch, &mut report);
        match outcome {
            // What cannot be read was reported of the tree.
            Err(FsError::Corrupt { .. }) | Ok(()) => Ok(report.count),
            Err(error) => Err(error),
        }
    }

    fn verify_files(&mut self, scratch: &mut [u8], report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let root = self.find_inode(Ino::ROOT);
        let is_root = matches!(&root, Ok(Some(root)) if root.is_directory() && root.parent == Ino::ROOT.0);
        report.check(is_root, "S1", Ino::ROOT.0, "there is no root directory");
        self.verify_volume(report)?;
        let mut next = 1;
        while next < INO_END
            && let Some(ino) = self.next_inode(next)?
        {
            self.verify_inode(ino, report)?;
            next = ino + 1;
        }
        self.with_larger(scratch, |fs, scratch| {
            fs.verify_chunks(scratch, report)?;
            fs.verify_links(Tally::new(scratch), report)
        })
    }

    /// Calls with the larger one of some memory and that of the page that is being written.
    pub(super) fn with_larger<T>(&mut self, scratch: &mut [u8], call: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        self.with_memory(|fs, memory| call(fs, if scratch.len() > memory.len() { scratch } else { memory }))
    }

    /// No two directories give the same numbers away.
    fn verify_chunks(&mut self, scratch: &mut [u8], report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        self.for_each_shared_chunk(scratch, |_, ino, _, _| {
            report.check(false, "S9", ino, "another directory has the same numbers left");
            Ok(())
        })
    }

    /// What belongs to no inode is the superblock, or an orphan's record; that names an inode that has no name, or a file, or one with
    /// a long value: no attribute names it yet, or one does since the change before.
    fn verify_volume(&mut self, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        self.tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            report.check(Meaning::of(entry.key).is_some(), "S2", Key::owner(entry.key), "a key belongs to nothing");
            ControlFlow::Continue(())
        })?;
        let mut next = 0;
        while let Some(ino) = self.next_orphan(next)? {
            let is_sound = match self.find_inode(Ino(ino)) {
                Ok(Some(inode)) => self.may_be_orphan(ino, &inode)?,
                Ok(None) | Err(FsError::Corrupt { .. }) => false,
                Err(error) => return Err(error),
            };
            report.check(is_sound, "S4", ino, "an orphan's record names no orphan");
            next = ino + 1;
        }
        Ok(())
    }

    /// Whether an orphan's record may name an inode that is there.
    pub(super) fn may_be_orphan(&mut self, ino: u64, inode: &Inode) -> Result<bool, FsError<N::Error>> {
        Ok(inode.nlink == 0 || inode.is_file() || self.has_long_value(ino)?)
    }

    fn verify_inode(&mut self, ino: u64, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let summary = self.summarize(ino, report)?;
        report.check(ino < self.chunk_next, "S9", ino, "its number has not been given yet");
        let Some(inode) = summary.inode else {
            report.check(false, "S2", ino, "there are records of an inode that is not there");
            return Ok(());
        };
        report.check(summary.pages == inode.blocks, "S6", ino, "it has another number of pages than it says");
        let is_leaving = self.is_leaving(ino, &inode)?;
        // A page that is removed may have gone a step before what lies over it.
        let [is_astray, is_astray_behind] = summary.has_strays;
        let is_going = is_leaving || (!is_astray && self.has_orphan_record(ino)?);
        report.check(!(is_astray || is_astray_behind) || is_going, "S7", ino, "a fragment lies where it must not");
        let (xattr_size, broken) = self.pass_xattrs(ino)?;
        let is_whole = broken.is_none() && xattr_size == inode.xattr_size;
        report.check(is_whole || is_leaving, "S8", ino, "its attributes have another size than it says");
        let is_owned = self.nobodys_value(ino, 0)?.is_none() || self.has_orphan_record(ino)?;
        report.check(is_owned, "S8", ino, "no attribute names a long value of it");
        match inode.kind() {
            FileKind::Directory => self.verify_directory(ino, &inode, &summary, report)?,
            FileKind::File => {
                self.verify_pages(ino, report)?;
                self.verify_end(ino, &inode, &summary, report)?;
            }
            FileKind::Symlink => {
                let is_whole = summary.target == Some(inode.size) || is_leaving;
                report.check(is_whole, "S2", ino, "its target is not what it says");
            }
            _ => report.check(inode.size == 0, "S2", ino, "it has a size and can have no content"),
        }
        let has_content = summary.names == 0 || inode.is_directory();
        report.check(has_content, "S2", ino, "it has names and is no directory");
        report.check(summary.pages == 0 || inode.is_file(), "S2", ino, "it has pages and is no file");
        let is_link = inode.kind() == FileKind::Symlink;
        report.check(is_link || summary.target_parts == 0, "S2", ino, "it has a target and is no link");
        Ok(())
    }

    /// Goes through the records of an inode.
    fn summarize(&mut self, ino: u64, report: &mut Report<'_>) -> Result<Summary, FsError<N::Error>> {
        let page_size = self.page_size();
        let mut summary = Summary {
            inode: None,
            names: 0,
            directories: 0,
            pages: 0,
            is_beyond: false,
            has_strays: [false; 2],
            target: Some(0),
            target_parts: 0,
            page: None,
        };
        self.records((Key::inode(ino), Key::end(ino)), |entry| {
            let is_sound = match Meaning::of(entry.key) {
                Some(Meaning::Inode { .. }) => {
                    summary.inode = Inode::parse(entry.value);
                    summary.inode.is_some()
                }
                Some(Meaning::Name { .. }) => match parse_name(entry.value) {
                    Some((kind, ..)) => {
                        summary.names += 1;
                        summary.directories += u64::from(kind == FileKind::Directory);
                        true
                    }
                    None => false,
                },
                Some(Meaning::Page { index, .. }) => {
                    summary.pass_page(index, base_of(entry.value, entry.large, page_size), page_size)
                }
                Some(Meaning::Fragment { index, offset, .. }) => {
                    summary.pass_fragment(index, usize::from(offset), entry.value, page_size);
                    true
                }
                Some(Meaning::Target { part, .. }) => {
                    let follows = u64::from(part) == summary.target_parts;
                    summary.target = summary.target.filter(|_| follows).map(|size| size + entry.value.len() as u64);
                    summary.target_parts += 1;
                    !entry.value.is_empty() && entry.large.is_none()
                }
                // Keys were looked at before, and attributes are when the rest is known.
                _ => true,
            };
            report.check(is_sound, "S2", ino, "a record of it cannot be understood");
            ControlFlow::Continue(())
        })?;
        Ok(summary)
    }

    fn verify_directory(
        &mut self,
        ino: u64,
        inode: &Inode,
        summary: &Summary,
        report: &mut Report<'_>,
    ) -> Result<(), FsError<N::Error>> {
        report.check(summary.names == inode.size, "S5", ino, "it has another number of names than it says");
        let links = if inode.nlink == 0 { 0 } else { 2 + summary.directories };
        report.check(u64::from(inode.nlink) == links, "S5", ino, "it has another number of links than it says");
        report.check(inode.nlink > 0 || summary.names == 0, "S5", ino, "it has no name, and names are in it");
        if inode.nlink > 0 {
            report.check(self.reaches_root(inode)?, "S5", ino, "the root is not above it");
        }
        let is_free = self.is_chunk_free(inode)?;
        report.check(is_free, "S9", ino, "a number that it has left is in use, or not its own");
        self.verify_names(ino, report)
    }

    /// Whether the root is above a directory. Reads a leaf for each directory above it.
    pub(super) fn reaches_root(&mut self, inode: &Inode) -> Result<bool, FsError<N::Error>> {
        let mut at = inode.parent;
        // Where a power of two steps had led: a loop comes there again.
        let mut mark = 0;
        for step in 1_u64.. {
            if at == Ino::ROOT.0 {
                return Ok(true);
            }
            if at == mark {
                return Ok(false);
            }
            if step.is_power_of_two() {
                mark = at;
            }
            match self.find_inode(Ino(at)) {
                Ok(Some(inode)) if inode.is_directory() => at = inode.parent,
                Ok(_) | Err(FsError::Corrupt { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Every name leads to an inode that agrees, and is found.
    fn verify_names(&mut self, directory: u64, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let (mut position, mut last) = (0, None);
        while let Some(at) = self.next_name(directory, position)? {
            position = at.position + 1;
            let child = match self.find_inode(at.ino) {
                Err(FsError::Corrupt { .. }) => None,
                other => other?,
            };
            let leads = child.is_some_and(|child| child.kind() == at.kind && child.nlink > 0);
            report.check(leads, "S3", directory, "a name leads to no inode, or to one of another type");
            let knows = child.is_none_or(|child| !child.is_directory() || child.parent == directory);
            report.check(knows, "S5", at.ino.0, "it says that another directory has its name");
            let bucket = at.position >> 8;
            let is_placed = self.hash(at.name()) >> 8 == bucket;
            // Where several names have one hash, the one that is found is the first.
            let is_found = last != Some(bucket)
                || match self.search(Ino(directory), at.name()) {
                    Ok(Search::Found(found)) => found.position == at.position,
                    Ok(Search::Free(_)) | Err(FsError::Corrupt { .. }) => false,
                    Err(error) => return Err(error),
                };
            report.check(is_placed && is_found, "S3", directory, "a name is not found where it stands");
            last = Some(bucket);
        }
        Ok(())
    }

    /// Every page of a file can be read. Reads each.
    fn verify_pages(&mut self, ino: u64, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let page_size = self.page_size() as u64;
        let mut next = Some(0);
        while let Some(from) = next
            && let Some(index) = self.next_page(ino, from)?
        {
            next = index.checked_add(1);
            let key = Key::page(ino, index);
            let is_page = self.tree.value_len(key.as_slice())? == Some(page_size as usize);
            if is_page && !self.can_read_page(key)? {
                let offset = Some(u64::from(index) * page_size);
                report.tell(Violation::Fs {
                    invariant: "S10",
                    ino: Ino(ino),
                    what: "a page of it cannot be read",
                    offset,
                });
            }
        }
        Ok(())
    }

    /// Behind the end of a file there is nothing.
    fn verify_end(
        &mut self,
        ino: u64,
        inode: &Inode,
        summary: &Summary,
        report: &mut Report<'_>,
    ) -> Result<(), FsError<N::Error>> {
        if summary.is_beyond && !self.has_orphan_record(ino)? {
            report.check(false, "S6", ino, "there is content behind its end");
        }
        let (index, start) = self.place(inode.size);
        if start > 0 {
            match self.is_zero_from(ino, index, start) {
                // It was told of when the pages were read.
                Err(FsError::Corrupt { .. } | FsError::CorruptPage { .. } | FsError::Inconsistent) => {}
                is_zero => report.check(is_zero?, "S6", ino, "there are bytes behind its end"),
            }
        }
        Ok(())
    }

    /// Every inode has as many names as it says. Counts the names of as many inodes at a time as there is memory for.
    fn verify_links(&mut self, mut tally: Tally<'_>, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let mut next = Some(1);
        while let Some(from) = next {
            next = self.count_names(from, &mut tally)?;
            for at in 0..tally.len() {
                let (ino, names) = tally.get(at);
                let Ok(Some(inode)) = self.find_inode(Ino(ino)) else { continue };
                let expected = match inode.is_directory() {
                    true => u32::from(inode.nlink > 0 && ino != Ino::ROOT.0),
                    false => inode.nlink,
                };
                report.check(names == expected, "S4", ino, "it has another number of names than it says");
                if inode.nlink == 0 && !self.has_orphan_record(ino)? {
                    report.check(false, "S4", ino, "it has no name, and nothing says so");
                }
            }
        }
        Ok(())
    }
}

impl Summary {
    fn pass_page(&mut self, index: u32, base: Option<Base>, page_size: usize) -> bool {
        self.pages += 1;
        self.page = Some((index, base == Some(Base::Page), 0, 0));
        let size = self.inode.map_or(0, |inode| inode.size);
        self.is_beyond |= base != Some(Base::Unwritten) && u64::from(index) * page_size as u64 >= size;
        base.is_some()
    }

    fn pass_fragment(&mut self, index: u32, offset: usize, value: &[u8], page_size: usize) {
        let end_of_it = fragments::parse(value).map(|(size, _)| offset + size).filter(|&end| end <= page_size);
        match (&mut self.page, end_of_it) {
            (Some((at, true, count, end)), Some(end_of_it))
                if *at == index && *end <= offset && *count < FRAGMENTS_FOUND_MAX =>
            {
                (*count, *end) = (*count + 1, end_of_it);
            }
            _ => {
                let size = self.inode.map_or(0, |inode| inode.size);
                let is_behind = end_of_it.is_some() && u64::from(index) * page_size as u64 >= size;
                self.has_strays[usize::from(is_behind)] = true;
            }
        }
    }
}
