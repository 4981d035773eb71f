//! Fragments: bytes that lie over a page of a file.
//!
//! FORMAT: Fragments
//!
//! A small write that is to be durable does not program its page: what it wrote becomes a record of its own, the fragment, which
//! goes to flash with the inode in the commit page that the sync programs anyway. When the fragments of a page become many, the
//! page is programmed with them and they go. So an update of 100 bytes costs one program, and a tenth of one for the page.
//! Fragments of a page do not overlap, have 768 bytes at most, but for zeros, and are 17 at most.
//!
//! ```text
//! offset  size  field  meaning
//!      0     1  kind   0: the bytes that follow; 1: zeros
//!      1     2  count  of zeros, low byte first
//! ```

use crate::keys::KEY_SIZE_MAX;

/// Most fragments over a page: with one more the page is programmed.
pub(crate) const FRAGMENT_COUNT_MAX: usize = 16;

/// Most fragments that are found over a page: a truncation, which programs no page on a full chip either, lays zeros behind those.
pub(crate) const FRAGMENTS_FOUND_MAX: usize = FRAGMENT_COUNT_MAX + 1;

/// Most bytes of a fragment: what a batch has room for beside the rest.
pub(crate) const FRAGMENT_SIZE_MAX: usize = 768;

/// Part of a page, as a divisor, that fragments over it may take together.
const FRAGMENT_SHARE: usize = 4;

pub(crate) const BYTES: u8 = 0;
const ZEROS: u8 = 1;

/// The value of a fragment of zeros.
pub(crate) fn zeros(count: usize) -> [u8; 3] {
    let [low, high] = (count as u16).to_le_bytes();
    [ZEROS, low, high]
}

/// Content of a fragment: so many bytes, and them if they are not all zero; `None` if it is none.
pub(crate) fn parse(value: &[u8]) -> Option<(usize, Option<&[u8]>)> {
    match value {
        [BYTES, bytes @ ..] if (1..=FRAGMENT_SIZE_MAX).contains(&bytes.len()) => Some((bytes.len(), Some(bytes))),
        &[ZEROS, low, high] => {
            let count = usize::from(u16::from_le_bytes([low, high]));
            // No count stands for a page of 65,536 bytes wholly zero: that would be no fragment.
            (count > 0).then_some((count, None))
        }
        _ => None,
    }
}

/// How large fragments may be.
#[derive(Clone, Copy)]
pub(crate) struct FragmentLimits {
    /// Bytes of one.
    pub(crate) size_max: usize,
    /// Bytes of all over one page.
    total_max: usize,
}

impl FragmentLimits {
    pub(crate) fn new(page_size: usize, entry_size_max: usize) -> FragmentLimits {
        let size_max = entry_size_max.saturating_sub(KEY_SIZE_MAX + 1).min(FRAGMENT_SIZE_MAX);
        FragmentLimits { size_max, total_max: page_size / FRAGMENT_SHARE }
    }
}

/// A fragment without its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    start: u16,
    size: u16,
    /// Bytes that it takes in its record.
    stored: u16,
}

impl Fragment {
    pub(crate) fn start(&self) -> u16 {
        self.start
    }

    pub(crate) fn end(&self) -> usize {
        usize::from(self.start) + usize::from(self.size)
    }
}

/// The fragments over a page, in order.
#[derive(Clone, Copy)]
pub(crate) struct Fragments {
    list: [Fragment; FRAGMENTS_FOUND_MAX],
    count: usize,
}

impl Fragments {
    pub(crate) const NONE: Fragments =
        Fragments { list: [Fragment { start: 0, size: 0, stored: 0 }; FRAGMENTS_FOUND_MAX], count: 0 };

    pub(crate) fn as_slice(&self) -> &[Fragment] {
        &self.list[..self.count]
    }

    /// Adds the next one; false if it overlaps the one before, or is one too many.
    pub(crate) fn push(&mut self, start: usize, value: &[u8], page_size: usize) -> bool {
        let Some((size, bytes)) = parse(value) else { return false };
        let end = start + size;
        let is_behind = self.as_slice().last().is_none_or(|last| last.end() <= start);
        if !is_behind || end > page_size || self.count == FRAGMENTS_FOUND_MAX {
            return false;
        }
        let stored = bytes.map_or(0, <[u8]>::len) as u16;
        self.list[self.count] = Fragment { start: start as u16, size: size as u16, stored };
        self.count += 1;
        true
    }

    /// Those that have a byte in a range.
    pub(crate) fn overlapping(&self, start: usize, end: usize) -> impl Iterator<Item = &Fragment> {
        self.as_slice().iter().filter(move |fragment| usize::from(fragment.start) < end && fragment.end() > start)
    }

    /// Whether the page keeps to its limits with one more fragment, in place of those that it overlaps.
    pub(crate) fn admit(&self, start: usize, end: usize, stored: usize, limits: &FragmentLimits) -> bool {
        let (mut count, mut total) = (1, stored);
        let is_apart = |other: &&Fragment| usize::from(other.start) >= end || other.end() <= start;
        for other in self.as_slice().iter().filter(is_apart) {
            count += 1;
            total += usize::from(other.stored);
        }
        stored <= limits.size_max && count <= FRAGMENT_COUNT_MAX && total <= limits.total_max
    }
}

/// Copies what a fragment at an offset of its page has of the page's bytes from `from` on.
pub(crate) fn overlay(out: &mut [u8], from: usize, offset: usize, value: &[u8]) -> bool {
    let Some((size, bytes)) = parse(value) else { return false };
    let start = offset.max(from);
    let end = (offset + size).min(from + out.len());
    if start < end {
        let target = &mut out[start - from..end - from];
        match bytes {
            Some(bytes) => target.copy_from_slice(&bytes[start - offset..end - offset]),
            None => target.fill(0),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{FragmentLimits, Fragments, overlay, zeros};

    #[test]
    fn what_lies_over_a_part_of_a_page_is_laid_over_it() {
        let mut out = [9; 4];
        assert!(overlay(&mut out, 10, 8, &[0, 1, 2, 3]));
        assert_eq!(out, [3, 9, 9, 9]);
        assert!(overlay(&mut out, 10, 12, &[0, 4, 5, 6]));
        assert_eq!(out, [3, 9, 4, 5]);
        assert!(overlay(&mut out, 10, 0, &zeros(13)));
        assert_eq!(out, [0, 0, 0, 5]);
        assert!(overlay(&mut out, 10, 14, &[0, 7]));
        assert_eq!(out, [0, 0, 0, 5]);
        assert!(
            !overlay(&mut out, 10, 0, &[0])
                && !overlay(&mut out, 10, 0, &[1, 0, 0])
                && !overlay(&mut out, 10, 0, &[2, 1])
        );
    }

    #[test]
    fn fragments_stand_in_order_and_within_the_page() {
        let mut fragments = Fragments::NONE;
        assert!(fragments.push(0, &[0, 1, 2], 16));
        assert!(!fragments.push(1, &[0, 1, 2], 16));
        assert!(fragments.push(10, &zeros(6), 16));
        assert!(!fragments.push(16, &[0, 1], 16));
        assert_eq!(fragments.overlapping(2, 11).map(|fragment| fragment.start).collect::<std::vec::Vec<_>>(), [10]);
        let limits = FragmentLimits { size_max: 4, total_max: 5 };
        assert!(fragments.admit(2, 5, 3, &limits), "two bytes and three");
        assert!(!fragments.admit(2, 6, 4, &limits));
        assert!(fragments.admit(0, 4, 4, &limits), "in place of the two");
        assert!(!fragments.admit(0, 5, 5, &limits));
    }

    extern crate std;
}
