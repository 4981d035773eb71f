//! What a structure holds only where a feature is compiled.

/// A value that may be there; without its feature (`COMPILED` is 0, else 1) it never is, and takes no memory.
#[derive(Clone, Copy)]
pub(crate) struct Part<T, const COMPILED: usize>([Option<T>; COMPILED]);

impl<T: Copy, const COMPILED: usize> Part<T, COMPILED> {
    pub(crate) const NONE: Part<T, COMPILED> = Part([None; COMPILED]);

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.first()?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.first_mut()?.as_mut()
    }

    #[inline]
    pub(crate) fn set(&mut self, value: T) {
        if let Some(place) = self.0.first_mut() {
            *place = Some(value);
        }
    }

    /// As [`Part::set`], and lends it where it stays.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Option<&mut T> {
        self.0.first_mut().map(|place| place.insert(value))
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        if let Some(place) = self.0.first_mut() {
            *place = None;
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.first_mut()?.take()
    }
}

impl<T: Copy, const COMPILED: usize> Default for Part<T, COMPILED> {
    fn default() -> Self {
        Part::NONE
    }
}
