//! What a volume uses of the parts that may be left out of a build, and which of them is missing.

use nandu_media::features;

/// Which parts a volume, or what it is to be formatted with, uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    pub(crate) bare: bool,
    pub(crate) mlc: bool,
    pub(crate) tags: bool,
}

/// Which parts are compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiled {
    files: bool,
    mlc: bool,
    tags: bool,
}

/// Those of this build.
pub(crate) const COMPILED: Compiled = Compiled { files: features::FILES, mlc: features::MLC, tags: features::TAGS };

impl Compiled {
    /// The feature that is used and not compiled; the one that others need first.
    pub(crate) fn lacks(self, uses: Uses) -> Option<&'static str> {
        match self {
            Compiled { files: false, .. } if uses.bare => Some("files"),
            Compiled { mlc: false, .. } if uses.mlc => Some("mlc"),
            Compiled { tags: false, .. } if uses.tags => Some("tags"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Compiled, Uses};

    const NONE: Uses = Uses { bare: false, mlc: false, tags: false };
    const ALL: Uses = Uses { bare: true, mlc: true, tags: true };

    #[test]
    fn what_is_used_and_not_compiled_is_named() {
        let least = Compiled { files: false, mlc: false, tags: false };
        let most = Compiled { files: true, mlc: true, tags: true };
        assert_eq!((least.lacks(NONE), most.lacks(NONE), most.lacks(ALL)), (None, None, None));
        assert_eq!(least.lacks(ALL), Some("files"));
        let without_mlc = Compiled { mlc: false, ..most };
        assert_eq!((without_mlc.lacks(ALL), without_mlc.lacks(Uses { mlc: false, ..ALL })), (Some("mlc"), None));
        let without_tags = Compiled { tags: false, ..most };
        assert_eq!((without_tags.lacks(ALL), without_tags.lacks(Uses { tags: false, ..ALL })), (Some("tags"), None));
    }
}
