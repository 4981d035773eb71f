//! Recorded work on the index of a file system, and its file format.
//!
//! The format is text, as it is or compressed by gzip:
//!
//! ```text
//! nandu-index-trace 1
//! p i 1            what is there before: put the attributes of inode 1
//! p n 1 40a3       and a name in directory 1; names have a number below 8000 (hexadecimal) there
//! run              what was done
//! g n 1 40a3       look the name up
//! g b 2 0-31       look up the blocks 0 to 31 of inode 2, one after the other
//! p b 2 32         put a block
//! d i 2            delete the attributes of inode 2
//! s n 1 12         list directory 1: 12 names
//! ```
//!
//! Names are numbers and inodes are counted, so a trace says nothing about the machine it was recorded on.

use std::fmt::Write as _;
use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::Operation;

const HEADER: &str = "nandu-index-trace 1";
const RUN: &str = "run";
/// No trace is larger when it is unpacked: whoever made one that is meant no good.
const TEXT_SIZE_MAX: u64 = 1 << 30;
/// Names of a directory have a number below this.
pub(super) const SLOT_COUNT: u16 = 0x8000;
/// Blocks of a file have a number below this.
pub(super) const BLOCK_COUNT: u16 = 0x7FFF;

/// An entry in the index of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Where a name of a directory leads to.
    Name {
        /// Inode of the directory.
        directory: u16,
        /// Which name: its hash, or the next number that is free.
        slot: u16,
    },
    /// The attributes of an inode.
    Inode(u16),
    /// Where blocks of 4 KiB of a file are.
    Blocks {
        /// Inode of the file.
        inode: u16,
        /// The first block.
        first: u16,
        /// How many, at least one. Each is an entry.
        count: u16,
    },
}

impl Item {
    /// The keys of its entries: the inode in the upper 16 bits; below, 0 for attributes, then blocks, then names. So what
    /// belongs to an inode stands together, and blocks in their order.
    pub fn keys(&self) -> impl Iterator<Item = u32> + use<> {
        let (inode, first, count) = match *self {
            Item::Name { directory, slot } => (directory, u32::from(SLOT_COUNT) | u32::from(slot), 1),
            Item::Inode(inode) => (inode, 0, 1),
            Item::Blocks { inode, first, count } => (inode, 1 + u32::from(first), u32::from(count)),
        };
        (first..first + count).map(move |low| u32::from(inode) << 16 | low)
    }
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Look it up.
    Get,
    /// Put it.
    Put,
    /// Delete it.
    Delete,
    /// List a directory; the item is its first name, or any.
    List {
        /// How many names it has.
        count: u16,
    },
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub verb: Verb,
    /// To what.
    pub item: Item,
}

/// Recorded work on the index of a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What is there before.
    pub load: Vec<Step>,
    /// What was done.
    pub run: Vec<Step>,
}

/// Why bytes are not a trace.
#[derive(Debug, thiserror::Error)]
pub enum BadTrace {
    /// They cannot be unpacked.
    #[error("the trace cannot be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    /// A line means nothing.
    #[error("line {0} of the trace means nothing")]
    Line(usize),
}

impl Trace {
    /// The trace that comes with this crate: nandu's own sources of version 0.1 are unpacked, built, cleaned and removed.
    /// `lab/nandu-bench/traces/README.md` has the commands.
    ///
    /// # Errors
    ///
    /// None, but for a damaged build.
    pub fn sample() -> Result<Trace, BadTrace> {
        Trace::from_bytes(include_bytes!("../../traces/self-build.trace.gz"))
    }

    /// Reads a trace, packed or not.
    ///
    /// # Errors
    ///
    /// [`BadTrace`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Trace, BadTrace> {
        let mut text = String::new();
        if bytes.starts_with(&[0x1F, 0x8B]) {
            GzDecoder::new(bytes).take(TEXT_SIZE_MAX).read_to_string(&mut text)?;
        } else {
            bytes.take(TEXT_SIZE_MAX).read_to_string(&mut text)?;
        }
        Trace::parse(&text)
    }

    fn parse(text: &str) -> Result<Trace, BadTrace> {
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(BadTrace::Line(1));
        }
        let mut trace = Trace::default();
        let mut steps = &mut trace.load;
        for (nth, line) in lines {
            if line == RUN {
                steps = &mut trace.run;
            } else {
                steps.push(Step::parse(line).ok_or(BadTrace::Line(nth + 1))?);
            }
        }
        Ok(trace)
    }

    /// As text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for step in &self.load {
            step.write(&mut text);
        }
        text.push_str(RUN);
        text.push('\n');
        for step in &self.run {
            step.write(&mut text);
        }
        text
    }

    /// As text packed by gzip; the same trace gives the same bytes.
    ///
    /// # Errors
    ///
    /// None that memory does not give.
    pub fn to_packed(&self) -> std::io::Result<Vec<u8>> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(self.to_text().as_bytes())?;
        packer.finish()
    }

    /// As operations: what is there before is put first.
    pub fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for step in self.load.iter().chain(&self.run) {
            step.push_to(&mut operations);
        }
        operations
    }

    /// How many of [`operations`](Trace::operations) only put what is there before.
    pub fn load_count(&self) -> usize {
        self.load.iter().map(|step| step.item.keys().count()).sum()
    }
}

impl Step {
    fn push_to(&self, operations: &mut Vec<Operation>) {
        for key in self.item.keys() {
            let value = operations.len() as u32;
            operations.push(match self.verb {
                Verb::Get => Operation::Get { key },
                Verb::Put => Operation::Put { key, value },
                Verb::Delete => Operation::Delete { key },
                Verb::List { count } => Operation::Scan { key, count: count.into() },
            });
        }
    }

    fn write(&self, text: &mut String) {
        let verb = match self.verb {
            Verb::Get => 'g',
            Verb::Put => 'p',
            Verb::Delete => 'd',
            Verb::List { .. } => 's',
        };
        // Writing to a string does not fail.
        let _ = match (self.verb, self.item) {
            (Verb::List { count }, Item::Name { directory, .. }) => writeln!(text, "{verb} n {directory} {count}"),
            (_, Item::Name { directory, slot }) => writeln!(text, "{verb} n {directory} {slot:x}"),
            (_, Item::Inode(inode)) => writeln!(text, "{verb} i {inode}"),
            (_, Item::Blocks { inode, first, count: 1 }) => writeln!(text, "{verb} b {inode} {first}"),
            (_, Item::Blocks { inode, first, count }) => {
                writeln!(text, "{verb} b {inode} {first}-{}", first + (count - 1))
            }
        };
    }

    fn parse(line: &str) -> Option<Step> {
        let mut words = line.split(' ');
        let (verb, kind) = (words.next()?, words.next()?);
        let inode = words.next()?.parse().ok()?;
        let rest = words.next();
        let item = match (kind, rest) {
            ("n", Some(_)) if verb == "s" => Item::Name { directory: inode, slot: 0 },
            ("n", Some(slot)) => Item::Name { directory: inode, slot: u16::from_str_radix(slot, 16).ok()? },
            ("i", None) => Item::Inode(inode),
            ("b", Some(range)) => {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
                Item::Blocks { inode, first, count: last.checked_sub(first)?.checked_add(1)? }
            }
            _ => return None,
        };
        let is_sound = match item {
            Item::Name { slot, .. } => slot < SLOT_COUNT,
            Item::Inode(_) => true,
            Item::Blocks { first, count, .. } => u32::from(first) + u32::from(count) <= u32::from(BLOCK_COUNT),
        };
        let verb = match verb {
            "g" => Verb::Get,
            "p" => Verb::Put,
            "d" => Verb::Delete,
            "s" if kind == "n" => Verb::List { count: rest?.parse().ok()? },
            _ => return None,
        };
        (is_sound && words.next().is_none()).then_some(Step { verb, item })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "nandu-index-trace 1\np i 1\np n 1 40a3\nrun\ng n 1 40a3\ng b 2 0-31\np b 2 32\nd i 2\ns n 1 12\n";

    #[test]
    fn a_trace_reads_back_as_it_was_written_packed_or_not() {
        let trace = Trace::from_bytes(TEXT.as_bytes()).unwrap();
        assert_eq!(trace.to_text(), TEXT);
        assert_eq!(Trace::from_bytes(&trace.to_packed().unwrap()).unwrap(), trace);
        let operations = trace.operations();
        assert_eq!(operations.len(), 2 + 1 + 32 + 3);
        assert_eq!(trace.load_count(), 2);
        assert_eq!(operations[3], Operation::Get { key: 0x2_0001 });
        assert_eq!(operations[37], Operation::Scan { key: 0x1_8000, count: 12 });
    }

    #[test]
    fn entries_of_an_inode_stand_together_and_never_on_one_another() {
        let keys = |item: Item| item.keys().collect::<Vec<_>>();
        assert_eq!(keys(Item::Inode(7)), [0x7_0000]);
        assert_eq!(keys(Item::Blocks { inode: 7, first: BLOCK_COUNT - 1, count: 1 }), [0x7_7FFF]);
        assert_eq!(keys(Item::Name { directory: 7, slot: 0 }), [0x7_8000]);
        assert_eq!(keys(Item::Name { directory: 7, slot: SLOT_COUNT - 1 }), [0x7_FFFF]);
    }

    #[test]
    fn lines_that_mean_nothing_are_named() {
        let lines = [
            "x i 1",
            "g i",
            "g i 1 2",
            "g i 70000",
            "g n 1",
            "g n 1 8000",
            "g b 1 5-4",
            "g b 1 0-40000",
            "s i 1 2",
            "g q 1",
            "",
            "g i 1 ",
            "g b 1 1-2 3",
        ];
        for line in lines {
            let text = format!("{HEADER}\n{RUN}\n{line}\n");
            assert!(matches!(Trace::from_bytes(text.as_bytes()), Err(BadTrace::Line(3))), "{line:?}");
        }
        assert!(matches!(Trace::from_bytes(b""), Err(BadTrace::Line(1))));
        assert!(matches!(Trace::from_bytes(&[0x1F, 0x8B, 0, 0]), Err(BadTrace::Packed(_))));
    }

    #[test]
    fn the_sample_is_what_it_should_be() {
        let trace = Trace::sample().unwrap();
        let operations = trace.operations();
        let share = |is: fn(&Operation) -> bool| {
            operations.iter().filter(|operation| is(operation)).count() as f64 / operations.len() as f64
        };
        let put = share(|operation| matches!(operation, Operation::Put { .. }));
        let deleted = share(|operation| matches!(operation, Operation::Delete { .. }));
        assert!(operations.len() > 50_000 && put > 0.05 && deleted > 0.05, "{} {put} {deleted}", operations.len());
    }
}
