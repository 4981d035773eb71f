//! Pages of files: what a page's record and the fragments over it are together.
//!
//! FORMAT: Pages of files
//!
//! A page of a file is a value of exactly as many bytes as a page of the chip has, or of fewer, behind which it is zero; or, where few of
//! its bytes are not zero, up to 1,024 of them stand in its record. A page without a record is a hole. What lies behind the end of the
//! file is zero. A page and fewer bytes have a head as their record ("Heads of large values"): raw or blob. Other records are as below.
//!
//! ```text
//! offset  size  field   meaning
//!      0     1  kind    1: the bytes that follow, and zeros around them; 2: nothing but zeros, allocated and not written yet
//!      1     2  offset  of the first of them, low byte first
//! ```

use crate::fragments::Fragments;

const BYTES: u8 = 1;
const UNWRITTEN: u8 = 2;

/// The record of an allocated page that is not written yet.
pub(crate) const UNWRITTEN_VALUE: [u8; 1] = [UNWRITTEN];

/// Bytes in front of those that stand in a record.
pub(crate) const INLINE_HEAD_SIZE: usize = 3;

/// Most bytes of a page that stand in its record: what a batch has room for beside the rest.
pub(crate) const INLINE_SIZE_MAX: usize = 1024;

/// What the record of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// There is none.
    Hole,
    /// Allocated, not written.
    Unwritten,
    /// Some bytes in the record.
    Inline,
    /// A page, or its first bytes.
    Page,
}

#[derive(Clone, Copy)]
pub(crate) struct PageState {
    pub(crate) base: Base,
    pub(crate) fragments: Fragments,
}

impl PageState {
    pub(crate) const HOLE: PageState = PageState { base: Base::Hole, fragments: Fragments::NONE };
}

/// Bytes of a page that stand in its record: where the first is, and them. `None` if it is no such record.
pub(crate) fn inline(value: &[u8], page_size: usize) -> Option<(usize, &[u8])> {
    match value {
        &[UNWRITTEN] => Some((0, &[])),
        [BYTES, low, high, bytes @ ..] => {
            let offset = usize::from(u16::from_le_bytes([*low, *high]));
            let is_sound = bytes.len() <= INLINE_SIZE_MAX && offset + bytes.len() <= page_size;
            is_sound.then_some((offset, bytes))
        }
        _ => None,
    }
}

/// What stands in front of such bytes.
pub(crate) fn inline_head(offset: usize) -> [u8; INLINE_HEAD_SIZE] {
    let [low, high] = (offset as u16).to_le_bytes();
    [BYTES, low, high]
}

/// What a record is; `None` if it is none of a page.
pub(crate) fn base_of(value: &[u8], large: Option<usize>, page_size: usize) -> Option<Base> {
    match large {
        Some(size) => (size <= page_size).then_some(Base::Page),
        None if value == UNWRITTEN_VALUE => Some(Base::Unwritten),
        None => inline(value, page_size).map(|_| Base::Inline),
    }
}
