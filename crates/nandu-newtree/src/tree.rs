//! What operations work on.

use nandu_nand::Nand;
use nandu_newlog::Log;

use crate::path::Path;
use crate::reader::Reader;

/// The path, what is read, and the log under both. Operations are functions on it; each part keeps its own fields to itself.
pub(crate) struct Tree<'m, N: Nand, C> {
    pub(crate) log: Log<'m, N>,
    pub(crate) path: Path<'m, C>,
    pub(crate) reader: Reader<'m, C>,
}
