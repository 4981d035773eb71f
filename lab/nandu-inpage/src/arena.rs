//! Memory of the buffer: frames for nodes, and sectors for changes, out of the same bytes.
//!
//! A frame takes a node and the changes by which it may be larger than a page. A frame that holds no node is divided into
//! chunks, one for the changes of a unit each. When there is no whole frame although enough chunks are free, the chunks of
//! the emptiest divided frame move to others; so bytes that are accounted free can always be had.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::nodes::NONE;

/// Most chunks of a frame.
pub(crate) const CHUNKS_MAX: usize = 64;

/// What a frame is used for.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct FrameEntry {
    /// Which chunks are taken.
    taken: u64,
    /// 1: the frame holds a node.
    is_whole: u32,
    reserved: u32,
}

/// A frame, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) u32);

/// A chunk, by number over all frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk(pub(crate) u32);

/// The frames of the buffer, and behind them those for work in between.
#[derive(Debug)]
pub(crate) struct Arena<'m> {
    bytes: &'m mut [u8],
    frames: &'m mut [FrameEntry],
    /// The unit of each chunk that is taken.
    owners: &'m mut [u32],
    frame_size: usize,
    chunk_size: usize,
    whole: u32,
    chunks: u32,
}

/// Frames for work in between: a node that is put together, one that is split off, one on the way from the root.
pub(crate) const SCRATCH_COUNT: usize = 3;

impl<'m> Arena<'m> {
    pub(crate) fn new(
        bytes: &'m mut [u8],
        frames: &'m mut [FrameEntry],
        owners: &'m mut [u32],
        node_size: usize,
        chunk_size: usize,
    ) -> Arena<'m> {
        frames.fill(FrameEntry { taken: 0, is_whole: 0, reserved: 0 });
        owners.fill(NONE);
        Arena { bytes, frames, owners, frame_size: node_size + chunk_size, chunk_size, whole: 0, chunks: 0 }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.frames.fill(FrameEntry { taken: 0, is_whole: 0, reserved: 0 });
        self.owners.fill(NONE);
        (self.whole, self.chunks) = (0, 0);
    }

    /// A scratch frame.
    pub(crate) fn scratch(&self, number: usize) -> Frame {
        Frame((self.frames.len() + number) as u32)
    }

    fn per_frame(&self) -> usize {
        self.frame_size / self.chunk_size
    }

    pub(crate) fn frame(&self, frame: Frame) -> &[u8] {
        &self.bytes[frame.0 as usize * self.frame_size..][..self.frame_size]
    }

    pub(crate) fn frame_mut(&mut self, frame: Frame) -> &mut [u8] {
        &mut self.bytes[frame.0 as usize * self.frame_size..][..self.frame_size]
    }

    pub(crate) fn chunk(&self, chunk: Chunk) -> &[u8] {
        &self.bytes[chunk.0 as usize * self.chunk_size..][..self.chunk_size]
    }

    pub(crate) fn chunk_mut(&mut self, chunk: Chunk) -> &mut [u8] {
        &mut self.bytes[chunk.0 as usize * self.chunk_size..][..self.chunk_size]
    }

    /// A frame to change and a chunk to read.
    pub(crate) fn frame_and_chunk(&mut self, frame: Frame, chunk: Chunk) -> (&mut [u8], &[u8]) {
        let (frame_at, frame_size) = (frame.0 as usize * self.frame_size, self.frame_size);
        let chunk_at = chunk.0 as usize * self.chunk_size;
        if chunk_at < frame_at {
            let (front, back) = self.bytes.split_at_mut(frame_at);
            (&mut back[..frame_size], &front[chunk_at..][..self.chunk_size])
        } else {
            let (front, back) = self.bytes.split_at_mut(frame_at + frame_size);
            (&mut front[frame_at..], &back[chunk_at - frame_at - frame_size..][..self.chunk_size])
        }
    }

    /// Two different frames, the first to read and the second to change.
    pub(crate) fn two_frames(&mut self, from: Frame, to: Frame) -> (&[u8], &mut [u8]) {
        let size = self.frame_size;
        let (low, high) = (from.0.min(to.0) as usize, from.0.max(to.0) as usize);
        let (front, back) = self.bytes.split_at_mut(high * size);
        let (first, second) = (&mut front[low * size..][..size], &mut back[..size]);
        if from.0 < to.0 { (first, second) } else { (second, first) }
    }

    /// Takes a frame. `moved` is told of each chunk that had to move: its unit and where it is now.
    pub(crate) fn take_frame(&mut self, mut moved: impl FnMut(u32, Chunk)) -> Option<Frame> {
        let is_empty = |frame: &FrameEntry| frame.is_whole == 0 && frame.taken == 0;
        let number = match self.frames.iter().position(is_empty) {
            Some(number) => number,
            None => self.empty_one(&mut moved)?,
        };
        self.frames[number].is_whole = 1;
        self.whole += 1;
        Some(Frame(number as u32))
    }

    /// Moves the chunks of the emptiest divided frame elsewhere.
    fn empty_one(&mut self, moved: &mut impl FnMut(u32, Chunk)) -> Option<usize> {
        let divided = self.frames.iter().enumerate().filter(|(_, frame)| frame.is_whole == 0);
        let (from, entry) = divided.min_by_key(|(_, frame)| frame.taken.count_ones())?;
        let taken = entry.taken;
        let per_frame = self.per_frame();
        let free: u32 = (self.frames.iter().enumerate())
            .filter(|&(number, frame)| number != from && frame.is_whole == 0)
            .map(|(_, frame)| per_frame as u32 - frame.taken.count_ones())
            .sum();
        if free < taken.count_ones() {
            return None;
        }
        for place in (0..per_frame).filter(|place| taken & 1 << place != 0) {
            let source = from * per_frame + place;
            let target = self.free_chunk(Some(from))?;
            let size = self.chunk_size;
            self.bytes.copy_within(source * size..(source + 1) * size, target * size);
            self.frames[target / per_frame].taken |= 1 << (target % per_frame);
            self.owners[target] = self.owners[source];
            moved(self.owners[target], Chunk(target as u32));
        }
        self.frames[from].taken = 0;
        Some(from)
    }

    /// A free chunk of the fullest divided frame that has one.
    fn free_chunk(&self, except: Option<usize>) -> Option<usize> {
        let per_frame = self.per_frame();
        let all = (1_u64 << (per_frame - 1) << 1).wrapping_sub(1);
        let divided = self.frames.iter().enumerate();
        let (number, frame) = divided
            .filter(|&(number, frame)| frame.is_whole == 0 && frame.taken != all && Some(number) != except)
            .max_by_key(|(_, frame)| frame.taken.count_ones())?;
        Some(number * per_frame + (!frame.taken).trailing_zeros() as usize)
    }

    /// Takes a chunk for a unit.
    pub(crate) fn take_chunk(&mut self, unit: u32) -> Option<Chunk> {
        let chunk = self.free_chunk(None)?;
        let per_frame = self.per_frame();
        self.frames[chunk / per_frame].taken |= 1 << (chunk % per_frame);
        self.owners[chunk] = unit;
        self.chunks += 1;
        Some(Chunk(chunk as u32))
    }

    pub(crate) fn give_frame(&mut self, frame: Frame) {
        self.frames[frame.0 as usize].is_whole = 0;
        self.whole -= 1;
    }

    pub(crate) fn give_chunk(&mut self, chunk: Chunk) {
        let per_frame = self.per_frame();
        self.frames[chunk.0 as usize / per_frame].taken &= !(1 << (chunk.0 as usize % per_frame));
        self.owners[chunk.0 as usize] = NONE;
        self.chunks -= 1;
    }

    /// Bytes as the buffer's size counts them: whole pages for a node, a sector for changes.
    pub(crate) fn accounted(&self) -> usize {
        self.whole as usize * (self.frame_size - self.chunk_size) + self.chunks as usize * self.chunk_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn scattered_chunks_make_room_for_a_frame_and_keep_their_bytes() {
        let mut bytes = [0; 5 * 6];
        let mut frames = [FrameEntry::new_zeroed(); 2];
        let mut owners = [0; 6];
        let mut arena = Arena::new(&mut bytes, &mut frames, &mut owners, 4, 2);
        let chunks: [Chunk; 6] = core::array::from_fn(|unit| arena.take_chunk(unit as u32).unwrap());
        assert_eq!(arena.take_chunk(6), None);
        assert_eq!(arena.accounted(), 12);
        for (unit, &chunk) in chunks.iter().enumerate() {
            arena.chunk_mut(chunk).fill(unit as u8);
        }
        for unit in [0, 1, 4] {
            arena.give_chunk(chunks[unit]);
        }
        let mut at = chunks;
        let frame = arena.take_frame(|unit, chunk| at[unit as usize] = chunk).unwrap();
        arena.frame_mut(frame).fill(0xFF);
        for unit in [2, 3, 5] {
            assert_eq!(arena.chunk(at[unit]), [unit as u8; 2]);
        }
        assert_eq!(arena.take_frame(|_, _| {}), None);
        assert_eq!(arena.accounted(), 4 + 3 * 2);
    }
}
