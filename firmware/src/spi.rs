//! `nandu-spi`: a part found by its identity, and every operation of the contract on it.

use nandu_nand::{BlockAddr, CellMode, Nand};
use nandu_spi::{Data, SpiError, SpiNand, Transaction, Wire as SpiWire};

use nandu_firmware_driver::{Pins, Wire};

/// The pins as a wire for the driver.
struct PinWire(Pins);

impl SpiWire for PinWire {
    type Error = ();

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), ()> {
        self.0.select();
        self.0.send(&[transaction.opcode]);
        self.0.send(transaction.address.bytes());
        for _ in 0..transaction.dummy {
            self.0.exchange(0);
        }
        match &mut transaction.data {
            Data::None => {}
            Data::In(buf) => self.0.receive(buf),
            Data::Out(data) => self.0.send(data),
        }
        self.0.deselect();
        Ok(())
    }

    fn wait_us(&mut self, microseconds: u32) {
        for _ in 0..microseconds {
            core::hint::spin_loop();
        }
    }
}

/// Uses the crate as storage code would, and folds what comes out into a number, so that nothing is optimised away.
pub(crate) fn exercise(seed: u32) -> u32 {
    operations(BlockAddr(seed)).unwrap_or(0)
}

fn operations(block: BlockAddr) -> Result<u32, SpiError<()>> {
    let mut chip = SpiNand::open(PinWire(Pins))?;
    let geometry = *chip.geometry();
    if chip.is_bad(block)? {
        return Ok(1);
    }
    if chip.erase(block, CellMode::Slc).is_err() {
        chip.mark_bad(block)?;
    }
    let page = geometry.first_page(block);
    let mut buffer = [0x5a; 2048];
    chip.program(page, 0, &buffer)?;
    chip.program_tagged(page, &buffer, &[1; 16])?;
    chip.copy(page, geometry.page_at(block, 1))?;
    let bits = chip.read(page, 0, &mut buffer)?.corrected_bits();
    chip.parameter_page(&mut buffer[..256])?;
    Ok(u32::from(bits) + u32::from(buffer[0]))
}
