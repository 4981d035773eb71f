//! The driver on the simulator of the wire, which panics on what a data sheet forbids.

#![expect(clippy::unwrap_used, reason = "a test that gets no part has failed")]

use std::cell::RefCell;
use std::rc::Rc;

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::Sim;
use nandu_spi::{PARTS, Part, SpiError, SpiNand, Transaction, Wire};
use nandu_spi_sim::{SpiSim, WireError, WireFault, chip};

/// A simulated part that the test looks at while the driver has it.
#[derive(Clone)]
struct Shared(Rc<RefCell<SpiSim>>);

impl Shared {
    fn new(part: &Part) -> Shared {
        Shared(Rc::new(RefCell::new(SpiSim::blank(part))))
    }
}

impl Wire for Shared {
    type Error = WireError;

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), WireError> {
        self.0.borrow_mut().transact(transaction)
    }

    fn wait_us(&mut self, microseconds: u32) {
        self.0.borrow_mut().wait_us(microseconds);
    }
}

type Chip = SpiNand<Shared>;
type Failure = SpiError<WireError>;

/// A page's content and tag by its number.
fn content(part: &Part, page: PageAddr) -> (Vec<u8>, Vec<u8>) {
    let byte = |index: u32| (index.wrapping_mul(37) ^ page.0.wrapping_mul(101)) as u8;
    ((0..part.page_size).map(byte).collect(), (1000..1000 + part.tag_size()).map(byte).collect())
}

fn program(chip: &mut Chip, page: PageAddr) -> Result<(), Failure> {
    let (data, tag) = content(chip.part(), page);
    if tag.is_empty() { chip.program(page, 0, &data) } else { chip.program_tagged(page, &data, &tag) }
}

/// Reads a page and its tag and holds them against what the page should have.
#[track_caller]
fn holds(chip: &mut Chip, page: PageAddr, as_if: PageAddr) {
    let (data, tag) = content(chip.part(), as_if);
    let column = chip.geometry().tag_column();
    let (mut found, mut found_tag) = (vec![0; data.len()], vec![0; tag.len()]);
    assert_eq!(chip.read(page, 0, &mut found), Ok(ReadStatus::Clean));
    assert_eq!(chip.read(page, column, &mut found_tag), Ok(ReadStatus::Clean));
    assert!(found == data && found_tag == tag, "{}: page {page} holds something else", chip.part().name);
}

#[test]
fn every_part_does_what_it_is_told() {
    for part in PARTS {
        let mut chip = SpiNand::open(Shared::new(part)).unwrap();
        assert_eq!(chip.part().name, part.name);
        let geometry = *chip.geometry();
        let blocks = [0, 1, geometry.block_count / 2, geometry.block_count - 1].map(BlockAddr);
        for block in blocks {
            chip.erase(block, CellMode::Slc).unwrap();
            for index in 0..3 {
                program(&mut chip, geometry.page_at(block, index)).unwrap();
            }
        }
        for page in blocks.iter().flat_map(|&block| (0..3).map(move |index| geometry.page_at(block, index))) {
            holds(&mut chip, page, page);
        }
        let target = geometry.page_at(BlockAddr(2), 0);
        let source = geometry.first_page(BlockAddr(0));
        chip.erase(BlockAddr(2), CellMode::Slc).unwrap();
        if chip.copy(source, target).unwrap().is_some() {
            holds(&mut chip, target, source);
        }
        assert_eq!(chip.is_bad(blocks[3]), Ok(false), "{}", part.name);
        chip.mark_bad(blocks[3]).unwrap();
        assert_eq!(chip.is_bad(blocks[3]), Ok(true), "{}", part.name);
        holds(&mut chip, geometry.page_at(blocks[3], 2), geometry.page_at(blocks[3], 2));
        let mut parameters = [0; 4];
        let read = chip.parameter_page(&mut parameters);
        assert_eq!(read.is_ok(), part.parameter_row.is_some(), "{}", part.name);
        assert!(read.is_err() || parameters == *b"ONFI", "{}", part.name);
    }
}

#[test]
fn marks_of_the_factory_are_seen() {
    for part in PARTS {
        let mut sim = Sim::new(chip(part)).with_factory_bad(1.0, false);
        let bad: Vec<_> = (0..part.block_count()).map(BlockAddr).filter(|&block| sim.is_bad(block).unwrap()).collect();
        assert!(!bad.is_empty());
        let mut wire = SpiSim::new(part, sim);
        let mut chip = SpiNand::open(&mut wire).unwrap();
        let found = (0..part.block_count()).map(BlockAddr).filter(|&block| chip.is_bad(block).unwrap());
        assert_eq!(found.collect::<Vec<_>>(), bad, "{}", part.name);
    }
}

type Work = fn(&mut Chip) -> Result<(), Failure>;

/// Every operation, on blocks of its own: 4 is erased, 6 erased and then marked.
const OPERATIONS: [Work; 6] = [
    |chip| chip.read(PageAddr(0), 0, &mut [0; 64]).map(drop),
    |chip| program(chip, PageAddr(64 * 4)),
    |chip| chip.erase(BlockAddr(2), CellMode::Slc),
    |chip| chip.is_bad(BlockAddr(0)).map(drop),
    |chip| chip.mark_bad(BlockAddr(6)),
    |chip| chip.copy(PageAddr(0), PageAddr(64 * 4)).map(drop),
];

/// Whatever goes wrong with whichever transaction of an operation: the error is one of the bus or nothing was lost, the part is set up
/// again before it is used, and what other blocks hold is untouched.
#[test]
fn each_transaction_of_each_operation_may_go_wrong() {
    for name in ["W25N01GV", "GD5F2GQ5UE", "MT29F2G01ABAGD", "W25M02GV", "MX35LF1GE4AB", "TC58CVG2S0HRAIJ"] {
        let part = Part::by_name(name, PARTS).unwrap();
        for fault in [WireFault::Refused, WireFault::Unreported, WireFault::Stuck] {
            let mut tried = 0;
            for operation in OPERATIONS {
                let mut index = 0;
                while goes_wrong(part, operation, index, fault) {
                    index += 1;
                }
                tried += index;
            }
            assert!(tried > 30, "{tried}");
        }
    }
}

/// Whether the operation has so many transactions.
fn goes_wrong(part: &'static Part, operation: Work, index: u64, fault: WireFault) -> bool {
    let wire = Shared::new(part);
    let mut chip = SpiNand::open(wire.clone()).unwrap();
    chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
    program(&mut chip, PageAddr(0)).unwrap();
    chip.erase(BlockAddr(4), CellMode::Slc).unwrap();

    let first = wire.0.borrow().transaction_count();
    wire.0.borrow_mut().fault_at(first + index, fault);
    let result = operation(&mut chip);
    let happened = wire.0.borrow().transaction_count() > first + index;
    wire.0.borrow_mut().clear_faults();
    match result {
        Ok(()) => assert!(!happened || fault == WireFault::Stuck, "{}: transaction {index}, {fault:?}", part.name),
        Err(error) => assert_eq!(error.kind(), NandErrorKind::Bus, "{}: {error}", part.name),
    }
    holds(&mut chip, PageAddr(0), PageAddr(0));
    // A block that was being erased may be erased again, and is then as good as any.
    chip.erase(BlockAddr(2), CellMode::Slc).unwrap();
    program(&mut chip, PageAddr(64 * 2)).unwrap();
    holds(&mut chip, PageAddr(64 * 2), PageAddr(64 * 2));
    happened
}
