//! The calls as Linux takes them: the one module with unsafe code.
//!
//! Each call hands the kernel a pointer to one structure of [`abi`](crate::abi), whose size is part of the call's number, so a
//! kernel with another idea of it refuses the call. Some of these structures hold addresses of buffers; they are made here from
//! borrowed slices, and the length beside each is the slice's own.

use std::ffi::c_void;
use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

use crate::abi::{
    AUTO_OOB, ERASE, EccStatsUser, EraseUser, GET_BAD_BLOCK, GET_ECC_STATS, GET_INFO, InfoUser, READ, READ_SPARE,
    ReadUser, SET_BAD_BLOCK, SpareUser, WRITE, WriteUser,
};
use crate::door::{Corrected, Door, Info, Kind, Totals};

/// `MTD_WRITEABLE`.
const FLAG_WRITABLE: u32 = 0x400;

/// `MTD_SLC_ON_MLC_EMULATION`.
const FLAG_SLC_EMULATED: u32 = 0x4000;

/// A call whose argument is a pointer to a structure that lives as long as the call.
struct Call<'a, T> {
    number: Opcode,
    argument: *mut T,
    life: PhantomData<&'a mut T>,
}

impl<'a, T> Call<'a, T> {
    fn new(number: Opcode, argument: &'a mut T) -> Call<'a, T> {
        Call { number, argument, life: PhantomData }
    }
}

// SAFETY: `as_ptr` is a pointer to a `T` that is borrowed for 'a, so alone in use and alive during the call. The output is the
// call's own result, which needs no pointer. The kernel is said to change memory, whether it does or not.
unsafe impl<T> Ioctl for Call<'_, T> {
    type Output = IoctlOutput;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.number
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.cast()
    }

    unsafe fn output_from_ptr(result: IoctlOutput, _: *mut c_void) -> rustix::io::Result<IoctlOutput> {
        Ok(result)
    }
}

/// An MTD device of this machine, open.
#[derive(Debug)]
pub struct Kernel {
    file: File,
}

impl Kernel {
    /// Takes an open device. That it is one is asked by [`Door::info`].
    pub fn new(file: File) -> Kernel {
        Kernel { file }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn get_info(&self) -> Result<InfoUser, Errno> {
        let mut info = InfoUser::default();
        // SAFETY: MEMGETINFO writes one `mtd_info_user`, which `InfoUser` is, of integers that take any value.
        unsafe { ioctl(&self.file, Call::new(GET_INFO, &mut info)) }?;
        Ok(info)
    }

    fn get_totals(&self) -> Result<EccStatsUser, Errno> {
        let mut stats = EccStatsUser::default();
        // SAFETY: ECCGETSTATS writes one `mtd_ecc_stats`, which `EccStatsUser` is, of integers that take any value.
        unsafe { ioctl(&self.file, Call::new(GET_ECC_STATS, &mut stats)) }?;
        Ok(stats)
    }

    /// A call that is handed an offset. Returns the call's result.
    fn at_offset(&self, number: Opcode, offset: u64) -> Result<IoctlOutput, Errno> {
        let mut offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
        // SAFETY: MEMGETBADBLOCK and MEMSETBADBLOCK, the only two numbers that come here, read one `__kernel_loff_t`, an `i64`.
        unsafe { ioctl(&self.file, Call::new(number, &mut offset)) }
    }
}

impl Door for Kernel {
    fn info(&mut self) -> Result<Info, Errno> {
        let info = self.get_info()?;
        let kind = match info.kind {
            0 => Kind::Absent,
            1 => Kind::Ram,
            2 => Kind::Rom,
            3 => Kind::Nor,
            4 => Kind::Nand,
            6 => Kind::DataFlash,
            7 => Kind::UbiVolume,
            8 => Kind::MlcNand,
            other => Kind::Unknown(other),
        };
        Ok(Info {
            kind,
            is_writable: info.flags & FLAG_WRITABLE != 0,
            is_slc_emulated: info.flags & FLAG_SLC_EMULATED != 0,
            size: info.size,
            erase_size: info.erase_size,
            write_size: info.write_size,
            spare_size: info.spare_size,
        })
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<usize, Errno> {
        self.file.read_at(data, offset).map_err(|error| errno(&error))
    }

    fn read_counted(&mut self, offset: u64, data: &mut [u8], spare: &mut [u8]) -> Result<Corrected, Errno> {
        let mut request = ReadUser {
            start: offset,
            length: data.len() as u64,
            spare_length: spare.len() as u64,
            // From pointers that may be written through, since the kernel writes there.
            data: data.as_mut_ptr().expose_provenance() as u64,
            spare: spare.as_mut_ptr().expose_provenance() as u64,
            mode: AUTO_OOB,
            ..ReadUser::default()
        };
        // SAFETY: MEMREAD reads and writes one `mtd_read_req`, which `ReadUser` is. It writes at most `length` bytes at `data` and at most
        // `spare_length` at `spare`: these are the two slices with their own lengths, both borrowed alone until this function returns.
        let outcome = unsafe { ioctl(&self.file, Call::new(READ, &mut request)) };
        match outcome {
            // The kernel fills in everything and then says once more what error correction found out.
            Ok(_) | Err(Errno::UCLEAN | Errno::BADMSG) => {}
            Err(error) => return Err(error),
        }
        // A number of bits, or where the driver knows only the sum, that.
        let bits_max = if request.bits_max > 0 { request.bits_max } else { request.corrected_bits };
        let unsaid = u32::from(outcome == Err(Errno::BADMSG));
        Ok(Corrected { bits_max, uncorrectable: request.uncorrectable.max(unsaid) })
    }

    fn totals(&mut self) -> Result<Totals, Errno> {
        let stats = self.get_totals()?;
        Ok(Totals { corrected: stats.corrected, failed: stats.failed })
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.file.write_at(data, offset).map_err(|error| errno(&error))
    }

    fn write_spare(&mut self, offset: u64, data: &[u8], spare: &[u8]) -> Result<(), Errno> {
        let mut request = WriteUser {
            start: offset,
            length: data.len() as u64,
            spare_length: spare.len() as u64,
            data: data.as_ptr().expose_provenance() as u64,
            spare: spare.as_ptr().expose_provenance() as u64,
            mode: AUTO_OOB,
            ..WriteUser::default()
        };
        // SAFETY: MEMWRITE reads one `mtd_write_req`, which `WriteUser` is, and at most `length` bytes at `data` and `spare_length` at
        // `spare`: the two slices with their own lengths, both borrowed until this function returns.
        unsafe { ioctl(&self.file, Call::new(WRITE, &mut request)) }?;
        Ok(())
    }

    fn erase(&mut self, offset: u64, length: u64) -> Result<(), Errno> {
        let mut range = EraseUser { start: offset, length };
        // SAFETY: MEMERASE64 reads one `erase_info_user64`, which `EraseUser` is.
        unsafe { ioctl(&self.file, Call::new(ERASE, &mut range)) }?;
        Ok(())
    }

    fn is_bad(&mut self, offset: u64) -> Result<bool, Errno> {
        Ok(self.at_offset(GET_BAD_BLOCK, offset)? != 0)
    }

    fn mark_bad(&mut self, offset: u64) -> Result<(), Errno> {
        self.at_offset(SET_BAD_BLOCK, offset)?;
        Ok(())
    }

    fn read_spare(&mut self, offset: u64, spare: &mut [u8]) -> Result<(), Errno> {
        let length = u32::try_from(spare.len()).map_err(|_| Errno::INVAL)?;
        let bytes = spare.as_mut_ptr().expose_provenance() as u64;
        let mut request = SpareUser { start: offset, length, bytes, ..SpareUser::default() };
        // SAFETY: MEMREADOOB64 reads and writes one `mtd_oob_buf64`, which `SpareUser` is, and writes at most `length` bytes at `bytes`:
        // the slice with its own length, borrowed alone until this function returns.
        match unsafe { ioctl(&self.file, Call::new(READ_SPARE, &mut request)) } {
            Ok(_) | Err(Errno::UCLEAN | Errno::BADMSG) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
