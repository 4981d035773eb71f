//! Ranges, both ways.

use core::ops::{Bound, ControlFlow};

use nandu_index::Direction;
use nandu_nand::Nand;

use super::unit::Node;
use super::{Bftl, ROOT};
use crate::pages::Result;

type Visit<'a> = &'a mut dyn FnMut(u32, u32) -> ControlFlow<()>;

/// Between two bounds, both of which belong to it.
#[derive(Clone, Copy)]
struct Span {
    low: u32,
    high: u32,
}

impl Span {
    /// None if no key can be between the bounds.
    fn of(from: Bound<u32>, to: Bound<u32>) -> Option<Span> {
        let low = match from {
            Bound::Included(key) => key,
            Bound::Excluded(key) => key.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let high = match to {
            Bound::Included(key) => key,
            Bound::Excluded(key) => key.checked_sub(1)?,
            Bound::Unbounded => u32::MAX,
        };
        (low <= high).then_some(Span { low, high })
    }
}

impl<N: Nand> Bftl<N> {
    pub(super) fn scan(
        &mut self,
        from: Bound<u32>,
        to: Bound<u32>,
        direction: Direction,
        visit: Visit<'_>,
    ) -> Result<(), N::Error> {
        let Some(span) = Span::of(from, to) else { return Ok(()) };
        let root = self.node(ROOT)?;
        self.scan_node(&root, span, direction, visit).map(drop)
    }

    /// Each call goes down a level, so there are no more of them than the root's level.
    fn scan_node(
        &mut self,
        node: &Node,
        span: Span,
        direction: Direction,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>, N::Error> {
        let (first, end) = if node.level == 0 {
            let first = node.entries.partition_point(|entry| entry.key < span.low);
            (first, node.entries.partition_point(|entry| entry.key <= span.high))
        } else {
            (node.child_index(span.low), node.child_index(span.high) + 1)
        };
        let end = end.min(node.entries.len());
        for step in 0..end.saturating_sub(first) {
            let at = if direction == Direction::Forward { first + step } else { end - 1 - step };
            let entry = node.entries[at];
            let flow = if node.level == 0 {
                visit(entry.key, entry.value)
            } else {
                let child = self.child(entry.value, node.level)?;
                self.scan_node(&child, span, direction, visit)?
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
