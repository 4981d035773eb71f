//! Log pages: where they are, and the sectors in them.

use nandu_media::inpage::record::Cells;
use nandu_media::inpage::sector::{Place, Sector};
use nandu_media::inpage::{FRONT_SIZE, FrontFields, Kind};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::chip::Read;
use crate::inpage::{InPage, Result};
use crate::node::{High, NodeMut};
use crate::options::Layout;

/// How to read log pages of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) layout: Layout,
    pub(crate) sector_size: usize,
    pub(crate) volume: u32,
    pub(crate) cells: Cells,
}

impl Dialect {
    /// The sectors of a log page that verify, in the order in which they were programmed, from a column on; the bytes are those of
    /// the whole page.
    pub(crate) fn sectors<'a>(self, bytes: &'a [u8], page: PageAddr, from: u32) -> impl Iterator<Item = Sector<'a>> {
        let end = match self.layout {
            Layout::Sectors => bytes.len(),
            Layout::Pages => FrontFields::parse(bytes)
                .and_then(|front| front.expect(self.volume, page.0))
                .map_or(0, |front| if front.kind == Kind::Log { front.size as usize } else { 0 }),
        };
        let mut at = if self.layout == Layout::Sectors { from as usize } else { FRONT_SIZE };
        core::iter::from_fn(move || {
            while at < end {
                let place = Place { volume: self.volume, page: page.0, column: at as u32 };
                let next = match self.layout {
                    Layout::Sectors => at + self.sector_size,
                    Layout::Pages => end,
                };
                let sector = Sector::parse(&bytes[at..next.min(end)], place);
                at = match (&sector, self.layout) {
                    (Ok(sector), Layout::Pages) => at + sector.size,
                    _ => next,
                };
                if let Ok(sector) = sector {
                    return Some(sector);
                }
            }
            None
        })
    }

    /// Does to a node what the sectors of a log page say that are newer than its page, as far as they concern keys below a
    /// bound.
    ///
    /// Records of keys that moved to another node long ago are left out here and not only afterwards: with them the node
    /// could be larger than a frame on the way. Returns how many sectors of the node there were.
    pub(crate) fn apply(
        self,
        node: &mut NodeMut<'_>,
        sequence: u64,
        log: &[u8],
        page: PageAddr,
        high: High<'_>,
    ) -> core::result::Result<u16, Malformed> {
        let id = node.view().id();
        let mut count = 0;
        for sector in self.sectors(log, page, 0).filter(|sector| sector.node == id && sector.sequence > sequence) {
            count += 1;
            for record in sector.records(self.cells) {
                let record = record?;
                if high.is_none_or(|high| record.key() < high) {
                    node.apply(record).ok_or(Malformed::Range(Field::Records))?;
                }
            }
        }
        Ok(count)
    }
}

impl<N: Nand> InPage<'_, N> {
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect {
            layout: self.options.layout,
            sector_size: self.options.sector_size as usize,
            volume: self.volume,
            cells: self.options.cells,
        }
    }

    /// Most pages of a block that may hold logs.
    pub(crate) fn log_pages_limit(&self) -> u16 {
        u16::from(self.options.log_pages_max) * u16::from(self.options.node_pages)
    }

    /// Pages of a block that are granted to logs.
    pub(crate) fn log_pages_granted(&self, block: BlockAddr) -> u16 {
        u16::from(self.blocks[block].granted) * u16::from(self.options.node_pages)
    }

    /// Pages of a block with logs that are programmed.
    pub(crate) fn log_pages_used(&self, block: BlockAddr) -> u16 {
        let logs = self.blocks[block].logs;
        let used = match self.options.layout {
            Layout::Sectors => u32::from(logs).div_ceil(self.sectors_per_page()) as u16,
            Layout::Pages => logs,
        };
        used.min(self.log_pages_limit())
    }

    /// Where the log page with this number is, from 0 in the order in which they are filled.
    pub(crate) fn log_page(&self, block: BlockAddr, number: u16) -> PageAddr {
        let place = match self.options.layout {
            Layout::Sectors => self.geometry.pages_per_block as u16 - 1 - number,
            Layout::Pages => self.blocks[block].log_at[usize::from(number)],
        };
        self.page_of(block, place)
    }

    /// Reads a log page. What cannot be read of it becomes zeros, which are neither erased nor valid.
    ///
    /// A torn sector makes reads of the whole page fail. The sectors before it are sound, so each is read by itself then.
    pub(crate) fn read_log_page(nand: &mut N, dialect: Dialect, page: PageAddr, bytes: &mut [u8]) -> Result<Read, N> {
        let read = Self::read(nand, page, 0, bytes)?;
        if read != Read::Unreadable {
            return Ok(read);
        }
        if dialect.layout == Layout::Pages {
            bytes.fill(0);
            return Ok(read);
        }
        let mut column = 0;
        for sector in bytes.chunks_mut(dialect.sector_size) {
            if Self::read(nand, page, column, sector)? == Read::Unreadable {
                sector.fill(0);
            }
            column += sector.len() as u32;
        }
        Ok(read)
    }
}
