//! An owner as simple as can be: an array of values, each in a page of its own, and on every page the whole map. Where the
//! volume has bare streams, entries with even numbers are bare pages, and these may be dressed up as pages of the log. Where some
//! of these have two bits a cell, every fourth entry goes there at once, and others when they are moved.

use std::collections::BTreeMap;

use nandu_log::{Append, Budget, Examine, Examined, Growth, Log, LogError, LogOptions, PageKind, Placement};
use nandu_media::header::FLAG_COMMIT;
use nandu_media::{PageFields, Position};
use nandu_nand::{Cause, CellMode, Nand, PageAddr};

const NONE: u32 = u32::MAX;
const SELF: u32 = u32::MAX - 1;

/// What the toy holds.
pub(crate) type Values = BTreeMap<u32, u64>;

pub(crate) struct Toy<'m, N: Nand> {
    pub(crate) log: Log<'m, N>,
    /// Page of each entry.
    map: Vec<Option<PageAddr>>,
    /// The newest commit page, if it holds no entry of its own and so dies with the next commit.
    lone_root: Option<PageAddr>,
    buffer: Vec<u8>,
    /// Programs that the operations themselves needed.
    pub(crate) asked: u64,
    /// The chip is one that loses data: what the log believes may be less than what the toy hopes for.
    pub(crate) is_lenient: bool,
    /// Bare pages are made to look like commits of the log at the place where the next bare page is expected.
    pub(crate) is_hostile: bool,
    /// Where the newest bare page went.
    newest_bare: PageAddr,
    /// Copies that no commit may name yet.
    copies: Vec<Moved>,
}

/// A page of an entry that was moved, and that is needed where it was until a commit names the copy.
#[derive(Clone, Copy)]
struct Moved {
    id: usize,
    from: PageAddr,
    to: PageAddr,
}

pub(crate) type ToyError<N> = LogError<<N as nandu_nand::ErrorType>::Error>;

pub(crate) fn memory(geometry: &nandu_nand::Geometry, options: &LogOptions) -> Vec<u8> {
    vec![0xa5; Log::<nandu_sim::Sim>::memory_required(geometry, options)]
}

impl<'m, N: Nand> Toy<'m, N> {
    /// Entries that a toy on this chip has.
    pub(crate) fn entries(log: &Log<'_, N>) -> usize {
        let room = (log.page_size() - log.header_size() - 12) / 4;
        room.min(log.page_count() as usize / 4)
    }

    pub(crate) fn format(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, ToyError<N>> {
        Ok(Self::around(Log::format(nand, options, memory)?))
    }

    fn around(log: Log<'m, N>) -> Self {
        let entries = Self::entries(&log);
        let buffer = vec![0; log.page_size()];
        Toy {
            log,
            map: vec![None; entries],
            lone_root: None,
            buffer,
            asked: 0,
            is_lenient: false,
            is_hostile: false,
            newest_bare: PageAddr(0),
            copies: Vec::new(),
        }
    }

    pub(crate) fn mount(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, ToyError<N>> {
        let mut toy = Self::around(Log::mount(nand, options, memory)?);
        if let Some(root) = toy.log.committed() {
            let info = toy.log.read(root, &mut toy.buffer)?;
            assert!(info.is_commit && info.kind == PageKind::Tree);
            let (id, _, map) = toy.parse();
            toy.lone_root = (id == NONE).then_some(root);
            toy.map = map
                .into_iter()
                .map(|entry| match entry {
                    NONE => None,
                    SELF => Some(root),
                    page => Some(PageAddr(page)),
                })
                .collect();
        }
        Ok(toy)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Entry, value and map of the page in the buffer.
    fn parse(&self) -> (u32, u64, Vec<u32>) {
        let body = &self.buffer[self.log.header_size()..];
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        let value = u64::from_le_bytes(body[4..12].try_into().unwrap());
        (word(0), value, (0..self.map.len()).map(|entry| word(12 + 4 * entry)).collect())
    }

    fn fill(&mut self, id: u32, value: u64, map: &[Option<PageAddr>]) {
        let header = self.log.header_size();
        let body = &mut self.buffer[header..];
        body.fill(0);
        body[..4].copy_from_slice(&id.to_le_bytes());
        body[4..12].copy_from_slice(&value.to_le_bytes());
        for (place, (entry, page)) in body[12..].chunks_exact_mut(4).zip(map.iter().enumerate()) {
            let stored = match page {
                _ if entry as u32 == id => SELF,
                None => NONE,
                Some(page) => page.0,
            };
            place.copy_from_slice(&stored.to_le_bytes());
        }
    }

    pub(crate) fn get(&mut self, id: u32) -> Result<Option<u64>, ToyError<N>> {
        let Some(page) = self.map[id as usize] else { return Ok(None) };
        if self.is_bare_entry(id) {
            let _ = self.log.read_bare(page, 0, &mut self.buffer)?;
        } else {
            self.log.read(page, &mut self.buffer)?;
        }
        let (stored, value, _) = self.parse();
        if stored != id {
            return Err(LogError::Corrupt { page, why: nandu_log::Malformed::Misplaced });
        }
        Ok(Some(value))
    }

    pub(crate) fn values(&mut self) -> Result<Values, ToyError<N>> {
        let mut values = Values::new();
        for id in 0..self.map.len() as u32 {
            if let Some(value) = self.get(id)? {
                values.insert(id, value);
            }
        }
        Ok(values)
    }

    /// Pays the instalment and makes room.
    fn prepare(&mut self, pages: u32, growth: Growth) -> Result<(), ToyError<N>> {
        let mut budget = self.log.instalment(pages);
        for _ in 0..100_000 {
            self.work(&mut budget)?;
            let mut result = self.log.reserve(pages, growth);
            if matches!(result, Err(LogError::Full)) && !self.copies.is_empty() {
                // What was copied counts twice, and may be all that keeps blocks from being free.
                self.settle_all()?;
                result = self.log.reserve(pages, growth);
            }
            if result? {
                return Ok(());
            }
            budget = Budget::room(16);
        }
        panic!("no room is made and none refused: {:?}", self.log.stats());
    }

    pub(crate) fn work(&mut self, budget: &mut Budget) -> Result<(), ToyError<N>> {
        match self.settle() {
            Err(LogError::Full) => {}
            result => result?,
        }
        while let Some(examine) = self.log.next_work(budget)? {
            let outcome = match self.relocate(examine) {
                Err(LogError::Full) => Examined::Live,
                outcome => outcome?,
            };
            self.log.examined(examine, outcome)?;
            self.check_bounds();
        }
        Ok(())
    }

    /// Names the copies that a cut can destroy no more.
    fn settle(&mut self) -> Result<(), ToyError<N>> {
        let (settled, rest): (Vec<Moved>, Vec<Moved>) =
            self.copies.iter().copied().partition(|copy: &Moved| self.log.is_settled(copy.to));
        let Some(first) = settled.first() else { return Ok(()) };
        let placement = Placement::Survivor { from: first.from };
        self.before_commit(&mut [])?;
        let mut map = self.map.clone();
        for copy in &settled {
            map[copy.id] = Some(copy.to);
        }
        self.fill(NONE, 0, &map);
        let root = self.append(placement, true, Cause::Gc)?;
        self.map = map;
        self.copies = rest;
        settled.iter().for_each(|copy| self.log.supersede(copy.from));
        self.replace_lone_root(Some(root));
        Ok(())
    }

    /// Names all copies, at the cost of the rest of their block.
    fn settle_all(&mut self) -> Result<(), ToyError<N>> {
        // A failed program may have a copy moved to another block, where it waits again.
        for _ in 0..4 {
            for stream in 0..self.log.stream_count() {
                if self.log.mode_of(stream) == CellMode::Mlc && self.log.bare_room(stream) > 0 {
                    let mut summary = vec![0x5a; self.log.page_size()];
                    self.log.seal(&mut summary, stream, Cause::Gc)?;
                }
            }
            self.take_rescued(&mut [])?;
            self.settle()?;
            if self.copies.is_empty() {
                return Ok(());
            }
        }
        panic!("copies are never settled")
    }

    /// What a commit could damage is put right first.
    fn before_commit(&mut self, appended: &mut [(u32, PageAddr)]) -> Result<(), ToyError<N>> {
        while let Some(stream) = self.log.summary_due() {
            let mut summary = vec![0x5a; self.log.page_size()];
            self.log.append_summary(&mut summary, stream, Cause::Host)?;
        }
        self.take_rescued(appended)
    }

    /// Asks which pages had to be moved.
    fn take_rescued(&mut self, appended: &mut [(u32, PageAddr)]) -> Result<(), ToyError<N>> {
        while let Some(rescued) = self.log.rescue()? {
            let own = appended.iter_mut().map(|(_, page)| page);
            let copies = self.copies.iter_mut().map(|copy| &mut copy.to);
            own.chain(copies).filter(|page| **page == rescued.from).for_each(|page| *page = rescued.to);
        }
        Ok(())
    }

    /// Unmounts, with nothing left that waits.
    pub(crate) fn unmount(mut self) -> Result<N, ToyError<N>> {
        match self.settle_all() {
            Err(LogError::Full) => {
                for copy in std::mem::take(&mut self.copies) {
                    self.log.supersede(copy.to);
                }
            }
            result => result?,
        }
        self.log.unmount().map_err(|(error, _)| error)
    }

    fn relocate(&mut self, examine: Examine) -> Result<Examined, ToyError<N>> {
        let Examine { page, moves, cause, .. } = examine;
        if self.log.is_bare(page) {
            return self.relocate_bare(examine);
        }
        match self.log.read(page, &mut self.buffer) {
            Ok(_) => {}
            Err(LogError::Corrupt { why, .. }) => return Ok(Examined::Unreadable(why)),
            Err(error) => return Err(error),
        }
        let (id, value, _) = self.parse();
        let is_live =
            self.lone_root == Some(page) || self.map.get(id as usize).is_some_and(|&entry| entry == Some(page));
        if !is_live {
            return Ok(Examined::Dead);
        }
        if !moves {
            return Ok(Examined::Live);
        }
        let map = self.map.clone();
        self.fill(id, value, &map);
        let new = self.append(Placement::Survivor { from: page }, true, cause)?;
        if id != NONE {
            self.map[id as usize] = Some(new);
            self.log.supersede(page);
        }
        self.replace_lone_root((id == NONE).then_some(new));
        Ok(Examined::Moved)
    }

    /// Whether an entry is a bare page.
    fn is_bare_entry(&self, id: u32) -> bool {
        id != NONE && id.is_multiple_of(2) && self.log.bare_streams() > 0
    }

    fn relocate_bare(&mut self, examine: Examine) -> Result<Examined, ToyError<N>> {
        let Examine { page, moves, cause, .. } = examine;
        if self.copies.iter().any(|copy| copy.from == page || copy.to == page) {
            return Ok(Examined::Live);
        }
        let Some(id) = self.map.iter().position(|&entry| entry == Some(page)) else { return Ok(Examined::Dead) };
        if !moves {
            return Ok(Examined::Live);
        }
        match self.log.read_bare(page, 0, &mut self.buffer) {
            Ok(_) => {}
            Err(LogError::Corrupt { why, .. }) => return Ok(Examined::Unreadable(why)),
            Err(error) => return Err(error),
        }
        if self.parse().0 != id as u32 {
            return Ok(Examined::Unreadable(nandu_log::Malformed::Misplaced));
        }
        if self.log.mlc_streams() > 0 {
            let to = self.append_bare(Placement::Survivor { from: page }, cause)?;
            self.copies.push(Moved { id, from: page, to });
            self.take_rescued(&mut [])?;
            return Ok(Examined::Copied);
        }
        let new = self.append_bare(Placement::Survivor { from: page }, cause)?;
        let mut map = self.map.clone();
        map[id] = Some(new);
        self.fill(NONE, 0, &map);
        match self.append(Placement::Survivor { from: page }, true, cause) {
            Ok(root) => {
                self.map = map;
                self.log.supersede(page);
                self.replace_lone_root(Some(root));
                Ok(Examined::Moved)
            }
            Err(error) => {
                self.log.supersede(new);
                Err(error)
            }
        }
    }

    /// Appends the page in the buffer, after a summary where the block has room for nothing else.
    fn append_bare(&mut self, placement: Placement, cause: Cause) -> Result<PageAddr, ToyError<N>> {
        let stream = self.log.bare_stream(placement);
        if self.log.bare_room(stream) == 1 {
            let mut summary = vec![0x5a; self.log.page_size()];
            self.log.append_summary(&mut summary, stream, cause)?;
        }
        self.newest_bare = self.log.append_bare(&self.buffer, placement, cause)?;
        Ok(self.newest_bare)
    }

    /// Where an entry goes that is a bare page.
    fn place_bare(&self, id: u32, placement: Placement) -> Placement {
        let first_mlc = self.log.stream_count() - self.log.mlc_streams();
        if self.log.mlc_streams() > 0 && id.is_multiple_of(4) { Placement::Stream(first_mlc) } else { placement }
    }

    /// Fills the buffer with a bare page.
    fn fill_bare(&mut self, id: u32, value: u64) -> Result<(), ToyError<N>> {
        let mut checkpoint = 0;
        if self.is_hostile
            && let Some(root) = self.log.committed()
        {
            self.log.read(root, &mut self.buffer)?;
            checkpoint = u32::from_le_bytes(self.buffer[28..32].try_into().unwrap());
        }
        let map = vec![Some(PageAddr(7)); self.map.len()];
        self.fill(id, value, &map);
        self.buffer[..self.log.header_size()].fill(value as u8);
        if self.is_hostile {
            let streams = self.log.stream_count();
            PageFields {
                kind: PageKind::Tree,
                sequence: self.log.sequence() + value % 64,
                page: self.newest_bare.0 + 1,
                volume: self.log.volume(),
                committed: None,
                checkpoint: checkpoint + value as u32 % 2,
                stream: (value % u64::from(streams)) as u8,
                flags: FLAG_COMMIT,
                positions: &[Position::new((value % 3) as u8, 1).unwrap(); 8][..streams as usize],
            }
            .seal(&mut self.buffer);
        }
        Ok(())
    }

    fn replace_lone_root(&mut self, new: Option<PageAddr>) {
        if let Some(root) = std::mem::replace(&mut self.lone_root, new) {
            self.log.supersede(root);
        }
    }

    fn append(&mut self, placement: Placement, is_commit: bool, cause: Cause) -> Result<PageAddr, ToyError<N>> {
        self.log.append(&mut self.buffer, Append { kind: PageKind::Tree, placement, is_commit, cause })
    }

    /// Changes several entries, all or none.
    pub(crate) fn batch(&mut self, changes: &[(u32, Option<u64>)]) -> Result<(), ToyError<N>> {
        let mut puts: Vec<_> = changes.iter().filter_map(|&(id, value)| Some((id, value?))).collect();
        // The one that commits comes last, so bare ones come first; they need a page beside them.
        puts.sort_by_key(|&(id, _)| !self.is_bare_entry(id));
        let growth = if puts.is_empty() { Growth::Shrinks } else { Growth::Grows };
        let needs_root = puts.last().is_none_or(|&(id, _)| self.is_bare_entry(id));
        self.prepare(puts.len() as u32 + u32::from(needs_root), growth)?;
        let mut appended = Vec::new();
        let result = self.append_batch(changes, &puts, needs_root, &mut appended);
        let (map, lone_root) = match result {
            Ok(done) => done,
            Err(error) => {
                appended.into_iter().for_each(|(_, page)| self.log.supersede(page));
                return Err(error);
            }
        };
        self.asked += puts.len() as u64 + u64::from(needs_root);
        for &(id, _) in changes {
            if let Some(old) = self.map[id as usize] {
                self.log.supersede(old);
            }
        }
        self.replace_lone_root(lone_root);
        self.map = map;
        let (rest, outdated): (Vec<Moved>, Vec<Moved>) =
            self.copies.iter().copied().partition(|copy: &Moved| changes.iter().all(|&(id, _)| id as usize != copy.id));
        self.copies = rest;
        outdated.iter().for_each(|copy| self.log.supersede(copy.to));
        self.check_bounds();
        Ok(())
    }

    /// Appends the pages of a batch; returns what the map is then, and the root if it is a page of its own.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn append_batch(
        &mut self,
        changes: &[(u32, Option<u64>)],
        puts: &[(u32, u64)],
        needs_root: bool,
        appended: &mut Vec<(u32, PageAddr)>,
    ) -> Result<(Vec<Option<PageAddr>>, Option<PageAddr>), ToyError<N>> {
        let mut map = self.map.clone();
        for &(id, value) in changes {
            if value.is_none() {
                map[id as usize] = None;
            }
        }
        for (index, &(id, value)) in puts.iter().enumerate() {
            let placement = self.map[id as usize].map_or(Placement::New, |of| Placement::Update { of });
            let page = if self.is_bare_entry(id) {
                self.fill_bare(id, value)?;
                self.append_bare(self.place_bare(id, placement), Cause::Host)?
            } else {
                let is_last = index + 1 == puts.len();
                if is_last {
                    self.before_commit(appended)?;
                    appended.iter().for_each(|&(id, page)| map[id as usize] = Some(page));
                }
                self.fill(id, value, &map);
                self.append(placement, is_last, Cause::Host)?
            };
            appended.push((id, page));
            self.take_rescued(appended)?;
            appended.iter().for_each(|&(id, page)| map[id as usize] = Some(page));
        }
        if !needs_root {
            return Ok((map, None));
        }
        self.before_commit(appended)?;
        appended.iter().for_each(|&(id, page)| map[id as usize] = Some(page));
        self.fill(NONE, 0, &map);
        let root = self.append(Placement::Stream(0), true, Cause::Host)?;
        Ok((map, Some(root)))
    }

    /// Appends bare pages that no commit names: an operation that is given up.
    pub(crate) fn waste(&mut self, pages: u32) -> Result<(), ToyError<N>> {
        self.prepare(pages, Growth::Grows)?;
        let mut appended = Vec::new();
        let mut result = Ok(());
        for value in 0..pages {
            self.fill_bare(2 * value, u64::from(value))?;
            match self.append_bare(self.place_bare(2 * value, Placement::New), Cause::Host) {
                Ok(page) => appended.push((value, page)),
                Err(error) => result = Err(error),
            }
            result = result.and_then(|()| self.take_rescued(&mut appended));
            if result.is_err() {
                break;
            }
        }
        appended.into_iter().for_each(|(_, page)| self.log.supersede(page));
        self.check_bounds();
        result
    }

    pub(crate) fn put(&mut self, id: u32, value: u64) -> Result<(), ToyError<N>> {
        self.batch(&[(id, Some(value))])
    }

    pub(crate) fn delete(&mut self, id: u32) -> Result<(), ToyError<N>> {
        self.batch(&[(id, None)])
    }

    /// L5, from the owner's side: no block holds more live pages than the log believes.
    pub(crate) fn check_bounds(&self) {
        let mut live = BTreeMap::new();
        if self.is_lenient {
            return;
        }
        for page in self.map.iter().flatten().chain(&self.lone_root).chain(self.copies.iter().map(|copy| &copy.to)) {
            *live.entry(self.log.geometry().block_of(*page)).or_insert(0) += 1;
        }
        for (block, count) in live {
            assert!(self.log.live_bound(block) >= count, "L5: block {block} holds {count} live pages");
        }
    }

    pub(crate) fn verify(&mut self) -> Result<(), ToyError<N>> {
        let mut violations = Vec::new();
        self.check_bounds();
        self.log.verify(&mut |violation| violations.push(violation.to_string()))?;
        assert!(violations.is_empty(), "{violations:?}");
        Ok(())
    }
}
