//! The simulator and the power-cut driver: `include/nandu_sim.h`.

use core::ffi::{c_int, c_void};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use nandu::nand::{BlockAddr, CellMode, Nand, NandError, PageAddr, Pairing, ProgramOrder, TearScope};
use nandu_sim::power_cut::{Driver, Run, Summary};
use nandu_sim::{Chip, Sim, SimError, Tear};

use crate::border::{Given, Out, Text};
use crate::chip::{CChip, CGeometry};
use crate::error::{Answer, Code, count, status};

/// Leads to a chip on the heap; `nandu_sim *` of the header.
#[repr(transparent)]
pub(crate) struct SimHandle(*mut Sim);

impl SimHandle {
    fn get(&mut self) -> Answer<&mut Sim> {
        // SAFETY: null, or what `nandu_sim_new` returned and nobody freed: the header has C promise so, and that one call is made at a time.
        unsafe { self.0.as_mut() }.ok_or(Code::ARGUMENT)
    }
}

/// Does something with a chip.
fn with<R>(mut sim: SimHandle, f: impl FnOnce(&mut Sim) -> R) -> Answer<R> {
    sim.get().map(f)
}

fn boxed(sim: Sim) -> *mut Sim {
    Box::into_raw(Box::new(sim))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_new(preset: Text, block_count: u32, seed: u64) -> *mut Sim {
    let chip = preset.bytes().ok().and_then(|name| Chip::preset(core::str::from_utf8(name).ok()?));
    let Some(chip) = chip else { return core::ptr::null_mut() };
    let chip = if block_count > 0 { chip.with_blocks(block_count) } else { chip };
    if chip.geometry.validate().is_err() {
        return core::ptr::null_mut();
    }
    boxed(Sim::with_seed(chip, seed))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_clone(sim: SimHandle) -> *mut Sim {
    with(sim, |sim| boxed(sim.clone())).unwrap_or(core::ptr::null_mut())
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_free(sim: SimHandle) {
    if !sim.0.is_null() {
        // SAFETY: what `nandu_sim_new` returned, and C promises to free it once.
        drop(unsafe { Box::from_raw(sim.0) });
    }
}

/// What a simulated chip says for C.
fn outcome<T>(result: Result<T, SimError>, value: impl FnOnce(T) -> c_int) -> c_int {
    match result {
        Ok(it) => value(it),
        Err(error) => Code::of_kind(error.kind()).0,
    }
}

/// The chip of a callback.
fn context<'c>(context: *mut c_void) -> &'c mut Sim {
    // SAFETY: the context is that of `c_chip`, of a chip that C keeps as long as it uses the callbacks, one call at a time.
    unsafe { &mut *context.cast::<Sim>() }
}

unsafe extern "C" fn read(sim: *mut c_void, page: u32, column: u32, data: *mut c_void, size: u32) -> c_int {
    // SAFETY: the caller, nandu or a program that calls as nandu does, gives a buffer of this size.
    let buf = unsafe { core::slice::from_raw_parts_mut(data.cast::<u8>(), size as usize) };
    outcome(context(sim).read(PageAddr(page), column, buf), |status| status.corrected_bits().into())
}

unsafe extern "C" fn program(sim: *mut c_void, page: u32, column: u32, data: *const c_void, size: u32) -> c_int {
    // SAFETY: as in `read`.
    let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
    outcome(context(sim).program(PageAddr(page), column, data), |()| 0)
}

unsafe extern "C" fn program_tagged(
    sim: *mut c_void,
    page: u32,
    data: *const c_void,
    tag: *const c_void,
    tag_size: u32,
) -> c_int {
    let sim = context(sim);
    // SAFETY: as in `read`: a whole page.
    let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), sim.geometry().page_size as usize) };
    // SAFETY: as in `read`.
    let tag = unsafe { core::slice::from_raw_parts(tag.cast::<u8>(), tag_size as usize) };
    outcome(sim.program_tagged(PageAddr(page), data, tag), |()| 0)
}

unsafe extern "C" fn erase(sim: *mut c_void, block: u32, mode: c_int) -> c_int {
    let mode = if mode == 0 { CellMode::Slc } else { CellMode::Mlc };
    outcome(context(sim).erase(BlockAddr(block), mode), |()| 0)
}

unsafe extern "C" fn is_bad(sim: *mut c_void, block: u32) -> c_int {
    outcome(context(sim).is_bad(BlockAddr(block)), c_int::from)
}

unsafe extern "C" fn mark_bad(sim: *mut c_void, block: u32) -> c_int {
    outcome(context(sim).mark_bad(BlockAddr(block)), |()| 0)
}

/// A chip as C drives it.
pub(crate) fn c_chip(sim: &mut Sim) -> Answer<CChip> {
    let it = *sim.geometry();
    let geometry = CGeometry {
        page_size: it.page_size,
        spare_size: it.spare_size,
        tag_size: it.tag_size,
        pages_per_block: it.pages_per_block,
        block_count: it.block_count,
        program_unit: it.program_unit,
        codeword_size: it.ecc.codeword_size,
        endurance: it.endurance,
        bad_block_max: it.bad_block_max,
        correctable_bits: it.ecc.correctable_bits,
        programs_per_page: it.programs_per_page,
        plane_count: it.plane_count,
        die_count: it.die_count,
        pairing: match it.pairing {
            Pairing::None => 0,
            Pairing::SchemeA => 1,
            Pairing::Dist3 => 2,
            Pairing::Table(_) => return Err(Code::UNSUITABLE),
        },
        order: match it.order {
            ProgramOrder::Ascending => 0,
            ProgramOrder::Any => 1,
        },
        tear_scope: match it.tear {
            TearScope::Page => 0,
            TearScope::Range => 1,
            TearScope::Pair => 2,
        },
    };
    Ok(CChip {
        geometry,
        context: core::ptr::from_mut(sim).cast(),
        read: Some(read),
        program: Some(program),
        program_tagged: Some(program_tagged),
        erase: Some(erase),
        is_bad: Some(is_bad),
        mark_bad: Some(mark_bad),
        wait: None,
        lock: None,
        unlock: None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_chip(mut sim: SimHandle, chip: Out<CChip>) -> c_int {
    status(sim.get().and_then(c_chip).and_then(|it| chip.set(it)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_operation_count(sim: SimHandle) -> u64 {
    with(sim, |sim| sim.operation_count()).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_cut_at(mut sim: SimHandle, operation: u64, tear: c_int) -> c_int {
    status(sim.get().and_then(|sim| {
        match tear {
            -1 => sim.cut_somehow_at(operation),
            _ => {
                let tear = u8::try_from(tear).ok().and_then(Tear::from_index).ok_or(Code::ARGUMENT)?;
                sim.cut_at(operation, tear);
            }
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_last_tear(mut sim: SimHandle) -> c_int {
    count(sim.get().and_then(|sim| sim.last_cut().map(|cut| cut.tear as u8).ok_or(Code::NOT_FOUND)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_clear_cuts(sim: SimHandle) -> c_int {
    status(with(sim, Sim::clear_cuts))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_is_off(sim: SimHandle) -> c_int {
    count(with(sim, |sim| u8::from(sim.is_off())))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_power_off(sim: SimHandle) -> c_int {
    status(with(sim, Sim::power_off))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_power_on(sim: SimHandle) -> c_int {
    status(with(sim, Sim::power_on))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_advance(sim: SimHandle, nanoseconds: u64) -> c_int {
    status(with(sim, |sim| sim.advance_ns(nanoseconds)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_mark_factory_bad(mut sim: SimHandle, block: u32) -> c_int {
    status(sim.get().and_then(|sim| {
        let block = BlockAddr(block);
        if !sim.geometry().contains_block(block) {
            return Err(Code::OUT_OF_BOUNDS);
        }
        sim.mark_factory_bad(block);
        Ok(())
    }))
}

/// `nandu_sim_counters` of the header.
#[repr(C)]
pub(crate) struct CCounters {
    pub(crate) reads: u64,
    pub(crate) programs: u64,
    pub(crate) erases: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) busy_ns: u64,
}

#[unsafe(no_mangle)]
extern "C" fn nandu_sim_count(mut sim: SimHandle, counters: Out<CCounters>) -> c_int {
    status(sim.get().and_then(|sim| {
        let it = sim.counters();
        counters.set(CCounters {
            reads: it.reads,
            programs: it.programs,
            erases: it.erases,
            bytes_out: it.bytes_out,
            bytes_in: it.bytes_in,
            busy_ns: it.busy_ns,
        })
    }))
}

/// `nandu_power_cut` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CPowerCut {
    pub(crate) context: *mut c_void,
    pub(crate) noted_size: usize,
    pub(crate) workload: Option<unsafe extern "C" fn(*mut c_void, *const CChip, *mut c_void) -> c_int>,
    pub(crate) recover: Option<unsafe extern "C" fn(*mut c_void, *const CChip) -> c_int>,
    pub(crate) check: Option<unsafe extern "C" fn(*mut c_void, *const CChip, *const c_void, *mut u64) -> c_int>,
}

/// `nandu_power_cut_summary` of the header.
#[repr(C)]
pub(crate) struct CSummary {
    pub(crate) cases: u64,
    pub(crate) operations: u64,
    pub(crate) cuts: u64,
}

/// An error number as the driver takes errors.
fn run(answer: c_int) -> Run {
    if answer == 0 { Ok(()) } else { Err(std::format!("it returned {answer}").into()) }
}

/// Runs the driver; 1 if a case failed.
fn drive(
    mut sim: SimHandle,
    test: &Given<CPowerCut>,
    summary: &Out<CSummary>,
    start: impl FnOnce(Driver, &Callbacks) -> Summary,
) -> c_int {
    count(sim.get().and_then(|sim| {
        let test = test.get()?.ok_or(Code::ARGUMENT)?;
        if test.workload.is_none() || test.check.is_none() {
            return Err(Code::ARGUMENT);
        }
        c_chip(sim)?;
        let driver = Driver::new(sim.clone());
        // A case that fails is a panic, whose message is printed. The chip itself is not touched.
        let Ok(done) = catch_unwind(AssertUnwindSafe(|| start(driver, &Callbacks(test)))) else { return Ok(1) };
        if !summary.is_null() {
            summary.set(CSummary { cases: done.cases, operations: done.operations, cuts: done.cuts })?;
        }
        Ok(0_u8)
    }))
}

/// The functions of a test.
struct Callbacks(CPowerCut);

/// What a workload notes: bytes, in words so that any struct fits.
type Noted = Vec<u64>;

impl Callbacks {
    fn workload(&self, sim: &mut Sim, noted: &mut Noted) -> Run {
        noted.resize(self.0.noted_size.div_ceil(8), 0);
        let chip = self.chip(sim)?;
        // SAFETY: the header has the C side promise a function of this type; it gets as many bytes as it said.
        run(self.0.workload.map_or(0, |call| unsafe { call(self.0.context, &chip, noted.as_mut_ptr().cast()) }))
    }

    fn recover(&self, sim: &mut Sim) -> Run {
        let chip = self.chip(sim)?;
        // SAFETY: the header has the C side promise a function of this type.
        run(self.0.recover.map_or(0, |call| unsafe { call(self.0.context, &chip) }))
    }

    #[expect(clippy::panic, reason = "a check tells the driver by a panic, which the driver catches")]
    fn check(&self, sim: &mut Sim, noted: &Noted) -> u64 {
        let mut seen = 0;
        let answer = self.chip(sim).map(|chip| {
            // SAFETY: the header has the C side promise a function of this type; it gets as many bytes as it said.
            self.0.check.map_or(0, |call| unsafe { call(self.0.context, &chip, noted.as_ptr().cast(), &mut seen) })
        });
        match answer {
            Ok(0) => seen,
            other => panic!("the check returned {other:?}"),
        }
    }

    fn chip(&self, sim: &mut Sim) -> Result<CChip, std::string::String> {
        c_chip(sim).map_err(|code| std::format!("{code:?}"))
    }
}

#[unsafe(no_mangle)]
extern "C" fn nandu_power_cut_every(sim: SimHandle, test: Given<CPowerCut>, summary: Out<CSummary>) -> c_int {
    drive(sim, &test, &summary, |driver, it| {
        driver.every(|sim, noted: &mut Noted| it.workload(sim, noted), |sim, noted| it.check(sim, noted))
    })
}

#[unsafe(no_mangle)]
extern "C" fn nandu_power_cut_random(
    sim: SimHandle,
    test: Given<CPowerCut>,
    seed: u64,
    cases: u64,
    summary: Out<CSummary>,
) -> c_int {
    drive(sim, &test, &summary, |driver, it| {
        driver.seed(seed).random(
            cases,
            |sim, noted: &mut Noted| it.workload(sim, noted),
            |sim| it.recover(sim),
            |sim, noted| it.check(sim, noted),
        )
    })
}
