//! Orders that do not compile: what may happen to a member of the window only when a commit is durable.
//!
//! A page that lists what still waited of the oldest members is [`Carried`]; the program of that page returns [`Committed`]; and only both together are
//! [`Left`], with which the members leave the window and may die.
//!
//! A member does not leave before what it lists was listed again by a commit:
//!
//! ```compile_fail,E0451
//! use nandu_tree::order::{Carried, Committed};
//! use nandu_nand::PageAddr;
//! fn wrong(carried: Carried) {
//!     let _ = carried.with(&Committed { page: PageAddr(7) }); // Nothing was programmed.
//! }
//! ```
//!
//! ```compile_fail,E0451
//! use nandu_tree::order::Left;
//! let left = Left { count: 1 }; // Nobody carried what it lists.
//! ```
//!
//! And it leaves once:
//!
//! ```compile_fail,E0382
//! use nandu_tree::order::{Carried, Committed};
//! fn wrong(carried: Carried, commit: &Committed) {
//!     let _ = (carried.with(commit), carried.with(commit));
//! }
//! ```

use nandu_nand::PageAddr;

/// What still waited of so many of the oldest members stands in a page that is programmed next.
#[derive(Debug)]
#[must_use = "the members leave when the page is durable"]
pub struct Carried {
    count: usize,
}

impl Carried {
    pub(crate) fn of(count: usize) -> Carried {
        Carried { count }
    }

    /// How many members.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The page is durable: the members may leave.
    pub fn with(self, commit: &Committed) -> Left {
        debug_assert!(commit.page.0 != u32::MAX, "a page that is on flash");
        Left { count: self.count }
    }
}

/// A commit that is durable.
#[derive(Debug)]
pub struct Committed {
    page: PageAddr,
}

impl Committed {
    /// The log returned this page of a commit.
    pub(crate) fn at(page: PageAddr) -> Committed {
        Committed { page }
    }

    /// Its page.
    pub fn page(&self) -> PageAddr {
        self.page
    }
}

/// So many of the oldest members of the window are needed no longer.
#[derive(Debug)]
#[must_use = "members that are not needed leave"]
pub struct Left {
    count: usize,
}

impl Left {
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}
