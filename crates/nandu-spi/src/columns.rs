//! From the contract's columns to the part's.
//!
//! The contract has a page's tag in one piece behind the four bytes that are left to the bad mark. Parts protect pieces of the spare
//! area. So the contract's spare columns are the part's in another order: the first four bytes, then the protected bytes, then the
//! rest. Each byte of the spare area is in exactly one place of either.

use core::iter;

use crate::part::{MARK_SIZE, Part, SpareRange};

/// The part's column for one of the contract's, and how many columns follow each other from there.
fn run(part: &Part, column: u32) -> (u32, u32) {
    let first = part.page_size + MARK_SIZE;
    if column < first {
        return (column, first - column);
    }
    let ranges = part.protected.unwrap_or_default();
    let mut index = column - first;
    for range in ranges {
        let (offset, size) = (u32::from(range.offset), u32::from(range.size));
        if index < size {
            return (part.page_size + offset + index, size - index);
        }
        index -= size;
    }
    let end = SpareRange { offset: part.spare_size as u16, size: 0 };
    let mut start = MARK_SIZE;
    for range in ranges.iter().chain(iter::once(&end)) {
        let gap = u32::from(range.offset).saturating_sub(start);
        if index < gap {
            return (part.page_size + start + index, gap - index);
        }
        index -= gap;
        start = u32::from(range.offset) + u32::from(range.size);
    }
    (column, 1)
}

/// The pieces of `size` columns from `column` on: the part's column, and where the piece begins and ends in the bytes.
pub(crate) fn pieces(part: &Part, column: u32, size: usize) -> impl Iterator<Item = (u32, usize, usize)> {
    let mut done = 0;
    iter::from_fn(move || {
        let rest = size.checked_sub(done).filter(|rest| *rest > 0)?;
        let (physical, length) = run(part, column + done as u32);
        let start = done;
        done += rest.min(length as usize);
        Some((physical, start, done))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PARTS;

    fn part(name: &str) -> &'static Part {
        Part::by_name(name, PARTS).expect(name)
    }

    #[test]
    fn each_column_of_a_part_is_reached_once() {
        for part in PARTS {
            let count = part.geometry().column_count();
            let mut seen = [false; 4096 + 256];
            for (physical, start, end) in pieces(part, 0, count as usize) {
                let columns = physical as usize..physical as usize + (end - start);
                assert!(seen[columns.clone()].iter().all(|seen| !*seen), "{}: {columns:?} twice", part.name);
                seen[columns].fill(true);
            }
            assert!(seen[..count as usize].iter().all(|seen| *seen), "{}", part.name);
            assert!(seen[count as usize..].iter().all(|seen| !*seen), "{}", part.name);
        }
    }

    #[test]
    fn a_tag_lies_in_protected_bytes_only() {
        for part in PARTS {
            let geometry = part.geometry();
            for (physical, start, end) in pieces(part, geometry.tag_column(), geometry.tag_size as usize) {
                let offset = physical - part.page_size;
                let inside = |range: &SpareRange| {
                    let begin = u32::from(range.offset);
                    begin <= offset && offset + (end - start) as u32 <= begin + u32::from(range.size)
                };
                assert!(part.protected.unwrap_or_default().iter().any(inside), "{}: {offset}", part.name);
            }
        }
    }

    #[test]
    fn the_default_chip_has_its_tag_in_four_pieces() {
        let part = part("W25N01GV");
        let mut found = [(0, 0, 0); 4];
        for (slot, piece) in found.iter_mut().zip(pieces(part, 2052, 16)) {
            *slot = piece;
        }
        assert_eq!(found, [(2052, 0, 4), (2068, 4, 8), (2084, 8, 12), (2100, 12, 16)]);
    }
}
