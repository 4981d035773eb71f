//! What the tree did.

/// What the tree did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Leaves that overflowed and shared with a neighbour.
    pub shares: u64,
    /// Pairs of full leaves that became three.
    pub triples: u64,
    /// Leaves that took in a neighbour, since both fitted one page.
    pub joins: u64,
    /// Leaves that were split without a neighbour.
    pub splits: u64,
    /// Leaves begun behind a full one, for ascending keys.
    pub starts: u64,
    /// Inner nodes split.
    pub inner_splits: u64,
    /// Leaves that did not fit the page of their path and got one of their own.
    pub detached: u64,
    /// Pages moved for the collector.
    pub moves: u64,
    /// And those moved as commits, since no block could be opened for them.
    pub moved_by_commit: u64,
    /// Commits that hold no node.
    pub bare_commits: u64,
    /// And those that hold a value.
    pub blobs: u64,
    /// Times that all live pages were named to the log.
    pub recounts: u64,
}
