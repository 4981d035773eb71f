//! Which snapshots there are.

use nandu_media::features::SNAPSHOTS;

use crate::reserved::SLOTS;

/// Snapshots that there may be at a time.
pub const SNAPSHOT_COUNT_MAX: usize = 8;

/// The same with those that were released and whose records are being removed.
const SLOTS_MAX: usize = if SNAPSHOTS { SLOTS as usize } else { 0 };

/// A snapshot of which there may be records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// It is younger than all of smaller numbers.
    pub(crate) number: u32,
    /// What the keys of its records have: 1 or more.
    pub(crate) slot: u8,
    /// Whether it was not released.
    pub(crate) is_held: bool,
}

impl Numbered {
    const NONE: Numbered = Numbered { number: 0, slot: 0, is_held: false };
}

/// Snapshots of which there may be records, the oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    all: [Numbered; SLOTS_MAX],
    count: u8,
}

impl Numbers {
    pub(crate) const NONE: Numbers = Numbers { all: [Numbered::NONE; SLOTS_MAX], count: 0 };

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Numbered> + use<'_> {
        let all = &self.all[..self.count.into()];
        debug_assert!(all.is_sorted_by_key(|it| it.number), "in their order");
        all.iter().copied()
    }

    /// The slot of one of those from this number on: the oldest, or so many behind it.
    pub(crate) fn slot_from(&self, number: u32, behind: usize) -> Option<u8> {
        self.iter().filter(|it| it.number >= number).nth(behind).map(|it| it.slot)
    }

    /// Those that were not released.
    pub(crate) fn held(&self) -> impl DoubleEndedIterator<Item = Numbered> + use<'_> {
        self.iter().filter(|it| it.is_held)
    }

    /// Their numbers.
    pub(crate) fn held_numbers(&self) -> impl ExactSizeIterator<Item = u32> + use<> {
        let mut held = [0; SLOTS_MAX];
        held.iter_mut().zip(self.held()).for_each(|(place, it)| *place = it.number);
        let count = self.held().count();
        (0..count).map(move |at| held[at])
    }

    pub(crate) fn is_held(&self, number: u32) -> bool {
        self.held().any(|it| it.number == number)
    }

    /// The oldest that was released, and the one before it that was not, which needs what it kept.
    pub(crate) fn released(&self) -> Option<(Numbered, Option<Numbered>)> {
        let released = self.iter().find(|it| !it.is_held)?;
        Some((released, self.held().take_while(|it| it.number < released.number).last()))
    }

    /// A new one; `None` if there are as many as there can be.
    pub(crate) fn next(&self) -> Option<Numbered> {
        let number = self.iter().next_back().map_or(0, |it| it.number).checked_add(1)?;
        let slot = (1..=SLOTS_MAX as u8).find(|&slot| self.iter().all(|it| it.slot != slot))?;
        (self.held().count() < SNAPSHOT_COUNT_MAX).then_some(Numbered { number, slot, is_held: true })
    }

    /// One more. Returns false, with nothing changed, if there is no room, or one with its number or its slot.
    pub(crate) fn add(&mut self, new: Numbered) -> bool {
        let count = usize::from(self.count);
        let is_new = self.iter().all(|it| it.number != new.number && it.slot != new.slot);
        let is_sound = new.number > 0 && (1..=SLOTS_MAX).contains(&new.slot.into());
        let Some(place) = self.all.get_mut(count).filter(|_| is_new && is_sound) else { return false };
        *place = new;
        self.count += 1;
        self.all[..=count].sort_unstable_by_key(|it| it.number);
        true
    }

    /// It was released.
    pub(crate) fn release(&mut self, number: u32) {
        debug_assert!(self.is_held(number), "it was not released yet");
        self.all.iter_mut().filter(|it| it.number == number).for_each(|it| it.is_held = false);
    }

    /// Nothing is left of it, which was released.
    pub(crate) fn remove(&mut self, number: u32) {
        debug_assert!(!self.is_held(number), "it was released");
        let Some(at) = self.iter().position(|it| it.number == number) else { return };
        self.all.copy_within(at + 1.., at);
        self.count -= 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbered, Numbers, SLOTS_MAX, SNAPSHOT_COUNT_MAX};

    fn add(numbers: &mut Numbers) -> Option<u32> {
        let next = numbers.next()?;
        assert!(numbers.add(next) && !numbers.add(next), "each once");
        Some(next.number)
    }

    #[test]
    fn snapshots_keep_their_order_and_who_was_released_hands_on_to_the_one_before() {
        let mut numbers = Numbers::NONE;
        for number in 1..=8 {
            assert_eq!(add(&mut numbers), Some(number));
        }
        assert_eq!((add(&mut numbers), numbers.released()), (None, None));
        for number in [5, 6, 1] {
            numbers.release(number);
        }
        let of = |(released, heir): (Numbered, Option<Numbered>)| (released.number, heir.map(|it| it.number));
        assert!(numbers.held().map(|it| it.number).eq([2, 3, 4, 7, 8]));
        assert_eq!(numbers.released().map(of), Some((1, None)));
        numbers.remove(1);
        assert_eq!(numbers.released().map(of), Some((5, Some(4))));
        numbers.remove(5);
        let from = |number| (0..).map_while(move |behind| numbers.slot_from(number, behind));
        assert!(from(4).eq([4, 6, 7, 8]) && from(5).eq([6, 7, 8]) && from(9).eq([]));
        // Slots are used again, numbers are not; until only those that are being removed are in the way.
        let mut last = 8;
        while let Some(number) = add(&mut numbers) {
            last += 1;
            assert_eq!(number, last);
            numbers.release(number);
        }
        assert_eq!((numbers.iter().count(), numbers.held().count()), (SLOTS_MAX, 5));
        assert!(
            5 < SNAPSHOT_COUNT_MAX
                && numbers.iter().all(|it| numbers.iter().filter(|one| one.slot == it.slot).count() == 1)
        );
        // A mount finds them in the order of their slots.
        let mut found = Numbers::NONE;
        for slot in 1..=SLOTS_MAX as u8 {
            assert!(numbers.iter().filter(|it| it.slot == slot).all(|it| found.add(it)));
        }
        assert!(found.iter().eq(numbers.iter()));
        assert!(!found.add(Numbered { number: 99, slot: 0, is_held: true }));
    }
}
