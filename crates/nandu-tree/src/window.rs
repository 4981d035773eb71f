//! The window: commits before the newest one whose changes are still needed.
//!
//! Members leave in their order, the oldest first (W2): a newer one that left before an older one would leave the older one's value of a key to be replayed over what a leaf
//! holds. A page stays where it is while it is a member, whether anything else in it lives or not.

use nandu_media::features::GROUP;
use nandu_media::path::WINDOW_MAX;
use nandu_nand::PageAddr;

use crate::changes::UNSYNCED;
use crate::order::Left;

/// Members at most: those that the newest commit names, and that itself.
const MEMBERS: usize = if GROUP { WINDOW_MAX + 1 } else { 0 };

/// Members that a commit may name in any case: one that leaves, and one that takes over what waits.
const MEMBERS_LEAST: usize = 2;

/// Levels of a tree in which a record takes no more reads than the window leaves room for.
const LEVELS_MAX: u8 = 3;

/// What is known of a member's page besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// Its lowest node is part of the tree, or a head names the value in it.
    Lives,
    /// It is not: the page dies when the member leaves.
    Dead,
    /// Nobody looked since the volume was opened.
    Unknown,
}

/// A commit whose changes are needed.
#[derive(Clone, Copy, Debug)]
struct Member {
    page: u32,
    slot: u8,
    leaf: Leaf,
}

/// The members, the oldest first.
#[derive(Debug)]
pub(crate) struct Window {
    members: [Member; MEMBERS],
    count: usize,
    next_slot: u8,
    /// Members that are kept: beyond that one more leaves with each commit than comes.
    most: u8,
}

impl Window {
    pub(crate) const EMPTY: Window = Window {
        members: [Member { page: u32::MAX, slot: 0, leaf: Leaf::Unknown }; MEMBERS],
        count: 0,
        next_slot: 0,
        most: WINDOW_MAX as u8,
    };

    /// A mount reads so many pages besides, those of the log's table among them, and where files are, a record in a tree of this height. With them the members are [`WINDOW_MAX`] pages at most where it has [`LEVELS_MAX`] levels, and where it is higher so many fewer;
    /// so it reads no more where table or tree are large. There are [`MEMBERS_LEAST`] in any case. Where there are more by now, they leave one by one.
    pub(crate) fn limit(&mut self, others: usize, height: u8) {
        let others = others + usize::from(height.saturating_sub(LEVELS_MAX));
        self.most = WINDOW_MAX.saturating_sub(others).max(MEMBERS_LEAST) as u8;
    }

    /// Members that are kept.
    pub(crate) fn most(&self) -> usize {
        usize::from(self.most)
    }

    fn all(&self) -> &[Member] {
        &self.members[..self.len()]
    }

    fn all_mut(&mut self) -> &mut [Member] {
        let count = self.len();
        &mut self.members[..count]
    }

    pub(crate) fn len(&self) -> usize {
        if GROUP { self.count } else { 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are more members than are kept: one has to leave with the next commit.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > self.most()
    }

    /// Whether a page is a member.
    pub(crate) fn contains(&self, page: u32) -> bool {
        self.all().iter().any(|member| member.page == page)
    }

    /// The members' slots, the oldest first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u8> + '_ {
        self.all().iter().map(|member| member.slot)
    }

    /// The members' pages, the oldest first.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u32> + '_ {
        self.all().iter().map(|member| member.page)
    }

    /// Pages of the members that live as such only; of so many of the oldest ones.
    pub(crate) fn lonely(&self, count: usize) -> impl Iterator<Item = PageAddr> + '_ {
        let is_lonely = |member: &&Member| member.leaf == Leaf::Dead;
        self.all().iter().take(count).filter(is_lonely).map(|member| PageAddr(member.page))
    }

    /// Whether somebody looked at so many of the oldest ones.
    pub(crate) fn is_known(&self, count: usize) -> bool {
        self.all().iter().take(count).all(|member| member.leaf != Leaf::Unknown)
    }

    /// Pages that may yet live as members only.
    pub(crate) fn lonely_left(&self) -> usize {
        MEMBERS - self.lonely(MEMBERS).count()
    }

    /// The slot of the member that comes next. No member has it.
    pub(crate) fn next_slot(&self) -> u8 {
        debug_assert!(self.slots().all(|slot| slot != self.next_slot), "there are more slots than members");
        self.next_slot
    }

    /// The newest member.
    pub(crate) fn push(&mut self, page: u32, leaf: Leaf) {
        debug_assert!(!self.contains(page), "a page is a member once");
        assert!(self.count < self.members.len(), "one left before");
        self.members[self.count] = Member { page, slot: self.next_slot(), leaf };
        self.count += 1;
        self.next_slot = (self.next_slot + 1) % UNSYNCED;
    }

    /// The oldest members leave: a commit lists what still waited of them.
    pub(crate) fn leave(&mut self, left: &Left) {
        let count = left.count();
        debug_assert!(count <= self.len(), "members that there are");
        self.all_mut().copy_within(count.., 0);
        self.count = self.len() - count;
    }

    /// The lowest node of a page is not part of the tree any more. Returns whether the page is needed all the same.
    pub(crate) fn leaf_died(&mut self, page: u32) -> bool {
        let member = self.all_mut().iter_mut().find(|member| member.page == page);
        match member {
            Some(member) => {
                debug_assert!(member.leaf != Leaf::Dead, "a node dies once");
                member.leaf = Leaf::Dead;
                true
            }
            None => false,
        }
    }

    /// A member of whose page nobody knows whether its lowest node is part of the tree.
    pub(crate) fn unknown(&self) -> Option<u32> {
        self.all().iter().find(|member| member.leaf == Leaf::Unknown).map(|member| member.page)
    }

    /// That was found out.
    pub(crate) fn resolve(&mut self, page: u32, leaf: Leaf) {
        debug_assert!(leaf != Leaf::Unknown, "somebody looked");
        for member in self.all_mut().iter_mut().filter(|member| member.page == page) {
            member.leaf = leaf;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use nandu_nand::PageAddr;

    use super::{Leaf, Window};
    use crate::order::{Carried, Committed};

    #[test]
    fn where_the_table_is_large_fewer_commits_are_needed() {
        let mut window = Window::EMPTY;
        for (table_pages, most) in [(0, 12), (3, 9), (9, 3), (20, 2)] {
            window.limit(table_pages, 2);
            assert_eq!(window.most(), most);
        }
    }

    #[test]
    fn where_the_tree_is_high_fewer_commits_are_kept() {
        let mut window = Window::EMPTY;
        for (height, most) in [(1, 9), (3, 9), (5, 7), (20, 2), (2, 9)] {
            window.limit(3, height);
            assert_eq!(window.most(), most);
        }
    }

    #[test]
    fn the_oldest_leave_first_and_slots_are_used_again() {
        let mut window = Window::EMPTY;
        for page in 0..100 {
            if window.is_full() {
                let left = Carried::of(1 + page as usize % 2).with(&Committed::at(PageAddr(page)));
                window.leave(&left);
            }
            let slot = window.next_slot();
            window.push(page, if page % 3 == 0 { Leaf::Dead } else { Leaf::Lives });
            assert_eq!((window.slots().last(), window.pages().last()), (Some(slot), Some(page)));
            let pages: Vec<_> = window.pages().collect();
            assert!(pages.is_sorted() && pages.len() <= 13 && window.contains(page));
        }
    }

    #[test]
    fn a_member_whose_leaf_died_is_needed_until_it_leaves() {
        let mut window = Window::EMPTY;
        window.push(7, Leaf::Lives);
        window.push(8, Leaf::Unknown);
        assert!(window.leaf_died(7) && !window.leaf_died(9));
        assert_eq!(window.unknown(), Some(8));
        window.resolve(8, Leaf::Lives);
        assert_eq!(window.unknown(), None);
        assert_eq!(window.lonely(2).collect::<Vec<_>>(), [PageAddr(7)]);
        assert_eq!(window.lonely(0).count(), 0);
    }
}
