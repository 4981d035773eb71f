//! Power cuts: what they may leave, and leaving it.

use core::fmt;
use core::str::FromStr;

use nandu_nand::{BlockAddr, CellMode, Geometry, TearScope};

use crate::damage::{Harm, HarmKind};
use crate::random::{Purpose, Stream};
use crate::state::{Condition, Dirty, PageState};
use crate::{Address, OperationKind, Sim};

/// What a power cut leaves of the operation it hits.
///
/// Where bytes are left to chance they follow from the chip's seed and the operation's number. A tear that does not fit
/// the operation is replaced when it is applied: one of a pair, on a page without partner, by
/// [`SomeBitsLost`](Tear::SomeBitsLost); one of earlier parts, on a page without, by the same; any other by
/// [`Before`](Tear::Before). [`CutRecord::tear`] says what was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Tear {
    /// Any operation: the power went before anything happened.
    Before = 0,
    /// Program: the first bytes are there, the rest is ones, and error correction notices nothing.
    Prefix = 1,
    /// Program: the first bytes are there, and reads cannot be corrected.
    PrefixLost = 2,
    /// Program: about half of the bits to be programmed are, and error correction notices nothing.
    SomeBits = 3,
    /// Program: about half of the bits to be programmed are, and reads cannot be corrected.
    SomeBitsLost = 4,
    /// Program: all but a few bits are programmed, and error correction notices nothing.
    MostBits = 5,
    /// Program: all but a few bits are programmed, and reads cannot be corrected.
    MostBitsLost = 6,
    /// Program: all bits are there and read well now; they get worse with reads and time until they are lost.
    Unstable = 7,
    /// Program: the page reads as erased, but is not: what is programmed into it later gets worse until it is lost.
    LooksErased = 8,
    /// Any operation that changes cells: it finished, but nobody was told.
    Complete = 9,
    /// Program of a part, where a tear reaches the whole page: parts programmed before are lost with it.
    EarlierParts = 10,
    /// Program of an MSB page: it and its LSB partner cannot be corrected.
    PairLost = 11,
    /// Program of an MSB page: the LSB partner reads other bytes than it held, and error correction notices nothing;
    /// the MSB page cannot be corrected.
    PairGarbled = 12,
    /// Program of an MSB page: it and its LSB partner read well now and get worse until they are lost.
    PairUnstable = 13,
    /// Erase: each page holds its old content, other bytes, bytes that cannot be corrected, or ones.
    HalfErased = 14,
    /// Erase: the block reads as erased, but is not: what is programmed into it gets worse until it is lost.
    WeaklyErased = 15,
    /// Erase: the block reads as before, but its pages get worse until they are lost.
    FadingContent = 16,
}

impl Tear {
    /// Every tear, in the order of its number.
    pub const ALL: [Tear; 17] = [
        Tear::Before,
        Tear::Prefix,
        Tear::PrefixLost,
        Tear::SomeBits,
        Tear::SomeBitsLost,
        Tear::MostBits,
        Tear::MostBitsLost,
        Tear::Unstable,
        Tear::LooksErased,
        Tear::Complete,
        Tear::EarlierParts,
        Tear::PairLost,
        Tear::PairGarbled,
        Tear::PairUnstable,
        Tear::HalfErased,
        Tear::WeaklyErased,
        Tear::FadingContent,
    ];

    /// Every tear that a cut during this kind of operation may leave on a chip of this geometry. Those of pairs are
    /// listed for every program on a chip that can tear a pair; they differ from others only where the page has an LSB
    /// partner that is programmed.
    pub fn all_for(kind: OperationKind, geometry: &Geometry) -> impl Iterator<Item = Tear> + use<> {
        let scope = geometry.tear;
        let partial = geometry.programs_per_page > 1;
        Tear::ALL.into_iter().filter(move |tear| match tear {
            Tear::Before => true,
            Tear::Complete => matches!(kind, OperationKind::Erase | OperationKind::MarkBad) || kind.is_program(),
            Tear::HalfErased | Tear::WeaklyErased | Tear::FadingContent => kind == OperationKind::Erase,
            Tear::EarlierParts => kind == OperationKind::Program && partial && scope >= TearScope::Page,
            Tear::PairLost | Tear::PairGarbled | Tear::PairUnstable => kind.is_program() && scope == TearScope::Pair,
            _ => kind.is_program(),
        })
    }

    /// The tear with this number.
    pub const fn from_index(index: u8) -> Option<Tear> {
        if (index as usize) < Tear::ALL.len() { Some(Tear::ALL[index as usize]) } else { None }
    }

    /// One lower-case word, which [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Tear::Before => "before",
            Tear::Prefix => "prefix",
            Tear::PrefixLost => "prefix-lost",
            Tear::SomeBits => "some-bits",
            Tear::SomeBitsLost => "some-bits-lost",
            Tear::MostBits => "most-bits",
            Tear::MostBitsLost => "most-bits-lost",
            Tear::Unstable => "unstable",
            Tear::LooksErased => "looks-erased",
            Tear::Complete => "complete",
            Tear::EarlierParts => "earlier-parts",
            Tear::PairLost => "pair-lost",
            Tear::PairGarbled => "pair-garbled",
            Tear::PairUnstable => "pair-unstable",
            Tear::HalfErased => "half-erased",
            Tear::WeaklyErased => "weakly-erased",
            Tear::FadingContent => "fading-content",
        }
    }
}

impl fmt::Display for Tear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word names no tear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTear;

impl fmt::Display for UnknownTear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no tear has this name")
    }
}

impl std::error::Error for UnknownTear {}

impl FromStr for Tear {
    type Err = UnknownTear;

    fn from_str(name: &str) -> Result<Tear, UnknownTear> {
        Tear::ALL.into_iter().find(|tear| tear.name() == name).ok_or(UnknownTear)
    }
}

/// A power cut that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRecord {
    /// Number of the operation it hit.
    pub operation: u64,
    /// What was asked.
    pub kind: OperationKind,
    /// Of which page or block.
    pub address: Address,
    /// What it left.
    pub tear: Tear,
}

impl fmt::Display for CutRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut at operation {}, {} of {}: {}", self.operation, self.kind, self.address, self.tear)
    }
}

impl Sim {
    /// The tear for a cut at this operation if it left the choice to the seed.
    pub(crate) fn choose_tear(&self, number: u64, kind: OperationKind) -> Tear {
        let tears: Vec<Tear> = Tear::all_for(kind, &self.chip.geometry).collect();
        tears[Stream::new(self.seed, Purpose::Tear, number, 1).below(tears.len() as u32) as usize]
    }

    /// Programs a page as far as the tear lets it; returns the tear that was applied.
    pub(crate) fn tear_program(&mut self, number: u64, at: (u32, u32), column: u32, data: &[u8], tear: Tear) -> Tear {
        let (block, index) = at;
        let state = &self.blocks[block as usize];
        let second_bit = self.is_second_bit(state.mode, index);
        let partner = self.role(index).partner.filter(|&partner| second_bit && state.page(partner).is_held());
        let tear = match tear {
            Tear::PairLost | Tear::PairGarbled | Tear::PairUnstable if partner.is_none() => Tear::SomeBitsLost,
            Tear::EarlierParts if !state.page(index).is_held() => Tear::SomeBitsLost,
            Tear::HalfErased | Tear::WeaklyErased | Tear::FadingContent => Tear::Before,
            other => other,
        };
        let end = column + data.len() as u32;
        let range = |kind| Harm { from: column, to: end, kind };
        let unstable = HarmKind::Unstable { since_ns: self.clock_ns, reads: 0 };
        if !matches!(tear, Tear::Before | Tear::LooksErased) {
            self.note_program(at, column, data.len());
            let torn = torn_bytes(&mut Stream::new(self.seed, Purpose::Tear, number, 0), data, tear);
            self.place(at, column, &torn);
        }
        match tear {
            Tear::PrefixLost | Tear::SomeBitsLost | Tear::MostBitsLost | Tear::PairGarbled | Tear::PairLost => {
                self.harm(block, index, range(HarmKind::Lost));
            }
            Tear::Unstable | Tear::PairUnstable => self.harm(block, index, range(unstable)),
            Tear::LooksErased => self.harm(block, index, range(HarmKind::Weak)),
            Tear::EarlierParts => self.harm(block, index, self.whole_page(HarmKind::Lost)),
            _ => {}
        }
        if let Some(partner) = partner {
            match tear {
                Tear::PairLost => self.harm(block, partner, self.whole_page(HarmKind::Lost)),
                Tear::PairUnstable => self.harm(block, partner, self.whole_page(unstable)),
                Tear::PairGarbled => self.garble(number, block, partner),
                _ => {}
            }
        }
        tear
    }

    /// Erases a block as far as the tear lets it; returns the tear that was applied. One whose erase failed before stays
    /// unusable, whatever it reads as.
    pub(crate) fn tear_erase(&mut self, number: u64, block: BlockAddr, mode: CellMode, tear: Tear) -> Tear {
        let has_failed = self.blocks[block.0 as usize].condition == Condition::EraseFailed;
        let applied = self.tear_cells(number, block, mode, tear);
        if has_failed {
            self.blocks[block.0 as usize].condition = Condition::EraseFailed;
        }
        applied
    }

    fn tear_cells(&mut self, number: u64, block: BlockAddr, mode: CellMode, tear: Tear) -> Tear {
        let pages = self.chip.geometry.pages_per_block;
        match tear {
            Tear::Complete => {
                self.erase_cells(block.0, mode);
                tear
            }
            Tear::WeaklyErased => {
                self.erase_cells(block.0, mode);
                self.blocks[block.0 as usize].condition = Condition::WeaklyErased;
                tear
            }
            Tear::HalfErased => {
                self.half_erase(number, block.0, mode);
                self.blocks[block.0 as usize].condition = Condition::WeaklyErased;
                tear
            }
            Tear::FadingContent => {
                let unstable = HarmKind::Unstable { since_ns: self.clock_ns, reads: 0 };
                for index in 0..pages {
                    let kind =
                        if self.blocks[block.0 as usize].page(index).is_held() { unstable } else { HarmKind::Weak };
                    self.harm(block.0, index, self.whole_page(kind));
                }
                self.touch(block.0, Dirty::CONTENT);
                tear
            }
            _ => Tear::Before,
        }
    }

    /// Leaves each page of a block as it was, garbled, lost or erased, by the seed. For the caller all are erased.
    pub(crate) fn half_erase(&mut self, number: u64, block: u32, mode: CellMode) {
        let mut stream = Stream::new(self.seed, Purpose::Tear, number, 0);
        self.forget_programs(block, mode);
        for index in 0..self.chip.geometry.pages_per_block {
            let fate = stream.below(4);
            if !self.blocks[block as usize].page(index).is_held() {
                continue;
            }
            match fate {
                0 => {}
                1 => self.garble(number, block, index),
                2 => self.harm(block, index, self.whole_page(HarmKind::Lost)),
                _ => {
                    let state = &mut self.blocks[block as usize];
                    if let Some(store) = &mut state.store {
                        store.pages[index as usize].flags &= !(PageState::HELD | PageState::AWAY);
                        self.kept.left.extend(store.forget_place(index));
                    }
                    if let Some(damage) = &mut state.damage {
                        damage.remove(&index);
                    }
                }
            }
        }
        let state = &mut self.blocks[block as usize];
        state.counters.erases += 1;
        if state.damage.as_ref().is_some_and(|damage| damage.is_empty()) {
            state.damage = None;
        }
    }

    /// Sets some bits of a page to the wrong value, in a way that error correction does not notice.
    pub(crate) fn garble(&mut self, number: u64, block: u32, index: u32) {
        let page_size = self.chip.geometry.page_size as usize;
        let mut stream = Stream::new(self.seed, Purpose::Garbage, number, u64::from(index));
        if self.blocks[block as usize].store.is_some() {
            let bytes = self.content_mut((block, index));
            for _ in 0..page_size / 16 {
                let at = stream.below(page_size as u32) as usize;
                bytes[at] ^= (stream.next() as u8) | 1;
            }
        }
        self.touch(block, Dirty::CONTENT);
    }

    pub(crate) fn whole_page(&self, kind: HarmKind) -> Harm {
        Harm { from: 0, to: self.chip.geometry.column_count(), kind }
    }

    pub(crate) fn harm(&mut self, block: u32, index: u32, harm: Harm) {
        self.blocks[block as usize].add_harm(index, harm);
        self.touch(block, Dirty::CONTENT);
    }
}

/// The bytes that a torn program leaves in cells that were erased.
fn torn_bytes(stream: &mut Stream, data: &[u8], tear: Tear) -> Vec<u8> {
    let mut torn = data.to_vec();
    match tear {
        Tear::Prefix | Tear::PrefixLost => {
            let kept = stream.below(data.len() as u32) as usize;
            torn[kept..].fill(0xFF);
        }
        Tear::SomeBits | Tear::SomeBitsLost | Tear::EarlierParts | Tear::PairLost | Tear::PairGarbled => {
            let mut missing = vec![0; data.len()];
            stream.fill(&mut missing);
            for (byte, missing) in torn.iter_mut().zip(missing) {
                *byte |= missing;
            }
        }
        Tear::MostBits | Tear::MostBitsLost => {
            for _ in 0..(data.len() / 64).max(1) {
                let at = stream.below(data.len() as u32) as usize;
                torn[at] |= 1 << stream.below(8);
            }
        }
        _ => {}
    }
    torn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chip;

    #[test]
    fn each_operation_lists_the_tears_the_chip_permits() {
        let count = |kind, chip: Chip| Tear::all_for(kind, &chip.geometry).count();
        assert_eq!(count(OperationKind::Read, Chip::TINY), 1);
        assert_eq!(count(OperationKind::CheckBad, Chip::TINY), 1);
        assert_eq!(count(OperationKind::MarkBad, Chip::TINY), 2);
        assert_eq!(count(OperationKind::Erase, Chip::TINY), 5);
        assert_eq!(count(OperationKind::Program, Chip::TINY), 10);
        assert_eq!(count(OperationKind::Program, Chip::W25N01GV), 11);
        assert_eq!(count(OperationKind::Program, Chip::TINY_MLC), 13);
    }

    #[test]
    fn names_read_back() {
        for (index, tear) in Tear::ALL.into_iter().enumerate() {
            assert_eq!(tear.name().parse(), Ok(tear));
            assert_eq!(Tear::from_index(index as u8), Some(tear));
        }
        assert_eq!("torn".parse::<Tear>(), Err(UnknownTear));
    }
}
