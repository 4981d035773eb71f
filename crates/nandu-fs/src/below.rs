//! The tree and the log below, by the names that they have here.

use nandu_nand::Nand;
use nandu_tree::{ByteCells, OnLog, Tree};

pub use nandu_log::{LogStats, Violation as LogViolation};
pub use nandu_tree::{PageDamage, Violation as TreeViolation};
pub(crate) use nandu_tree::{TAG_OWNER_SIZE, TreeError};

/// The tree that holds everything.
pub(crate) type FileTree<'m, N> = Tree<'m, OnLog<'m, N>, ByteCells>;

pub(crate) fn stats<N: Nand>(tree: &FileTree<'_, N>) -> LogStats {
    tree.pages().log().stats()
}

pub(crate) fn nand<'t, N: Nand>(tree: &'t FileTree<'_, N>) -> &'t N {
    tree.pages().log().nand()
}

pub(crate) fn nand_mut<'t, N: Nand>(tree: &'t mut FileTree<'_, N>) -> &'t mut N {
    tree.pages_mut().log_mut().nand_mut()
}

pub(crate) fn page_size<N: Nand>(tree: &FileTree<'_, N>) -> usize {
    tree.pages().log().page_size()
}

/// Whether the chip can only be read.
pub(crate) fn is_worn_out<N: Nand>(tree: &FileTree<'_, N>) -> bool {
    tree.pages().log().is_read_only()
}
