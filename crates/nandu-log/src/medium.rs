//! Pages of a volume: read, judged, sealed and programmed.

use core::ops::Range;

use nandu_media::checksum::checksum;
use nandu_media::tag::{TAG_SIZE, TagPlace};
use nandu_media::{Field, Malformed, Page, PageFields, PageKind, Position, STREAM_COUNT_MAX};
use nandu_nand::{Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::chip::{Chip, Erasure, Programmed};
use crate::error::LogError;
use crate::tail::Tagged;

/// What the header of a page says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) page: PageAddr,
    pub(crate) kind: PageKind,
    pub(crate) sequence: u64,
    pub(crate) committed: Option<PageAddr>,
    pub(crate) checkpoint: u32,
    pub(crate) volume: u32,
    pub(crate) stream: u8,
    pub(crate) positions: [Position; STREAM_COUNT_MAX],
}

impl Header {
    fn of(page: &Page<'_>) -> Header {
        Header {
            page: PageAddr(page.page()),
            kind: page.kind(),
            sequence: page.sequence(),
            committed: page.committed().map(PageAddr),
            checkpoint: page.checkpoint(),
            volume: page.volume(),
            stream: page.stream(),
            positions: core::array::from_fn(|stream| page.position(stream)),
        }
    }
}

/// What stands in a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    Valid(Header),
    Erased,
    /// Neither erased nor a page of this volume: torn, decayed, or from before.
    Garbage,
}

impl Probe {
    pub(crate) fn valid(self) -> Option<Header> {
        match self {
            Probe::Valid(found) => Some(found),
            Probe::Erased | Probe::Garbage => None,
        }
    }
}

/// The chip, a buffer of one page, and the order of programs.
pub(crate) struct Medium<'m, N> {
    chip: Chip<N>,
    bytes: &'m mut [u8],
    /// The page that the buffer holds, if it is as it was read.
    held: Option<PageAddr>,
    volume: u32,
    sequence: u64,
}

impl<'m, N: Nand> Medium<'m, N> {
    pub(crate) fn new(chip: Chip<N>, bytes: &'m mut [u8]) -> Medium<'m, N> {
        Medium { chip, bytes, held: None, volume: 0, sequence: 1 }
    }

    pub(crate) fn chip(&self) -> &Chip<N> {
        &self.chip
    }

    pub(crate) fn chip_mut(&mut self) -> &mut Chip<N> {
        &mut self.chip
    }

    pub(crate) fn release(self) -> N {
        self.chip.release()
    }

    pub(crate) fn volume(&self) -> u32 {
        self.volume
    }

    pub(crate) fn set_volume(&mut self, volume: u32) {
        self.volume = volume;
    }

    /// The sequence that the next page gets.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Numbers go on from here at least.
    pub(crate) fn pass_sequence(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        debug_assert!(self.sequence >= sequence);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The page read last, parsed again.
    pub(crate) fn parsed(&self) -> Result<Page<'_>, Malformed> {
        Page::parse(self.bytes)
    }

    /// Reads a page and says what stands in it. One read.
    pub(crate) fn probe(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        let volume = self.volume;
        Ok(match self.probe_any(page)? {
            Probe::Valid(found) if found.volume != volume => Probe::Garbage,
            probe => probe,
        })
    }

    /// As [`Medium::probe`], of any volume.
    pub(crate) fn probe_any(&mut self, page: PageAddr) -> Result<Probe, LogError<N::Error>> {
        if self.held != Some(page) {
            // A sound page from elsewhere was read before, or another place was read: torn and decayed pages look otherwise. So
            // once more, since after a cut the newest page would pass for torn.
            for _ in 0..2 {
                self.held = None;
                match self.chip.read(page, 0, self.bytes) {
                    Ok(_) => self.held = Some(page),
                    Err(error) if error.kind() == NandErrorKind::Uncorrectable => return Ok(Probe::Garbage),
                    Err(error) => return Err(self.chip.error(error)),
                }
                if !Page::parse(self.bytes).is_ok_and(|parsed| parsed.page() != page.0) {
                    break;
                }
            }
        }
        Ok(match Page::parse(self.bytes) {
            Ok(parsed) if parsed.page() == page.0 => Probe::Valid(Header::of(&parsed)),
            Ok(_) => Probe::Garbage,
            Err(_) if self.chip.is_erased(self.bytes) => Probe::Erased,
            Err(_) => Probe::Garbage,
        })
    }

    /// The last of these places that has what is looked for; every place before it has it, too. `probe` says whether the first of the
    /// places it is given has it, and where it was seen. Looks at the guesses first, as far as they can still be the end, then by halves.
    ///
    /// With `is_confirmed` the place that ends the search is looked at once more, and no other: if one read hid something, all that is
    /// before that place was found, and so the search ends there.
    pub(crate) fn last<T>(
        &mut self,
        places: Range<u16>,
        guesses: impl IntoIterator<Item = u16>,
        is_confirmed: bool,
        mut probe: impl FnMut(&mut Self, Range<u16>) -> Result<Option<(u16, T)>, LogError<N::Error>>,
    ) -> Result<Option<(u16, T)>, LogError<N::Error>> {
        let mut guesses = guesses.into_iter();
        let mut last = None;
        let (mut low, mut high) = (places.start, places.end);
        loop {
            let is_end = low >= high;
            if is_end && (high >= places.end || !is_confirmed) {
                return Ok(last);
            }
            let middle = if is_end {
                (self.held, high) = (None, places.end);
                low
            } else {
                guesses.next().filter(|place| (low..high).contains(place)).unwrap_or(low + (high - low) / 2)
            };
            match probe(self, middle..high)? {
                Some((place, found)) => {
                    debug_assert!((middle..high).contains(&place));
                    low = place + 1;
                    last = Some((place, found));
                }
                None if is_end => return Ok(last),
                None => high = middle,
            }
        }
    }

    /// Reads a page that has to be there. One read, none if it was the last one read.
    pub(crate) fn load(&mut self, page: PageAddr) -> Result<Header, LogError<N::Error>> {
        if !self.chip.geometry().contains_page(page) {
            return Err(LogError::Corrupt { page, why: Malformed::Range(Field::Page) });
        }
        let why = match self.probe_any(page)? {
            Probe::Valid(found) if found.volume == self.volume => return Ok(found),
            Probe::Valid(_) => Malformed::Volume,
            Probe::Erased => Malformed::Erased,
            Probe::Garbage => Malformed::Unreadable,
        };
        Err(LogError::Corrupt { page, why })
    }

    /// Reads a page into the owner's bytes and checks what it says of itself. One read.
    pub(crate) fn read(
        &mut self,
        page: PageAddr,
        bytes: &mut [u8],
    ) -> Result<(PageKind, u64, u8, ReadStatus), LogError<N::Error>> {
        debug_assert!(bytes.len() == self.bytes.len(), "a page is read whole");
        let corrupt = |why| Err(LogError::Corrupt { page, why });
        let status = match self.chip.read(page, 0, bytes) {
            Ok(status) => status,
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => return corrupt(Malformed::Unreadable),
            Err(error) => return Err(self.chip.error(error)),
        };
        let parsed = match Page::parse(bytes).and_then(|parsed| parsed.expect(self.volume, page.0)) {
            Ok(parsed) => parsed,
            Err(why) => return corrupt(if self.chip.is_erased(bytes) { Malformed::Erased } else { why }),
        };
        if !matches!(parsed.kind(), PageKind::Commit | PageKind::Node | PageKind::Value) {
            return corrupt(Malformed::Kind(parsed.kind() as u8));
        }
        if parsed.sequence() >= self.sequence {
            return corrupt(Malformed::Sequence);
        }
        Ok((parsed.kind(), parsed.sequence(), parsed.stream(), status))
    }

    /// Has the log's own buffer filled from this offset on, for [`Medium::program_own`].
    pub(crate) fn compose(&mut self, header_size: usize, fill: impl FnOnce(&mut [u8])) {
        debug_assert!(header_size < self.bytes.len());
        self.held = None;
        let body = &mut self.bytes[header_size..];
        body.fill(0);
        fill(body);
    }

    /// Seals and programs the log's own buffer, as it was filled or read. Sequence and volume are filled in here. With `check` it is looked at afterwards.
    pub(crate) fn program_own(
        &mut self,
        fields: PageFields<'_>,
        cause: Cause,
        check: bool,
    ) -> Result<Programmed, LogError<N::Error>> {
        debug_assert!(self.volume != 0 || fields.checkpoint > 0);
        self.held = None;
        PageFields { sequence: self.take_sequence(), volume: self.volume, ..fields }.seal(self.bytes);
        self.chip.program(PageAddr(fields.page), (self.bytes, None), cause, check)
    }

    /// The same with a page of the owner's.
    pub(crate) fn program(
        &mut self,
        fields: PageFields<'_>,
        cause: Cause,
        bytes: &mut [u8],
    ) -> Result<Programmed, LogError<N::Error>> {
        debug_assert!(bytes.len() == self.bytes.len(), "a page is programmed whole");
        let page = PageAddr(fields.page);
        self.held = self.held.filter(|&held| held != page);
        PageFields { sequence: self.take_sequence(), volume: self.volume, ..fields }.seal(bytes);
        self.chip.program(page, (bytes, None), cause, false)
    }

    /// Programs a page as it is, and its tag.
    pub(crate) fn program_raw(
        &mut self,
        page: PageAddr,
        bytes: &[u8],
        (tag, cause): (Option<&[u8; TAG_SIZE]>, Cause),
    ) -> Result<Programmed, LogError<N::Error>> {
        debug_assert!(bytes.len() == self.bytes.len(), "a page is programmed whole");
        self.held = self.held.filter(|&held| held != page);
        self.chip.program(page, (bytes, tag), cause, false)
    }

    /// Reads a raw page and its tag, which has to say this. One read, and a second one of what is not there where what is programmed is to be read back.
    pub(crate) fn read_tagged(
        &mut self,
        page: PageAddr,
        bytes: &mut [u8],
        said: &TagPlace,
    ) -> Result<Tagged, LogError<N::Error>> {
        let mut tag = [0; TAG_SIZE];
        let mut found = Tagged::Other;
        for _ in 0..=u8::from(self.chip.reads_back()) {
            found = match self.chip.read_tagged(page, bytes, &mut tag) {
                Ok(_) => match said.open(checksum(bytes), &tag) {
                    Some(owner) => return Ok(Tagged::Of(page, owner)),
                    None if !self.chip.is_erased(&tag) => Tagged::Lost,
                    None if self.chip.is_erased(bytes) => Tagged::End,
                    None => Tagged::Other,
                },
                Err(error) if error.kind() == NandErrorKind::Uncorrectable => Tagged::Lost,
                Err(error) => return Err(self.chip.error(error)),
            };
        }
        Ok(found)
    }

    /// Reads a page as it is into the owner's bytes. One read.
    pub(crate) fn read_raw(&mut self, page: PageAddr, bytes: &mut [u8]) -> Result<ReadStatus, LogError<N::Error>> {
        debug_assert!(bytes.len() == self.bytes.len(), "a page is read whole");
        match self.chip.read(page, 0, bytes) {
            Ok(status) => Ok(status),
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => {
                Err(LogError::Corrupt { page, why: Malformed::Unreadable })
            }
            Err(error) => Err(self.chip.error(error)),
        }
    }

    /// Erases the block of which this is the first page, for this mode. The buffer keeps its bytes.
    pub(crate) fn erase(&mut self, first: PageAddr, of: (CellMode, Cause)) -> Result<Erasure, LogError<N::Error>> {
        let geometry = self.chip.geometry();
        self.held = self.held.filter(|&held| geometry.block_of(held) != geometry.block_of(first));
        self.chip.erase(first, of)
    }

    /// The buffer is not to be taken for any page.
    pub(crate) fn forget_all(&mut self) {
        self.held = None;
    }

    /// A number for a page.
    ///
    /// It is taken before the program, not after: if the program is torn, its number is skipped. Given out again, two pages could carry one
    /// number, and recovery could not tell which is newer.
    fn take_sequence(&mut self) -> u64 {
        debug_assert!(self.sequence > 0 && self.sequence < u64::MAX);
        let sequence = self.sequence;
        self.sequence += 1;
        sequence
    }
}
