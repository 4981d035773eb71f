//! Liveness: when a campaign is over and no fault comes any more, the volume serves again.
//!
//! It opens with few reads, takes content until it says that there is no room, lets all of it go, and has the room of a fresh volume on this chip before long. Then idle time ends, and the next
//! opening is short, too. A campaign that only looks at what was lost does not see a page that nobody counts as dead: it is missed when the chip is full, years later.
//!
//! Who has a volume says what it does as a [`Kind`]; [`Files`] is that for every [`System`](crate::System). The check is one for all.
//!
//! What a volume has room for is measured in two ways. Of the pages that live `ROOM_PERCENT` of a fresh volume's have to come back: that is exact, and one page of a leak shows. And the volume is filled again, in case it
//! counts wrong; when a put is refused first depends on how the leaves before happen to be divided, so `PUTS_PERCENT` are enough there.

use nandu_sim::{Aging, Sim};

use crate::operation::Chance;

mod files;

pub use files::Files;

/// Reads of an opening at most.
pub const READS_MAX: u64 = 40;

/// The pages that have to come back, of those of a fresh volume, in percent.
const ROOM_PERCENT: u64 = 99;

/// The puts that an emptied volume has to take, of those of a fresh one, in percent. Of 1,801 volumes two took less, 47 and 75.
const PUTS_PERCENT: u64 = 85;

/// What may be programmed behind the deletes until there is nothing left to do, for each page of the chip: a leaf that has changes is written once, and a page that lives is moved once. The most of 1,801 volumes
/// were two thirds of that, where a snapshot that kept much had been released.
const PROGRAMS_A_PAGE: u64 = 1;

/// Puts for each page of the chip, after which a chip that is never full is none.
const PUTS_A_PAGE: u64 = 8;

/// Puts between two syncs.
const PUTS_A_SYNC: u64 = 16;

/// Pieces of idle time after which one that still finds work never ends, on a chip with no more pages, and pieces of a rest in which nothing may be done.
const PIECES_MAX: u64 = 20_000;
const PIECES_OF_REST: u64 = 50;

/// Of so many cuts one is asked for liveness, where that at each would take too long.
const CUTS: u64 = 97;

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no room.
    Full,
    /// The volume can only be read.
    ReadOnly,
    /// Something else, in words.
    Failed(String),
}

/// What a call of a volume returns.
pub type Asked<T> = Result<T, Refusal>;

/// A kind of volume, with the options that it is opened with.
pub trait Kind {
    /// Bytes of memory that it takes on this chip.
    fn memory_size(&self, chip: &Sim) -> usize;

    /// Pages that an emptied volume on this chip may hold beside those of a fresh one, which has so much room.
    fn held_max(&self, chip: &Sim, room: u64) -> u64;

    /// Makes an empty volume.
    ///
    /// # Errors
    ///
    /// What the volume says, here and below.
    fn format<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>>;

    /// Opens the volume on a chip.
    ///
    /// # Errors
    ///
    /// As [`format`](Kind::format).
    fn open<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>>;
}

/// A volume that is open, as far as liveness asks of it.
pub trait Served {
    /// The chip.
    fn chip(&self) -> &Sim;

    /// Gives up what keeps room and is no content, as snapshots are.
    ///
    /// # Errors
    ///
    /// As [`Kind::format`], here and below.
    fn let_go(&mut self) -> Asked<()>;

    /// Puts the record or file of this number, of about a page. Those of two numbers are two.
    ///
    /// # Errors
    ///
    /// [`Refusal::Full`].
    fn put(&mut self, number: u32) -> Asked<()>;

    /// What is there, by name.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn names(&mut self) -> Asked<Vec<Vec<u8>>>;

    /// Deletes what has this name, and all that is below it.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn delete(&mut self, name: &[u8]) -> Asked<()>;

    /// Makes everything durable.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn sync(&mut self) -> Asked<()>;

    /// Brings everything to its place.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn merge(&mut self) -> Asked<()>;

    /// A piece of idle time; whether there is more to do.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn idle(&mut self) -> Asked<bool>;

    /// Pages that may live and hold nothing.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn room(&mut self) -> Asked<u64>;

    /// Counts what is not as it has to be.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn violations(&mut self) -> Asked<u64>;

    /// Leaves the volume so that there is nothing to recover.
    ///
    /// # Errors
    ///
    /// As [`let_go`](Served::let_go).
    fn unmount(self: Box<Self>) -> Asked<()>;
}

/// What was measured of a volume that serves again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    /// Whether it can only be read, on a chip that lost blocks: then nothing else was asked.
    pub is_read_only: bool,
    /// Bad-block marks that the campaign set.
    pub marks: u64,
    /// Reads of the longer one of both openings.
    pub reads: u64,
    /// Records or files that it took until it was full.
    pub puts: u64,
    /// Those that it took when it had been emptied.
    pub puts_again: u64,
    /// Those that a fresh volume takes.
    pub puts_fresh: u64,
    /// Deletes that were refused for a lack of room.
    pub refused: u64,
    /// Programs behind the deletes until nothing was left to do.
    pub programs: u64,
    /// Pages of the chip.
    pub pages: u64,
    /// Pages that hold nothing at the end, and those of a fresh volume.
    pub room: u64,
    /// See [`room`](Liveness::room).
    pub room_fresh: u64,
    /// See [`Kind::held_max`].
    pub held_max: u64,
    /// Programs and erases of a rest once nothing was left to do.
    pub restless: u64,
}

impl Liveness {
    /// What is not as it has to be, in words.
    pub fn wrong(&self) -> Option<String> {
        if self.is_read_only {
            return None;
        }
        let Liveness {
            reads,
            puts_again,
            puts_fresh,
            refused,
            programs,
            pages,
            room,
            room_fresh,
            held_max,
            restless,
            ..
        } = *self;
        if reads > READS_MAX {
            return Some(format!("an opening read {reads} pages"));
        }
        if refused > 0 {
            return Some(format!("{refused} deletes were refused"));
        }
        if (room + held_max) * 100 < room_fresh * ROOM_PERCENT {
            return Some(format!("of {room_fresh} pages of a fresh volume {room} came back"));
        }
        // A few are lost to how leaves happen to be divided.
        if (puts_again + 2) * 100 < puts_fresh * PUTS_PERCENT {
            return Some(format!("{puts_again} puts found room where a fresh volume takes {puts_fresh}"));
        }
        if programs > pages * PROGRAMS_A_PAGE {
            return Some(format!("{programs} programs behind the deletes, on a chip of {pages} pages"));
        }
        (restless > 0).then(|| format!("{restless} programs and erases in a rest"))
    }
}

/// No fault comes any more, and there is power.
fn end_campaign(chip: &mut Sim) {
    chip.clear_cuts();
    chip.withdraw_all();
    chip.set_aging(Aging::NONE);
    chip.power_off();
    chip.power_on();
}

/// Ends the campaign on a chip and asks whether its volume serves again.
///
/// # Errors
///
/// What was wrong, in words: a call that failed, or what [`Liveness::wrong`] says.
pub fn serves_again(kind: &dyn Kind, chip: &mut Sim) -> Result<Liveness, String> {
    let found = measured(kind, chip)?;
    found.wrong().map_or(Ok(found), |what| Err(format!("liveness: {what}")))
}

/// The same on a copy of a chip that was cut, of one in some cuts: which ones, its operations say.
///
/// # Errors
///
/// As [`serves_again`].
pub fn serves_again_sometimes(kind: &dyn Kind, chip: &Sim) -> Result<(), String> {
    if chip.operation_count().is_multiple_of(CUTS) { serves_again(kind, &mut chip.clone()).map(drop) } else { Ok(()) }
}

/// Ends the campaign on a chip and measures how its volume serves again; [`Liveness::wrong`] says whether it does.
///
/// # Errors
///
/// A call that failed, in words.
pub fn measured(kind: &dyn Kind, chip: &mut Sim) -> Result<Liveness, String> {
    end_campaign(chip);
    let pages = chip.chip().geometry.page_count().into();
    let mut found = Liveness { marks: chip.counters().marks, pages, ..Liveness::default() };
    let mut memory = vec![0; kind.memory_size(chip)];
    match ask(kind, chip, &mut memory, &mut found) {
        Ok(()) => Ok(found),
        // A chip at its end; one that lost nothing has no reason to be.
        Err((Refusal::ReadOnly, _)) if found.marks > 0 => Ok(Liveness { is_read_only: true, ..found }),
        Err((refusal, call)) => Err(format!("liveness: {call}: {}", in_words(&refusal))),
    }
}

fn in_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Full => "there is no room".to_owned(),
        Refusal::ReadOnly => "the volume can only be read, on a chip that lost no block".to_owned(),
        Refusal::Failed(what) => what.clone(),
    }
}

/// A call that failed, and its name.
type Failed = (Refusal, &'static str);

/// Names a call.
fn of<T>(call: &'static str, outcome: Asked<T>) -> Result<T, Failed> {
    outcome.map_err(|refusal| (refusal, call))
}

fn wear(chip: &Sim) -> u64 {
    chip.counters().programs + chip.counters().erases
}

fn ask(kind: &dyn Kind, chip: &mut Sim, memory: &mut [u8], found: &mut Liveness) -> Result<(), Failed> {
    // Bad blocks are marked, so a volume made anew on a copy has the blocks that are left.
    let mut copy = chip.clone();
    let mut fresh = of("format", kind.format(&mut copy, memory))?;
    found.room_fresh = of("room", fresh.room())?;
    found.held_max = kind.held_max(fresh.chip(), found.room_fresh);
    found.puts_fresh = fill(&mut *fresh)?;
    drop(fresh);
    let mut volume = opened(kind, chip, memory, found)?;
    of("letting go", volume.let_go())?;
    found.puts = fill(&mut *volume)?;
    found.refused = empty(&mut *volume)?;
    let before = volume.chip().counters().programs;
    of("sync behind the deletes", volume.sync())?;
    of("merge", volume.merge())?;
    settle(&mut *volume)?;
    found.programs = volume.chip().counters().programs - before;
    found.room = of("room", volume.room())?;
    let at_rest = wear(volume.chip());
    for _ in 0..PIECES_OF_REST {
        of("idle time", volume.idle())?;
    }
    found.restless = wear(volume.chip()) - at_rest;
    match of("verify", volume.violations())? {
        0 => {}
        count => return Err((Refusal::Failed(format!("{count} invariants are violated")), "verify")),
    }
    if found.puts.is_multiple_of(2) {
        of("unmount", volume.unmount())?;
    } else {
        drop(volume);
    }
    chip.power_off();
    chip.power_on();
    let mut volume = opened(kind, chip, memory, found)?;
    found.puts_again = fill(&mut *volume)?;
    found.refused += empty(&mut *volume)?;
    Ok(())
}

fn opened<'m>(
    kind: &'m dyn Kind,
    chip: &'m mut Sim,
    memory: &'m mut [u8],
    found: &mut Liveness,
) -> Result<Box<dyn Served + 'm>, Failed> {
    let before = chip.counters().reads;
    let volume = of("open", kind.open(chip, memory))?;
    found.reads = found.reads.max(volume.chip().counters().reads - before);
    Ok(volume)
}

/// Puts until there is no room; how many puts that were.
fn fill(volume: &mut dyn Served) -> Result<u64, Failed> {
    let most = PUTS_A_PAGE * u64::from(volume.chip().chip().geometry.page_count());
    for count in 0..most {
        let synced = if count.is_multiple_of(PUTS_A_SYNC) { volume.sync() } else { Ok(()) };
        match synced.and_then(|()| volume.put(count as u32)) {
            Ok(()) => {}
            Err(Refusal::Full) => return Ok(count),
            Err(refusal) => return Err((refusal, "put")),
        }
    }
    Err((Refusal::Failed(format!("{most} puts, and it is not full")), "put"))
}

/// Deletes all there is, in another order than it came; how many deletes were refused.
fn empty(volume: &mut dyn Served) -> Result<u64, Failed> {
    let mut refused = 0;
    let mut chance = Chance::new(7);
    let mut names = of("a walk", volume.names())?;
    for left in (1..=names.len()).rev() {
        let name = names.swap_remove(chance.below(left));
        match volume.delete(&name) {
            Ok(()) => {}
            Err(Refusal::Full) => refused += 1,
            Err(refusal) => return Err((refusal, "delete")),
        }
    }
    Ok(refused)
}

/// Rests until nothing is left to do.
fn settle(volume: &mut dyn Served) -> Result<(), Failed> {
    // A chip of 131,072 pages that was emptied took 26,000.
    for _ in 0..PIECES_MAX.max(volume.chip().chip().geometry.page_count().into()) {
        if !of("idle time", volume.idle())? {
            return Ok(());
        }
    }
    Err((Refusal::Failed("there is always something to do".to_owned()), "idle time"))
}
