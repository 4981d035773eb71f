//! Harm done to pages, and what it does to reads.

use std::collections::BTreeSet;

use nandu_nand::{NandErrorKind, PageAddr, ReadStatus};

use crate::Sim;
use crate::random::{Purpose, Stream};
use crate::state::Dirty;

/// How fast unstable bits get worse. A page is lost after `reads` reads, or after `time_ns` of virtual time, or a
/// mixture: half of one and half of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// Reads until the page cannot be corrected any more.
    pub reads: u32,
    /// Virtual time until the page cannot be corrected any more, nanoseconds.
    pub time_ns: u64,
}

impl Decay {
    /// Eight reads or one second.
    pub const DEFAULT: Decay = Decay { reads: 8, time_ns: 1_000_000_000 };
}

/// Harm done to columns `from..to` of a page, until its block is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Harm {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) kind: HarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HarmKind {
    /// Every codeword has more flipped bits than can be corrected.
    Lost,
    /// So many bits of one codeword are flipped; in an erased page, they read as zero.
    Flips(u16),
    /// Reads well at first, and worse with every read and with time.
    Unstable { since_ns: u64, reads: u32 },
    /// The cells look erased; what is programmed into them is unstable.
    Weak,
}

/// Columns and bits, each once, in order.
type Bits = BTreeSet<(u32, u8)>;

impl Sim {
    /// Counts an array read of a block.
    pub(crate) fn note_array_read(&mut self, block: u32) {
        let counters = &mut self.blocks[block as usize].counters;
        counters.reads += 1;
        counters.reads_since_erase = counters.reads_since_erase.saturating_add(1);
        self.touch(block, Dirty::COUNTERS);
    }

    /// What the cells of a page hold, without harm.
    pub(crate) fn fetch_raw(&self, at: (u32, u32), column: u32, buf: &mut [u8]) {
        match &self.blocks[at.0 as usize].store {
            Some(store) if store.pages[at.1 as usize].is_away() => {
                self.kept.read(at.0, store.place(at.1), column, buf);
            }
            Some(store) if store.pages[at.1 as usize].is_held() => {
                let columns = self.chip.geometry.column_count() as usize;
                let first = at.1 as usize * columns + column as usize;
                buf.copy_from_slice(&store.data[first..first + buf.len()]);
            }
            _ => buf.fill(0xFF),
        }
    }

    /// Reads columns of a page through error correction, with all harm done to it, and counts the read.
    pub(crate) fn fetch(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        let at = self.locate(page);
        self.fetch_raw(at, column, buf);
        if self.kept.is_unreadable() {
            return Err(NandErrorKind::Gone);
        }
        let mut flipped = Bits::new();
        let lost = self.collect_harm(at, column, buf.len() as u32, &mut flipped);
        let held = self.blocks[at.0 as usize].page(at.1).is_held();
        let result = if lost {
            Stream::new(self.seed, Purpose::Garbage, self.operations, 1).fill(buf);
            Err(NandErrorKind::Uncorrectable)
        } else if held {
            self.correct(column, buf, &flipped)
        } else {
            // Error correction has nothing to go by in an erased page, so its flipped bits are seen.
            flip(column, buf, &flipped);
            Ok(ReadStatus::Clean)
        };
        self.show_mark(at, column, buf);
        self.note_page_read(at);
        result
    }

    /// The mark of a bad block stands in the first spare byte of its first page.
    fn show_mark(&self, at: (u32, u32), column: u32, buf: &mut [u8]) {
        if at.1 == 0 && self.blocks[at.0 as usize].mark.reads_bad() {
            let place = self.chip.geometry.page_size.checked_sub(column);
            if let Some(byte) = place.and_then(|place| buf.get_mut(place as usize)) {
                *byte = 0;
            }
        }
    }

    /// Counts an array read of a page; unstable bits suffer from it.
    pub(crate) fn note_page_read(&mut self, at: (u32, u32)) {
        self.note_array_read(at.0);
        let state = &mut self.blocks[at.0 as usize];
        if let Some(store) = state.store.as_deref_mut() {
            let page = &mut store.pages[at.1 as usize];
            page.reads = page.reads.saturating_add(1);
        }
        for harm in state.damage.iter_mut().filter_map(|damage| damage.get_mut(&at.1)).flatten() {
            if let HarmKind::Unstable { reads, .. } = &mut harm.kind {
                *reads = reads.saturating_add(1);
            }
        }
    }

    /// Collects the flipped bits of a page; says whether a codeword that the columns touch is lost outright.
    fn collect_harm(&self, at: (u32, u32), column: u32, length: u32, flipped: &mut Bits) -> bool {
        let (block, index) = at;
        let geometry = &self.chip.geometry;
        let limit = geometry.ecc.correctable_bits;
        let size = geometry.ecc.codeword_size;
        // Error correction works on whole codewords, whatever part of them is asked for.
        let first = column / size * size;
        let end = (column + length).next_multiple_of(size).min(geometry.page_size);
        let state = &self.blocks[block as usize];
        if state.page(index).is_held() {
            self.aged_bits(block, index, flipped);
        }
        let mut lost = false;
        for (ordinal, harm) in state.harm(index).iter().enumerate() {
            let (from, to) = (harm.from / size * size, harm.to.next_multiple_of(size).min(geometry.page_size));
            let touches = from < end && first < to;
            let bits = match harm.kind {
                HarmKind::Lost => {
                    lost |= touches;
                    continue;
                }
                HarmKind::Weak => continue,
                HarmKind::Flips(bits) => bits,
                HarmKind::Unstable { since_ns, reads } => {
                    let progress = self.decay.progress(reads, self.clock_ns - since_ns);
                    // First one codeword goes, then all that was being programmed.
                    lost |= touches && progress >= 2.0;
                    (progress.min(2.0) * f64::from(limit + 1)) as u16
                }
            };
            let name = u64::from(block * geometry.pages_per_block + index) << 16 | ordinal as u64;
            let mut stream = Stream::new(self.seed, Purpose::Flips, name, u64::from(state.counters.erases));
            let codeword = from + size * stream.below((to.max(from + size) - from) / size);
            flip_some(&mut stream, codeword, size, u32::from(bits), flipped);
        }
        lost
    }

    /// Corrects the flipped bits of a programmed page, if there are few enough in each codeword; else lets them through.
    fn correct(&self, column: u32, buf: &mut [u8], flipped: &Bits) -> Result<ReadStatus, NandErrorKind> {
        let ecc = &self.chip.geometry.ecc;
        let page_size = self.chip.geometry.page_size;
        if buf.is_empty() || column >= page_size {
            return Ok(ReadStatus::Clean);
        }
        let last = (column + buf.len() as u32).min(page_size) - 1;
        let worst = (column / ecc.codeword_size..=last / ecc.codeword_size)
            .map(|codeword| {
                let first = codeword * ecc.codeword_size;
                flipped.range((first, 0)..(first + ecc.codeword_size, 0)).count()
            })
            .max()
            .unwrap_or(0);
        if worst > usize::from(ecc.correctable_bits) {
            flip(column, buf, flipped);
            return Err(NandErrorKind::Uncorrectable);
        }
        Ok(ReadStatus::from_bits(worst as u16, ecc.correctable_bits))
    }
}

impl Decay {
    /// How far a page got: at 1.0 its worst codeword is beyond correction, at 2.0 all of it.
    fn progress(&self, reads: u32, age_ns: u64) -> f64 {
        f64::from(reads) / f64::from(self.reads.max(1)) + age_ns as f64 / self.time_ns.max(1) as f64
    }
}

/// Adds bits of a codeword chosen by the stream until it has that many; a longer run of the same stream flips the same
/// bits and more.
fn flip_some(stream: &mut Stream, first: u32, size: u32, count: u32, flipped: &mut Bits) {
    let mut chosen = Bits::new();
    while chosen.len() < count.min(size * 8) as usize {
        chosen.insert((first + stream.below(size), stream.below(8) as u8));
    }
    flipped.append(&mut chosen);
}

/// Flips those bits that lie in the buffer.
fn flip(column: u32, buf: &mut [u8], flipped: &Bits) {
    for &(place, bit) in flipped {
        if let Some(byte) = place.checked_sub(column).and_then(|at| buf.get_mut(at as usize)) {
            *byte ^= 1 << bit;
        }
    }
}
