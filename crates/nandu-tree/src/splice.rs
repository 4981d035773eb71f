//! New children of an inner node.

use nandu_cells::plan::PARTS_MAX;
use nandu_cells::{InnerRun, SELF};
use nandu_index::KeyBuf;

/// What takes the place of children of an inner node. The separators between them stand in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splice {
    pub(crate) at: usize,
    pub(crate) removed: usize,
    pub(crate) count: usize,
    pub(crate) pages: [u32; PARTS_MAX],
}

impl Splice {
    /// So many children for the one here, all in the page of the path yet.
    pub(crate) fn new(at: usize, count: usize) -> Splice {
        debug_assert!((1..=PARTS_MAX).contains(&count), "one to three children");
        Splice { at, removed: 1, count, pages: [SELF; PARTS_MAX] }
    }

    pub(crate) fn run<'a>(
        &'a self,
        (node, page): (&'a [u8], u32),
        page_bits: u32,
        separators: &'a [KeyBuf],
    ) -> InnerRun<'a> {
        let (at, removed) = if node.is_empty() { (0, 0) } else { (self.at, self.removed) };
        let (pages, separators) = (&self.pages[..self.count], &separators[..self.count.saturating_sub(1)]);
        InnerRun { node, page, at, removed, pages, separators, page_bits }
    }

    /// Index of the path's child in the node, once the splice is in it.
    pub(crate) fn path_index(&self) -> usize {
        self.at + self.place()
    }

    /// Which of the new children is the path's.
    pub(crate) fn place(&self) -> usize {
        self.pages[..self.count].iter().position(|&page| page == SELF).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use nandu_cells::{Cells, FixedCells, SELF};
    use nandu_index::KeyBuf;

    use super::Splice;

    const CELLS: FixedCells<4, 4> = FixedCells::<4, 4>;

    fn key(number: u8) -> KeyBuf {
        KeyBuf::new(&[0, 0, 0, number]).unwrap()
    }

    #[test]
    fn children_take_the_place_of_others() {
        let keys = [key(10), key(20)];
        let first = Splice { at: 0, removed: 0, count: 3, pages: [1, SELF, 3] };
        let mut node = [0; 64];
        let size = CELLS.inner_encode(&first.run((&[], SELF), 8, &keys), 0..3, &mut node).unwrap();
        // The second child, which stood in page 9, and the third become two others; the path goes on to the second of them.
        let splice = Splice { removed: 2, pages: [7, SELF, 0], ..Splice::new(1, 2) };
        assert_eq!((splice.place(), splice.path_index()), (1, 2));
        let separators = [key(15), key(99)];
        let run = splice.run((&node[..size], 9), 8, &separators);
        assert_eq!(run.count(CELLS), 3);
        assert_eq!([0, 1, 2].map(|index| run.child(CELLS, index)), [1, 7, SELF]);
        let mut out = KeyBuf::EMPTY;
        let found = [0, 1].map(|index| {
            run.separator(CELLS, index, &mut out);
            out.as_slice()[3]
        });
        assert_eq!(found, [10, 15]);
    }
}
