//! The conformance suite, on a store on a simulated chip.

use std::ops::{Bound, ControlFlow};

use nandu::{ByteCells, Cells, FixedCells, Options, Store};
use nandu_index::suite::{KeyKind, Space, Subject, conformance};
use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_sim::{Chip, Sim};

/// A store that is opened for each call, so that memory and chip need no lifetime in common; what a call answers is
/// copied.
struct Opened<C> {
    chip: Option<Sim>,
    cells: C,
    options: Options,
    memory: Vec<u8>,
    answer: (Vec<u8>, Vec<u8>),
}

type Error = nandu::Error<nandu_sim::SimError>;

impl<C: Cells> Opened<C> {
    fn new(cells: C, options: Options) -> Opened<C> {
        let chip = Sim::new(Chip::TINY.with_blocks(48));
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let chip = Store::format_with(chip, cells, options, &mut memory).unwrap().unmount().unwrap();
        Opened { chip: Some(chip), cells, options, memory, answer: Default::default() }
    }

    fn with<T>(
        &mut self,
        call: impl FnOnce(&mut Store<'_, Sim, C>, &mut (Vec<u8>, Vec<u8>)) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let chip = self.chip.take().expect("a call before this one panicked");
        let mut store = Store::open_with(chip, self.cells, self.options, &mut self.memory).unwrap();
        let result = call(&mut store, &mut self.answer);
        // Left without a word, so that the next call recovers.
        self.chip = Some(store.abandon());
        result
    }
}

impl<C: Cells> OrderedIndex for Opened<C> {
    type Error = Error;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let found = self.with(|store, answer| Ok(store.get(key)?.map(|value| answer.1 = value.to_vec())))?;
        Ok(found.map(|()| &self.answer.1[..]))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.with(|store, _| store.put(key, value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.with(|store, _| store.delete(key))
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Error> {
        self.with(|store, _| store.batch(edits))
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.with(|store, _| store.range(from, to, direction, visit))
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let found = self.with(|store, answer| {
            Ok(store.first()?.map(|entry| *answer = (entry.key.to_vec(), entry.value.to_vec())))
        })?;
        Ok(found.map(|()| Entry { key: &self.answer.0, value: &self.answer.1, large: None }))
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let found = self.with(|store, answer| {
            Ok(store.last()?.map(|entry| *answer = (entry.key.to_vec(), entry.value.to_vec())))
        })?;
        Ok(found.map(|()| Entry { key: &self.answer.0, value: &self.answer.1, large: None }))
    }

    fn count(&mut self) -> Result<u64, Error> {
        self.with(|store, _| Ok(store.record_count()))
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Error> {
        self.with(|store, _| OrderedIndex::verify(store, report))
    }
}

impl<C: Cells> Subject for Opened<C> {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self
    }

    fn reopen(&mut self) {
        let chip = self.chip.take().expect("a call before this one panicked");
        let store = Store::open_with(chip, self.cells, self.options, &mut self.memory).unwrap();
        self.chip = Some(store.unmount().unwrap());
    }
}

const SMALL: Options = Options { cache_size: 200, ..Options::DEFAULT };

#[test]
fn a_store_that_is_cut_after_every_call_conforms() {
    let space =
        Space { keys: KeyKind::Bytes(10), key_count: 80, value_size_min: 0, value_size_max: 16, operations_max: 60 };
    conformance(space, 60, || Opened::new(ByteCells, SMALL));
}

#[test]
fn a_store_of_integers_that_is_cut_after_every_call_conforms() {
    let space =
        Space { keys: KeyKind::Fixed(4), key_count: 300, value_size_min: 4, value_size_max: 4, operations_max: 60 };
    conformance(space, 60, || Opened::new(FixedCells::<4, 4>, SMALL));
}
