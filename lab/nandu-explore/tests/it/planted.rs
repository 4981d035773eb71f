//! Rules that are left out are found.

use nandu_explore::{Bounds, Explored, Files, Past, Stores};

type Planted = (&'static str, Box<dyn Explored>);

/// A rule of these options that is left out, by its field.
macro_rules! planted {
    ($($system:expr => $options:ident.$($field:tt).+;)*) => {
        vec![$((
            stringify!($($field).+),
            Box::new($system.with(|options| planted!(@ $options options).$($field).+ = true)) as Box<dyn Explored>,
        )),*]
    };
    (@ store $options:ident) => { $options.broken };
    (@ files $options:ident) => { $options.0.broken };
}

/// Whether something is found in sequences of two moves, and in how many states and cuts. What is found first is up to the threads.
fn found(system: &dyn Explored) -> Result<String, String> {
    let report = system.explore(Bounds { depth: 2, shard: (0, 1), has_faults: true, sag_max: 0 });
    let counts = format!("{} in {} states, {} cuts", system.name(), report.states, report.cuts);
    match report.violations.first() {
        Some(violation) => Ok(format!("{counts}: {}", violation.moves.join(" "))),
        None => Err(counts),
    }
}

#[test]
fn each_rule_that_is_left_out_is_found_in_two_moves() {
    let all: Vec<Planted> = planted![
        Stores::immediate(Past::Fresh) => store.1.quarantine;
        Stores::immediate(Past::Worn) => store.1.erase_proof;
        Stores::immediate(Past::Fresh) => store.1.ends;
        Stores::immediate(Past::Worn) => store.0.splits_batches;
        Stores::waiting(Past::Worn) => store.0.keeps_late;
        Stores::waiting(Past::Kept) => store.0.forgets_heirs;
        Files::nandu(600) => files.without_sync;
        Files::nandu(0) => files.name_first;
        Files::nandu(600) => files.replace_in_parts;
        Files::dffs() => files.parent_before_directory;
        Files::dffs() => files.inode_before_data;
        Files::dffs() => files.removal_first;
    ];
    let mut missed = Vec::new();
    for (rule, system) in all {
        match found(&*system) {
            Ok(found) => println!("{rule}: {found}"),
            Err(counts) => missed.push((rule, counts)),
        }
    }
    assert_eq!(missed, []);
}
