//! What may be chosen when a volume is formatted.

use nandu_media::STREAM_COUNT_MAX;
use nandu_nand::CellMode;

/// Choices made at format. At mount, a choice that is not left open has to agree with the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Id of the volume; left open: one more than that of the volume found on the chip, or 1.
    pub volume: Option<u32>,
    /// Streams, 2 to 8; left open: by the size of the chip.
    pub stream_count: Option<u8>,
    /// Longest list of erased blocks in a checkpoint, 3 to 14; left open: by the size of the chip. Longer means fewer
    /// checkpoints and more erased blocks that hold no data.
    pub ready_max: Option<u8>,
    /// Mode of the cells of data blocks. `Mlc` is refused where a power cut may damage the partner of a page.
    pub mode: CellMode,
    /// Read the header of each page back after it was programmed: one more short read per program, and a program that
    /// the chip reported and lost (fault F14) is repeated elsewhere instead of being found out when it is needed.
    pub read_back: bool,
    /// Reads of a block since its erase after which its pages are moved, since reading disturbs the pages beside the one
    /// read; left open: 131,072 with one bit a cell and 16,384 with two, about an eighth of what chips are rated for. Reads
    /// are estimated, not counted. The pages are moved by the instalments of later changes and in idle time. 0: never.
    pub reads_max: Option<u32>,
    /// Test switch: continue blocks that were open at a cut, and copy nothing out of them.
    #[cfg(feature = "broken")]
    pub skip_quarantine: bool,
    /// Test switch: take a block that looks erased for erased.
    #[cfg(feature = "broken")]
    pub skip_erase_proof: bool,
}

impl LogOptions {
    /// Everything left open, cells with one bit, no reading back.
    pub const DEFAULT: LogOptions = LogOptions {
        volume: None,
        stream_count: None,
        ready_max: None,
        mode: CellMode::Slc,
        read_back: false,
        reads_max: None,
        #[cfg(feature = "broken")]
        skip_quarantine: false,
        #[cfg(feature = "broken")]
        skip_erase_proof: false,
    };

    pub(crate) fn streams_are_sound(&self) -> bool {
        self.stream_count.is_none_or(|count| (2..=STREAM_COUNT_MAX as u8).contains(&count))
    }

    #[cfg(feature = "broken")]
    pub(crate) fn skips_quarantine(&self) -> bool {
        self.skip_quarantine
    }

    #[cfg(not(feature = "broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_quarantine(&self) -> bool {
        false
    }

    #[cfg(feature = "broken")]
    pub(crate) fn skips_erase_proof(&self) -> bool {
        self.skip_erase_proof
    }

    #[cfg(not(feature = "broken"))]
    #[expect(clippy::unused_self, reason = "the twin of a test switch")]
    pub(crate) fn skips_erase_proof(&self) -> bool {
        false
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions::DEFAULT
    }
}
