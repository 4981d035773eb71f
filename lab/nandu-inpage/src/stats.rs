//! What an index did since it was opened.

/// Counts since the index was opened. What the chip did, it counts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes asked for.
    pub references: u64,
    /// Of these, found in the buffer.
    pub hits: u64,
    /// Leaves asked for.
    pub leaf_references: u64,
    /// Of these, found in the buffer.
    pub leaf_hits: u64,
    /// Nodes read from flash into the buffer or to be flushed.
    pub loads: u64,
    /// Log pages read with them.
    pub log_pages_read: u64,
    /// Log sectors or log pages programmed.
    pub log_programs: u64,
    /// Nodes programmed, those of merges not counted.
    pub node_programs: u64,
    /// Blocks merged.
    pub merges: u64,
    /// Of these, before their log was full.
    pub early_merges: u64,
    /// Blocks merged so that they wear as others do.
    pub levellings: u64,
    /// Leaves whose changes a merge took along.
    pub absorbed: u64,
    /// Pages read by merges.
    pub merge_reads: u64,
    /// Nodes programmed by merges.
    pub merge_programs: u64,
    /// Blocks emptied to make room.
    pub evacuations: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Nodes split.
    pub splits: u64,
    /// Leaves removed because they were empty.
    pub removals: u64,
    /// Clean units dropped.
    pub clean_drops: u64,
    /// Nodes dropped from units that kept their changes.
    pub base_drops: u64,
    /// Units with changes evicted.
    pub dirty_evictions: u64,
    /// Journal pages programmed.
    pub journal_programs: u64,
    /// Pages and log sectors that were neither erased nor valid when the index was opened: what cuts tore, unless the power was
    /// never cut.
    pub torn: u64,
    /// Reads that needed so much correction that their block is merged.
    pub refreshes: u64,
}

/// How large an index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Nodes in all.
    pub nodes: u32,
    /// Levels.
    pub height: u8,
    /// Blocks that hold nodes.
    pub blocks_used: u32,
    /// Blocks of the journal.
    pub blocks_journal: u32,
    /// Blocks that are free.
    pub blocks_free: u32,
    /// Blocks that are bad.
    pub blocks_bad: u32,
    /// Most erases of a block that is not bad.
    pub erase_count_max: u32,
    /// Mean of the erases of the blocks that are not bad.
    pub erase_count_mean: u32,
}
