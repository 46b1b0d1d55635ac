//! Instructions as text.

use capstone::Capstone;
use capstone::arch::{self, BuildsCapstone, BuildsCapstoneEndian};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use object::{Architecture, Endianness};

use super::image::Image;

/// The longest instruction of any target.
const LONGEST: usize = 15;

/// The instruction at an address.
pub(super) fn show(image: &Image<'_>, address: u64) -> Result<String, String> {
    let bytes = image.code(address, LONGEST).ok_or("not in the code of the file")?;
    text(image, bytes, address)
}

/// These bytes as an instruction at an address.
pub(super) fn text(image: &Image<'_>, bytes: &[u8], address: u64) -> Result<String, String> {
    match image.architecture {
        Architecture::X86_64 | Architecture::X86_64_X32 => x86(64, bytes, address),
        Architecture::I386 => x86(32, bytes, address),
        _ => other(image, bytes, address),
    }
}

fn x86(bits: u32, bytes: &[u8], address: u64) -> Result<String, String> {
    let instruction = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return Err("no instruction".into());
    }
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    Ok(text)
}

fn other(image: &Image<'_>, bytes: &[u8], address: u64) -> Result<String, String> {
    let is_big = image.endianness == Endianness::Big;
    let endian = if is_big { capstone::Endian::Big } else { capstone::Endian::Little };
    let new = Capstone::new();
    let built = match image.architecture {
        Architecture::Aarch64 => new.arm64().mode(arch::arm64::ArchMode::Arm).build(),
        Architecture::Arm => new.arm().mode(arch::arm::ArchMode::Arm).endian(endian).build(),
        Architecture::PowerPc => new.ppc().mode(arch::ppc::ArchMode::Mode32).endian(endian).build(),
        Architecture::PowerPc64 => {
            new.ppc().mode(arch::ppc::ArchMode::Mode64).endian(endian).build()
        }
        Architecture::Riscv64 => new.riscv().mode(arch::riscv::ArchMode::RiscV64).build(),
        Architecture::S390x => new.sysz().mode(arch::sysz::ArchMode::Default).build(),
        _ => return Err(format!("{:?} is not disassembled", image.architecture)),
    };
    let capstone = built.map_err(|error| error.to_string())?;
    let list = capstone.disasm_count(bytes, address, 1).map_err(|error| error.to_string())?;
    let instruction = list.iter().next().ok_or("no instruction")?;
    let text = [instruction.mnemonic(), instruction.op_str()].map(Option::unwrap_or_default);
    Ok(text.join(" ").trim_end().to_string())
}
