//! From the system calls of real work to what a file system's index would be asked for.
//!
//! [`Recorder`] reads the log of `strace -f -y` line by line and yields a [`Trace`]. Only files below one directory
//! count. The mapping:
//!
//! | call | entries of the index |
//! |---|---|
//! | open, stat, access, readlink, execve | the last name of the path and the attributes are looked up; the directories on the way are in memory, as a kernel keeps them; after a failure the name alone |
//! | a file is created, mkdir, symlink | name and attributes are put |
//! | read, mmap | each block of 4 KiB that the bytes touch is looked up: there is no page cache |
//! | write, mmap shared to be written | each block is put; attributes when the file is closed |
//! | truncate, and opening to truncate | the blocks behind the end are deleted, attributes put |
//! | rename | the name is looked up and deleted, the new one put; a file that is replaced is removed |
//! | unlink, rmdir | name and attributes are looked up; the name is deleted and, with the last name, blocks and attributes |
//! | link | a name and attributes are put |
//! | chmod, chown, utime | looked up as for stat, and attributes are put |
//! | the first getdents of a directory that was opened | its names are listed |
//!
//! What is there before the work begins is found by [`Recorder::scan`]. Symbolic links to directories are not followed
//! when paths are resolved, except where the log says what a path led to, as it does for open. A file that is used
//! after its last name is gone does not count.

mod call;
mod processes;
mod tree;

use std::path::Path;

use call::{Call, Joiner};
use processes::Processes;
use tree::{Content, Tree};

use super::trace::Trace;

/// The system calls that must be in the log, as strace takes them.
pub const CALLS: &str = "open,openat,openat2,creat,close,read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,\
pwritev2,lseek,mmap,sendfile,copy_file_range,truncate,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,\
mkdirat,link,linkat,symlink,symlinkat,stat,lstat,newfstatat,statx,access,faccessat,faccessat2,readlink,readlinkat,chmod,\
fchmod,fchmodat,chown,lchown,fchown,fchownat,utimensat,getdents64,dup,dup2,dup3,fcntl,chdir,fchdir,clone,clone3,fork,vfork,\
execve";

/// Why work cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRecord {
    /// The directory cannot be read.
    #[error("the directory cannot be read: {0}")]
    Directory(#[from] std::io::Error),
    /// More than 65,535 files at one time.
    #[error("more than 65535 files at one time; record work in a smaller directory")]
    TooManyFiles,
    /// A file of more than 128 MiB.
    #[error("a file is larger than 128 MiB")]
    FileTooLarge,
    /// A directory with more than 32,768 names.
    #[error("a directory has more than 32768 names")]
    TooManyNames,
}

/// Turns the log of system calls into a trace.
#[derive(Debug)]
pub struct Recorder {
    root: String,
    joiner: Joiner,
    processes: Processes,
    tree: Tree,
}

impl Recorder {
    /// A recorder for files below this directory, which is the working directory of the first process. The path is absolute
    /// and has no symbolic links. Nothing is in the directory.
    pub fn new(root: &str) -> Recorder {
        Recorder {
            root: root.trim_end_matches('/').to_owned(),
            joiner: Joiner::default(),
            processes: Processes::new(root),
            tree: Tree::new(),
        }
    }

    /// As [`new`](Recorder::new), and what is in the directory now is there before.
    ///
    /// # Errors
    ///
    /// [`BadRecord`].
    pub fn scan(root: &Path) -> Result<Recorder, BadRecord> {
        let root = root.canonicalize()?;
        let mut recorder = Recorder::new(&root.to_string_lossy());
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            let mut entries = std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
            // The order of a listing is the file system's; the same files give the same trace.
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let (path, metadata) = (entry.path(), entry.metadata()?);
                let content = if metadata.is_dir() { Content::folder() } else { Content::file_of_size(metadata.len()) };
                if let Some(relative) = recorder.relative(&path.to_string_lossy()) {
                    recorder.tree.adopt(&relative, content)?;
                }
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(recorder)
    }

    /// One line of the log. Lines that are no calls are passed over.
    ///
    /// # Errors
    ///
    /// [`BadRecord`].
    pub fn line(&mut self, line: &str) -> Result<(), BadRecord> {
        match self.joiner.join(line) {
            call::Joined::Whole(line) => match Call::parse(&line) {
                Some(call) => self.call(&call),
                None => Ok(()),
            },
            call::Joined::Forking(process, shares_files) => {
                self.processes.forking(process, shares_files);
                Ok(())
            }
            call::Joined::Nothing => Ok(()),
        }
    }

    /// The trace.
    pub fn finish(mut self) -> Trace {
        self.tree.put_dirty();
        self.tree.into_trace()
    }

    /// The part of a path below the root.
    fn relative(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix(&self.root)?;
        (below.is_empty() || below.starts_with('/')).then(|| below.trim_start_matches('/').to_owned())
    }

    /// Where the path at these places of the arguments leads: directory, if there is one, and path.
    fn path(&mut self, call: &Call<'_>, directory: Option<usize>, path: usize) -> Option<String> {
        let path = call.text(path)?;
        let base = match directory {
            Some(place) => {
                let base = call.path(place)?;
                if call.arguments[place].starts_with("AT_FDCWD") {
                    self.processes.set_directory(call.process, &base);
                }
                base
            }
            None => self.processes.directory(call.process).to_owned(),
        };
        self.relative(&normal(&base, &path))
    }

    /// The file behind an open file.
    fn open_file(&self, call: &Call<'_>, place: usize) -> Option<String> {
        self.relative(&call.path(place)?)
    }

    fn call(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        match call.name {
            "open" | "creat" => self.open(call, None, 0),
            "openat" | "openat2" => self.open(call, Some(0), 1),
            "close" => {
                self.close(call);
                Ok(())
            }
            "read" | "readv" => self.transfer(call, 0, None, false),
            "pread64" | "preadv" | "preadv2" => self.transfer(call, 0, call.number(3), false),
            "write" | "writev" => self.transfer(call, 0, None, true),
            "pwrite64" | "pwritev" | "pwritev2" => self.transfer(call, 0, call.number(3), true),
            "mmap" => self.map(call),
            "sendfile" => {
                self.transfer(call, 1, call.number(2), false)?;
                self.transfer(call, 0, None, true)
            }
            "copy_file_range" => {
                self.transfer(call, 0, call.number(1), false)?;
                self.transfer(call, 2, call.number(3), true)
            }
            "truncate" => self.truncate_path(call),
            "ftruncate" => self.truncate_open(call),
            "rename" => self.rename(call, [None, None], [0, 1]),
            "renameat" | "renameat2" => self.rename(call, [Some(0), Some(2)], [1, 3]),
            "unlink" | "rmdir" => self.unlink(call, None, 0),
            "unlinkat" => self.unlink(call, Some(0), 1),
            "mkdir" => self.make(call, None, 0, Content::folder()),
            "mkdirat" => self.make(call, Some(0), 1, Content::folder()),
            "symlink" => self.make(call, None, 1, Content::link()),
            "symlinkat" => self.make(call, Some(1), 2, Content::link()),
            "link" => self.link(call, [None, None], [0, 1]),
            "linkat" => self.link(call, [Some(0), Some(2)], [1, 3]),
            "stat" | "lstat" | "access" | "readlink" | "execve" => self.look(call, None, 0, false),
            "newfstatat" | "statx" | "faccessat" | "faccessat2" | "readlinkat" => self.look(call, Some(0), 1, false),
            "chmod" | "chown" | "lchown" => self.look(call, None, 0, true),
            "fchmodat" | "fchownat" | "utimensat" => self.look(call, Some(0), 1, true),
            "fchmod" | "fchown" => self.change_open(call),
            "getdents64" => self.list(call),
            _ => {
                self.processes.call(call);
                Ok(())
            }
        }
    }

    fn open(&mut self, call: &Call<'_>, directory: Option<usize>, path: usize) -> Result<(), BadRecord> {
        let asked = self.path(call, directory, path);
        let flags = if call.name == "creat" { "O_CREAT|O_TRUNC" } else { call.argument(path + 1) };
        if let Some(file) = call.result_file() {
            self.processes.open(call.process, file, flags.contains("O_APPEND"));
        }
        if call.result < 0 {
            return self.look_in_vain(asked);
        }
        // The log says what the path led to, links followed.
        let Some(path) = call.result_path().and_then(|path| self.relative(&path)).or(asked) else { return Ok(()) };
        if flags.contains("O_TMPFILE") {
            return Ok(());
        }
        if flags.contains("O_CREAT") && !self.tree.is_there(&path) {
            return self.tree.create(&path, Content::file());
        }
        let content = if flags.contains("O_DIRECTORY") { Content::folder() } else { Content::file() };
        self.tree.look_up(&path, content)?;
        if flags.contains("O_TRUNC") {
            self.tree.truncate(&path, 0)?;
        }
        Ok(())
    }

    fn close(&mut self, call: &Call<'_>) {
        if self.processes.close(call)
            && let Some(path) = self.open_file(call, 0)
        {
            self.tree.put_attributes(&path);
        }
    }

    /// Bytes from or to the open file at a place of the arguments; at an offset, or where the file stands.
    fn transfer(&mut self, call: &Call<'_>, place: usize, offset: Option<u64>, writes: bool) -> Result<(), BadRecord> {
        let Ok(size @ 1..) = u64::try_from(call.result) else { return Ok(()) };
        let Some(file) = call.file(place) else { return Ok(()) };
        let path = self.open_file(call, place);
        let end = path.as_ref().map_or(0, |path| self.tree.size(path));
        let at = offset.unwrap_or_else(|| self.processes.advance(call.process, file, size, end, writes));
        let Some(path) = path else { return Ok(()) };
        if writes {
            self.processes.dirty(call.process, file);
            self.tree.write(&path, at, size)
        } else {
            self.tree.read(&path, at, size)
        }
    }

    fn map(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        let (Some(size), Some(offset)) = (call.number(1), call.number(5)) else { return Ok(()) };
        match self.open_file(call, 4) {
            Some(path) if call.result >= 0 => {
                let left = self.tree.size(&path).saturating_sub(offset);
                // What is written through a mapping is seen by nobody: all of it counts.
                let writes = call.argument(2).contains("PROT_WRITE") && call.argument(3).contains("MAP_SHARED");
                match size.min(left) {
                    0 => Ok(()),
                    size if writes => self.tree.write(&path, offset, size),
                    size => self.tree.read(&path, offset, size),
                }
            }
            _ => Ok(()),
        }
    }

    fn truncate_path(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        match (self.path(call, None, 0), call.number(1)) {
            (Some(path), Some(size)) if call.result == 0 => {
                self.tree.look_up(&path, Content::file())?;
                self.tree.truncate(&path, size)
            }
            _ => Ok(()),
        }
    }

    fn truncate_open(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        match (self.open_file(call, 0), call.number(1)) {
            (Some(path), Some(size)) if call.result == 0 => self.tree.truncate(&path, size),
            _ => Ok(()),
        }
    }

    fn rename(&mut self, call: &Call<'_>, directories: [Option<usize>; 2], paths: [usize; 2]) -> Result<(), BadRecord> {
        let [from, to] = [0, 1].map(|nth| self.path(call, directories[nth], paths[nth]));
        if call.result != 0 {
            return self.look_in_vain(from);
        }
        match (from, to) {
            (Some(from), Some(to)) => self.tree.rename(&from, &to),
            // Out of the directory, or into it.
            (Some(from), None) => self.tree.remove(&from),
            (None, Some(to)) => self.tree.create(&to, Content::file()),
            (None, None) => Ok(()),
        }
    }

    fn unlink(&mut self, call: &Call<'_>, directory: Option<usize>, path: usize) -> Result<(), BadRecord> {
        match self.path(call, directory, path) {
            Some(path) if call.result == 0 => self.tree.remove(&path),
            path => self.look_in_vain(path),
        }
    }

    fn make(
        &mut self,
        call: &Call<'_>,
        directory: Option<usize>,
        path: usize,
        content: Content,
    ) -> Result<(), BadRecord> {
        match self.path(call, directory, path) {
            Some(path) if call.result == 0 => self.tree.create(&path, content),
            path => self.look_in_vain(path),
        }
    }

    fn link(&mut self, call: &Call<'_>, directories: [Option<usize>; 2], paths: [usize; 2]) -> Result<(), BadRecord> {
        let [from, to] = [0, 1].map(|nth| self.path(call, directories[nth], paths[nth]));
        match (from, to) {
            (Some(from), Some(to)) if call.result == 0 => self.tree.link(&from, &to),
            _ => Ok(()),
        }
    }

    fn look(&mut self, call: &Call<'_>, directory: Option<usize>, path: usize, changes: bool) -> Result<(), BadRecord> {
        // Of an open file that is named by no path, attributes are in memory.
        if call.text(path).is_none_or(|path| path.is_empty()) {
            return if changes { self.change_open(call) } else { Ok(()) };
        }
        let path = self.path(call, directory, path);
        if call.result < 0 {
            return self.look_in_vain(path);
        }
        let Some(path) = path else { return Ok(()) };
        let is_folder = call.arguments.iter().any(|argument| argument.contains("S_IFDIR"));
        self.tree.look_up(&path, if is_folder { Content::folder() } else { Content::file() })?;
        if changes {
            self.tree.put_attributes(&path);
        }
        Ok(())
    }

    fn look_in_vain(&mut self, path: Option<String>) -> Result<(), BadRecord> {
        if let Some(path) = path {
            self.tree.look_in_vain(&path);
        }
        Ok(())
    }

    fn change_open(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        if let Some(path) = self.open_file(call, 0)
            && call.result == 0
        {
            self.tree.put_attributes(&path);
        }
        Ok(())
    }

    fn list(&mut self, call: &Call<'_>) -> Result<(), BadRecord> {
        let first = call.file(0).is_some_and(|file| self.processes.list(call.process, file));
        if let Some(path) = self.open_file(call, 0)
            && first
            && call.result > 0
        {
            self.tree.list(&path);
        }
        Ok(())
    }
}

/// A path from a directory on, without `.` and `..`.
fn normal(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { base };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests;
