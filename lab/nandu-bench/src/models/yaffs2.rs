//! YAFFS2: a chunk is a page, a file has a header chunk, everything else is in memory.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::flash::{Flash, Head, Item, Rules};
use super::{Counts, Device, Model, missing, parts};
use crate::BenchError;
use crate::workload::{FileName, Files};

const LOG: Head = Head(0);
const RULES: Rules = Rules { front_pages: 0, opening: &[0], reserve: 5 };

#[derive(Default)]
struct File {
    header: Option<Item>,
    chunks: BTreeMap<u64, Option<Item>>,
    /// Written since it was opened.
    is_written: bool,
}

/// The model.
///
/// A header is programmed when a file is made, loses its name or gets another one. Of a file that was written, one is programmed because
/// its attributes are dirty, and one because it is flushed: both when it is closed, and where syncs are honoured both at each
/// of them, and one when it is closed.
pub struct Yaffs2 {
    flash: Flash,
    honours_syncs: bool,
    directories: HashMap<u32, Option<Item>>,
    files: HashMap<FileName, File>,
    open: Option<FileName>,
}

impl fmt::Debug for Yaffs2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Yaffs2").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl Yaffs2 {
    /// On an empty device. As it was, it took no notice of `O_SYNC`.
    pub fn new(device: &Device, honours_syncs: bool) -> Yaffs2 {
        let flash = Flash::new(device, RULES);
        Yaffs2 { flash, honours_syncs, directories: HashMap::new(), files: HashMap::new(), open: None }
    }

    fn chunk(&mut self, old: &mut Option<Item>) -> Result<(), BenchError> {
        while self.flash.is_short() && self.flash.collect(LOG, &mut Vec::new())? {}
        let size = self.page_size();
        self.flash.replace(old, LOG, size, 0)
    }

    fn page_size(&self) -> u64 {
        self.flash.page_size()
    }

    /// Programs a file's header so many times.
    fn headers(&mut self, name: FileName, count: u32) -> Result<(), BenchError> {
        let mut header = self.files.get_mut(&name).ok_or_else(missing)?.header.take();
        for _ in 0..count {
            self.chunk(&mut header)?;
        }
        self.files.get_mut(&name).ok_or_else(missing)?.header = header;
        Ok(())
    }
}

impl Files for Yaffs2 {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let mut header = None;
        self.chunk(&mut header)?;
        self.directories.insert(directory, header);
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        let mut header = self.directories.remove(&directory).ok_or_else(missing)?;
        self.chunk(&mut header)?;
        header.into_iter().for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        self.files.insert(file, File::default());
        self.open = Some(file);
        self.headers(file, 1)
    }

    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        for (index, _, _) in parts(offset, bytes.len() as u64, self.page_size()) {
            let file = self.files.get_mut(&name).ok_or_else(missing)?;
            file.is_written = true;
            let mut chunk = file.chunks.remove(&index).flatten();
            self.chunk(&mut chunk)?;
            self.files.get_mut(&name).ok_or_else(missing)?.chunks.insert(index, chunk);
        }
        if is_synced && self.honours_syncs { self.headers(name, 2) } else { Ok(()) }
    }

    fn fsync(&mut self) -> Result<(), BenchError> {
        let name = self.open.ok_or_else(missing)?;
        let is_written = self.files.get(&name).ok_or_else(missing)?.is_written;
        if is_written && self.honours_syncs { self.headers(name, 2) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), BenchError> {
        let name = self.open.take().ok_or_else(missing)?;
        let file = self.files.get_mut(&name).ok_or_else(missing)?;
        match std::mem::take(&mut file.is_written) {
            true => self.headers(name, if self.honours_syncs { 1 } else { 2 }),
            false => Ok(()),
        }
    }

    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        self.headers(file, 1)?;
        let File { header, chunks, .. } = self.files.remove(&file).ok_or_else(missing)?;
        chunks.into_values().chain([header]).flatten().for_each(|item| self.flash.kill(item));
        Ok(())
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        self.headers(from, 1)?;
        let file = self.files.remove(&from).ok_or_else(missing)?;
        self.files.insert(to, file);
        Ok(())
    }

    fn expect(&mut self, file: FileName, _content: &[u8]) -> Result<(), BenchError> {
        self.files.contains_key(&file).then_some(()).ok_or_else(missing)
    }
}

impl Model for Yaffs2 {
    fn counts(&self) -> Counts {
        self.flash.counts
    }
}
