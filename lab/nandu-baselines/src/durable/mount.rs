//! Formatting, and finding a tree again.
//!
//! Every mount is a recovery: that no cut came before it could only be known from a page that a cut may have torn.

use nandu_nand::{BlockAddr, Nand, PageAddr};

use super::chain::Chain;
use super::format::{ANCHOR_COUNT, Header, Kind, Link};
use super::space::Role;
use super::store::Store;
use super::{DurableOptions, MountReads};
use crate::entry::decode;
use crate::pages::{Result, Root};
use crate::tree::{Leaf, Tree};
use crate::{BaselineError, TreeKind};

/// The anchors are among the first blocks, so many.
pub(super) const SEARCHED_BLOCKS: u32 = 16;

/// How often the newest superblock is searched for.
const SEARCHES_MAX: u32 = 3;

/// Pages in a row that can have been lost to failing programs before the next one that verifies.
const GAP_MAX: u64 = 8;

/// What was programmed after the newest superblock.
struct Tail {
    /// The newest root.
    root: Root,
    /// Leaves that were written after it, operation by operation, and the number of records after each.
    leaves: Vec<(Leaf, Option<Leaf>, u64)>,
    /// Blocks with pages that count.
    visited: Vec<BlockAddr>,
    /// The newest page that counts: it may have been torn by the cut and be lost later.
    suspect: Option<PageAddr>,
}

/// Checks what the chip and the options must be like.
pub(super) fn check<E: core::error::Error + 'static>(
    geometry: &nandu_nand::Geometry,
    options: &DurableOptions,
) -> Result<(), E> {
    if geometry.validate().is_err() {
        return Err(BaselineError::Unsuitable { what: "the chip describes itself as no chip can be" });
    }
    if Link::page_size(geometry.block_count) > geometry.page_size as usize {
        return Err(BaselineError::Unsuitable { what: "too many blocks for a page to name" });
    }
    if options.journal_nodes > 0 && options.kind == TreeKind::Mu {
        return Err(BaselineError::Unsuitable { what: "a mu-Tree has no journal" });
    }
    Ok(())
}

impl<N: Nand> Store<N> {
    /// Makes an empty volume. Costs a check of each block's mark, seventeen erases and one program.
    pub(super) fn format(mut nand: N, options: DurableOptions) -> Result<Store<N>, N::Error> {
        let geometry = *nand.geometry();
        check(&geometry, &options)?;
        let mut bad = Vec::new();
        for block in (0..geometry.block_count).map(BlockAddr) {
            // Once more if the transfer failed.
            if nand.is_bad(block).or_else(|_| nand.is_bad(block)).map_err(BaselineError::Nand)? {
                bad.push(block);
            }
        }
        let nowhere = BlockAddr(0);
        let mut store = Store::new(nand, options, Chain::new([nowhere; ANCHOR_COUNT], (nowhere, 0), nowhere));
        for block in bad {
            store.space.set_role(block, Role::Bad);
        }
        // An older volume must not be found once this one is there, so whatever may be one of its anchors is erased.
        let mut anchors = Vec::new();
        for block in (0..geometry.block_count.min(SEARCHED_BLOCKS)).map(BlockAddr) {
            let is_good = store.space.role(block) == Role::Data && store.erase(block)?;
            if is_good && anchors.len() < ANCHOR_COUNT {
                store.space.set_role(block, Role::Anchor);
                anchors.push(block);
            }
        }
        let [first, second, third] = anchors[..] else {
            return Err(BaselineError::Unsuitable { what: "too few good blocks at the beginning" });
        };
        store.chain = Chain::new([first, second, third], (first, 0), second);
        store.write_anchor_superblock(first)?;
        Ok(store)
    }

    /// Finds a volume and brings it into a state that no cut before it can harm any more.
    pub(super) fn mount(nand: N, options: DurableOptions) -> Result<Tree<Store<N>>, N::Error> {
        check(nand.geometry(), &options)?;
        let nowhere = BlockAddr(0);
        let mut store = Store::new(nand, options, Chain::new([nowhere; ANCHOR_COUNT], (nowhere, 0), nowhere));
        // A page that the cut left unstable may verify once and not again; then what stands before it is found.
        let mut outcome = store.find_superblock();
        for _ in 1..SEARCHES_MAX {
            if !matches!(outcome, Err(BaselineError::Corrupt { .. })) {
                break;
            }
            outcome = store.find_superblock();
        }
        let (link, header, found, chain_blocks) = outcome?;
        store.mount_reads.chain = store.stats.reads;
        store.chain.anchors = link.anchors;
        for block in link.anchors {
            store.space.set_role(block, Role::Anchor);
        }
        for block in store.space.blocks() {
            if link.bad[block.0 as usize] {
                store.space.set_role(block, Role::Bad);
            }
        }
        for block in chain_blocks {
            store.space.set_role(block, Role::Chain);
        }
        let tail = store.roll_forward(&link, &header)?;
        store.mount_reads.tail = store.stats.reads - store.mount_reads.chain;
        let mut tree = store.replay(&tail)?;
        let reads = tree.pages().stats.reads;
        tree.pages_mut().mount_reads.index = reads - tree.pages().mount_reads.chain - tree.pages().mount_reads.tail;
        settle(&mut tree, &link, &tail, found)?;
        let reads: MountReads = tree.pages().mount_reads;
        let all = tree.pages().stats.reads;
        tree.pages_mut().mount_reads.repair = all - reads.chain - reads.tail - reads.index;
        Ok(tree)
    }

    /// The newest superblock, the anchor block it was found through, and the blocks of the chain to it.
    fn find_superblock(&mut self) -> Result<(Link, Header, BlockAddr, Vec<BlockAddr>), N::Error> {
        let block_count = self.space.geometry.block_count;
        let mut buffer = vec![0; self.layout.size];
        // The anchors are filled one after the other, so the one that begins with the newest page holds the newest. All places
        // where one can be are looked at, since an anchor that failed was replaced by another block.
        let mut begins = None;
        for block in (0..block_count.min(SEARCHED_BLOCKS)).map(BlockAddr) {
            let page = self.space.page(block, 0);
            let header = self.read_verified(page, &mut buffer)?.filter(|header| header.kind == Kind::Anchor);
            if let Some(header) = header
                && begins.is_none_or(|(_, sequence)| sequence < header.sequence)
            {
                begins = Some((block, header.sequence));
            }
        }
        let (anchor, _) = begins.ok_or(BaselineError::NotFormatted)?;
        let mut chain_blocks = Vec::new();
        let mut step = anchor;
        for kind in [Kind::Anchor, Kind::Pointer, Kind::Superblock] {
            let corrupt = BaselineError::Corrupt { page: self.space.page(step, 0), why: "the chain ends here" };
            let Some((header, _)) = self.newest(step, kind, &mut buffer)? else { return Err(corrupt) };
            let Some(link) = Link::parse(&buffer, block_count) else { return Err(corrupt) };
            if header.tree != self.options.kind {
                return Err(BaselineError::WrongFormat { what: "kind" });
            }
            // Sequences go on after the newest page found; pages of the chain behind it are never looked at again.
            self.chain.sequence = self.chain.sequence.max(header.sequence + 1);
            if kind == Kind::Anchor {
                self.chain.stable = link.stable;
            }
            match link.target {
                None => return Ok((link, header, anchor, chain_blocks)),
                Some(target) => {
                    chain_blocks.push(target);
                    step = target;
                }
            }
        }
        Err(BaselineError::Corrupt { page: self.space.page(step, 0), why: "the chain does not end" })
    }

    /// Reads the pages programmed after a superblock, in the order of their programming, to the first that does not verify.
    fn roll_forward(&mut self, link: &Link, header: &Header) -> Result<Tail, N::Error> {
        let height = link.height;
        if height == 0 || height > self.layout.height_max() {
            return Err(BaselineError::Corrupt { page: header.page, why: "the height cannot be" });
        }
        let mut tail = Tail {
            root: Root { page: link.root, height, records: header.records },
            leaves: Vec::new(),
            visited: link.open.iter().map(|&(block, _)| block).collect(),
            suspect: None,
        };
        self.next_sequence = link.next_sequence;
        let blocks = link.open.into_iter().chain(link.ready.iter().map(|&block| (block, 0)));
        let mut buffer = vec![0; self.layout.size];
        let mut group: Vec<Leaf> = Vec::new();
        for (block, first) in blocks {
            for nth in first..self.space.pages_per_block() {
                let page = self.space.page(block, nth);
                let header = self.read_verified(page, &mut buffer)?.filter(|header| header.kind == Kind::Tree);
                // A page of another time is not a page of this log. Where programs failed, numbers are missing.
                let is_next = |header: &Header| {
                    let gap = header.sequence.checked_sub(self.next_sequence);
                    gap.is_some_and(|gap| gap == 0 || (nth == 0 && gap <= GAP_MAX))
                };
                let Some(header) = header.filter(is_next).filter(|header| !header.is_repair) else { break };
                self.next_sequence = header.sequence + 1;
                if nth == 0 {
                    tail.visited.push(block);
                }
                if header.group_index == 0 {
                    group.clear();
                }
                self.note(&header, &buffer, &mut group, &mut tail);
            }
        }
        Ok(tail)
    }

    /// Takes a page of the tail into account.
    fn note(&mut self, header: &Header, bytes: &[u8], group: &mut Vec<Leaf>, tail: &mut Tail) {
        let facts = self.layout.facts(bytes);
        if header.has_root {
            tail.root = Root { page: Some(header.page), height: facts.height, records: header.records };
            tail.leaves.clear();
            tail.suspect = Some(header.page);
            group.clear();
            return;
        }
        let range = self.layout.node(&facts, 1, HEIGHT_OF_LEAVES);
        let first_key = range.and_then(|range| decode(&bytes[range]).next()).map(|entry| entry.key);
        group.push(Leaf { page: header.page, first_key: first_key.unwrap_or(0) });
        if header.is_last {
            match group[..] {
                [leaf] => tail.leaves.push((leaf, None, header.records)),
                [left, right] => tail.leaves.push((left, Some(right), header.records)),
                // No operation leaves more; the checksum says that it was programmed so, by another version.
                _ => return group.clear(),
            }
            tail.suspect = Some(header.page);
            group.clear();
        }
    }

    /// The tree as the tail left it, with what lives.
    fn replay(self, tail: &Tail) -> Result<Tree<Store<N>>, N::Error> {
        let page = PageAddr(0);
        let height = tail.root.height;
        if height == 0 || height > self.layout.height_max() || (tail.root.page.is_none() && height > 1) {
            return Err(BaselineError::Corrupt { page, why: "the height cannot be" });
        }
        let page_count = self.space.geometry.page_count();
        let mut tree = Tree::new(self, tail.root);
        tree.pages_mut().committed = tail.root;
        tree.pages_mut().is_held = true;
        for &(left, right, records) in &tail.leaves {
            tree.link(left, right, records)?;
        }
        tree.pages_mut().is_held = false;
        let mut live = Vec::new();
        tree.walk(&mut live, page_count)?;
        for page in live {
            if page.0 < page_count {
                tree.pages_mut().space.set_live(page);
            } else if tail.leaves.is_empty() {
                return Err(BaselineError::Corrupt { page, why: "it is outside the chip" });
            }
        }
        Ok(tree)
    }
}

/// A height above that of leaves: a leaf that is not the root.
const HEIGHT_OF_LEAVES: u8 = 2;

/// Makes what was found independent of anything that the cut may have torn: the newest page is written again elsewhere, what
/// a journal held is programmed, and a superblock goes to an anchor that is neither the one found nor the stable one.
///
/// Until that superblock is programmed, only blocks are erased that neither the superblock found nor the one before needs.
/// So if one of the pages found is lost half way, the mount after the next cut finds the state before it.
fn settle<N: Nand>(tree: &mut Tree<Store<N>>, link: &Link, tail: &Tail, found: BlockAddr) -> Result<(), N::Error> {
    let store = tree.pages_mut();
    // No page is added to a block that was open: what the cut left there may look erased.
    let needed = if tail.suspect.is_some() || !store.overlay.is_empty() {
        1 + store.overlay.len() + u32::from(tail.root.height) + 2
    } else {
        0
    };
    // What the tail was read through stays: if its newest page is lost, what came before it is read once more.
    let safe: Vec<BlockAddr> = store
        .space
        .blocks()
        .filter(|block| link.safe[block.0 as usize] && !tail.visited.contains(block))
        .filter(|&block| store.space.role(block) == Role::Data && store.space.live_in(block).is_empty())
        .collect();
    for block in safe {
        // Twice what it takes and a block, since a program may fail.
        if needed == 0 || store.space.room() >= 2 * needed + store.space.pages_per_block() {
            break;
        }
        if store.erase(block)? {
            store.space.set_role(block, Role::Ready);
            store.space.ready.push_back(block);
        }
    }
    // The superblock that is to be written may be the page that the next cut tears. So it calls no block safe that the one
    // found does not.
    for block in store.space.blocks() {
        if !link.safe[block.0 as usize] || tail.visited.contains(&block) {
            store.space.hold(block);
        }
    }
    store.is_forced = true;
    store.is_repair = true;
    if let Some(page) = tail.suspect {
        tree.relocate(page)?;
    }
    if !tree.pages().overlay.is_empty() {
        tree.settle()?;
    }
    let store = tree.pages_mut();
    store.is_forced = false;
    store.is_repair = false;
    store.write_anchor_superblock(found)?;
    // The old chain is no longer needed.
    for block in store.space.blocks() {
        if store.space.role(block) == Role::Chain {
            store.space.set_role(block, Role::Data);
        }
    }
    // Now that one is there, another may say what else is safe, so that the next mount finds blocks even if cuts follow each
    // other and nothing is changed in between.
    let is_short = (link.safe.iter().filter(|is_safe| **is_safe).count() as u32) < 2 * super::room::RESERVE_BLOCKS;
    if is_short { store.append_anchor_superblock() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use core::ops::{Bound, ControlFlow};

    use nandu_index::{Direction, OrderedIndex};
    use nandu_media::checksum::checksum;
    use nandu_nand::PageAddr;
    use nandu_sim::{Chip, Sim};
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::super::{DurableOptions, DurableTree};
    use crate::TreeKind;

    /// Whatever is done with a tree; calls may fail.
    fn use_it(chip: Sim, options: DurableOptions) {
        let Ok(mut tree) = DurableTree::mount(chip, options) else { return };
        let _ = tree.verify(&mut |_| {});
        for direction in [Direction::Forward, Direction::Backward] {
            let _ = tree.range(Bound::Unbounded, Bound::Unbounded, direction, &mut |_| ControlFlow::Continue(()));
        }
        for key in 0..40 {
            let _ = tree.insert(key * 900, key);
            let _ = tree.delete(key * 500);
        }
    }

    /// Pages with a word changed and a checksum that is right again: refused or not, nothing panics or goes on for long.
    #[test]
    fn no_image_makes_a_mount_panic() {
        for (kind, journal_nodes) in [(TreeKind::Mu, 0), (TreeKind::BPlus, 0), (TreeKind::BPlus, 3)] {
            let options = DurableOptions { journal_nodes, ..DurableOptions::new(kind) };
            let mut tree = DurableTree::format(Sim::new(Chip::TINY), options).unwrap();
            for key in 0..70 {
                tree.insert(key * 1000, key).unwrap();
            }
            let chip = tree.into_nand();
            let mut random = ChaCha8Rng::seed_from_u64(1);
            for _ in 0..600 {
                let mut damaged = chip.clone();
                for _ in 0..random.random_range(1..4) {
                    let page = PageAddr(random.random_range(0..chip.chip().geometry.page_count()));
                    let mut bytes = damaged.peek(page);
                    bytes.truncate(256);
                    let at = random.random_range(2..64_usize) * 4;
                    let value = match random.random_range(0..3) {
                        0 => random.random::<u32>(),
                        1 => random.random_range(0..200),
                        _ => u32::MAX,
                    };
                    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                    let crc = checksum(&bytes[8..]);
                    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
                    damaged.poke(page, &bytes);
                }
                use_it(damaged, options);
            }
        }
    }
}
