"""Loading binaries: ELF, PE, Mach-O, Intel HEX, Motorola S-records and raw blobs become one `Image`."""

from mcveto.program.image.load import load_image
from mcveto.program.image.model import ISAS, Image, Permission, Segment, address_bits, is_big_endian

__all__ = ["ISAS", "Image", "Permission", "Segment", "address_bits", "is_big_endian", "load_image"]
