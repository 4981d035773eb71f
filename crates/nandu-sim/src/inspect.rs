//! Looking into the chip and reaching into it, past the contract: costs nothing and counts as no operation.

use nandu_nand::{BlockAddr, PageAddr};

use crate::Sim;
use crate::damage::HarmKind;
use crate::history::HistoryEntry;
use crate::state::{BlockInfo, Dirty, Mark, PageInfo, Store};

impl Sim {
    /// What a page looks like.
    ///
    /// # Panics
    ///
    /// If the page is outside the chip.
    pub fn page_state(&self, page: PageAddr) -> PageInfo {
        let (block, index) = self.locate(page);
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        PageInfo {
            programs: page.programs,
            held: page.is_held(),
            harmed: !state.harm(index).is_empty(),
            reads: page.reads,
            programmed_ns: page.programmed_ns,
        }
    }

    /// What a block looks like.
    ///
    /// # Panics
    ///
    /// If the block is outside the chip.
    pub fn block_state(&self, block: BlockAddr) -> BlockInfo {
        self.locate_block(block);
        let state = &self.blocks[block.0 as usize];
        let programmed = state.store.iter().flat_map(|store| &store.pages).filter(|page| page.programs > 0);
        BlockInfo {
            condition: state.condition,
            mode: state.mode,
            factory_bad: state.mark.0 & Mark::FACTORY != 0,
            grown_bad: state.mark.0 & Mark::GROWN != 0,
            reads_bad: state.mark.reads_bad(),
            pages_programmed: programmed.count() as u32,
            counters: state.counters,
        }
    }

    /// The last programs, erases and marks of a block, oldest first; at most [`HISTORY_LENGTH`](crate::HISTORY_LENGTH).
    ///
    /// # Panics
    ///
    /// If the block is outside the chip.
    pub fn block_history(&self, block: BlockAddr) -> Vec<HistoryEntry> {
        self.locate_block(block);
        let history = &self.blocks[block.0 as usize].history;
        history.iter().flat_map(|history| history.iter()).copied().collect()
    }

    /// What the cells of a page hold, main and spare area, whatever a read would make of it.
    ///
    /// # Panics
    ///
    /// If the page is outside the chip.
    pub fn peek(&self, page: PageAddr) -> Vec<u8> {
        let mut bytes = vec![0; self.chip.geometry.column_count() as usize];
        self.fetch_raw(self.locate(page), 0, &mut bytes);
        bytes
    }

    /// Puts bytes into a page from column 0 on, as if they had been programmed well; the rest stays. Rules, harm and
    /// counters are passed by: this is how a hostile or foreign content is made.
    ///
    /// # Panics
    ///
    /// If the page is outside the chip or the bytes are more than the page.
    pub fn poke(&mut self, page: PageAddr, bytes: &[u8]) {
        let at = self.locate(page);
        self.check_columns(page, 0, bytes.len());
        let mut content = self.peek(page);
        content[..bytes.len()].copy_from_slice(bytes);
        self.set_held(at, &content);
    }

    /// Flips a bit of a page, in a way that error correction does not notice. Bits count from the lowest of column 0.
    ///
    /// # Panics
    ///
    /// If the page or the bit is outside the chip.
    pub fn corrupt(&mut self, page: PageAddr, bit_index: u32) {
        let at = self.locate(page);
        let mut content = self.peek(page);
        content[bit_index as usize / 8] ^= 1 << (bit_index % 8);
        self.set_held(at, &content);
    }

    /// Makes the bad-block mark of a block read as the opposite of the truth.
    ///
    /// # Panics
    ///
    /// If the block is outside the chip.
    pub fn invert_mark(&mut self, block: BlockAddr) {
        self.locate_block(block);
        self.blocks[block.0 as usize].mark.0 |= Mark::INVERTED;
        self.touch(block.0, Dirty::CONTENT);
    }

    fn set_held(&mut self, at: (u32, u32), content: &[u8]) {
        self.content_mut(at).copy_from_slice(content);
        self.note_held(at);
        self.touch(at.0, Dirty::CONTENT);
    }

    /// The content of this chip on another: `target` gets all pages as this chip holds them, harm, modes and erase
    /// states included, but for its own bad blocks, which keep their marks and lose what would have been there. Wear,
    /// counters, clock and seed are those of `target`.
    ///
    /// # Panics
    ///
    /// If the geometries differ in more than the number of blocks, or `target` has fewer of them.
    pub fn transplant(&self, mut target: Sim) -> Sim {
        let same_shape = nandu_nand::Geometry {
            block_count: self.chip.geometry.block_count,
            bad_block_max: self.chip.geometry.bad_block_max,
            ..target.chip.geometry
        };
        assert!(
            same_shape == self.chip.geometry && target.blocks.len() >= self.blocks.len(),
            "content of chip {} does not fit chip {}",
            self.chip.name,
            target.chip.name
        );
        for (block, from) in (0..).zip(&self.blocks) {
            let to = &mut target.blocks[block as usize];
            if !to.mark.is_bad() && !from.mark.is_bad() {
                to.store = from.store.as_ref().map(|store| self.whole(block, store));
                to.damage.clone_from(&from.damage);
                to.next_index = from.next_index;
                to.mode = from.mode;
                to.condition = from.condition;
                target.touch(block, Dirty::CONTENT);
            }
        }
        target
    }

    /// The pages and bytes of a block in memory, whatever an image has of it.
    fn whole(&self, block: u32, store: &Store) -> Box<Store> {
        let mut whole = Store::new(&self.chip);
        let columns = self.chip.geometry.column_count() as usize;
        whole.pages.copy_from_slice(&store.pages);
        for (index, page) in (0..).zip(&mut whole.pages) {
            page.flags = page.lasting_flags();
            if page.is_held() {
                self.fetch_raw((block, index), 0, &mut whole.data[index as usize * columns..][..columns]);
            }
        }
        whole
    }

    /// A number that two chips share if they are the same in all that could matter: content, harm, wear, counters,
    /// ledger, clock. For comparing two runs. Costs a pass over what is programmed.
    pub fn state_hash(&self) -> u64 {
        let mut hash = Hash(0xCBF2_9CE4_8422_2325);
        hash.add(self.seed);
        hash.add(self.operations);
        hash.add(self.clock_ns);
        hash.add(u64::from(self.off));
        for entry in std::iter::once(&self.counters).chain(&self.ledger.entries) {
            hash.add(entry.reads);
            hash.add(entry.programs);
            hash.add(entry.partial_programs);
            hash.add(entry.erases);
            hash.add(entry.copies);
            hash.add(entry.mark_checks);
            hash.add(entry.marks);
            hash.add(entry.bytes_out);
            hash.add(entry.bytes_in);
            hash.add(entry.busy_ns);
        }
        for block in 0..self.blocks.len() as u32 {
            self.hash_block(block, &mut hash);
        }
        hash.0
    }

    fn hash_block(&self, block: u32, hash: &mut Hash) {
        let state = &self.blocks[block as usize];
        hash.add(u64::from(block) << 32 | u64::from(state.next_index));
        hash.add(u64::from(state.condition as u8) << 16 | u64::from(state.mode as u8) << 8 | u64::from(state.mark.0));
        hash.add(u64::from(state.counters.erases) << 32 | u64::from(state.counters.reads_since_erase));
        hash.add(state.counters.programs);
        hash.add(state.counters.reads);
        for (index, harms) in state.damage.iter().flat_map(|damage| damage.iter()) {
            for harm in harms {
                hash.add(u64::from(*index) << 32 | u64::from(harm.from));
                let (kind, first, second) = match harm.kind {
                    HarmKind::Lost => (0, 0, 0),
                    HarmKind::Flips(bits) => (1, u64::from(bits), 0),
                    HarmKind::Unstable { since_ns, reads } => (2, since_ns, u64::from(reads)),
                    HarmKind::Weak => (3, 0, 0),
                };
                hash.add(u64::from(harm.to) << 8 | kind);
                hash.add(first);
                hash.add(second);
            }
        }
        let Some(store) = &state.store else { return };
        let columns = self.chip.geometry.column_count() as usize;
        let mut away = Vec::new();
        for (index, page) in (0..).zip(&store.pages) {
            hash.add(page.written);
            hash.add(page.programmed_ns);
            hash.add(u64::from(page.reads) << 16 | u64::from(page.programs) << 8 | u64::from(page.lasting_flags()));
            if page.is_away() {
                away.resize(columns, 0);
                self.fetch_raw((block, index), 0, &mut away);
                hash.add_bytes(&away);
            } else if page.is_held() {
                hash.add_bytes(&store.data[index as usize * columns..][..columns]);
            }
        }
    }
}

/// FNV-1a over words of eight bytes, with a rotation so that high bits reach low ones.
struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.add(u64::from(byte));
        }
    }
}
