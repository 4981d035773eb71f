//! What may be chosen when a volume is formatted.

use nandu_media::{STREAM_COUNT_MAX, STREAM_COUNT_MIN};
use nandu_nand::CellMode;

/// Choices made at format. At mount, a choice that is not left open has to agree with the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Id of the volume, which each of its pages states. Left open, a format draws it from `salt`, from the volume found on the chip, from
    /// the pages that stand first in its blocks, and from which blocks are bad; so it is another one each time.
    pub volume: Option<u32>,
    /// At format, what else the id is drawn from: something by chance, or what tells this chip from others, such as its serial number.
    /// Without it new chips of one kind with no bad block get the same id, and a page of one of them passes for one of the other where
    /// it has the same address. A mount does not look at it.
    pub salt: u64,
    /// Streams, 2 to 8, bare ones among them; left open: by the size of the chip, and `bare_streams` more.
    pub stream_count: Option<u8>,
    /// How many of the streams, the last ones, are bare: their pages are the owner's bytes as they are, without header
    /// ([`Log::append_bare`](crate::Log::append_bare)). At most 6, since two streams keep their headers. Never left open: a
    /// volume with bare streams can be mounted only by an owner that knows of them.
    pub bare_streams: u8,
    /// How many of the bare streams, the last ones, have two bits a cell: their blocks hold twice as many pages, are slower to
    /// program, and take no promise at once (see the crate's documentation, "Streams with two bits a cell"). At least one bare
    /// stream keeps one bit; `mode` is `Slc`, and the chip has paired pages. Never left open, like `bare_streams`.
    pub mlc_streams: u8,
    /// Whether the owner knows of tags: a volume that is formatted on a chip with protected spare bytes for them has them then, and
    /// bare pages can promise something by themselves ([`Log::can_tag`](crate::Log::can_tag)). A volume with tags can be mounted only
    /// by an owner that knows of them, and takes over what they promise. Without bare streams, and with `mlc_streams`, there are none.
    pub tags: bool,
    /// Longest list of blocks in a checkpoint that are opened next, 3 to 14; left open: by the size of the chip. Longer means
    /// fewer checkpoints and more blocks that hold no data. With `mlc_streams`, 4 at least.
    pub ready_max: Option<u8>,
    /// Mode of the cells of data blocks, but for those of `mlc_streams`. `Mlc` is refused where a power cut may damage the partner of a page.
    pub mode: CellMode,
    /// Read the header of each page back after it was programmed: one more short read per program, and a program that
    /// the chip reported and lost (fault F14) is repeated elsewhere instead of being found out when it is needed. A mount after
    /// a cut reads twice what does not seem to be there, so that a read of something else (F15, F16) does not hide the newest page.
    pub read_back: bool,
    /// Reads of a block since its erase after which its pages are moved, since reading disturbs the pages beside the one
    /// read; left open: 131,072 with one bit a cell and 16,384 with two, about an eighth of what chips are rated for. Reads
    /// are estimated, not counted. With `mlc_streams` it is said of blocks with one bit a cell, and for the others it is an eighth.
    /// The pages are moved by the instalments of later changes and in idle time. 0: never.
    pub reads_max: Option<u32>,
    /// Test switch: continue blocks that were open at a cut, and copy nothing out of them.
    #[cfg(feature = "_broken")]
    pub skip_quarantine: bool,
    /// Test switch: take a block that looks erased for erased.
    #[cfg(feature = "_broken")]
    pub skip_erase_proof: bool,
    /// Test switch: after a cut, take blocks for erased that a bare stream may have opened without a trace.
    #[cfg(feature = "_broken")]
    pub skip_bare_erase: bool,
    /// Test switch: after a commit, program the partners of pages that it names.
    #[cfg(feature = "_broken")]
    pub skip_pair_protection: bool,
    /// Test switch: append bare pages that read as a page of the log where they stand.
    #[cfg(feature = "_broken")]
    pub skip_disguise: bool,
}

impl LogOptions {
    /// Everything left open, cells with one bit, no reading back.
    pub const DEFAULT: LogOptions = LogOptions {
        volume: None,
        salt: 0,
        stream_count: None,
        bare_streams: 0,
        mlc_streams: 0,
        tags: false,
        ready_max: None,
        mode: CellMode::Slc,
        read_back: false,
        reads_max: None,
        #[cfg(feature = "_broken")]
        skip_quarantine: false,
        #[cfg(feature = "_broken")]
        skip_erase_proof: false,
        #[cfg(feature = "_broken")]
        skip_bare_erase: false,
        #[cfg(feature = "_broken")]
        skip_pair_protection: false,
        #[cfg(feature = "_broken")]
        skip_disguise: false,
    };

    pub(crate) fn streams_are_sound(&self) -> bool {
        let least = self.bare_streams.saturating_add(STREAM_COUNT_MIN as u8);
        let most = STREAM_COUNT_MAX as u8;
        let keeps_one_bit = self.mlc_streams == 0 || self.mlc_streams < self.bare_streams;
        keeps_one_bit && least <= most && self.stream_count.is_none_or(|count| (least..=most).contains(&count))
    }

    #[cfg(feature = "_broken")]
    pub(crate) fn skips_quarantine(&self) -> bool {
        self.skip_quarantine
    }

    #[cfg(not(feature = "_broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_quarantine(&self) -> bool {
        false
    }

    #[cfg(feature = "_broken")]
    pub(crate) fn skips_erase_proof(&self) -> bool {
        self.skip_erase_proof
    }

    #[cfg(not(feature = "_broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_erase_proof(&self) -> bool {
        false
    }

    #[cfg(feature = "_broken")]
    pub(crate) fn skips_bare_erase(&self) -> bool {
        self.skip_bare_erase || self.skip_quarantine
    }

    #[cfg(not(feature = "_broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_bare_erase(&self) -> bool {
        false
    }

    #[cfg(feature = "_broken")]
    pub(crate) fn skips_pair_protection(&self) -> bool {
        self.skip_pair_protection
    }

    #[cfg(not(feature = "_broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_pair_protection(&self) -> bool {
        false
    }

    #[cfg(feature = "_broken")]
    pub(crate) fn skips_disguise(&self) -> bool {
        self.skip_disguise
    }

    #[cfg(not(feature = "_broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_disguise(&self) -> bool {
        false
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions::DEFAULT
    }
}
