//! What may be chosen when a volume is formatted.

#![cfg_attr(not(feature = "_broken"), expect(unreachable_pub, reason = "tests alone see what is left out"))]

use nandu_media::{STREAM_COUNT_MAX, STREAM_COUNT_MIN};

/// Bytes of the key that owns a raw page, at most.
pub const OWNER_MAX: usize = 11;

/// Bytes that such a key takes, with how long it is.
pub(crate) const OWNER_SIZE: usize = OWNER_MAX + 1;

/// Entries that a header with raw pages has beside those of other streams: where they stand, and which blocks are theirs.
pub(crate) const RAW_POSITIONS: u8 = 2;

/// And where some of these have two bits a cell, the same of them.
pub(crate) const MLC_POSITIONS: u8 = 2;

/// Choices made at format. At mount, a choice that is not left open has to agree with the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Id of the volume, which each of its pages states. Left open, a format draws it from `salt`, from the volume found on the chip, from
    /// the pages that stand first in its blocks, and from which blocks are bad; so it is another one each time.
    pub volume: Option<u32>,
    /// At format, what else the id is drawn from: something by chance, or what tells this chip from others, such as its serial number.
    pub salt: u64,
    /// Streams, 2 to 8, or 6 beside raw pages, or 4 where some of these have two bits a cell: one of commits, the others of what survives, by how often it did; left open: by the size of the chip.
    pub stream_count: Option<u8>,
    /// Longest list of blocks in a checkpoint that are opened next, 3 to 14; left open: by the size of the chip. Longer means fewer checkpoints and more blocks that hold no data.
    pub ready_max: Option<u8>,
    /// Whether there are raw pages: an owner's bytes and nothing else, in a stream and in blocks of their own.
    pub has_raw: bool,
    /// Whether raw pages that survive go to blocks with two bits a cell, on a chip that has them, in a second stream of raw pages. None of them has a tag then.
    pub has_mlc: bool,
    /// Whether raw pages may have tags, which make them durable with their own program, where the chip has room for that in their spare areas.
    pub has_tags: bool,
    /// Read the header of each page back after it was programmed: one more short read a program, and a program that the chip reported and lost (fault F14) is repeated elsewhere. A mount
    /// after a cut reads a second time where what it finds ends, so that a read of something else (F15, F16) does not hide the newest commit.
    pub read_back: bool,
    /// Program each commit twice, one page after the other: if the newest one cannot be read after a cut, or was taken back when the supply sagged (F25), the one before it says the
    /// same. Without, such a commit passes for a torn one, and what it made durable is gone without an error. Costs one program more for each commit; raw pages get no tags.
    pub commit_twice: bool,
    /// Reads of a block since its erase after which its pages are moved; left open: 131,072, about an eighth of what chips are rated for. Reads are estimated, not counted. 0: never.
    pub reads_max: Option<u32>,
    /// Test switches.
    #[cfg(feature = "_broken")]
    pub broken: Broken,
}

impl LogOptions {
    /// Everything left open, no reading back.
    pub const DEFAULT: LogOptions = LogOptions {
        volume: None,
        salt: 0,
        stream_count: None,
        ready_max: None,
        has_raw: false,
        has_mlc: false,
        has_tags: false,
        read_back: false,
        commit_twice: false,
        reads_max: None,
        #[cfg(feature = "_broken")]
        broken: Broken::NOTHING,
    };

    pub(crate) fn streams_are_sound(&self) -> bool {
        let most = STREAM_COUNT_MAX as u8 - self.raw_positions();
        let range = STREAM_COUNT_MIN as u8..=most;
        self.stream_count.is_none_or(|count| range.contains(&count))
    }

    /// Entries that headers have for raw pages.
    pub(crate) const fn raw_positions(&self) -> u8 {
        (if self.has_raw { RAW_POSITIONS } else { 0 }) + if self.has_mlc { MLC_POSITIONS } else { 0 }
    }

    /// Which rules a test leaves out.
    pub(crate) const fn broken(&self) -> Broken {
        #[cfg(feature = "_broken")]
        return self.broken;
        #[cfg(not(feature = "_broken"))]
        return Broken::NOTHING;
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions::DEFAULT
    }
}

/// Rules that a test leaves out; none, in a build without the feature for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Goes on in the blocks that were open at a cut, and does not copy the newest commit.
    pub quarantine: bool,
    /// Takes a listed block for erased that looks erased.
    pub erase_proof: bool,
    /// Pages die when their owner says so, not with the next commit.
    pub dying: bool,
    /// Streams of survivors take blocks from the front of the ready list, like commits.
    pub ends: bool,
    /// The last entry of the ready list is opened too, so that recovery finds none.
    pub recovery_block: bool,
    /// Pages are programmed over the cells of those that a commit named.
    pub shield: bool,
    /// Copies may be named before their pairs are settled.
    pub early: bool,
}

impl Broken {
    /// Every rule is kept.
    pub const NOTHING: Broken = Broken {
        quarantine: false,
        erase_proof: false,
        dying: false,
        ends: false,
        recovery_block: false,
        shield: false,
        early: false,
    };
}
