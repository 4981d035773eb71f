//! An engine that a test opens again and again, and what is compared with it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_index::suite::Subject;
use nandu_index::{Edit, OrderedIndex, Violation};
use nandu_nand::Nand;
use nandu_sim::{Sim, SimError};
use nandu_tree::{
    Begin, ByteCells, Cells, Direction, Engine, EngineError, Entry, Log, LogError, Options, Parts, memory_required,
};

pub(crate) type Error = EngineError<SimError>;

pub(crate) const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

pub(crate) type BoxError = Box<dyn std::error::Error>;

type Outcome<T, N> = Result<T, EngineError<<N as nandu_nand::ErrorType>::Error>>;

/// An engine on a new volume.
pub(crate) fn format<N: Nand, C: Cells>(
    nand: N,
    cells: C,
    options: Options,
    memory: &mut [u8],
) -> Outcome<Engine<'_, N, C>, N> {
    begun(Parts::new(nand, cells, &options, memory)?, options, Log::format)
}

/// An engine on the volume that is there.
pub(crate) fn open<N: Nand, C: Cells>(
    nand: N,
    cells: C,
    options: Options,
    memory: &mut [u8],
) -> Outcome<Engine<'_, N, C>, N> {
    begun(Parts::new(nand, cells, &options, memory)?, options, Log::mount)
}

fn begun<'m, N: Nand, C: Cells>(
    parts: Parts<'m, N, C>,
    options: Options,
    begin: Begin<'m, N>,
) -> Outcome<Engine<'m, N, C>, N> {
    let mut engine = Engine::unopened(parts);
    engine.begin(&options, begin)?;
    Ok(engine)
}

/// Mounts the chip, formatting it only if it was never opened and that may be, and gives the engine to `work`.
pub(crate) fn with_engine<C: Cells, T>(
    chip: &mut Sim,
    cells: C,
    (options, may_create): (Options, bool),
    work: impl FnOnce(&mut Engine<'_, &mut Sim, C>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let mut memory = vec![0; memory_required::<Sim>(&chip.chip().geometry, &options)];
    let opened = open(&mut *chip, cells, options, &mut memory);
    let is_new = matches!(&opened, Err(EngineError::Log(LogError::NotFormatted)));
    if !is_new || !may_create {
        return work(&mut opened?);
    }
    drop(opened);
    work(&mut format(chip, cells, options, &mut memory)?)
}

/// Memory that lives as long as the test.
pub(crate) fn memory(chip: &Sim, options: &Options) -> &'static mut [u8] {
    vec![0; memory_required::<Sim>(&chip.chip().geometry, options)].leak()
}

pub(crate) struct Bench<C: Cells + 'static> {
    engine: Option<Engine<'static, Sim, C>>,
    cells: C,
    options: Options,
}

impl<C: Cells> Bench<C> {
    pub(crate) fn new(chip: Sim, cells: C, options: Options) -> Bench<C> {
        let bytes = memory(&chip, &options);
        Bench { engine: Some(format(chip, cells, options, bytes).unwrap()), cells, options }
    }

    pub(crate) fn on(chip: Sim, cells: C, options: Options) -> Bench<C> {
        let bytes = memory(&chip, &options);
        Bench { engine: Some(open(chip, cells, options, bytes).unwrap()), cells, options }
    }

    pub(crate) fn engine(&mut self) -> &mut Engine<'static, Sim, C> {
        self.engine.as_mut().unwrap()
    }

    /// What tree and log did, for who reads along.
    pub(crate) fn told(&mut self) -> String {
        let engine = self.engine();
        format!("{:?} {:?}", engine.stats(), engine.log().stats())
    }

    /// Takes the chip as the power goes.
    pub(crate) fn cut(&mut self) -> Sim {
        self.engine.take().unwrap().abandon()
    }

    /// Takes the chip after an unmount.
    pub(crate) fn unmount(&mut self) -> Sim {
        self.engine.take().unwrap().unmount().map_err(|(error, _)| error).unwrap()
    }

    /// Goes on with a chip.
    pub(crate) fn reopen_on(&mut self, chip: Sim) {
        self.engine = Bench::on(chip, self.cells, self.options).engine;
    }

    /// Tree and log are sound, and agree on how many pages live.
    pub(crate) fn check(&mut self) {
        sound(self.engine()).unwrap();
        assert_eq!(self.engine().log().stats().damaged_blocks, 0, "what the tree said was as the log counted");
    }

    /// Of a log that counts exactly: when what was moved counts, as many pages count as live as do.
    pub(crate) fn check_exact(&mut self) {
        self.check();
        while self.engine().log().has_dying() {
            self.engine().idle(1).unwrap();
        }
        let mut live = 0;
        self.engine().live_pages(&mut |_| live += 1).unwrap();
        assert!(self.engine().log().is_exact());
        assert_eq!(live, self.engine().log().live_pages(), "tree and log agree on what lives");
    }
}

impl<C: Cells> OrderedIndex for Bench<C> {
    type Error = Error;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.engine().get(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.engine().put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.engine().delete(key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Error> {
        self.engine().batch(edits)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.engine().range(from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.engine().first()
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.engine().last()
    }

    fn count(&mut self) -> Result<u64, Error> {
        Ok(self.engine().record_count())
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.engine().sync()
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Error> {
        self.engine().verify(report)
    }
}

impl<C: Cells> Subject for Bench<C> {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self
    }

    fn reopen(&mut self) {
        let chip = self.unmount();
        self.reopen_on(chip);
    }
}

/// Entries by their keys.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The tree and the log are sound, and no block has more live pages than count.
pub(crate) fn sound<N: Nand, C: Cells>(engine: &mut Engine<'_, N, C>) -> Outcome<(), N> {
    let mut violations = Vec::new();
    engine.verify(&mut |violation| violations.push(violation))?;
    assert_eq!(violations, []);
    let geometry = *engine.log().geometry();
    let mut by_block = BTreeMap::new();
    engine.live_pages(&mut |page| *by_block.entry(geometry.block_of(page)).or_insert(0) += 1)?;
    for (&block, &live) in &by_block {
        assert!(live <= engine.log().live_bound(block), "{live} pages of {block:?} live, and fewer count");
    }
    Ok(())
}

/// How many chains of cuts a campaign takes: so few, or what `NANDU_CHAINS` says.
pub(crate) fn cases(few: u64) -> u64 {
    std::env::var("NANDU_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

/// All entries.
pub(crate) fn contents<N: nandu_nand::Nand, C: Cells>(
    engine: &mut Engine<'_, N, C>,
) -> Result<Model, EngineError<N::Error>> {
    let mut found = BTreeMap::new();
    engine.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    })?;
    assert_eq!(found.len() as u64, engine.record_count());
    Ok(found)
}

/// Puts a value as one that comes in parts.
pub(crate) fn put_in_parts<N: Nand>(
    engine: &mut Engine<'_, N, ByteCells>,
    key: &[u8],
    value: &[u8],
) -> Outcome<bool, N> {
    engine.begin_value(key, value.len())?;
    let mut rest = value;
    while let Some(size) = engine.value_part() {
        let (now, more) = rest.split_at(size);
        engine.append_value(key, now)?;
        rest = more;
    }
    engine.end_value(key)
}

/// All that there is, now or in a snapshot, with values of any size.
pub(crate) fn values_of<N: Nand>(engine: &mut Engine<'_, N, ByteCells>, number: Option<u32>) -> Outcome<Model, N> {
    let mut found = Vec::new();
    let mut note = |entry: Entry<'_>| {
        found.push((entry.key.to_vec(), entry.large.unwrap_or(entry.value.len())));
        ControlFlow::Continue(())
    };
    let all = (Bound::Unbounded, Bound::Unbounded, Direction::Forward);
    match number {
        None => engine.range(all.0, all.1, all.2, &mut note)?,
        Some(number) => engine.at(number).range(all.0, all.1, all.2, &mut note)?,
    }
    let mut values = Model::new();
    for (key, size) in found {
        let mut value = vec![0; size];
        let read = match number {
            None => engine.read(&key, 0, &mut value)?,
            Some(number) => engine.at(number).read(&key, 0, &mut value)?,
        };
        assert_eq!(read, Some(size), "{key:?} in {number:?}");
        values.insert(key, value);
    }
    Ok(values)
}

/// The value of a key, whatever its size.
pub(crate) fn value_of(engine: &mut Engine<'_, Sim, ByteCells>, key: &[u8]) -> Option<Vec<u8>> {
    let size = engine.read(key, 0, &mut []).unwrap()?;
    let mut value = vec![0; size];
    assert_eq!(engine.read(key, 0, &mut value), Ok(Some(size)));
    Some(value)
}

/// Numbers that look like chance and are the same each time.
pub(crate) fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}
