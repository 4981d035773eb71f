//! Puts a changed path into new pages. This is where the two trees differ.

use nandu_nand::PageAddr;

use crate::TreeKind;
use crate::entry::Entry;
use crate::layout::Image;
use crate::pages::{Pages, Result, Root};
use crate::tree::{PathNode, Tree};

/// What has become of a node: one page, or two and the key from which on the second one counts.
#[derive(Clone, Copy)]
pub(super) enum Placed {
    Whole(PageAddr),
    Split { left: PageAddr, right: PageAddr, separator: u32 },
}

/// The entries of a parent after a child was placed.
fn point(entries: &mut Vec<Entry>, index: usize, child: Placed) {
    match child {
        Placed::Whole(page) => entries[index].value = page.0,
        Placed::Split { left, right, separator } => {
            entries[index].value = left.0;
            entries.insert(index + 1, Entry { key: separator, value: right.0 });
        }
    }
}

impl<P: Pages> Tree<P> {
    /// Writes the nodes of the path from level `from` up to the height of `root` into new pages, makes all nodes on the
    /// path superseded, and ends the operation. `first` is the level of the path's first node. On return `root` is the tree's.
    pub(super) fn replace(
        &mut self,
        first: u8,
        from: u8,
        early: Option<PageAddr>,
        mut root: Root,
    ) -> Result<(), P::Chip> {
        for (level, node) in (first..).zip(&self.path) {
            if let Some(page) = node.page {
                self.pages.supersede(page, level, node.lowest);
            }
        }
        let mut path = std::mem::take(&mut self.path);
        let skipped = usize::from(from - first);
        let kept = &mut path[skipped..skipped + usize::from(root.height - from) + 1];
        let outcome = match self.pages.kind() {
            TreeKind::Mu => self.replace_mu(kept, from, early, &mut root),
            TreeKind::BPlus => self.replace_bplus(kept, from, None, &mut root),
        };
        self.path = path;
        outcome?;
        self.pages.end(&mut root)?;
        self.root = root;
        Ok(())
    }

    /// One page takes the path. Where a node splits, one half stays in the page with the children it points to, and the
    /// other half begins a new page, in which the path goes on; so the page with the root is allocated last.
    fn replace_mu(
        &mut self,
        nodes: &mut [PathNode],
        from: u8,
        early: Option<PageAddr>,
        root: &mut Root,
    ) -> Result<(), P::Chip> {
        let layout = *self.pages.layout();
        let old_height = root.height;
        let mut page = match early {
            Some(page) => page,
            None => self.pages.allocate()?,
        };
        // What splits decides how large the root's room is, and the root is the last to be known; so nodes are placed first
        // and put into images after.
        let mut placed: Vec<(PageAddr, u8, Vec<Entry>)> = Vec::new();
        let mut child = None;
        for (level, PathNode { entries, index, .. }) in (from..=old_height).zip(nodes.iter_mut()) {
            if let Some(child) = child {
                point(entries, *index, child);
            }
            let capacity = layout.capacity(level, old_height);
            // The root is split as soon as it is full: its size is that of its halves one level higher.
            let is_split = entries.len() > capacity || (level == old_height && entries.len() >= capacity);
            if !is_split {
                placed.push((page, level, std::mem::take(entries)));
                child = Some(Placed::Whole(page));
                continue;
            }
            let right = entries.split_off(entries.len().div_ceil(2));
            let left = std::mem::take(entries);
            let separator = right[0].key;
            let next = self.pages.allocate()?;
            // Descendant and ancestor: in a page, a node is the child of the one above it. So the half that points to this
            // page stays in it, and the parent takes each half's own page.
            let right_stays = level > from && right.iter().any(|entry| entry.value == page.0);
            let (left_page, right_page) = if right_stays { (next, page) } else { (page, next) };
            let (stays, goes) = if right_stays { (right, left) } else { (left, right) };
            placed.push((page, level, stays));
            placed.push((next, level, goes));
            page = next;
            child = Some(Placed::Split { left: left_page, right: right_page, separator });
            self.count_split(level);
        }
        if let Some(Placed::Split { left, right, separator }) = child {
            let lowest = placed.iter().find(|(at, level, _)| *at == left && *level == old_height);
            let key = lowest.and_then(|(_, _, entries)| entries.first()).map_or(0, |entry| entry.key);
            root.height += 1;
            let entries = vec![Entry { key, value: left.0 }, Entry { key: separator, value: right.0 }];
            placed.push((page, root.height, entries));
        }
        root.page = Some(page);
        self.put_images(placed, root.height);
        Ok(())
    }

    /// Each node has a page of its own, the leaf's first, the root's last. `child` is what was placed below the first node
    /// before, with its lowest key.
    pub(super) fn replace_bplus(
        &mut self,
        nodes: &mut [PathNode],
        from: u8,
        child: Option<(u32, Placed)>,
        root: &mut Root,
    ) -> Result<(), P::Chip> {
        let capacity = self.pages.layout().capacity(1, 1);
        let mut placed: Vec<(PageAddr, u8, Vec<Entry>)> = Vec::new();
        let (mut lowest_key, mut child) = child.unzip();
        for (level, PathNode { entries, index, .. }) in (from..=root.height).zip(nodes.iter_mut()) {
            if let Some(child) = child {
                point(entries, *index, child);
            }
            lowest_key = entries.first().map(|entry| entry.key);
            let left_page = self.pages.allocate()?;
            if entries.len() <= capacity {
                placed.push((left_page, level, std::mem::take(entries)));
                child = Some(Placed::Whole(left_page));
                root.page = Some(left_page);
                continue;
            }
            let right = entries.split_off(entries.len().div_ceil(2));
            let separator = right[0].key;
            let right_page = self.pages.allocate()?;
            placed.push((left_page, level, std::mem::take(entries)));
            placed.push((right_page, level, right));
            child = Some(Placed::Split { left: left_page, right: right_page, separator });
            self.count_split(level);
        }
        if let Some(Placed::Split { left, right, separator }) = child {
            root.height += 1;
            let page = self.pages.allocate()?;
            let entries =
                vec![Entry { key: lowest_key.unwrap_or(0), value: left.0 }, Entry { key: separator, value: right.0 }];
            placed.push((page, root.height, entries));
            root.page = Some(page);
        }
        self.put_images(placed, root.height);
        Ok(())
    }

    /// Makes pages of nodes; those of one page follow each other, from the bottom up.
    fn put_images(&mut self, placed: Vec<(PageAddr, u8, Vec<Entry>)>, height: u8) {
        let layout = *self.pages.layout();
        let mut images: Vec<(PageAddr, Image)> = Vec::new();
        for (page, level, entries) in placed {
            let at = images.iter().position(|(held, _)| *held == page).unwrap_or_else(|| {
                images.push((page, Image::new(&layout)));
                images.len() - 1
            });
            images[at].1.set(level, height, &entries);
        }
        for (page, image) in images {
            self.pages.put(page, image);
        }
    }

    fn count_split(&mut self, level: u8) {
        let stats = self.pages.stats_mut();
        let count = if level == 1 { &mut stats.leaf_splits } else { &mut stats.index_splits };
        *count += 1;
    }
}
