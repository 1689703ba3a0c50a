"""What the parser refuses, as sentences of our own.

Newer versions of typer carry their own copy of click, and texts differ between them, so errors are
known by what they carry (``option_name``, ``param``, ``ctx``), not by their classes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["usage_sentence"]


def usage_sentence(error: Any) -> str:
    """One sentence about a ``UsageError`` of typer or click, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "pnuauc"
    return f"{_complaint(error, context, path)} '{path} --help' lists what there is."


def _complaint(error: Any, context: Any, path: str) -> str:
    message = str(getattr(error, "message", "") or error)
    param = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if option is not None:
        if hasattr(error, "possibilities"):
            options = [] if context is None else _options(context)
            return f"{path} has no option {option}{_nearest(option, options)}."
        needs = "takes no value" if "not take" in message else "needs a value after it"
        return f"{option} {needs}."
    if param is not None and param.param_type_name == "argument":
        return f"{path} needs {_shown(param)}: {_usage(context, path)}."
    if param is not None:
        return f"{param.opts[0]} takes {_kind(param, message)}."
    if hasattr(getattr(context, "command", None), "commands"):
        commands = sorted(context.command.commands)
        word = message.partition("'")[2].partition("'")[0]
        near = _nearest(word, commands) or f"; there are {', '.join(commands)}"
        return f"{path} has no command '{word}'{near}."
    if context is not None and "extra argument" in message:
        extra = message.rpartition("(")[2].rstrip(").")
        return f"{path} cannot take '{extra}' as well: {_usage(context, path)}."
    return f"{message.rstrip('.')}."


def _options(context: Any) -> list[str]:
    return [name for param in context.command.params for name in param.opts if "--" in name]


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; the nearest is {close[0]}" if close else ""


def _shown(param: Any) -> str:
    return f"a {(param.metavar or param.name).upper()}"


def _usage(context: Any, path: str) -> str:
    arguments = [p for p in context.command.params if p.param_type_name == "argument"]
    words = [f"{(p.metavar or p.name).upper()}{' ...' if p.nargs == -1 else ''}" for p in arguments]
    return " ".join([path, *words, "[options]"])


def _kind(param: Any, message: str) -> str:
    """What a numeric option takes, with its limits."""
    low, high = (
        getattr(param, end, None) if hasattr(param, end) else getattr(param.type, end, None)
        for end in ("min", "max")
    )
    whole = "integer" in message or isinstance(low, int)
    limits = [f"from {low}" if low is not None else "", f"to {high}" if high is not None else ""]
    return " ".join(["a whole number" if whole else "a number", *filter(None, limits)])
