//! Random operations.

use core::ops::Bound;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::Direction;

/// One thing to do with an index.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Put a value.
    Put(Vec<u8>, Vec<u8>),
    /// Delete a key.
    Delete(Vec<u8>),
    /// Look a key up.
    Get(Vec<u8>),
    /// Change several keys together. The keys ascend.
    Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    /// Read a range, at most so many entries.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, Direction, usize),
    /// Read the first and the last entry and count.
    Ends,
    /// Put many ascending keys: from which number, how many.
    Ascend(u32, u32),
    /// Delete everything in a range of keys.
    Clear(Vec<u8>, Vec<u8>),
    /// Close the index and open it again.
    Reopen,
}

/// Which keys an index takes.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    /// Big-endian numbers of this many bytes, 1 to 8.
    Fixed(usize),
    /// Any bytes up to this many.
    Bytes(usize),
}

/// Which keys and values operations draw from.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Kind of the keys.
    pub keys: KeyKind,
    /// About how many different keys there are.
    pub key_count: u32,
    /// Least size of a value.
    pub value_size_min: usize,
    /// Greatest size of a value.
    pub value_size_max: usize,
    /// Most operations in a case.
    pub operations_max: usize,
}

impl Space {
    /// The key that stands for a number below `key_count`. Higher numbers give higher keys.
    pub fn key(&self, number: u32) -> Vec<u8> {
        match self.keys {
            KeyKind::Fixed(size) => {
                // Uneven gaps, so that packed columns see every width.
                let spread = u64::from(number) * 37 + u64::from(number % 5) * 7;
                spread.to_be_bytes()[8 - size..].to_vec()
            }
            KeyKind::Bytes(size_max) => {
                // Long common beginnings, different lengths, and one key that begins another.
                let mut key = Vec::new();
                let mut digits = Vec::new();
                let mut rest = number;
                for _ in 0..5 {
                    digits.push(b'a' + (rest % 8) as u8);
                    rest /= 8;
                }
                key.extend(digits.iter().rev());
                if number.is_multiple_of(3) {
                    key.extend(std::iter::repeat_n(b'z', (number % 7) as usize));
                }
                if number == 0 {
                    key.clear();
                }
                key.truncate(size_max);
                key
            }
        }
    }

    /// The value that [`Operation::Ascend`] puts at a number.
    pub fn value(&self, number: u32) -> Vec<u8> {
        let size = self.value_size_min + number as usize % (self.value_size_max - self.value_size_min + 1);
        (0..size).map(|place| (number as usize * 31 + place) as u8).collect()
    }

    fn any_key(self) -> BoxedStrategy<Vec<u8>> {
        let near = (0..self.key_count).prop_map(move |number| self.key(number));
        match self.keys {
            KeyKind::Fixed(size) => {
                let far = any::<u64>().prop_map(move |number| number.to_be_bytes()[8 - size..].to_vec());
                prop_oneof![8 => near, 1 => far].boxed()
            }
            KeyKind::Bytes(size_max) => {
                let far = vec(any::<u8>(), 0..=size_max);
                prop_oneof![8 => near, 1 => far].boxed()
            }
        }
    }

    fn any_value(self) -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>(), self.value_size_min..=self.value_size_max)
    }
}

pub(super) fn bound(space: Space) -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => space.any_key().prop_map(Bound::Included),
        2 => space.any_key().prop_map(Bound::Excluded),
    ]
}

fn batch(space: Space) -> impl Strategy<Value = Operation> {
    let edit = prop_oneof![2 => space.any_value().prop_map(Some), 1 => Just(None)];
    vec((space.any_key(), edit), 0..24).prop_map(|mut edits| {
        edits.sort_by(|a, b| a.0.cmp(&b.0));
        edits.dedup_by(|a, b| a.0 == b.0);
        Operation::Batch(edits)
    })
}

/// A list of operations.
pub fn operations(space: Space) -> impl Strategy<Value = Vec<Operation>> {
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    let one = prop_oneof![
        16 => (space.any_key(), space.any_value()).prop_map(|(key, value)| Operation::Put(key, value)),
        6 => space.any_key().prop_map(Operation::Delete),
        4 => space.any_key().prop_map(Operation::Get),
        4 => batch(space),
        3 => (bound(space), bound(space), direction, 0..200_usize)
            .prop_map(|(from, to, direction, limit)| Operation::Range(from, to, direction, limit)),
        1 => Just(Operation::Ends),
        2 => (0..space.key_count, 1..80_u32).prop_map(|(from, count)| Operation::Ascend(from, count)),
        1 => (space.any_key(), space.any_key())
            .prop_map(|(a, b)| if a < b { Operation::Clear(a, b) } else { Operation::Clear(b, a) }),
        1 => Just(Operation::Reopen),
    ];
    vec(one, 1..=space.operations_max)
}
