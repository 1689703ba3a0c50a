"""Errors and warnings with a name, so that callers can catch or silence one kind."""

from __future__ import annotations

__all__ = [
    "CorrectionWarning",
    "EngineError",
    "InputError",
    "LabelReadingWarning",
    "MissingExtraError",
    "MissingRoleError",
    "ModelFileError",
    "OutputError",
    "PnuaucWarning",
    "PriorNotIdentifiedError",
    "PriorRefutedError",
    "ReadingWarning",
]


_ONE_LINE = dict.fromkeys(map(ord, "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"), " ")


class _Said(Exception):
    """What is said to a user, on one line: line ends and tabs of quoted cells are blanks.

    ``about`` names what would change it ("prior", "labels", "delimiter", ...), for front ends that
    have a knob for it: the library does not know what the knob is called there.
    """

    def __init__(self, *args: object, about: str | None = None) -> None:
        super().__init__(*(a.translate(_ONE_LINE) if isinstance(a, str) else a for a in args))
        self.about = about


class _RequestError(_Said, ValueError):
    """A request that cannot be met as it is."""


class PnuaucWarning(_Said, UserWarning):
    """Parent of all warnings of this package."""


class LabelReadingWarning(PnuaucWarning):
    """Labels could be read in more than one way; the message says how they were read."""


class ReadingWarning(PnuaucWarning):
    """A file is read in a way that it does not say; the message says how."""


class CorrectionWarning(PnuaucWarning):
    """An empirical risk had no minimum (indefinite or unbounded below) and was corrected."""


class MissingRoleError(_RequestError):
    """The data lacks a role (positive, negative, unlabelled rows) that the request needs."""


class PriorNotIdentifiedError(_RequestError):
    """The share of positives among the unlabelled rows cannot be estimated from the data."""


class PriorRefutedError(_RequestError):
    """The scores rule out the prior: under it no AUC in [0, 1] goes with them."""


class InputError(_RequestError):
    """A table, column or option cannot be used as given; the message says what to do."""


class ModelFileError(InputError):
    """A model file is damaged, foreign, from a newer version, or holds what is not trusted."""


class EngineError(RuntimeError):
    """Dask or Spark gave up; the message says which task, why, and what to raise."""


class OutputError(OSError):
    """Files could not be written; the message says which are old and which are new."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra."""
