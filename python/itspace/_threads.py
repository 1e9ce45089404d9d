# SPDX-License-Identifier: Apache-2.0
"""How many threads a call may use."""
from types import TracebackType
from typing import Any, Optional, Type

from . import _core
from ._arrays import integer


def threads() -> int:
    """The number of threads that calls from this thread may use.

    By default the processors that this process may run on (its affinity mask, and its container's CPU quota), or
    OMP_NUM_THREADS where that is set. Small problems use one thread whatever the number.

    Examples
    --------
    >>> import itspace
    >>> itspace.threads() >= 1
    True
    """
    return _core.threads()


def set_threads(count: int) -> None:
    """Sets the number of threads of all calls from now on: itspace's own and those of its BLAS. 0: the default again.

    Examples
    --------
    >>> import itspace
    >>> itspace.set_threads(2)
    >>> itspace.threads()
    2
    >>> itspace.set_threads(0)
    """
    _core.set_threads(integer(count, "count"))


class thread_limit:
    """The same for the calls of one thread within a ``with`` statement.

    Examples
    --------
    >>> import itspace
    >>> with itspace.thread_limit(1):
    ...     itspace.threads()
    1
    """

    def __init__(self, count: int) -> None:
        self._limit = _core.ThreadLimit(integer(count, "count"))

    def __enter__(self) -> "thread_limit":
        self._limit.enter()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._limit.exit()


def _register_with_threadpoolctl() -> None:
    """Lets ``threadpoolctl.threadpool_limits`` steer our threads, as it does those of OpenMP programs."""
    try:
        import threadpoolctl
    except ImportError:
        return
    if not hasattr(threadpoolctl, "register"):
        return

    class Controller(threadpoolctl.LibController):  # type: ignore[misc]
        user_api = "openmp"
        internal_api = "itspace"
        filename_prefixes = ("_core",)
        check_symbols = ("itspace_get_threads", "itspace_set_threads")

        def get_num_threads(self) -> Any:
            found = self._get_symbol("itspace_get_threads")
            return found() if found is not None else None

        def set_num_threads(self, count: int) -> None:
            found = self._get_symbol("itspace_set_threads")
            if found is not None:
                found(count)

        def get_version(self) -> str:
            return _core.version()

    threadpoolctl.register(Controller)


_register_with_threadpoolctl()
