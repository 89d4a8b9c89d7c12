"""Rebuild the binaries of this folder with `python build.py` (needs the `examples` dependency group:
ziglang).

`<isa>.elf` is a static executable, `<isa>-stripped.elf` the same without symbols, `<isa>.so` a shared object,
`<isa>-pie.elf` a position-independent executable, `<isa>.o` an object, `<isa>-linked.elf` that object linked
by lld at the addresses that mcveto's loader gives to its sections: the tests compare the relocated bytes.
`<isa>-hosted.elf` is dynamically linked with glibc and stripped.
`chained.macho` does not come from a compiler: `chained_macho` of test_pe_macho.py writes it.
"""

import gzip
import subprocess
import sys
from pathlib import Path

from mcveto.program.image import load_image

HERE = Path(__file__).parent
COMMON = [
    "-O1",
    "-g0",
    "-fno-sanitize=undefined",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-nostdlib",
]
UNWIND = ["-funwind-tables", "-fasynchronous-unwind-tables"]
TARGETS = {
    "x86-32": "x86-linux-musl",
    "x86-64": "x86_64-linux-musl",
    "ppc32-be": "powerpc-linux-musleabi",
    "arm": "arm-linux-musleabi",
    "aarch64": "aarch64-linux-musl",
    "riscv32": "riscv32-linux-musl",
    "riscv64": "riscv64-linux-musl",
    "mips32-be": "mips-linux-musleabi",
    "mips32-le": "mipsel-linux-musleabi",
}

HOSTED = {
    "x86-32": "x86-linux-gnu",
    "x86-64": "x86_64-linux-gnu",
    "arm": "arm-linux-gnueabi",
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "mips32-be": "mips-linux-gnueabi",
}


def zig(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", *arguments], cwd=HERE, check=True)


def cc(target: str, *arguments: str) -> None:
    zig("cc", "-target", target, *COMMON, *arguments)


def linked(name: str) -> None:
    """Link with a script that puts every section, and every undefined symbol, where the loader puts them."""
    image = load_image(HERE / f"{name}.o")
    lines = [f"{symbol} = {address:#x};" for symbol, address in image.imports.items()]
    for segment in image.segments:
        if segment.name not in ("GOT", ".eh_frame", ".ARM.exidx", ".ARM.extab"):
            lines.append(f"{segment.name} {segment.address:#x} : {{ *({segment.name}) }}")
    for index, section in enumerate((".eh_frame", ".ARM.exidx", ".ARM.extab")):
        lines.append(f"{section} {0x480000 + 0x1000 * index:#x} : {{ *({section}) }}")
    script = HERE / f"{name}.ld"
    script.write_text("SECTIONS {\n" + "\n".join(lines) + "\n}\n")
    options = ["-static", "--no-relax", "-s", "-z", "max-page-size=4096", "-e", "_start", "-T", script.name]
    zig("ld.lld", *options, f"{name}.o", "-o", f"{name}-linked.elf")
    script.unlink()


def main() -> None:
    for isa, target in TARGETS.items():
        cc(target, "-static", "-DSTANDALONE", *UNWIND, "prog.c", "-Wl,-e,_start", "-o", f"{isa}.elf")
        cc(
            target,
            "-static",
            "-DSTANDALONE",
            *UNWIND,
            "-s",
            "prog.c",
            "-Wl,-e,_start",
            "-o",
            f"{isa}-stripped.elf",
        )
        cc(target, "-shared", "-fPIC", "prog.c", "-o", f"{isa}.so")
        cc(
            target,
            "-pie",
            "-fPIE",
            "-static",
            "-DSTANDALONE",
            "prog.c",
            "-Wl,-e,_start",
            "-o",
            f"{isa}-pie.elf",
        )
        model = ["-mno-abicalls"] if isa.startswith("mips") else []
        cc(target, "-c", "-fno-pic", *model, "prog.c", "-o", f"{isa}.o")
        cc(target, "-c", "-fPIC", "prog.c", "-o", f"{isa}-pic.o")
        linked(isa)
    for isa, target in HOSTED.items():
        zig("cc", "-target", target, *COMMON[:-1], "-fno-builtin", "-s", "hosted.c", "-o", f"{isa}-hosted.elf")
    small = ("-fno-builtin", "-s", "hosted-small.c", "-o", "x86-32-hosted-small.elf")
    zig("cc", "-target", HOSTED["x86-32"], *COMMON[:-1], *small)
    cc("x86_64-linux-musl", "-c", "-fcommon", "-fno-pic", "prog.c", "-o", "x86-64-common.o")
    cc("thumb-linux-musleabi", "-c", "-fno-pic", "prog.c", "-o", "thumb.o")
    cc("thumb-linux-musleabi", "-static", "-DSTANDALONE", "prog.c", "-Wl,-e,_start", "-o", "thumb.elf")
    linked("thumb")
    zig(
        "cc",
        "-target",
        "arm-linux-musleabi",
        "-mcpu=cortex_a8",
        "-g0",
        "-c",
        "interwork.s",
        "-o",
        "interwork.o",
    )
    linked("interwork")
    cc("armeb-linux-musleabi", "-c", "-fno-pic", "prog.c", "-o", "arm-be.o")
    cc("x86_64-linux-gnu", "-static", "ifunc.c", "-o", "x86-64-ifunc.elf")
    for isa, machine in (("x86-32", "x86"), ("x86-64", "x86_64")):
        cc(f"{machine}-windows-gnu", "-s", "windows.c", "-lkernel32", "-o", f"{isa}.exe")
    for isa, machine in (("x86-64", "x86_64"), ("aarch64", "aarch64")):
        zig("cc", "-target", f"{machine}-macos", *COMMON[:-1], "-s", "macos.c", "-o", f"{isa}.macho")
    large = HERE / "aarch64.macho"  # mostly padding
    (HERE / "aarch64.macho.gz").write_bytes(gzip.compress(large.read_bytes(), mtime=0))
    large.unlink()
    for leftover in HERE.glob("*.pdb"):
        leftover.unlink()
    for leftover in HERE.glob("*.lib"):
        leftover.unlink()
    for binary in HERE.iterdir():
        if binary.suffix in (".elf", ".so", ".exe", ".macho"):
            binary.chmod(0o644)


if __name__ == "__main__":
    main()
