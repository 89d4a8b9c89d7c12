"""From a path to an `Image`: read the file safely, recognise its format by content, hand over to its loader.

A raw blob is only assumed when the caller names an architecture and nothing else matches, or asks for it
explicitly.
"""

import errno
import hashlib
import os
import stat
from pathlib import Path

from mcveto.errors import InputFileError, UsageError
from mcveto.program.image.model import ISAS, Image, address_bits
from mcveto.program.image.request import LoadRequest

MAX_FILE_SIZE = 2 << 30
FORMATS = ("elf", "pe", "macho", "ihex", "srec", "raw", "assembly")


def load_image(
    path: str | os.PathLike[str],
    *,
    arch: str | None = None,
    base: int | None = None,
    entry: int | None = None,
    format: str | None = None,
) -> Image:
    """Load a binary.

    `arch` is needed for formats that do not name their machine and selects one from a fat Mach-O file; `base`
    moves a relocatable file (default 0x400000 for ELF); `entry` replaces the file's entry point; `format`
    skips recognition.
    """
    if arch is not None and arch not in ISAS:
        raise UsageError(f"unknown architecture '{arch}'", f"known: {', '.join(ISAS)}")
    if format is not None and format not in FORMATS:
        raise UsageError(f"unknown file format '{format}'", f"known: {', '.join(FORMATS)}")
    for what, value in (("base", base), ("entry", entry)):
        if value is not None and not 0 <= value < 1 << (address_bits(arch) if arch else 64):
            raise UsageError(f"{what} address {value:#x} is outside the address space")
    name = os.fspath(path)
    data = _read_file(name)
    request = LoadRequest(name, data, hashlib.sha256(data).hexdigest(), arch, base, entry)
    image = _load(request, format or _recognise(request))
    if not image.segments:
        raise InputFileError(f"{name}: nothing in it is loaded into memory")
    return image


def _load(request: LoadRequest, format_name: str) -> Image:
    """Hand over to the loader; only the one that is needed is imported."""
    if format_name == "elf":
        from mcveto.program.image import elf

        return elf.load(request)
    if format_name == "assembly":
        from mcveto.program.image import assembly

        return assembly.load(request)
    from mcveto.program.image import hexfiles, macho, pe

    loaders = {
        "pe": pe.load,
        "macho": macho.load,
        "ihex": hexfiles.load_intel_hex,
        "srec": hexfiles.load_srecord,
        "raw": hexfiles.load_raw,
    }
    return loaders[format_name](request)


def _recognise(request: LoadRequest) -> str:
    data = request.data
    if data.startswith(b"\x7fELF"):
        return "elf"
    if request.path.endswith((".s", ".S")) and b"\0" not in request.data:
        return "assembly"
    from mcveto.program.image import hexfiles, macho, pe

    if pe.looks_like(data):
        return "pe"
    if macho.looks_like(data):
        return "macho"
    if hexfiles.looks_like_intel_hex(data):
        return "ihex"
    if hexfiles.looks_like_srecord(data):
        return "srec"
    if request.arch is not None:
        return "raw"
    kind = "a text file" if _is_text(data) else "not a known binary format"
    raise InputFileError(
        f"{request.path}: {kind}; supported are ELF, PE, Mach-O, Intel HEX and S-record files",
        "a raw blob needs --arch and --base",
    )


def _is_text(data: bytes) -> bool:
    head = data[:4096]
    return all(byte >= 0x20 or byte in b"\t\n\r\f" for byte in head) and b"\x7f" not in head


def _read_file(path: str) -> bytes:
    try:
        # Checked before opening, because opening a device can have effects, and after, because the
        # path may change.
        _require_regular(path, Path(path).stat())
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            _require_regular(path, status)
            # As much as there is, not as much as there may be: a buffer of the full size would be allocated at once.
            data = stream.read(status.st_size)
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path}: {_reason(problem)}") from problem
    if not data:
        raise InputFileError(f"{path}: the file is empty")
    return data


def _require_regular(path: str, status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise InputFileError(f"{path}: is a directory")
    if not stat.S_ISREG(mode):
        raise InputFileError(f"{path}: not a regular file")
    if status.st_size > MAX_FILE_SIZE:
        raise InputFileError(f"{path}: {status.st_size} bytes, the limit is 2 GiB")


def _reason(problem: OSError | ValueError) -> str:
    if isinstance(problem, OSError) and problem.errno is not None:
        return {errno.ENOENT: "no such file", errno.EACCES: "permission denied"}.get(
            problem.errno, os.strerror(problem.errno)
        )
    return "not a valid path"
