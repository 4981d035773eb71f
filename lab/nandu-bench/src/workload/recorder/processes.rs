//! What processes have: a working directory, and open files that stand somewhere.

use std::collections::HashMap;

use super::call::{Call, SHARES_FILES, is_fork};

/// An open file, shared by those who inherited or duplicated it.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// Where the next byte is read or written.
    position: u64,
    appends: bool,
    /// Written to since it was opened.
    dirty: bool,
    /// Its names were listed.
    listed: bool,
}

#[derive(Clone, Debug, Default)]
struct Process {
    directory: String,
    /// Place in `tables`: threads share one.
    table: usize,
}

#[derive(Debug)]
pub(super) struct Processes {
    root: String,
    processes: HashMap<u32, Process>,
    /// Numbers of open files, and the place of each in `open`.
    tables: Vec<HashMap<u32, usize>>,
    open: Vec<Open>,
    /// Who is having a child that has no number yet, and whether they share files.
    forking: Option<(u32, bool)>,
}

impl Processes {
    pub(super) fn new(root: &str) -> Processes {
        Processes {
            root: root.to_owned(),
            processes: HashMap::new(),
            tables: Vec::new(),
            open: Vec::new(),
            forking: None,
        }
    }

    /// A process; one that is new is the child that was being made, or else the first.
    fn process(&mut self, number: u32) -> &mut Process {
        if !self.processes.contains_key(&number) {
            match self.forking.take() {
                Some((parent, shares_files)) => self.fork(parent, number, shares_files),
                None => {
                    self.tables.push(HashMap::new());
                    let process = Process { directory: self.root.clone(), table: self.tables.len() - 1 };
                    self.processes.insert(number, process);
                }
            }
        }
        self.processes.entry(number).or_default()
    }

    fn fork(&mut self, parent: u32, child: u32, shares_files: bool) {
        let mut process = self.process(parent).clone();
        if !shares_files {
            let files = self.tables[process.table].clone();
            self.tables.push(files);
            process.table = self.tables.len() - 1;
        }
        self.processes.insert(child, process);
    }

    /// A process begins to make a child, which may be heard of before its number is known.
    pub(super) fn forking(&mut self, process: u32, shares_files: bool) {
        self.process(process);
        self.forking = Some((process, shares_files));
    }

    pub(super) fn directory(&mut self, process: u32) -> &str {
        &self.process(process).directory
    }

    pub(super) fn set_directory(&mut self, process: u32, path: &str) {
        let process = self.process(process);
        if process.directory != path {
            process.directory = path.to_owned();
        }
    }

    pub(super) fn open(&mut self, process: u32, file: u32, appends: bool) {
        self.open.push(Open { appends, ..Open::default() });
        let place = self.open.len() - 1;
        let table = self.process(process).table;
        self.tables[table].insert(file, place);
    }

    fn file(&mut self, process: u32, file: u32) -> &mut Open {
        let table = self.process(process).table;
        let open = &mut self.open;
        let place = *self.tables[table].entry(file).or_insert_with(|| {
            open.push(Open::default());
            open.len() - 1
        });
        &mut self.open[place]
    }

    /// Where the next bytes of a file are, which then are behind it.
    pub(super) fn advance(&mut self, process: u32, file: u32, size: u64, end: u64, writes: bool) -> u64 {
        let open = self.file(process, file);
        let at = if writes && open.appends { end } else { open.position };
        open.position = at.saturating_add(size);
        at
    }

    pub(super) fn dirty(&mut self, process: u32, file: u32) {
        self.file(process, file).dirty = true;
    }

    /// Whether this is the first listing since the directory was opened.
    pub(super) fn list(&mut self, process: u32, file: u32) -> bool {
        !std::mem::replace(&mut self.file(process, file).listed, true)
    }

    /// Closes a file; returns whether it was written to since the last close.
    pub(super) fn close(&mut self, call: &Call<'_>) -> bool {
        let Some(file) = call.file(0) else { return false };
        let dirty = std::mem::take(&mut self.file(call.process, file).dirty);
        let table = self.process(call.process).table;
        self.tables[table].remove(&file);
        dirty
    }

    /// A call that moves, duplicates or inherits.
    pub(super) fn call(&mut self, call: &Call<'_>) {
        let process = call.process;
        match call.name {
            "chdir" if call.result == 0 => {
                if let Some(path) = call.text(0) {
                    let path = super::normal(self.directory(process), &path);
                    self.set_directory(process, &path);
                }
            }
            "fchdir" if call.result == 0 => {
                if let Some(path) = call.path(0) {
                    self.set_directory(process, &path);
                }
            }
            "lseek" => {
                if let (Some(file), Ok(position)) = (call.file(0), u64::try_from(call.result)) {
                    self.file(process, file).position = position;
                }
            }
            "dup" | "dup2" | "dup3" => self.duplicate(call),
            "fcntl" if call.argument(1).starts_with("F_DUPFD") => self.duplicate(call),
            name if is_fork(name) => {
                if let Ok(child @ 1..) = u32::try_from(call.result) {
                    // The child was heard of already, or was not.
                    self.forking = None;
                    if !self.processes.contains_key(&child) {
                        let shares = call.arguments.iter().any(|argument| argument.contains(SHARES_FILES));
                        self.fork(process, child, shares);
                    }
                }
            }
            _ => {}
        }
    }

    fn duplicate(&mut self, call: &Call<'_>) {
        let (Some(from), Some(to)) = (call.file(0), call.result_file()) else { return };
        self.file(call.process, from);
        let table = self.process(call.process).table;
        if let Some(&place) = self.tables[table].get(&from) {
            self.tables[table].insert(to, place);
        }
    }
}
