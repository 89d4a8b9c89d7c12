"""Load damaged copies of the bundled binaries, in a process of its own: `fuzz_worker.py SEED FIRST COUNT
FOLDER`.

Prints one line per mutant before it is loaded (so that the parent knows which one crashed or hangs) and one
after, as JSON. Mutant n of a seed is always the same file: `mutant(seed, n)` reproduces it.
"""

import json
import random
import resource
import struct
import sys
import time
import traceback
from pathlib import Path

from mcveto.errors import InputFileError, McvetoError, UsageError
from mcveto.program.image import Image, load_image

IMAGES = Path(__file__).parent / "images"
SUFFIXES = (".elf", ".so", ".o", ".exe", ".macho")


def sources() -> list[tuple[str, bytes]]:
    files = [(p.name, p.read_bytes()) for p in sorted(IMAGES.iterdir()) if p.suffix in SUFFIXES]
    # The two text formats are made here, from an ELF file's bytes at some address.
    payload = files[0][1][:600]
    hex_lines, s_lines = "", ""
    for at in range(0, len(payload), 16):
        part = payload[at : at + 16]
        record = bytes([len(part)]) + at.to_bytes(2, "big") + b"\0" + part
        hex_lines += f":{record.hex()}{-sum(record) & 0xFF:02x}\n"
        record = bytes([len(part) + 5]) + at.to_bytes(4, "big") + part
        s_lines += f"S3{record.hex()}{~sum(record) & 0xFF:02x}\n"
    texts = [("text.hex", hex_lines + ":00000001FF\n"), ("text.srec", s_lines + "S70500000000FA\n")]
    return files + [(name, text.encode()) for name, text in texts]


def tables(data: bytes) -> list[tuple[int, int]]:
    """(offset, size) of the parts of a file that a loader interprets."""
    found = [(0, min(len(data), 512))]
    if data[:4] == b"\x7fELF" and len(data) > 64:
        order, wide = "<" if data[5] == 1 else ">", data[4] == 2
        phoff, shoff = struct.unpack_from(order + ("QQ" if wide else "II"), data, 32 if wide else 28)
        counts = struct.unpack_from(order + "HHHHH", data, 54 if wide else 42)
        found += [(phoff, counts[0] * counts[1]), (shoff, counts[2] * counts[3])]
        for index in range(counts[3]):
            row = shoff + index * counts[2]
            layout = order + ("IIQQQQ" if wide else "IIIIII")
            if row + struct.calcsize(layout) <= len(data):
                _, kind, _, _, offset, size = struct.unpack_from(layout, data, row)
                if kind in (2, 3, 4, 5, 6, 9, 11, 19, 0x6FFFFFF6):
                    found.append((offset, size))
    elif data[:2] == b"MZ":
        found += [(struct.unpack_from("<I", data, 0x3C)[0], 600), (0x600, 0x400), (len(data) - 0x600, 0x600)]
    elif data[:4] == b"\xcf\xfa\xed\xfe":
        found += [(0, 2048), (0x4000, len(data) - 0x4000)]
    return [(o, s) for o, s in found if s > 0 and o >= 0 and o + s <= len(data)]


def mutant(seed: int, number: int, files: list[tuple[str, bytes]]) -> tuple[str, bytes, random.Random]:
    rng = random.Random(f"{seed}/{number}")
    family = rng.choice(((".elf", ".so", ".o"), (".elf", ".so", ".o"), (".exe",), (".macho",), (".hex", ".srec")))
    name, original = rng.choice([entry for entry in files if entry[0].endswith(family)])
    data = bytearray(original)
    parts = tables(original)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            break
        kind = rng.choice(("bits", "field", "field", "field", "cut", "grow", "splice", "swap", "text"))
        offset, size = rng.choice(parts)
        at = min(offset + rng.randrange(size), len(data) - 1)
        if kind == "bits":
            for _ in range(rng.choice((1, 2, 16))):
                data[min(offset + rng.randrange(size), len(data) - 1)] ^= 1 << rng.randrange(8)
        elif kind == "field":
            width = rng.choice((1, 2, 4, 8))
            at = offset + (at - offset) // width * width
            limits = [0, 1, 7, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1]
            limits += [len(data), len(data) - 1]
            limits += [
                1 << rng.randrange(64),
                rng.randrange(1 << 16),
                rng.choice(parts)[0],
                0x400000,
                0x10000,
            ]
            value = rng.choice(limits) & ((1 << 8 * width) - 1)
            data[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))
        elif kind == "cut":
            del data[rng.randrange(len(data)) :]
        elif kind == "grow":
            data += rng.randbytes(rng.choice((1, 100, 5000)))
        elif kind == "splice":
            other = rng.choice(files)[1]
            start = rng.randrange(len(other))
            chunk = other[start : start + rng.choice((4, 16, 64, 512))]
            data[at : at + len(chunk)] = chunk
        elif kind == "swap":
            second, length = rng.randrange(len(data)), rng.choice((4, 8, 24, 40, 56))
            data[at : at + length], data[second : second + length] = (
                data[second : second + length],
                data[at : at + length],
            )
        elif kind == "text":
            data[at : at + 1] = rng.choice((b"\n", b":", b"S", b"0", b"\0"))
    return name, bytes(data), rng


def check(image: Image) -> None:
    """What holds of every image, however damaged its file."""
    position = 0
    for segment in image.segments:
        assert segment.address >= position, "segments overlap or are not sorted"
        assert segment.size > 0
        assert len(segment.content) <= segment.size
        position = segment.end
    for start, end in image.unspecified:
        assert start < end
        assert image.segment_at(start) is not None
        assert image.segment_at(end - 1) is not None
    assert all("\n" not in note for note in image.notes)
    assert isinstance(image.function_starts, tuple)
    assert all(isinstance(address, int) for address in image.symbols.values())


def main() -> None:
    seed, first, count, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    files = sources()
    for name, data in files:
        (folder / "warm-up").write_bytes(data)
        load_image(folder / "warm-up", arch="arm" if name.startswith("text") else None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(first, first + count):
        print(json.dumps({"begin": number}), flush=True)
        name, data, rng = mutant(seed, number, files)
        path = folder / "mutant"
        path.write_bytes(data)
        base = rng.choice((None, None, None, 0x800000, 0x7FFF0000))
        arch = "arm" if name.startswith("text") else None
        outcome, started = "loaded", time.process_time()
        try:
            check(load_image(path, base=base, arch=arch))
        except (InputFileError, UsageError) as problem:
            outcome = "refused" if "\n" not in str(problem) else f"two lines: {problem!r}"
        except McvetoError as problem:
            outcome = f"wrong kind: {problem!r}"
        except BaseException:
            outcome = traceback.format_exc()
        seconds = time.process_time() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        print(
            json.dumps({"end": number, "file": name, "outcome": outcome, "seconds": seconds, "mb": grown}),
            flush=True,
        )


if __name__ == "__main__":
    main()
