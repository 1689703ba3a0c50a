"""Tables wherever they live, and the draw of their rows that a fit rests on."""

from pnuauc._sources._draw import Drawn, RowKeys, draw_rows
from pnuauc._sources._files import FileSource, find_files
from pnuauc._sources._keys import table_keys
from pnuauc._sources._port import Batch, LocalSource, MemorySource, Source, SourceRows, is_source
from pnuauc._sources._unlabeled import AllUnlabeled, Encoded

__all__ = [
    "AllUnlabeled",
    "Batch",
    "Drawn",
    "Encoded",
    "FileSource",
    "LocalSource",
    "MemorySource",
    "RowKeys",
    "Source",
    "SourceRows",
    "draw_rows",
    "find_files",
    "is_source",
    "table_keys",
]
