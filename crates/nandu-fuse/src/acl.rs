//! Access control lists as POSIX 1003.1e drafts them, in the form in which the kernel keeps them in extended attributes.
//!
//! The kernel checks permissions by them (`FUSE_POSIX_ACL`) and leaves three things to the file system: a list and the permissions of
//! its file say the same, whichever of them is changed; and what is made in a directory with a default list gets a list from it.
//!
//! ```text
//! bytes 0 to 3  version, 2
//! then for each entry
//!   2 bytes     whom it is for
//!   2 bytes     permissions: 4 read, 2 write, 1 execute
//!   4 bytes     number of the user or group
//! ```

/// The attribute with the list of a file.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";

/// The attribute of a directory with the list for what is made in it.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNER_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// A list, with an entry for the owner, the group and all others at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl(Vec<Entry>);

impl Acl {
    /// `None` if these bytes are no list.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Acl> {
        let (version, rest) = bytes.split_first_chunk::<4>()?;
        let (entries, rest) = rest.as_chunks::<8>();
        if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() {
            return None;
        }
        let entries = entries.iter().map(|&[tag, tag_high, permissions, high, a, b, c, d]| Entry {
            tag: u16::from_le_bytes([tag, tag_high]),
            permissions: u16::from_le_bytes([permissions, high]),
            id: u32::from_le_bytes([a, b, c, d]),
        });
        let acl = Acl(entries.collect());
        let count = |tag: u16| acl.0.iter().filter(|entry| entry.tag == tag).count();
        let is_known = |entry: &Entry| {
            matches!(entry.tag, OWNER | USER | OWNER_GROUP | GROUP | MASK | OTHERS) && entry.permissions <= 7
        };
        let has_names = count(USER) + count(GROUP) > 0;
        let is_whole = [OWNER, OWNER_GROUP, OTHERS].into_iter().all(|tag| count(tag) == 1);
        let is_masked = count(MASK) <= 1 && (!has_names || count(MASK) == 1);
        (acl.0.iter().all(is_known) && is_whole && is_masked).then_some(acl)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            bytes.extend(entry.tag.to_le_bytes());
            bytes.extend(entry.permissions.to_le_bytes());
            bytes.extend(entry.id.to_le_bytes());
        }
        bytes
    }

    /// Whether permissions say all that the list says.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.iter().all(|entry| matches!(entry.tag, OWNER | OWNER_GROUP | OTHERS))
    }

    fn entry(&mut self, tag: u16) -> Option<&mut u16> {
        self.0.iter_mut().find(|entry| entry.tag == tag).map(|entry| &mut entry.permissions)
    }

    /// What the permissions of the group stand for: the mask, where there is one.
    fn group_tag(&self) -> u16 {
        if self.0.iter().any(|entry| entry.tag == MASK) { MASK } else { OWNER_GROUP }
    }

    /// The entries that permissions stand for, and where their three bits are in a mode.
    fn parts(&self) -> [(u16, u32); 3] {
        [(OWNER, 6), (self.group_tag(), 3), (OTHERS, 0)]
    }

    /// A mode with the permissions that the list stands for.
    pub(crate) fn mode(&self, mode: u32) -> u32 {
        let mut mode = mode & !0o777;
        for (tag, shift) in self.parts() {
            let entry = self.0.iter().find(|entry| entry.tag == tag);
            mode |= entry.map_or(0, |entry| u32::from(entry.permissions) & 7) << shift;
        }
        mode
    }

    /// The list after permissions were set.
    pub(crate) fn set_mode(&mut self, mode: u32) {
        for (tag, shift) in self.parts() {
            if let Some(permissions) = self.entry(tag) {
                *permissions = (mode >> shift & 7) as u16;
            }
        }
    }

    /// Makes a default list the list of what is made with a mode; the umask plays no part.
    pub(crate) fn inherit(&mut self, mode: u32) {
        for (tag, shift) in self.parts() {
            if let Some(permissions) = self.entry(tag) {
                *permissions &= (mode >> shift & 7) as u16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Acl, Entry, GROUP, MASK, OTHERS, OWNER, OWNER_GROUP, USER};

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl(entries.iter().map(|&(tag, permissions, id)| Entry { tag, permissions, id }).collect())
    }

    const NAMED: [(u16, u16, u32); 6] =
        [(OWNER, 7, 0), (USER, 6, 1000), (OWNER_GROUP, 4, 0), (GROUP, 7, 5), (MASK, 6, 0), (OTHERS, 1, 0)];

    #[test]
    fn a_list_is_read_as_it_was_written_and_nothing_else_is() {
        let list = acl(&NAMED);
        let bytes = list.bytes();
        assert_eq!(Acl::parse(&bytes), Some(list));
        for size in 0..bytes.len() {
            assert_eq!(Acl::parse(&bytes[..size]), None, "{size}");
        }
        let refused = |entries: &[(u16, u16, u32)]| assert_eq!(Acl::parse(&acl(entries).bytes()), None, "{entries:?}");
        refused(&[(OWNER, 7, 0), (OWNER_GROUP, 4, 0)]);
        refused(&[(OWNER, 7, 0), (OWNER, 7, 0), (OWNER_GROUP, 4, 0), (OTHERS, 0, 0)]);
        refused(&[(OWNER, 7, 0), (USER, 7, 1), (OWNER_GROUP, 4, 0), (OTHERS, 0, 0)]);
        refused(&[(OWNER, 8, 0), (OWNER_GROUP, 4, 0), (OTHERS, 0, 0)]);
        refused(&[(OWNER, 7, 0), (OWNER_GROUP, 4, 0), (OTHERS, 0, 0), (64, 0, 0)]);
    }

    #[test]
    fn permissions_and_lists_say_the_same() {
        let mut list = acl(&NAMED);
        assert!(!list.is_plain());
        assert_eq!(list.mode(0o104_000), 0o104_761, "the group's bits are the mask");
        list.set_mode(0o640);
        assert_eq!(
            list,
            acl(&[(OWNER, 6, 0), (USER, 6, 1000), (OWNER_GROUP, 4, 0), (GROUP, 7, 5), (MASK, 4, 0), (OTHERS, 0, 0)])
        );
        let mut plain = acl(&[(OWNER, 7, 0), (OWNER_GROUP, 5, 0), (OTHERS, 5, 0)]);
        assert!(plain.is_plain());
        plain.set_mode(0o600);
        assert_eq!(plain.mode(0), 0o600);
    }

    #[test]
    fn what_is_made_gets_no_more_than_was_asked_for() {
        let mut list = acl(&NAMED);
        list.inherit(0o666);
        assert_eq!(list.mode(0), 0o660);
        list.inherit(0o600);
        assert_eq!(
            list,
            acl(&[(OWNER, 6, 0), (USER, 6, 1000), (OWNER_GROUP, 4, 0), (GROUP, 7, 5), (MASK, 0, 0), (OTHERS, 0, 0)])
        );
    }
}
