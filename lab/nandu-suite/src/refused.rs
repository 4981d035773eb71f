//! Counting what is refused in random lives, and saying which lives were not sound.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

/// How often something was refused for a lack of room in a life, by what was asked for.
#[derive(Debug, Default)]
pub struct Refused(BTreeMap<&'static str, u32>);

impl Refused {
    /// What an operation returned; `None` if there was no room, which is counted. Panics if it failed for another reason.
    pub fn count<T, E: Display>(
        &mut self,
        what: &'static str,
        outcome: Result<T, E>,
        is_full: impl FnOnce(&E) -> bool,
    ) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) if is_full(&error) => {
                *self.0.entry(what).or_default() += 1;
                None
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// How often this was refused.
    pub fn of(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

/// Lives so many lives, in each of which `expected` alone may be refused, and has to be in one; says which were not sound.
pub fn live_all(seeds: Range<u64>, expected: &str, live: impl Fn(u64) -> Refused) {
    let (mut bad, mut refused_count) = (0, 0);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let refused = live(seed);
        refused_count += refused.of(expected);
        if refused.0.keys().any(|what| *what != expected) {
            bad += 1;
            println!("seed {seed}: {refused:?}");
        }
    }
    assert!(bad == 0 && refused_count > 0, "{bad} of {count} lives, refused {refused_count} times: {expected}");
}

/// The lives that somebody asks for, with `NANDU_LIVES`: how many, or the seeds `FROM..TO`.
pub fn lives_asked_for() -> Range<u64> {
    let asked = std::env::var("NANDU_LIVES").unwrap_or("1000".to_owned());
    let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
    from.parse().unwrap()..to.parse().unwrap()
}
