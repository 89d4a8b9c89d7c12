"""What every loader is given, and the checks they share."""

from dataclasses import field

from mcveto.errors import InputFileError, UsageError
from mcveto.late_methods import dataclass
from mcveto.program.image.model import ISAS


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The bytes of one file and the caller's wishes."""

    path: str
    data: bytes = field(repr=False)
    sha256: str
    arch: str | None
    base: int | None
    entry: int | None

    def check_arch(self, isa: str) -> None:
        """Refuse a file of another instruction set than the one asked for."""
        if self.arch is not None and self.arch != isa:
            raise UsageError(f"{self.path}: contains {isa} code, not {self.arch}")

    def require_arch(self, format_name: str) -> str:
        if self.arch is None:
            raise UsageError(f"{self.path}: {format_name} does not name its machine", "give --arch")
        return self.arch

    def fixed_base(self, lowest: int) -> int:
        """The base of a file whose addresses cannot change."""
        if self.base is not None and self.base != lowest:
            raise UsageError(
                f"{self.path}: cannot be moved to {self.base:#x}: its addresses are fixed",
                f"its base is {lowest:#x}",
            )
        return lowest

    def unsupported_machine(self, what: str) -> InputFileError:
        return InputFileError(f"{self.path}: unsupported machine {what}", f"supported: {', '.join(ISAS)}")

    def broken(self, what: str) -> InputFileError:
        return InputFileError(f"{self.path}: {what}")
