//! Finding the write-ahead ring after a cut, and making its changes again.
//!
//! Changes are made from the first journal page that may be needed to the last one found, whether or not they are in nodes
//! already: the last one on a key decides, and nothing newer is in any node. Until all of it stands in nodes and an anchor
//! says so, the ring stays; so a cut in between changes nothing.

use nandu_media::inpage::journal::JournalFields;
use nandu_media::inpage::record::Record;
use nandu_media::inpage::{FrontFields, Kind};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand, PageAddr};

use crate::blocks::State;
use crate::chip::Read;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::load::READS;

impl<N: Nand> InPage<'_, N> {
    /// Takes in a journal page read into `log`. `false` if it is none.
    pub(crate) fn note_journal_page(&mut self, block: BlockAddr, place: u16, front: &FrontFields) -> bool {
        let Ok((fields, _)) = JournalFields::parse(self.log, front.size, self.options.cells) else { return false };
        if fields.number < self.journal.oldest || !self.anchors.has_journal {
            // Void, and not yet erased.
            return true;
        }
        let first = fields.number.saturating_sub(u64::from(place));
        match self.journal.find_mut(block) {
            Some(entry) if entry.first != first => return false,
            Some(entry) => entry.used = place + 1,
            None => {
                self.journal.push(block, first, place + 1);
            }
        }
        // Of two with one number the one programmed later, since the other may be what a cut left.
        let newest = self.journal.found.map(|(found, sequence)| (found.number, sequence));
        if newest.is_none_or(|newest| newest < (fields.number, front.sequence)) {
            self.journal.found = Some((fields, front.sequence));
        }
        true
    }

    /// Whether a block belongs to the ring.
    pub(crate) fn is_in_ring(&self, block: BlockAddr) -> bool {
        self.journal.blocks().any(|entry| entry.block == block)
    }

    /// After the scan: drops blocks with nothing that is needed.
    pub(crate) fn trim_ring(&mut self) {
        if let Some((found, _)) = self.journal.found {
            self.journal.oldest = self.journal.oldest.max(found.oldest);
        }
        for block in self.blocks.addresses() {
            if self.blocks[block].state() == State::Journal && !self.is_in_ring(block) {
                self.blocks.set_state(block, State::Unknown);
            }
        }
        let oldest = self.journal.oldest;
        while let Some(place) = self.journal.blocks().position(|entry| entry.end() <= oldest) {
            let Some(entry) = self.journal.remove(place) else { break };
            self.blocks.set_state(entry.block, State::Unknown);
        }
    }

    /// After a cut: makes the changes of the ring again, has them in nodes, and begins a new ring.
    pub(crate) fn recover_journal(&mut self) -> Result<(), N> {
        let found = self.journal.found.take();
        if let Some((found, _)) = found {
            self.copy_newest(&found)?;
            self.journal.is_replaying = true;
            let result = self.replay(&found).and_then(|()| self.flush_until(None));
            self.journal.is_replaying = false;
            result?;
        }
        // The page that a cut tore may be read later, and has the number behind the newest. It never counts again.
        let newest = found.map_or(self.journal.number, |(found, _)| found.number);
        self.journal.number = newest.saturating_add(2);
        self.void_journal();
        if found.is_some() || self.anchors.has_journal != (self.options.journal_blocks > 0) {
            self.write_anchor(false)?;
        }
        self.release_journal()
    }

    /// Programs the newest page once more, in a block of its own. It may have been under way when the power went and be
    /// unreadable later; once some of its changes stand in nodes, that would leave half a batch.
    fn copy_newest(&mut self, found: &JournalFields) -> Result<(), N> {
        let size = self.read_journal(found.number)?.1;
        #[cfg(feature = "_broken")]
        if self.options.broken.replay_uncopied {
            return Ok(());
        }
        self.program_journal(*found, size as usize)?;
        // Copies that earlier recoveries made, each alone in its block, are in the way.
        let own = self.journal.blocks().last().map(|entry| entry.block);
        let is_copy = |entry: &crate::journal::RingBlock| entry.first == found.number && Some(entry.block) != own;
        while let Some(place) = self.journal.blocks().position(|entry| is_copy(&entry)) {
            let Some(entry) = self.journal.remove(place) else { break };
            self.erase(entry.block)?;
        }
        Ok(())
    }

    /// Reads a journal page into the journal's memory. If it stands in two places, the one that can be read.
    fn read_journal(&mut self, number: u64) -> Result<(JournalFields, u32), N> {
        let mut missing = Error::Corrupt { page: PageAddr(0), why: Malformed::Range(Field::Journal) };
        for place in (0..self.journal.block_count() as usize).rev() {
            let Some(entry) = self.journal.blocks().nth(place) else { break };
            if !(entry.first..entry.end()).contains(&number) {
                continue;
            }
            let page = self.page_of(entry.block, (number - entry.first) as u16);
            // Again if it is another page: that may have been read by mistake.
            for _ in 0..READS {
                match self.try_journal(page)? {
                    Ok((fields, size)) if fields.number == number => return Ok((fields, size)),
                    Ok(_) => missing = Error::Corrupt { page, why: Malformed::Range(Field::Number) },
                    Err(why) => missing = Error::Corrupt { page, why },
                }
            }
        }
        Err(missing)
    }

    fn try_journal(&mut self, page: PageAddr) -> Result<core::result::Result<(JournalFields, u32), Malformed>, N> {
        if Self::read(&mut self.nand, page, 0, self.journal.page)? == Read::Unreadable {
            return Ok(Err(Malformed::Unreadable));
        }
        let front = FrontFields::parse(self.journal.page).and_then(|front| front.expect(self.volume, page.0));
        Ok(front.and_then(|front| match front.kind {
            Kind::Journal => {
                let (fields, _) = JournalFields::parse(self.journal.page, front.size, self.options.cells)?;
                Ok((fields, front.size))
            }
            other => Err(Malformed::Kind(other as u8)),
        }))
    }

    /// Makes again what the pages from the first that is needed to the newest hold, but for a batch that is not whole.
    fn replay(&mut self, found: &JournalFields) -> Result<(), N> {
        for number in self.journal.oldest..=found.whole_page {
            // A page that is missing ends this with an error, so it ends, whatever the numbers are.
            let (fields, size) = self.read_journal(number)?;
            let is_last = number == found.whole_page;
            let count = if is_last { found.whole_count } else { fields.record_count };
            let page = core::mem::take(&mut self.journal.page);
            let result = self.redo_page(page, size, count);
            self.journal.page = page;
            result?;
        }
        Ok(())
    }

    fn redo_page(&mut self, page: &[u8], size: u32, count: u16) -> Result<(), N> {
        let cells = self.options.cells;
        let address = PageAddr(FrontFields::parse(page).map_or(0, |front| front.page));
        let corrupt = |why| Error::Corrupt { page: address, why };
        let (_, records) = JournalFields::parse(page, size, cells).map_err(corrupt)?;
        let mut done = 0;
        for record in records.take(usize::from(count)) {
            let record = record.map_err(corrupt)?;
            let fits = match record {
                Record::Put(key, value) => self.check_key(key).and_then(|()| self.check_value(key, value)).is_ok(),
                Record::Delete(key) => self.check_key(key).is_ok(),
                _ => false,
            };
            if !fits {
                return Err(corrupt(Malformed::Range(Field::Records)));
            }
            self.buffer.unpin();
            self.change(record, true)?;
            done += 1;
        }
        if done == count { Ok(()) } else { Err(corrupt(Malformed::Range(Field::RecordCount))) }
    }
}
