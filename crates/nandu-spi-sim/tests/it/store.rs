//! A store over whatever reaches the chip: a workload, and what may be found after it was cut short.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Store};
use nandu_nand::{Geometry, Nand};
use nandu_sim::Sim;
use nandu_sim::power_cut::Run;
use nandu_suite::cuts::Access;

pub(crate) type Records = BTreeMap<Vec<u8>, Value>;

/// The bytes of a value, which are all the same, and are printed so.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Value(Vec<u8>);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.0.first().copied().unwrap_or(0);
        let same = if self.0.iter().all(|&byte| byte == first) { "" } else { " and others" };
        write!(f, "{} x {first}{same}", self.0.len())
    }
}

pub(crate) const OPTIONS: nandu::Options = nandu::Options { cache_size: 4096, ..nandu::Options::DEFAULT };

/// What the store said is durable, and the one change of which it has said nothing yet.
#[derive(Clone, Default)]
pub(crate) struct Promise {
    /// `None` before the first run opened the store.
    records: Option<Records>,
    pending: Option<Records>,
    count: u32,
}

pub(crate) fn memory(geometry: &Geometry) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(geometry, &OPTIONS)]
}

fn records<N: Nand>(store: &mut Store<'_, N>) -> Result<Records, nandu::Error<N::Error>> {
    let mut found = Records::new();
    let mut large = Vec::new();
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        large.extend(entry.large.map(|size| (entry.key.to_vec(), size)));
        found.insert(entry.key.to_vec(), Value(entry.value.to_vec()));
        ControlFlow::Continue(())
    })?;
    for (key, size) in large {
        let mut value = vec![0; size];
        store.read(&key, 0, &mut value)?;
        found.insert(key, Value(value));
    }
    Ok(found)
}

/// Puts and deletes over a few keys, with values of any size up to a third of a page. The larger stand in pages of their own.
pub(crate) fn workload<A: Access>(access: A, changes: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut memory = memory(&chip.chip().geometry);
        let mut store = Store::open(access.reach(chip)?, OPTIONS, &mut memory).map_err(|error| error.to_string())?;
        let mut held = records(&mut store).map_err(|error| error.to_string())?;
        (promise.records, promise.pending) = (Some(held.clone()), None);
        for _ in 0..changes {
            promise.count += 1;
            let chance = promise.count.wrapping_mul(0x9E37_79B1) >> 8;
            let key = vec![b'a' + (chance % 24) as u8; 1 + (chance % 3) as usize];
            let mut after = held.clone();
            let result = if chance % 5 == 0 {
                after.remove(&key);
                promise.pending = Some(after.clone());
                store.delete(&key).map(|_| ())
            } else {
                let value = vec![promise.count as u8; (chance / 7 % 600) as usize];
                after.insert(key.clone(), Value(value.clone()));
                promise.pending = Some(after.clone());
                store.put(&key, &value).map(|_| ())
            };
            result.map_err(|error| error.to_string())?;
            (promise.records, promise.pending) = (Some(after.clone()), None);
            held = after;
        }
        store.unmount().map_err(|error| error.to_string())?;
        Ok(())
    }
}

pub(crate) fn recover<A: Access>(access: A) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut memory = memory(&chip.chip().geometry);
        Store::open(access.reach(chip)?, OPTIONS, &mut memory).map_err(|error| error.to_string())?;
        Ok(())
    }
}

pub(crate) fn check<A: Access>(access: A) -> impl Fn(&mut Sim, &Promise) -> Records {
    move |chip, promise| {
        let mut memory = memory(&chip.chip().geometry);
        let mut store = Store::open(access.reach(chip).unwrap(), OPTIONS, &mut memory).unwrap();
        let mut violations = Vec::new();
        store.verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        let found = records(&mut store).unwrap();
        let may_be = [&promise.records, &promise.pending];
        let is_right = promise.records.is_none() || may_be.contains(&&Some(found.clone()));
        assert!(is_right, "found {found:?}\nacknowledged {:?}\npending {:?}", promise.records, promise.pending);
        found
    }
}
