"""The only place that knows SLEIGH: the instruction-set table, decoding, and the semantics overlay."""

from .sleigh import Decoder, decoder_for
from .table import IsaRow, isa_rows

__all__ = ["Decoder", "IsaRow", "decoder_for", "isa_rows"]
