//! How large keys, entries and inner nodes may be.
//!
//! Every path must fit a page whenever it is written, although its nodes were last written at different times, each
//! with other nodes above and below. So each level has a share of the page that its nodes keep to at all times; the
//! shares of all levels together leave room for a small leaf. The shares are wide: what decides in practice are the
//! numbers of children of [`Limits::should_split`].

/// Thousandths of the page that an inner node may take.
#[derive(Debug)]
struct Share {
    inner: u16,
    /// Of a root, which has no level above it that needs room.
    root: u16,
}

/// The share of each level; level 0 has no inner nodes. There are as many as a tree may have levels.
type Shares = &'static [Share];

const SHARES: Shares = &shares([0, 300, 160, 120, 80, 80, 80, 80], [0, 600, 320, 180, 120, 120, 120, 120]);

/// On a page of a few hundred bytes a small share would hold one child: fewer levels, with larger shares.
const SMALL_SHARES: Shares = &shares([0, 250, 220, 200, 200], [0, 600, 400, 300, 200]);

const fn shares<const LEVELS: usize>(inner: [u16; LEVELS], root: [u16; LEVELS]) -> [Share; LEVELS] {
    let mut shares = [const { Share { inner: 0, root: 0 } }; LEVELS];
    let mut level = 0;
    while level < LEVELS {
        shares[level] = Share { inner: inner[level], root: root[level] };
        level += 1;
    }
    shares
}

/// No tree is higher.
const HEIGHT_MAX: usize = 8;

const _: () = assert!(SHARES.len() == HEIGHT_MAX);

/// How large keys, entries and inner nodes of a tree may be. See the module.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    page_size: usize,
    shares: Shares,
    /// Bytes for nodes in a page with as many levels and as long a locator as can be.
    room: usize,
    /// Bytes in the longest key.
    pub key_size_max: usize,
    /// Bytes of key and value of an entry together, at most.
    pub entry_size_max: usize,
    /// Children of an inner node for a hundred that it would have with integers as cells.
    width: u8,
    /// Whether nodes of level 1 have four times the root's children in a tree of four levels or more.
    has_wide_leaders: bool,
    /// Share of a page that all inner nodes but those of level 1 may take together, in thousandths.
    root_share: u16,
}

impl Limits {
    /// Of a tree that does not know its medium yet: nothing fits.
    pub const NONE: Limits = Limits {
        page_size: 0,
        shares: SHARES,
        room: 0,
        key_size_max: 0,
        entry_size_max: 0,
        width: 0,
        has_wide_leaders: true,
        root_share: 0,
    };

    /// `None` if the page is too small for a tree. `front` says where the lowest node stands in a page with so many levels and a locator of so
    /// many bytes.
    pub fn new(
        (page_size, header_size): (usize, usize),
        front: impl Fn(usize, usize) -> usize,
        key_size: u8,
        cache_size: usize,
    ) -> Option<Limits> {
        let body = page_size.checked_sub(header_size)?;
        let key_size_max = match key_size {
            0 if body < 1024 => body / 16,
            0 => (body / 8).min(nandu_index::KEY_SIZE_MAX),
            size => size as usize,
        };
        let shares = if body < 1024 { SMALL_SHARES } else { SHARES };
        let room = page_size.checked_sub(front(shares.len(), key_size_max))?;
        // With a cache small roots pay: more of the page is left for leaves. Without one a higher tree costs reads.
        let root_share = if cache_size > 0 { 150 } else { 700 };
        // Beside a short path a leaf is filled so far that it does not fit beside the path as it grows, and needs a page of its
        // own. Byte strings are large, so that long paths cost most: measured on core/skew, whose entries are a quarter of a
        // page, with 160 here one entry less fits beside a grown path, the tree grows by 2 % while it is only updated, and
        // pages of two kinds move instead of one (write amplification 2.65, not 2.33, and with another seed 3.5, not
        // 1.43). Longer paths let more inner nodes of small entries stay in memory.
        let width = if key_size == 0 { 115 } else { 100 };
        let limits = Limits {
            width,
            page_size,
            shares,
            room,
            key_size_max,
            entry_size_max: room / 4,
            has_wide_leaders: true,
            root_share,
        };
        (room >= 100 && page_size <= 65_536).then_some(limits)
    }

    /// The same where all levels below the root have as many children. Then the inner nodes of a path take the least room together, and more is left for its leaf.
    pub fn with_even_levels(self) -> Limits {
        Limits { has_wide_leaders: false, ..self }
    }

    /// Most levels of a tree.
    pub fn height_max(&self) -> usize {
        self.shares.len()
    }

    /// Whether an inner node of this level, with so many children and bytes, must be split to keep to its share.
    pub fn must_split(&self, level: u8, height: u8, children: usize, size: usize) -> bool {
        let share = &self.shares[level as usize];
        let share = if level + 1 == height { share.root } else { share.inner };
        children >= 2 && size > self.room * usize::from(share) / 1000
    }

    /// Bytes that a root takes at most in a tree as high as can be, where it is not divided: its share, and half of what those of all levels leave. The other half is for nodes that were
    /// made while the tree was lower.
    pub fn highest_root_size(&self) -> usize {
        let top = self.height_max() - 1;
        let below: u16 = self.shares[..top].iter().map(|share| share.inner).sum();
        self.room * usize::from((1000 - below + self.shares[top].root) / 2) / 1000
    }

    /// Bytes that an inner node of this level takes when it is about to be split, if each child of it takes
    /// `child_size` and the root has `root_children`.
    pub fn grown_size(&self, level: u8, height: u8, child_size: usize, root_children: usize) -> usize {
        let share = self.room * usize::from(self.shares[level as usize].inner) / 1000;
        (self.children_max(level, height, root_children) * child_size).min(share)
    }

    /// Bytes that a root takes when it is about to be split.
    pub fn grown_root_size(&self, height: u8) -> usize {
        let level = (height as usize - 1).max(1);
        let share = usize::from(self.shares[level].root);
        (self.page_size * usize::from(self.root_share) / 1000 / level).min(self.room * share / 1000)
    }

    /// Children of an inner node below the root above which it is split.
    fn children_max(&self, level: u8, height: u8, root_children: usize) -> usize {
        let children = match level {
            1 if height >= 4 && self.has_wide_leaders => (4 * root_children).max(24),
            1 => (root_children + root_children / 2).max(24),
            _ => (root_children + root_children / 2).max(12),
        };
        children * usize::from(self.width) / 100
    }

    /// Whether splitting it makes the tree better: inner nodes are rewritten with each leaf below them, so none should
    /// be much larger than the root.
    pub fn should_split(&self, level: u8, height: u8, children: usize, size: usize, root_children: usize) -> bool {
        if children < 8 {
            return false;
        }
        if level + 1 == height {
            return size > self.page_size * usize::from(self.root_share) / 1000 / level as usize;
        }
        children > self.children_max(level, height, root_children)
    }
}
