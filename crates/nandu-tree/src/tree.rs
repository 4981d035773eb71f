//! What operations work on.

use nandu_log::Log;
use nandu_nand::Nand;
use nandu_nand::PageAddr;

use crate::path::Path;
use crate::reader::Reader;

/// The path, what is read, and the log under both. Operations are functions on it; each part keeps its own fields to itself.
pub(crate) struct Tree<'m, N: Nand, C> {
    pub(crate) log: Log<'m, N>,
    pub(crate) path: Path<'m, C>,
    pub(crate) reader: Reader<'m, C>,
}

/// Who is shown pages that live, each with the key of the record that names it; empty for a page of the tree.
pub(crate) type Visit<'v, N> = &'v mut dyn FnMut(&mut Log<'_, N>, PageAddr, &[u8]);
