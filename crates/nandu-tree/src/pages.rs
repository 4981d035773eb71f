//! A short list of pages.

/// Most pages that an operation replaces.
pub(crate) const REPLACED_MAX: usize = 48;

/// Pages, each once, in a bounded place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageList<const MOST: usize> {
    pages: [u32; MOST],
    count: usize,
    is_short: bool,
}

impl<const MOST: usize> PageList<MOST> {
    pub(crate) const EMPTY: Self = PageList { pages: [u32::MAX; MOST], count: 0, is_short: false };

    /// Notes a page. One that finds no room is left out, and the list says so.
    pub(crate) fn note(&mut self, page: u32) {
        debug_assert!(page != u32::MAX, "a page that is on flash");
        if self.as_slice().contains(&page) {
            return;
        }
        match self.pages.get_mut(self.count) {
            Some(place) => {
                *place = page;
                self.count += 1;
            }
            None => self.is_short = true,
        }
    }

    /// A page is left out.
    pub(crate) fn is_short_of_some(&mut self) {
        self.is_short = true;
    }

    /// Whether a page was left out.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.pages[..self.count]
    }

    pub(crate) fn clear(&mut self) {
        (self.count, self.is_short) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::PageList;

    #[test]
    fn a_page_is_listed_once_and_what_finds_no_room_is_left_out() {
        let mut list = PageList::<2>::EMPTY;
        for page in [7, 7, 8, 9] {
            list.note(page);
        }
        assert_eq!((list.as_slice(), list.is_short()), (&[7, 8][..], true));
        list.clear();
        list.note(9);
        assert_eq!((list.as_slice(), list.is_short()), (&[9][..], false));
    }
}
