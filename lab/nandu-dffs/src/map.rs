//! The map of logical numbers: where the inode of each directory is, and each further page of its buckets.

use nandu_media::dffs::{self as media, Fields, Kind};
use nandu_nand::{Nand, PageAddr};

use crate::blocks::Area;
use crate::dffs::{Dffs, ROOT, Result};
use crate::error::Error;
use crate::pages::OUT;

impl<N: Nand> Dffs<'_, N> {
    /// Where a logical number leads, 0: nowhere.
    pub(crate) fn mapped(&self, id: u32) -> PageAddr {
        PageAddr(self.map.get(id as usize).copied().unwrap_or(0))
    }

    pub(crate) fn set_mapped(&mut self, id: u32, page: PageAddr) {
        let per_page = media::map_entries(self.page_size());
        if let Some(entry) = self.map.get_mut(id as usize) {
            *entry = page.0;
            self.map_dirty[id as usize / per_page] = 1;
        }
    }

    /// The lowest logical number that is free.
    pub(crate) fn free_logical(&self) -> Result<u32, N> {
        let free = (ROOT + 1..self.map.len() as u32).find(|&id| self.mapped(id).0 == 0);
        free.ok_or(Error::TooManyDirectories)
    }

    /// Sees to it that so many logical numbers are free, before anything is programmed that needs them. If they seem not to be, those are
    /// found that a cut left without a counter-pointer; that costs up to two reads for each number.
    pub(crate) fn need_logical(&mut self, count: usize) -> Result<(), N> {
        let has =
            |fs: &Self| fs.map.iter().skip(ROOT as usize + 1).filter(|&&page| page == 0).take(count).count() == count;
        if !has(self) {
            self.suspects.fill(0xff);
            self.settle_suspects()?;
        }
        if has(self) { Ok(()) } else { Err(Error::TooManyDirectories) }
    }

    /// Programs a page of the map. Costs one program.
    pub(crate) fn write_map_page(&mut self, index: usize) -> Result<(), N> {
        let per_page = media::map_entries(self.page_size());
        self.pages.get_mut(OUT).fill(0);
        let fields = Fields { id: index as u32, ..Fields::new(Kind::Map) };
        self.set_fields(OUT, &fields);
        for at in 0..per_page {
            let page = self.mapped((index * per_page + at) as u32);
            self.set_word(OUT, media::ATTRIBUTES_SIZE + at * 4, page.0);
        }
        let page = self.append(Area::Map, OUT)?;
        self.lose(PageAddr(self.map_pages[index]));
        self.map_pages[index] = page.0;
        self.map_dirty[index] = 0;
        Ok(())
    }

    /// Programs every page of the map that changed.
    pub(crate) fn write_map(&mut self) -> Result<(), N> {
        for index in 0..self.map_pages.len() {
            if self.map_dirty[index] != 0 {
                self.write_map_page(index)?;
            }
        }
        Ok(())
    }

    /// Reads the map, a read for each of its pages.
    pub(crate) fn read_map(&mut self) -> Result<(), N> {
        let per_page = media::map_entries(self.page_size());
        for index in 0..self.map_pages.len() {
            let page = PageAddr(self.map_pages[index]);
            if page.0 == 0 {
                continue;
            }
            let fields = self.load(page, OUT)?;
            if fields.kind != Kind::Map || fields.id != index as u32 {
                return Err(Error::Corrupt { page, why: nandu_media::Malformed::Kind(fields.kind as u8) });
            }
            for at in 0..per_page.min(self.map.len() - index * per_page) {
                let page = self.word(OUT, media::ATTRIBUTES_SIZE + at * 4);
                self.map[index * per_page + at] = if self.geometry.contains_page(PageAddr(page)) { page } else { 0 };
            }
        }
        Ok(())
    }
}
