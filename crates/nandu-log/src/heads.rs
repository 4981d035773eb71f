//! Where each stream stands.

use nandu_media::{Position, STREAM_COUNT_MAX};
use nandu_nand::Nand;

use crate::block_table::{HELD, State};
use crate::log::Log;
use crate::ready::Frontier;

impl<N: Nand> Log<'_, N> {
    /// Where each stream stands.
    pub(crate) fn positions(&self) -> [Position; STREAM_COUNT_MAX] {
        self.frontiers.map(|frontier| match frontier {
            Some(Frontier { slot, next, .. }) if next > 0 => Position::new(slot, next - 1).unwrap_or(Position::NONE),
            _ => Position::NONE,
        })
    }

    /// Where each stream stands, counting the page that is about to be programmed in one of them.
    pub(crate) fn positions_with(&self, stream: u8) -> [Position; STREAM_COUNT_MAX] {
        let mut positions = self.positions();
        if let Some(frontier) = &self.frontiers[stream as usize] {
            positions[stream as usize] = Position::new(frontier.slot, frontier.next).unwrap_or(Position::NONE);
        }
        positions
    }

    /// Closes the block of a stream.
    pub(crate) fn close(&mut self, stream: u8, state: State) {
        if let Some(frontier) = &mut self.frontiers[stream as usize] {
            frontier.is_closed = true;
            let block = frontier.block;
            self.blocks.set_state(block, state);
            self.blocks.set(block, HELD, true);
            let geometry = &self.shape.geometry;
            let first = geometry.first_page(block).0;
            self.pairs.release_block(first..first + geometry.pages_per_block);
        }
    }

    pub(crate) fn open_mlc(&self, stream: u8) -> Option<Frontier> {
        if self.shape.exposed_max() == 0 || !self.shape.is_mlc_stream(stream) {
            return None;
        }
        self.frontiers[stream as usize].filter(|frontier| !frontier.is_closed)
    }
}
