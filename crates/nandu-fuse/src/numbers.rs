//! The numbers that the kernel knows inodes by, where a file system knows a file by another number once it was renamed.
//!
//! The kernel goes on with the number that it was told first. So for each renamed file there is noted what it is called inside now, and where its
//! name is: what is open when it is renamed keeps its number until it is closed, and only then is looked up again.

use std::collections::HashMap;

use nandu_files::Ino;

/// A directory and a name in it.
type Place = (Ino, Vec<u8>);

/// A file that was renamed.
struct Renamed {
    inside: Ino,
    /// Where its name is; `None` if it has none any more.
    place: Option<Place>,
}

/// Files that were renamed, by the numbers that the kernel has for them. Where numbers last there are none.
#[derive(Default)]
pub(crate) struct Numbers {
    renamed: HashMap<Ino, Renamed>,
    /// The kernel's numbers.
    outside: HashMap<Ino, Ino>,
    at: HashMap<Place, Ino>,
}

impl Numbers {
    /// What the file system calls what the kernel calls so.
    pub(crate) fn inside(&self, number: Ino) -> Ino {
        self.renamed.get(&number).map_or(number, |renamed| renamed.inside)
    }

    /// What the kernel calls what the file system calls so.
    pub(crate) fn outside(&self, ino: Ino) -> Ino {
        self.outside.get(&ino).copied().unwrap_or(ino)
    }

    /// A file that was called `before` is called `after` now, and has its name there.
    pub(crate) fn rename(&mut self, before: Ino, after: Ino, directory: Ino, name: &[u8]) {
        let number = self.outside(before);
        let place = (directory, name.to_vec());
        if let Some(old) = self.renamed.get(&number).and_then(|renamed| renamed.place.clone()) {
            self.at.remove(&old);
        }
        self.at.insert(place.clone(), number);
        self.renamed.insert(number, Renamed { inside: before, place: Some(place) });
        self.set_inside(number, after);
    }

    /// A name is gone, or leads to something else.
    pub(crate) fn remove(&mut self, directory: Ino, name: &[u8]) {
        if self.at.is_empty() {
            return;
        }
        if let Some(number) = self.at.remove(&(directory, name.to_vec()))
            && let Some(renamed) = self.renamed.get_mut(&number)
        {
            renamed.place = None;
        }
    }

    /// Where the name of a file is that was renamed.
    pub(crate) fn place(&self, number: Ino) -> Option<Place> {
        self.renamed.get(&number)?.place.clone()
    }

    /// A file that the kernel calls so is called so inside now.
    pub(crate) fn set_inside(&mut self, number: Ino, inside: Ino) {
        if let Some(renamed) = self.renamed.get_mut(&number) {
            self.outside.remove(&renamed.inside);
            renamed.inside = inside;
            self.outside.insert(inside, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use nandu_files::Ino;

    #[test]
    fn the_kernel_keeps_the_first_number_of_a_file() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.inside(Ino(7)), numbers.outside(Ino(7))), (Ino(7), Ino(7)));
        numbers.rename(Ino(7), Ino(8), Ino::ROOT, b"a");
        numbers.rename(Ino(8), Ino(9), Ino::ROOT, b"b");
        assert_eq!((numbers.inside(Ino(7)), numbers.outside(Ino(9))), (Ino(9), Ino(7)));
        assert_eq!(numbers.outside(Ino(8)), Ino(8), "that is nobody's now");
        assert_eq!(numbers.place(Ino(7)), Some((Ino::ROOT, b"b".to_vec())));
        // Open while it was renamed: it keeps its number until it is closed.
        numbers.rename(Ino(9), Ino(9), Ino::ROOT, b"c");
        numbers.set_inside(Ino(7), Ino(10));
        assert_eq!((numbers.inside(Ino(7)), numbers.outside(Ino(10))), (Ino(10), Ino(7)));
        numbers.remove(Ino::ROOT, b"c");
        assert_eq!(numbers.place(Ino(7)), None);
        assert_eq!(numbers.inside(Ino(7)), Ino(10), "it may be open");
    }
}
