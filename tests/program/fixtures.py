"""Where the bundled binaries are, and a way to read them independent of our own (pyelftools)."""

import gzip
from pathlib import Path

from elftools.elf.elffile import ELFFile

IMAGES = Path(__file__).parent / "images"
ELF_ISAS = ("x86-32", "x86-64", "ppc32-be", "arm", "aarch64", "riscv32", "riscv64", "mips32-be", "mips32-le")


def elf_sections(path: Path) -> dict[str, tuple[int, bytes]]:
    """Address and bytes of the named sections that have bytes in the file."""
    with path.open("rb") as stream:
        sections = ELFFile(stream).iter_sections()
        return {s.name: (s["sh_addr"], s.data()) for s in sections if s["sh_type"] != "SHT_NOBITS"}


def elf_symbols(path: Path) -> dict[str, int]:
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        return {s.name: s["st_value"] for s in table.iter_symbols() if s.name and s["st_shndx"] != "SHN_UNDEF"}


def elf_loads(path: Path) -> list[tuple[int, int, int, bytes]]:
    """(address, memory size, flags, bytes) of the loadable segments."""
    with path.open("rb") as stream:
        loads = [s for s in ELFFile(stream).iter_segments() if s["p_type"] == "PT_LOAD"]
        return [(s["p_vaddr"], s["p_memsz"], s["p_flags"], s.data()) for s in loads]


def unpacked(name: str, folder: Path) -> Path:
    """A bundled file that is stored compressed, unpacked into `folder`."""
    path = folder / name
    path.write_bytes(gzip.decompress((IMAGES / f"{name}.gz").read_bytes()))
    return path
