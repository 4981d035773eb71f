//! What the figures say, in plain words.

pub(super) const NOTES: &str = "\
Which to choose, as far as these figures go:

* nandu, where changes have to be durable one by one or nearly so, where memory is small, or where opening has to be quick. A synced \
update programs 1.01 pages and reads one, as much in 32 KiB as in 256; the worst one takes 4.7 ms; opening after a cut takes 45 reads at \
most, and it takes the fewest pages of all. With a sync after 64 updates it is 0.15 programs. Lookups and scans are cheapest here, too.
* GRR with a write-ahead ring and blind changes (`grr-ring`), where changes come in bulk or concern neighbours, are synced in groups, and are \
seldom read. With a sync after 64 it loads in about half of nandu's time and updates neighbouring records in about a third; updates of any \
record cost as much as nandu's. Its price: 46 bytes of memory for each node, twice the pages, lookups that take half as long again, single \
updates that take up to 68 ms, and an opening that reads everything, 4,300 reads and 0.8 s after a cut for these 150,000 records. With a ring \
whole pages are better than sectors, also where both can be had: a log page takes along changes of many nodes, a sector those of one.
* GRR without a ring, where changes are synced almost never: each sync programs something for every changed node. With 4,096 changes between two \
syncs and blind changes (`grr-blind`) it is faster than nandu at changes and slower at everything else, and single changes take up to 240 ms; with each \
change synced it programs 3.7 pages for each on a chip that takes whole pages.
* A wandering B+-tree with a journal tree, where all inner nodes fit the memory and keys are scattered: 1.18 programs for an update, and lookups \
a sixth dearer than nandu's. In 32 KiB, or where changes concern neighbours, it is more than two programs, and 4.4 without the journal, since \
the path is written with each leaf. It is durable at each change and gains nothing from rare syncs.
* BFTL, nowhere here. With a sync after each change its buffer packs nothing; with rare syncs it programs 0.3 pages for an update, twice as many as \
nandu; a lookup takes four reads, and its 24 bytes for each entry take four to six times nandu's pages.
* IPL, nowhere here. One page in sixteen for logs means a merge of 60 pages after every fourth synced change. Where sectors can be \
programmed, and a log page takes four, it is still two to three times as dear as GRR.

Where nandu loses:

* To `grr-ring` and, with rare syncs, to `grr-blind`, at loading and at updates of neighbouring records (`clustered`): 0.083 ms beside 0.030 with a \
sync after 64; with each change synced by 3 to 4 % only. Nearly all of the difference is reads: a put of nandu's tells whether the key was there, and \
reads its leaf for that; a put that does not ask is not built.
* To `grr-blind` at updates of any record when 4,096 of them are synced together: 0.142 ms beside 0.109. nandu's memory for changes ends at 64 KiB.
* Behind a bus that takes longer for a page than the chip does (`256KB-sectors-slow`), where a sector costs little more than half of what a \
page costs: to `grr-ring` and `grr-blind` at neighbouring records, 1.27 ms beside 0.92 and 1.18, though each change is synced. At updates of any record \
its lead over `grr-blind` shrinks from 41 to 15 %.
* Its worst change while it loads with a sync after 64 takes 27 ms: a sync that has to make room. The B+-trees' takes 13.

What is not comparable:

* What a cut leaves. nandu, BFTL and GRR with a ring come back in the state after the last sync or after one of the changes since. IPL and GRR \
without a ring come back with, for each key, one of its values since the last sync. The B+-trees hold every change that returned.
* Blind changes cannot say whether a key was there. All others do.
* Programming sectors in any order, with a cut that tears one sector only (`sectors`), is what IPL and GRR were published for and what no \
data sheet of such a chip promises. On the chip as it is sold they program whole pages, and a log page takes along changes of other nodes of \
its block. The other indexes cost the same on either chip.
* Memory. nandu, IPL and GRR take all of it when they are opened; of the others `memory_bytes` counts what they would have to keep, and BFTL's \
translation table has no bound. In 32 KiB the tables of IPL, GRR and BFTL do not fit.
* Pages. Of IPL and GRR whole blocks count, since nothing else can use them; of the others, pages that hold something that lives. They need free \
blocks beside that to collect garbage, and collect more the fuller the chip: here less than a fifth of it lives, but of BFTL's up to four fifths.
* The popular 5 % of the records lie anywhere in `skewed` and side by side in `clustered`. Openings are the worst of eight each, with at most \
200 changes before.";
