//! Which parts of nandu are compiled.
//!
//! A part that is left out costs no code: each of these is a constant, and what a component that is not there says of itself (that it is
//! empty, that there are no such pages) follows from it, so the compiler drops what would be done otherwise. The switches stand in
//! the components themselves, not in those who use them. Bytes on flash are the same whatever is compiled: a volume that uses a part that is not
//! there is refused, and the error names the feature.

/// Changes that wait in memory for a sync, and the pages that make them durable.
pub const GROUP: bool = cfg!(feature = "group");

/// Snapshots.
pub const SNAPSHOTS: bool = cfg!(feature = "snapshots");

/// Values that do not fit a leaf of a store.
pub const BLOBS: bool = cfg!(feature = "blobs");

/// Pages without headers, which hold the content of files.
pub const FILES: bool = cfg!(feature = "files");

/// Blocks with two bits a cell.
pub const MLC: bool = cfg!(feature = "mlc");

/// Tags in the protected spare bytes, which make a page of a file durable by its own program.
pub const TAGS: bool = cfg!(feature = "tags");
