//! Reading the blocks when a volume is opened: which pages are nodes, which are logs, and what is neither.

use nandu_media::Malformed;
use nandu_media::checksum::checksum;
use nandu_media::inpage::{FrontFields, Kind, NodeFields};
use nandu_nand::{BlockAddr, Nand};

use crate::blocks::{DECAYED, LOG_PAGES_MAX, MAYBE_TORN, State};
use crate::chip::{Read, is_erased};
use crate::descent::BUILD;
use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::node::Node;
use crate::options::Layout;

/// What a page of a block that holds nodes turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Erased,
    Node,
    Log,
    /// Of the journal.
    Journal,
    /// Torn, decayed, or of another volume.
    Garbage,
}

/// A page of a block, as it was read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    state: PageState,
    /// In a log page with sectors: those that are not erased, or lie before one that is not.
    consumed: u16,
    /// Of these, those that verify.
    sound: u16,
    /// Whether one that does not verify is not the last.
    is_broken: bool,
    /// Pages that it takes: those of a node, or one.
    pages: u16,
}

impl Seen {
    /// A page that is no log page with sectors.
    const fn page(state: PageState) -> Seen {
        Seen { state, consumed: 0, sound: 0, is_broken: false, pages: 1 }
    }
}

/// The program that came last, as far as can be seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) sequence: u64,
    pub(crate) block: Option<BlockAddr>,
}

/// How far a block is filled.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    /// Pages from the front that hold nodes or something torn.
    used: u16,
    /// Log sectors, or log pages.
    logs: u16,
    /// In whole-page layout: a page was passed over that is erased or holds nothing.
    has_gap: bool,
}

/// A value that differs, nearly certainly, with an upper fence.
pub(crate) fn fence_mark(high: Option<&[u8]>) -> u32 {
    high.map_or(1, |high| checksum(high) ^ 2)
}

impl<N: Nand> InPage<'_, N> {
    /// Reads a block if its first page is not erased. A first page that cannot be read must not cost the others.
    pub(crate) fn scan_block(&mut self, block: BlockAddr, newest: &mut Newest) -> Result<(), N> {
        let mut fill = Fill::default();
        let last = self.geometry.pages_per_block as u16 - 1;
        let mut was_erased = false;
        let mut place = 0;
        while place <= last {
            let mut seen = self.scan_page(block, place, newest)?;
            if place == 0 {
                if seen.state == PageState::Erased {
                    return Ok(());
                }
                self.blocks.set_state(block, State::Nodes);
            }
            // Where what is programmed ends and begins, an erased page may be a programmed one for which another was read by
            // mistake. Taken for erased, it would be programmed again, and what it holds would be missed by nobody.
            if seen.state == PageState::Erased && (!was_erased || place == last) {
                seen = self.scan_page(block, place, newest)?;
            } else if seen.state != PageState::Erased && was_erased {
                self.expect_erased(block, place - 1)?;
            }
            was_erased = seen.state == PageState::Erased;
            self.note_page(block, place, seen, &mut fill);
            place += seen.pages;
        }
        if self.is_in_ring(block) {
            self.blocks[block].clear();
            self.blocks.set_state(block, State::Journal);
            return self.may_use(block).map(drop);
        }
        let entry = &mut self.blocks[block];
        entry.used = fill.used;
        entry.logs = fill.logs;
        // A mark on it means that it takes no more; what it holds is read as long as it can be.
        self.may_use(block).map(drop)
    }

    /// Looks again at every block that seems to hold nothing; opening begins anew if one does not. A node that is passed over is
    /// missed by its parent, but the end of the journal is missed by nobody.
    pub(crate) fn expect_free(&mut self) -> Result<(), N> {
        for block in self.blocks.addresses() {
            if self.blocks[block].is_free() && !self.begins_erased(block)? {
                return Err(Error::Corrupt { page: self.page_of(block, 0), why: Malformed::Erased });
            }
        }
        Ok(())
    }

    /// Reads again a page that was erased; opening begins anew if it is not now.
    fn expect_erased(&mut self, block: BlockAddr, place: u16) -> Result<(), N> {
        let page = self.page_of(block, place);
        let (dialect, page_size, ecc) = (self.dialect(), self.page_size(), self.geometry.ecc);
        let bytes = &mut self.logs[..page_size];
        let read = Self::read_log_page(&mut self.nand, dialect, page, bytes)?;
        if read != Read::Unreadable && is_erased(bytes, ecc.codeword_size, ecc.correctable_bits) {
            return Ok(());
        }
        Err(Error::Corrupt { page, why: Malformed::Erased })
    }

    /// Counts a page of a block, and the log sectors in it.
    ///
    /// What a cut tore is the last thing that was programmed into its block, since nothing follows it there before the block is
    /// erased. So what is no longer what it was and has others behind it has decayed.
    fn note_page(&mut self, block: BlockAddr, place: u16, seen: Seen, fill: &mut Fill) {
        let is_garbage = seen.state == PageState::Garbage;
        self.stats.torn += u64::from(is_garbage) + u64::from(seen.consumed - seen.sound);
        if self.options.layout == Layout::Pages {
            // A page that was passed over was programmed and lost, or is what a cut left; programs go on behind neither.
            let is_behind = seen.state != PageState::Erased && fill.has_gap;
            if is_behind {
                self.blocks[block].is_suspect = DECAYED;
            }
            fill.has_gap |= is_garbage || seen.state == PageState::Erased;
            if is_garbage {
                self.note_garbage(block);
            }
            if seen.state != PageState::Erased {
                fill.used = place + seen.pages;
            }
            if seen.state == PageState::Log && usize::from(fill.logs) < LOG_PAGES_MAX {
                self.blocks[block].log_at[usize::from(fill.logs)] = place;
                fill.logs += 1;
            }
            return;
        }
        match seen.state {
            PageState::Log if fill.logs == 0 => {
                let number = self.geometry.pages_per_block as u16 - 1 - place;
                fill.logs = number * self.sectors_per_page() as u16 + seen.consumed;
                if seen.is_broken {
                    self.blocks[block].is_suspect = DECAYED;
                } else if seen.sound < seen.consumed {
                    self.note_garbage(block);
                }
            }
            // Log pages behind the newest one are full.
            PageState::Log if u32::from(seen.sound) == self.sectors_per_page() => {}
            _ if fill.logs > 0 => self.blocks[block].is_suspect = DECAYED,
            // Torn, before any log page: the last node, or the first sector of another log page. Whichever it is, nothing
            // is programmed there, nor between it and the nodes.
            PageState::Node | PageState::Garbage => {
                fill.used = place + seen.pages;
                let logs_from = self.geometry.pages_per_block - u32::from(self.log_pages_limit());
                if is_garbage && u32::from(place) >= logs_from {
                    self.note_garbage(block);
                }
            }
            _ => {}
        }
    }

    /// Notes that something in a block, which may have held logs, is neither erased nor valid.
    fn note_garbage(&mut self, block: BlockAddr) {
        let entry = &mut self.blocks[block];
        entry.is_suspect = entry.is_suspect.max(MAYBE_TORN);
    }

    /// Reads a page and takes in what it holds. One that is nothing is read again: another may have been read by mistake.
    fn scan_page(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> Result<Seen, N> {
        let seen = self.try_page(block, place, newest)?;
        if seen.state == PageState::Garbage { self.try_page(block, place, newest) } else { Ok(seen) }
    }

    fn try_page(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> Result<Seen, N> {
        let page = self.page_of(block, place);
        let dialect = self.dialect();
        let read = Self::read_log_page(&mut self.nand, dialect, page, self.log)?;
        let ecc = self.geometry.ecc;
        if read != Read::Unreadable && is_erased(self.log, ecc.codeword_size, ecc.correctable_bits) {
            return Ok(Seen::page(PageState::Erased));
        }
        let front = FrontFields::parse(self.log).and_then(|front| front.expect(self.volume, page.0));
        match front {
            Ok(front) if front.kind == Kind::Node => self.see_node(block, place, &front, newest),
            Ok(front) if front.kind == Kind::Journal => {
                note_newest(newest, front.sequence, block);
                let is_one = self.note_journal_page(block, place, &front);
                Ok(Seen::page(if is_one { PageState::Journal } else { PageState::Garbage }))
            }
            Ok(front) if front.kind == Kind::Log && self.options.layout == Layout::Pages => {
                note_newest(newest, front.sequence, block);
                self.note_sectors(block, place, newest);
                Ok(Seen::page(PageState::Log))
            }
            Err(_) if self.options.layout == Layout::Sectors => Ok(self.see_sectors(block, place, newest)),
            _ => Ok(Seen::page(PageState::Garbage)),
        }
    }

    /// Takes in a node whose first page was read. If one of its pages is not what it should be, all of them are garbage together: what
    /// a cut tore among them is one thing, and none of it has anything behind it.
    fn see_node(&mut self, block: BlockAddr, place: u16, front: &FrontFields, newest: &mut Newest) -> Result<Seen, N> {
        let pages = u16::from(self.options.node_pages);
        let left = self.geometry.pages_per_block as u16 - place;
        let garbage = Seen { pages: pages.min(left), ..Seen::page(PageState::Garbage) };
        if pages > left {
            return Ok(garbage);
        }
        let frame = self.buffer.arena.scratch(BUILD);
        let page_size = self.page_size();
        self.buffer.arena.frame_mut(frame)[..page_size].copy_from_slice(self.log);
        let Ok(parts) = self.read_parts(front, frame)? else { return Ok(garbage) };
        let parsed = Node::parse(self.buffer.arena.frame(frame), parts.size, self.options.cells);
        let Ok((node, fields)) = parsed else { return Ok(garbage) };
        let mark = fence_mark(node.high());
        note_newest(newest, front.sequence, block);
        self.note_node(block, place, &FrontFields { size: parts.size, ..*front }, &fields, mark)?;
        Ok(Seen { pages, ..Seen::page(PageState::Node) })
    }

    /// Takes in the sectors of a page that was read and begins as no page of the volume does.
    fn see_sectors(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> Seen {
        let sound = self.note_sectors(block, place, newest);
        if sound == 0 {
            return Seen::page(PageState::Garbage);
        }
        let consumed = self.sectors_consumed();
        let page = self.page_of(block, place);
        let last = u32::from(consumed.saturating_sub(1)) * self.options.sector_size;
        let is_last_sound = self.dialect().sectors(self.log, page, last).next().is_some();
        let is_broken = sound + u16::from(!is_last_sound) < consumed;
        Seen { state: PageState::Log, consumed, sound, is_broken, pages: 1 }
    }

    /// Sectors of the log page read last that are not erased, or lie before one that is not.
    fn sectors_consumed(&self) -> u16 {
        let ecc = self.geometry.ecc;
        let mut sectors = self.log.chunks(self.options.sector_size as usize);
        let last = sectors.rposition(|sector| !is_erased(sector, ecc.codeword_size, ecc.correctable_bits));
        last.map_or(0, |number| number as u16 + 1)
    }

    /// A page of a node is its current one if none is newer (I1).
    fn note_node(
        &mut self,
        block: BlockAddr,
        place: u16,
        front: &FrontFields,
        fields: &NodeFields,
        mark: u32,
    ) -> Result<(), N> {
        let entry = &mut self.blocks[block];
        entry.erase_count = entry.erase_count.max(front.erase_count);
        entry.group = fields.group;
        entry.position = fields.position;
        entry.granted = fields.log_pages.clamp(1, self.options.log_pages_max);
        self.next_id = self.next_id.max(fields.node.saturating_add(1));
        let index = match self.nodes.find(fields.node) {
            Some(index) if self.nodes[index].sequence > front.sequence => return Ok(()),
            Some(index) => index,
            None => {
                let required = Self::memory_required(&self.geometry, &self.options);
                self.nodes.add(fields.node, fields.level, 0).ok_or(Error::Memory { required })?
            }
        };
        let node = &mut self.nodes[index];
        node.sequence = front.sequence;
        node.set_block(Some(block));
        node.page = place;
        node.level = fields.level;
        node.size = front.size;
        node.raw = front.size;
        node.logs = 0;
        node.sectors = 0;
        // Until blocks list their nodes, this place holds what the page says of its upper fence.
        node.next = mark;
        Ok(())
    }

    /// Takes in the sectors of the log page read last. Returns how many verify.
    fn note_sectors(&mut self, block: BlockAddr, place: u16, newest: &mut Newest) -> u16 {
        let page = self.page_of(block, place);
        let number = match self.options.layout {
            Layout::Sectors => self.geometry.pages_per_block - 1 - u32::from(place),
            Layout::Pages => {
                // Those found so far are counted when the page is noted, which comes after this.
                let before = self.blocks[block].log_at;
                before.iter().take_while(|&&other| other != 0 && other < place).count() as u32
            }
        };
        let dialect = self.dialect();
        let mut count = 0;
        for sector in dialect.sectors(self.log, page, 0) {
            count += 1;
            note_newest(newest, sector.sequence, block);
            let Some(index) = self.nodes.find(sector.node) else { continue };
            let node = &mut self.nodes[index];
            // I2: only in the block of the current page, and only if newer.
            if node.block() == Some(block) && sector.sequence > node.sequence && number < LOG_PAGES_MAX as u32 {
                node.logs |= 1 << number;
                node.sectors = node.sectors.saturating_add(1);
                node.size += sector.payload().len() as u32;
                node.raw += sector.payload().len() as u32;
            }
        }
        count
    }
}

fn note_newest(newest: &mut Newest, sequence: u64, block: BlockAddr) {
    if sequence > newest.sequence {
        *newest = Newest { sequence, block: Some(block) };
    }
}
