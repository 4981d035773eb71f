//! The whole file system, walked through.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use crate::fs::Fs;
use crate::inode::{FileKind, Inode};
use crate::keys::{Key, Meaning};
use crate::names::parse as parse_name;
use crate::pages::{Base, base_of};
use crate::xattrs::parse as parse_xattr;
use crate::{FsError, Ino, fragments};

/// Bytes of an inode and of how many names lead to it.
const TALLY_SIZE: usize = 12;

/// Most directories above one another that are followed.
const DEPTH_MAX: u32 = 1 << 16;

/// An invariant that does not hold on the chip, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One of the log: L1 to L9 of `nandu-log`.
    Log(nandu_log::Violation),
    /// One of the tree: T1 to T8 of `nandu-tree`.
    Tree(nandu_tree::Violation),
    /// One of the file system: F1 to F9.
    Fs {
        /// Its number, as the crate's documentation lists them.
        invariant: &'static str,
        /// The inode concerned.
        ino: Ino,
        /// What is wrong.
        what: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Log(violation) => violation.fmt(f),
            Violation::Tree(violation) => violation.fmt(f),
            Violation::Fs { invariant, ino, what } => write!(f, "{invariant} violated by inode {ino}: {what}"),
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
            self.tell(Violation::Fs { invariant, ino: Ino(ino), what });
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
    /// Bytes of names and values of attributes.
    xattr_size: usize,
    /// Bytes that are missing of the attribute passed last.
    xattr_left: usize,
    target_size: u64,
    /// The page passed last, whether it is on flash, and the end of the last fragment over it.
    page: Option<(u32, bool, usize)>,
}

impl<N: Nand> Fs<'_, N> {
    /// Walks log, tree and file system, reads only, and reports every invariant that does not hold; returns how many. What is
    /// partly written in memory goes to the tree first.
    ///
    /// Counting the names of inodes takes 12 bytes for each inode, or as many walks over all names as that exceeds `scratch`, which
    /// may be empty.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn verify(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(Violation)) -> Result<u64, FsError<N::Error>> {
        if !self.options.read_only {
            self.flush()?;
        }
        let mut report = Report { to: report, count: 0 };
        self.tree.pages_mut().log_mut().verify(&mut |violation| report.tell(Violation::Log(violation)))?;
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
        report.check(is_root, "F1", Ino::ROOT.0, "there is no root directory");
        self.verify_orphans(report)?;
        let mut next = 1;
        while let Some(ino) = self.next_inode(next, report)? {
            self.verify_inode(ino, report)?;
            next = ino + 1;
        }
        let scratch_is_larger = scratch.len() > self.buffer.memory.len();
        let memory = core::mem::take(&mut self.buffer.memory);
        let outcome = self.verify_links(if scratch_is_larger { scratch } else { &mut *memory }, report);
        self.buffer.memory = memory;
        outcome
    }

    /// Every orphan's record names an inode that has no name, or a file.
    fn verify_orphans(&mut self, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let mut next = Some(Key::orphan(0));
        while let Some(from) = next.take() {
            let mut found = None;
            let (low, high) = (Bound::Included(from.as_slice()), Bound::Included(Key::orphan(u64::MAX)));
            let high = high.as_ref().map(Key::as_slice);
            self.tree.range(low, high, Direction::Forward, |entry| {
                found = Meaning::of(entry.key);
                ControlFlow::Break(())
            })?;
            let Some(Meaning::Orphan { ino }) = found else { break };
            let is_sound = match self.find_inode(Ino(ino)) {
                Ok(Some(inode)) => inode.nlink == 0 || inode.is_file(),
                Ok(None) | Err(FsError::Corrupt { .. }) => false,
                Err(error) => return Err(error),
            };
            report.check(is_sound, "F4", ino, "an orphan's record names no orphan");
            next = Some(Key::orphan(ino + 1));
        }
        Ok(())
    }

    fn has_orphan_record(&mut self, ino: u64) -> Result<bool, FsError<N::Error>> {
        Ok(self.tree.get(Key::orphan(ino).as_slice())?.is_some())
    }

    /// The first inode from this number on that has a record.
    fn next_inode(&mut self, from: u64, report: &mut Report<'_>) -> Result<Option<u64>, FsError<N::Error>> {
        let mut found = None;
        let from = Key::inode(from);
        self.tree.range(Bound::Included(from.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
            found = match entry.key.split_first_chunk::<6>() {
                Some((ino, _)) => Some(ino.iter().fold(0, |ino, &byte| ino << 8 | u64::from(byte))),
                None => {
                    report.check(false, "F2", 0, "a key belongs to nothing");
                    return ControlFlow::Continue(());
                }
            };
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    fn verify_inode(&mut self, ino: u64, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let summary = self.summarize(ino, report)?;
        report.check(ino < self.chunk_next, "F9", ino, "its number has not been given yet");
        let Some(inode) = summary.inode else {
            report.check(false, "F2", ino, "there are records of an inode that is not there");
            return Ok(());
        };
        report.check(summary.pages == inode.blocks, "F6", ino, "it has another number of pages than it says");
        let is_whole = summary.xattr_left == 0 && summary.xattr_size == inode.xattr_size as usize;
        report.check(is_whole, "F8", ino, "its attributes have another size than it says");
        match inode.kind() {
            FileKind::Directory => self.verify_directory(ino, &inode, &summary, report)?,
            FileKind::File => self.verify_end(ino, &inode, &summary, report)?,
            FileKind::Symlink => {
                report.check(summary.target_size == inode.size, "F2", ino, "its target has another size than it says");
            }
            _ => report.check(inode.size == 0, "F2", ino, "it has a size and can have no content"),
        }
        let has_content = summary.names == 0 || inode.is_directory();
        report.check(has_content, "F2", ino, "it has names and is no directory");
        report.check(summary.pages == 0 || inode.is_file(), "F2", ino, "it has pages and is no file");
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
            xattr_size: 0,
            xattr_left: 0,
            target_size: 0,
            page: None,
        };
        let (from, to) = (Key::inode(ino), Key::inode(ino + 1));
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.tree.range(bounds.0, bounds.1, Direction::Forward, |entry| {
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
                    let is_sound = summary.pass_fragment(index, usize::from(offset), entry.value, page_size);
                    report.check(is_sound, "F7", ino, "a fragment lies where it must not");
                    true
                }
                Some(Meaning::Xattr { part, .. }) => summary.pass_xattr(part, entry.value),
                Some(Meaning::Target { .. }) => {
                    summary.target_size += entry.value.len() as u64;
                    entry.large.is_none()
                }
                _ => false,
            };
            report.check(is_sound, "F2", ino, "a record of it cannot be understood");
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
        report.check(summary.names == inode.size, "F5", ino, "it has another number of names than it says");
        let links = if inode.nlink == 0 { 0 } else { 2 + summary.directories };
        report.check(u64::from(inode.nlink) == links, "F5", ino, "it has another number of links than it says");
        if inode.nlink > 0 {
            report.check(self.reaches_root(inode)?, "F5", ino, "the root is not above it");
        }
        let (from, to) = (Key::inode(inode.chunk_next), Key::inode(inode.chunk_end));
        let mut is_free = true;
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        if inode.chunk_next < inode.chunk_end {
            self.tree.range(bounds.0, bounds.1, Direction::Forward, |_| {
                is_free = false;
                ControlFlow::Break(())
            })?;
        }
        let is_given = inode.chunk_end <= self.chunk_next;
        report.check(is_free && is_given, "F9", ino, "a number that it has left is in use, or not its own");
        self.verify_names(ino, report)
    }

    fn reaches_root(&mut self, inode: &Inode) -> Result<bool, FsError<N::Error>> {
        let mut at = inode.parent;
        for _ in 0..DEPTH_MAX {
            if at == Ino::ROOT.0 {
                return Ok(true);
            }
            match self.find_inode(Ino(at)) {
                Ok(Some(inode)) if inode.is_directory() => at = inode.parent,
                Ok(_) | Err(FsError::Corrupt { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Every name leads to an inode that agrees.
    fn verify_names(&mut self, directory: u64, report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let mut position = 0;
        loop {
            let mut found = None;
            let (from, to) = (Key::name(directory, position), Key::names_end(directory));
            let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
            self.tree.range(bounds.0, bounds.1, Direction::Forward, |entry| {
                if let (Some(Meaning::Name { position, .. }), Some((kind, ino, _))) =
                    (Meaning::of(entry.key), parse_name(entry.value))
                {
                    found = Some((position, kind, ino));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            let Some((at, kind, ino)) = found else { return Ok(()) };
            let child = match self.find_inode(ino) {
                Err(FsError::Corrupt { .. }) => None,
                other => other?,
            };
            let leads = child.is_some_and(|child| child.kind() == kind && child.nlink > 0);
            report.check(leads, "F3", directory, "a name leads to no inode, or to one of another type");
            let knows = child.is_none_or(|child| !child.is_directory() || child.parent == directory);
            report.check(knows, "F5", ino.0, "it says that another directory has its name");
            position = at + 1;
        }
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
            report.check(false, "F6", ino, "there is content behind its end");
        }
        let (index, start) = self.place(inode.size);
        if start > 0 {
            let memory = core::mem::take(&mut self.buffer.memory);
            let outcome = self.read_page(ino, index, start, &mut memory[start..]);
            let is_zero = memory[start..].iter().all(|&byte| byte == 0);
            self.buffer.memory = memory;
            match outcome {
                Err(FsError::Corrupt { .. } | FsError::Tree(_)) => {
                    report.check(false, "F6", ino, "its last page cannot be read");
                }
                other => {
                    other?;
                    report.check(is_zero, "F6", ino, "there are bytes behind its end");
                }
            }
        }
        Ok(())
    }

    /// Every inode has as many names as it says. Counts the names of as many inodes at a time as there is memory for.
    fn verify_links(&mut self, memory: &mut [u8], report: &mut Report<'_>) -> Result<(), FsError<N::Error>> {
        let window = memory.len() / TALLY_SIZE;
        let mut next = Some(1);
        while let Some(from) = next.take() {
            let mut count = 0;
            let first = Key::inode(from);
            self.tree.range(Bound::Included(first.as_slice()), Bound::Unbounded, Direction::Forward, |entry| {
                let Some(Meaning::Inode { ino }) = Meaning::of(entry.key) else { return ControlFlow::Continue(()) };
                if count == window {
                    next = Some(ino);
                    return ControlFlow::Break(());
                }
                set_tally(memory, count, ino, 0);
                count += 1;
                ControlFlow::Continue(())
            })?;
            self.tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
                if let (Some(Meaning::Name { .. }), Some((_, ino, _))) =
                    (Meaning::of(entry.key), parse_name(entry.value))
                    && let Some(at) = find_tally(&memory[..count * TALLY_SIZE], ino.0)
                {
                    let (_, names) = tally(memory, at);
                    set_tally(memory, at, ino.0, names.saturating_add(1));
                }
                ControlFlow::Continue(())
            })?;
            for at in 0..count {
                let (ino, names) = tally(memory, at);
                let Ok(Some(inode)) = self.find_inode(Ino(ino)) else { continue };
                let expected = match inode.is_directory() {
                    true => u32::from(inode.nlink > 0 && ino != Ino::ROOT.0),
                    false => inode.nlink,
                };
                report.check(names == expected, "F4", ino, "it has another number of names than it says");
                if inode.nlink == 0 && !self.has_orphan_record(ino)? {
                    report.check(false, "F4", ino, "it has no name, and nothing says so");
                }
            }
        }
        Ok(())
    }
}

impl Summary {
    fn pass_page(&mut self, index: u32, base: Option<Base>, page_size: usize) -> bool {
        self.pages += 1;
        self.page = Some((index, base == Some(Base::Page), 0));
        let size = self.inode.map_or(0, |inode| inode.size);
        self.is_beyond |= base != Some(Base::Unwritten) && u64::from(index) * page_size as u64 >= size;
        base.is_some()
    }

    fn pass_fragment(&mut self, index: u32, offset: usize, value: &[u8], page_size: usize) -> bool {
        let Some((size, _)) = fragments::parse(value) else { return false };
        match &mut self.page {
            Some((at, true, end)) if *at == index && *end <= offset && offset + size <= page_size => {
                *end = offset + size;
                true
            }
            _ => false,
        }
    }

    fn pass_xattr(&mut self, part: u8, value: &[u8]) -> bool {
        if part > 0 {
            let is_sound = !value.is_empty() && value.len() <= self.xattr_left;
            self.xattr_left = self.xattr_left.saturating_sub(value.len());
            return is_sound;
        }
        let Some((name, size)) = parse_xattr(value) else { return false };
        let was_whole = self.xattr_left == 0;
        self.xattr_size += name.len() + size;
        self.xattr_left = size;
        was_whole
    }
}

fn tally(memory: &[u8], at: usize) -> (u64, u32) {
    let (ino, names) = memory[at * TALLY_SIZE..][..TALLY_SIZE].split_at(8);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    (number(ino), number(names) as u32)
}

fn set_tally(memory: &mut [u8], at: usize, ino: u64, names: u32) {
    let bytes = &mut memory[at * TALLY_SIZE..][..TALLY_SIZE];
    bytes[..8].copy_from_slice(&ino.to_le_bytes());
    bytes[8..].copy_from_slice(&names.to_le_bytes());
}

fn find_tally(memory: &[u8], ino: u64) -> Option<usize> {
    let (mut low, mut high) = (0, memory.len() / TALLY_SIZE);
    while low < high {
        let middle = (low + high) / 2;
        match tally(memory, middle).0.cmp(&ino) {
            core::cmp::Ordering::Less => low = middle + 1,
            core::cmp::Ordering::Equal => return Some(middle),
            core::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}
