//! The node translation table: in which pages the units of each node lie.

use std::collections::BTreeMap;

use nandu_nand::PageAddr;

/// Where a group of units lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) sequence: u64,
    pub(super) page: PageAddr,
    /// Units of the group.
    pub(super) units: u32,
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    pub(super) level: u8,
    /// The base first, then as they were committed.
    pub(super) places: Vec<Place>,
}

/// The table, and how many units of each page are in it.
#[derive(Debug)]
pub(super) struct Table {
    nodes: BTreeMap<u32, Listed>,
    live: Vec<u32>,
    live_total: u64,
}

impl Table {
    pub(super) fn new(page_count: u32) -> Table {
        Table { nodes: BTreeMap::new(), live: vec![0; page_count as usize], live_total: 0 }
    }

    pub(super) fn get(&self, node: u32) -> Option<&Listed> {
        self.nodes.get(&node)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.nodes.keys().copied()
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Groups in all lists.
    pub(super) fn place_count(&self) -> usize {
        self.nodes.values().map(|listed| listed.places.len()).sum()
    }

    /// Units of a page that are in a list.
    pub(super) fn live_units(&self, page: PageAddr) -> u32 {
        self.live[page.0 as usize]
    }

    /// Pages with units that are in a list.
    pub(super) fn live_page_count(&self) -> u64 {
        self.live.iter().filter(|&&units| units > 0).count() as u64
    }

    pub(super) fn live_total(&self) -> u64 {
        self.live_total
    }

    fn count(&mut self, place: Place) {
        self.live[place.page.0 as usize] += place.units;
        self.live_total += u64::from(place.units);
    }

    fn discount(&mut self, place: Place) {
        self.live[place.page.0 as usize] -= place.units;
        self.live_total -= u64::from(place.units);
    }

    /// A group of a node was committed. A base makes the list anew.
    pub(super) fn add(&mut self, node: u32, level: u8, is_base: bool, place: Place) {
        if is_base {
            self.remove(node);
        }
        let listed = self.nodes.entry(node).or_default();
        listed.level = level;
        listed.places.push(place);
        self.count(place);
    }

    pub(super) fn remove(&mut self, node: u32) {
        for place in self.nodes.remove(&node).unwrap_or_default().places {
            self.discount(place);
        }
    }

    /// Whether this copy of a group is the one that counts.
    pub(super) fn holds(&self, node: u32, sequence: u64, page: PageAddr) -> bool {
        self.nodes
            .get(&node)
            .is_some_and(|listed| listed.places.iter().any(|place| place.sequence == sequence && place.page == page))
    }

    /// A group was copied from one page to another.
    pub(super) fn relocate(&mut self, node: u32, sequence: u64, to: PageAddr) {
        let places = self.nodes.get_mut(&node).map(|listed| &mut listed.places);
        let Some(place) = places.and_then(|places| places.iter_mut().find(|place| place.sequence == sequence)) else {
            return;
        };
        let before = *place;
        place.page = to;
        let after = *place;
        self.discount(before);
        self.count(after);
    }
}
