//! FORMAT: Records of snapshots
//!
//! A snapshot is a set of records: what stood at each key before the first change after it. They stand in the same tree, where keys have any length, at keys that nobody else may use:
//!
//! ```text
//! key FF 7F 48; D1 to DF, the slot of a snapshot; key    what stood at this key: the value, or 7F 48 D6 9E if nothing did
//! key FF 7F 48 D0; slot, D1 to DF                         a snapshot: its number, u32, smaller than that of younger ones; and how many records there were, u64,
//!                                                         unless it was released and its records are being removed
//! ```
//!
//! A user's value that is written as nothing stands in a page of its own. A value in pages of its own is kept as any other: its head stands at the key of the snapshot's record then, and its pages say the key that it had. A commit says in a bit whether there are such records, so that who
//! cannot keep a snapshot does not break one.

use nandu_index::KeyBuf;

/// What keys of records of snapshots begin with, before the slot.
const MARK: [u8; 3] = [0xFF, 0x7F, 0x48];

/// The slot of what says which snapshots there are.
const DIRECTORY: u8 = 0xD0;

/// The lowest such key, and what is above all of them.
pub(crate) const FIRST: [u8; PREFIX] = [0xFF, 0x7F, 0x48, DIRECTORY];
pub(crate) const END: [u8; PREFIX] = [0xFF, 0x7F, 0x48, DIRECTORY + SLOTS + 1];

/// Slots of snapshots, from 1 on.
pub(crate) const SLOTS: u8 = 15;

/// Bytes that such a key has before the key of a user.
pub(crate) const PREFIX: usize = MARK.len() + 1;

/// Nothing stood at the key. No record of a user has this value.
pub(crate) const NOTHING: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9E];

/// Whether a key is that of a record of a snapshot, where keys have any length.
pub(crate) fn is_reserved(key: &[u8]) -> bool {
    (&FIRST[..]..&END[..]).contains(&key)
}

/// The key of a user that such a key has; that one itself if it is none.
pub(crate) fn user_key(key: &[u8]) -> &[u8] {
    if is_reserved(key) { key.get(PREFIX..).unwrap_or_default() } else { key }
}

/// Becomes the key at which the snapshot in a slot keeps what stood at a key, and lends it. One that is too long is none of a user.
pub(crate) fn set_kept<'k>(kept: &'k mut KeyBuf, slot: u8, key: &[u8]) -> &'k [u8] {
    let is_whole = kept.set(&slot_key(slot)) && kept.append(key);
    debug_assert!(is_whole, "keys of users leave room for this");
    kept.as_slice()
}

/// What the keys of a slot begin with: it is not above any of them, and above all of the slots before it.
pub(crate) fn slot_key(slot: u8) -> [u8; PREFIX] {
    debug_assert!(slot <= SLOTS + 1, "a slot, or behind the last");
    let [first, second, third] = MARK;
    [first, second, third, DIRECTORY + slot]
}

/// The key that says that there is a snapshot in a slot.
pub(crate) fn snapshot_key(slot: u8) -> [u8; PREFIX + 1] {
    debug_assert!(slot > 0, "slots begin at 1");
    let [first, second, third, directory] = slot_key(0);
    [first, second, third, directory, DIRECTORY + slot]
}

/// The slot that such a key names; `None` if it names none.
pub(crate) fn slot_in(key: &[u8]) -> Option<u8> {
    let &[slot] = user_key(key) else { return None };
    slot.checked_sub(DIRECTORY).filter(|slot| (1..=SLOTS).contains(slot))
}

#[cfg(test)]
mod tests {
    use nandu_index::KeyBuf;

    use super::{SLOTS, is_reserved, set_kept, slot_in, snapshot_key, user_key};

    #[test]
    fn keys_of_snapshots_have_the_key_of_a_user_and_nothing_else_is_one() {
        for slot in 1..=SLOTS {
            let mut kept = KeyBuf::EMPTY;
            let kept = set_kept(&mut kept, slot, b"key");
            assert!(is_reserved(kept) && user_key(kept) == b"key");
            assert_eq!(slot_in(&snapshot_key(slot)), Some(slot));
        }
        let others: [&[u8]; 6] =
            [b"", &[0xFF, 0x7F, 0x48], &[0xFF, 0x7F, 0x48, 0xCF], &[0xFF, 0x7F, 0x48, 0xE0], &[0xFF; 9], b"key"];
        assert!(others.iter().all(|key| !is_reserved(key) && user_key(key) == *key && slot_in(key).is_none()));
        assert_eq!(slot_in(&[0xFF, 0x7F, 0x48, 0xD0, 0xD0]), None);
    }
}
