//! What a chip knows of the image that it came from or was written to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Sim;
use crate::image::{ImagePart, ImageProblem, Medium, is_content};
use crate::state::{Dirty, Place, Store};

/// An image that contents are read from.
pub(crate) struct Source {
    medium: Arc<dyn Medium>,
    content_size: u32,
    is_unreadable: AtomicBool,
    /// Why the first page that could not be read could not.
    problem: Mutex<Option<ImageProblem>>,
}

impl Source {
    pub(crate) fn new(medium: Arc<dyn Medium>, content_size: u32) -> Source {
        Source { medium, content_size, is_unreadable: AtomicBool::new(false), problem: Mutex::new(None) }
    }

    /// Reads columns of a page of a block. Ones, and the chip is gone, if the image does not have it any more.
    fn read(&self, block: u32, place: Place, column: u32, buf: &mut [u8]) {
        let mut content = vec![0; self.content_size as usize];
        let is_whole = column == 0 && buf.len() == content.len();
        // The checksum is of the whole page.
        let found = match is_content(&*self.medium, place, if is_whole { buf } else { &mut content }) {
            Ok(true) if is_whole => return,
            Ok(true) => content.get(column as usize..column as usize + buf.len()),
            Ok(false) => {
                self.fail(ImageProblem::Damaged(ImagePart::Block(block)));
                None
            }
            Err(error) => {
                self.fail(error.into());
                None
            }
        };
        match found {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => buf.fill(0xFF),
        }
    }

    fn fail(&self, problem: ImageProblem) {
        self.is_unreadable.store(true, Ordering::Relaxed);
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
    }

    /// What could not be read, once.
    pub(crate) fn take_problem(&self) -> Option<ImageProblem> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed)
    }
}

/// What a chip has to do with images.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    /// Where the pages are that are away.
    pub(crate) source: Option<Arc<Source>>,
    /// The image that places are of, and the commit that they were true after.
    pub(crate) commit: Option<(u64, u64)>,
    /// What that image holds of pages that are other now.
    pub(crate) left: Vec<Place>,
}

impl Kept {
    pub(crate) fn read(&self, block: u32, place: Place, column: u32, buf: &mut [u8]) {
        match &self.source {
            Some(source) => source.read(block, place, column, buf),
            None => buf.fill(0xFF),
        }
    }

    /// Notes that a block will hold nothing of what the image has.
    pub(crate) fn leave(&mut self, store: &Store) {
        self.left.extend(store.places.iter().filter(|place| !place.is_none()));
    }

    /// Whether a page is away and cannot be had back.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_unreadable())
    }
}

impl Sim {
    /// The bytes of a page, to be changed: in memory, and no longer what the image has.
    pub(crate) fn content_mut(&mut self, at: (u32, u32)) -> &mut [u8] {
        let (block, index) = at;
        let columns = self.chip.geometry.column_count() as usize;
        let pool = &mut self.pool;
        let store = self.blocks[block as usize].store.get_or_insert_with(|| pool.take(&self.chip));
        if store.data.is_empty() {
            store.data = pool.take_data(&self.chip);
        }
        let page = &mut store.pages[index as usize];
        let bytes = &mut store.data[index as usize * columns..][..columns];
        if page.is_away() {
            page.flags = page.lasting_flags();
            self.kept.read(block, store.places[index as usize], 0, bytes);
        }
        self.kept.left.extend(store.forget_place(index));
        if self.kept.is_unreadable() {
            self.settle();
        }
        let store = self.blocks[block as usize].store.as_deref_mut();
        store.map_or(&mut [], |store| &mut store.data[index as usize * columns..][..columns])
    }

    /// Bytes that were programmed, counted in blocks, since an image had them: what memory a chip takes that was opened from one.
    pub fn unkept_size(&self) -> u64 {
        let geometry = &self.chip.geometry;
        u64::from(self.pool.taken) * u64::from(geometry.pages_per_block) * u64::from(geometry.column_count())
    }

    /// Whether more than counters changed since an image had it.
    pub fn is_unkept(&self) -> bool {
        self.dirty.iter().any(|&block| self.blocks[block as usize].dirty & Dirty::CONTENT != 0)
    }
}
