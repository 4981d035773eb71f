//! Changes that are made together, in the order of their keys: those of a user, and what snapshots keep with them, which stands in memory of its own.

use core::ops::Range;

use nandu_index::Edit;
use nandu_media::features::SNAPSHOTS;

use crate::copies::Copies;

/// Changes with different keys, in their order.
#[derive(Clone, Copy)]
pub(crate) struct Edits<'e> {
    given: &'e [Edit<'e>],
    /// One more, and its index.
    one: Option<Edit<'e>>,
    one_at: usize,
    /// What is kept, and the index of the first of it.
    kept: Option<&'e Copies<'e>>,
    kept_at: usize,
    is_head: bool,
}

impl<'e> Edits<'e> {
    /// These, and no others.
    pub(crate) const fn of(given: &'e [Edit<'e>]) -> Edits<'e> {
        Edits { given, one: None, one_at: 0, kept: None, kept_at: 0, is_head: false }
    }

    /// The head of the value under way, at this key.
    pub(crate) fn of_head(key: &'e [u8]) -> Edits<'e> {
        Edits { is_head: true, ..Edits::beside(Edit { key, value: Some(&[]) }, &[]) }
    }

    /// Whether a value stands for the head of the value under way.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// The same with this head.
    pub(crate) fn with_head(self, head: &'e [u8]) -> Edits<'e> {
        let one = self.one.map(|edit| Edit { value: Some(head), ..edit });
        Edits { one, is_head: false, ..self }
    }

    /// One, and those that go with it.
    pub(crate) fn beside(one: Edit<'e>, given: &'e [Edit<'e>]) -> Edits<'e> {
        let one_at = given.partition_point(|edit| edit.key < one.key);
        debug_assert!(given.get(one_at).is_none_or(|edit| edit.key != one.key), "keys ascend");
        Edits { one: Some(one), one_at, ..Edits::of(given) }
    }

    /// The same, and what is kept with them: records of one snapshot, between which no user has any.
    pub(crate) fn with(self, kept: &'e Copies<'e>) -> Edits<'e> {
        let kept_at = kept.get(0).map_or(0, |first| self.count_below(0, first.key));
        let edits = Edits { kept: Some(kept), kept_at, ..self };
        debug_assert!(edits.iter().map(|edit| edit.key).is_sorted_by(|one, other| one < other), "in their order");
        edits
    }

    pub(crate) fn len(&self) -> usize {
        let kept = self.kept.filter(|_| SNAPSHOTS).map_or(0, Copies::count);
        self.given.len() + usize::from(self.one.is_some()) + kept
    }

    pub(crate) fn get(&self, mut index: usize) -> Option<Edit<'e>> {
        if let Some(kept) = self.kept.filter(|_| SNAPSHOTS && index >= self.kept_at) {
            match kept.get(index - self.kept_at) {
                None => index -= kept.count(),
                found => return found,
            }
        }
        if self.one.is_some() && index >= self.one_at {
            if index == self.one_at {
                return self.one;
            }
            index -= 1;
        }
        self.given.get(index).copied()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Edit<'e>> + use<'_, 'e> {
        self.part(0..self.len())
    }

    /// Some of them.
    pub(crate) fn part(&self, indexes: Range<usize>) -> impl Iterator<Item = Edit<'e>> + use<'_, 'e> {
        debug_assert!(indexes.end <= self.len(), "changes that are here");
        indexes.map_while(|index| self.get(index))
    }

    /// How many of them, from an index on, have keys below this one.
    pub(crate) fn count_below(&self, from: usize, key: &[u8]) -> usize {
        self.part(from..self.len()).take_while(|edit| edit.key < key).count()
    }

    /// The change of a key, if there is one.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Edit<'e>> {
        self.iter().find(|edit| edit.key == key)
    }
}

#[cfg(test)]
mod tests {
    use nandu_index::Edit;

    use super::Edits;
    use crate::copies::Copies;
    use crate::reserved::slot_key;

    #[test]
    fn what_is_kept_stands_between_changes_of_a_user() {
        let (mut memory, slot) = ([0; 40], &slot_key(2)[..]);
        let mut copies = Copies::new(&mut memory);
        assert!(copies.push((slot, b"b"), Some(b"1")) && copies.push((slot, &[0xFF, 0xFF]), None));
        assert!(copies.push((&[], b"none"), None));
        copies.pop();
        assert!(!copies.push((&[], b"large"), Some(&[3; 30])) && copies.rest().len() == 40 - 10 - 10);
        let delete = |key| Edit { key, value: None };
        let given = [delete(&b"b"[..]), delete(&[0xFF, 0xFF])];
        let edits = Edits::beside(delete(b"c"), &given).with(&copies);
        assert!(edits.iter().map(|it| it.key.len()).eq([1, 1, 5, 6, 2]) && edits.len() == 5);
        assert!(edits.part(1..3).map(|it| it.key.len()).eq([1, 5]) && edits.get(5).is_none());
        assert_eq!((edits.count_below(0, b"c"), edits.count_below(1, &[0xFF, 0xFE])), (1, 3));
        assert_eq!(edits.find(&[0xFF, 0x7F, 0x48, 0xD2, b'b']).and_then(|it| it.value), Some(&b"1"[..]));
        assert!(Edits::of(&given).iter().eq(given) && Edits::of(&[]).with(&copies).len() == 2);
    }
}
