from collections.abc import Iterator
from typing import Any

class StratifiedKFold:
    n_splits: int
    shuffle: bool
    random_state: Any
    def __init__(
        self, n_splits: int = ..., *, shuffle: bool = ..., random_state: Any = ...
    ) -> None: ...
    def split(self, X: Any, y: Any, groups: Any = ...) -> Iterator[tuple[Any, Any]]: ...
    def get_n_splits(self, X: Any = ..., y: Any = ..., groups: Any = ...) -> int: ...

class StratifiedShuffleSplit:
    n_splits: int
    random_state: Any
    def __init__(
        self,
        n_splits: int = ...,
        *,
        test_size: float | int | None = ...,
        train_size: float | int | None = ...,
        random_state: Any = ...,
    ) -> None: ...
    def split(self, X: Any, y: Any, groups: Any = ...) -> Iterator[tuple[Any, Any]]: ...
    def get_n_splits(self, X: Any = ..., y: Any = ..., groups: Any = ...) -> int: ...

def __getattr__(name: str) -> Any: ...
