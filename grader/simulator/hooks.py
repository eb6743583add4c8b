"""The instrumentation calls that compilers insert, and the names by which the simulator defines them.

``-fsanitize`` makes compilers call ``__tsan_read4`` and similar functions. Other libraries may define these names too,
and the loader would bind a kernel to the first one in the process. The linker therefore renames them to
``__wrap___tsan_read4`` (``--wrap``), which only libsim defines: ``checks/core/hook_names.h``.
"""

from __future__ import annotations

_SIZES = (1, 2, 4, 8, 16)
_ATOMIC_BITS = (8, 16, 32, 64)
_ATOMICS = (
    *("load", "store", "exchange"),
    *(f"fetch_{operation}" for operation in ("add", "sub", "and", "or", "xor")),
    *(f"compare_exchange_{kind}" for kind in ("strong", "weak", "val")),
)

INSERTED = (
    *(
        f"__tsan_{kind}{access}{size}"
        for kind in ("", "unaligned_", "volatile_", "unaligned_volatile_")
        for access in ("read", "write")
        for size in _SIZES
    ),
    *("__tsan_read_range", "__tsan_write_range", "__tsan_memcpy", "__tsan_memmove", "__tsan_memset"),
    *("__tsan_init", "__tsan_func_entry", "__tsan_func_exit", "__tsan_vptr_read", "__tsan_vptr_update"),
    *("__tsan_ignore_thread_begin", "__tsan_ignore_thread_end"),
    *("__tsan_atomic_thread_fence", "__tsan_atomic_signal_fence"),
    *(f"__tsan_atomic{bits}_{operation}" for bits in _ATOMIC_BITS for operation in _ATOMICS),
    *("__ubsan_handle_out_of_bounds", "__ubsan_handle_out_of_bounds_abort"),
    *("__ubsan_handle_missing_return", "__sanitizer_cov_trace_pc"),
)
"""The functions that compilers call; libsim defines each of them as ``wrapped(name)``."""

# clang++ turns the copy of a large structure into a call, which older versions do not instrument. std::copy is a call
# with all compilers. sim/copies.h handles them.
_COPIES = ("memcpy", "memmove", "memset")

_DELETE = tuple(
    f"_Zd{which}Pv{size}{alignment}" for which in "la" for size in ("", "m") for alignment in ("", "St11align_val_t")
)

# Functions that allocate memory, or read or write at a given address: runtime/library_functions.cpp.
LIBRARY = (
    *("_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"),
    *_DELETE,
    *("__cxa_allocate_exception", "sincos", "sincosf", "time", "malloc", "calloc", "free"),
    *("fprintf", "fputs", "puts", "perror", "fputc", "putc", "fwrite", "fflush", "snprintf"),
    *("atoi", "atol", "atoll", "atof", "strtol", "strtoll", "__isoc23_strtol", "__isoc23_strtoll", "strtod"),
    *("nan", "nanf", "nanl"),
    *("memcmp", "bcmp", "memchr", "memrchr", "strlen", "strnlen", "strcmp", "strncmp"),
    *("strchr", "strrchr", "strspn", "strcspn", "strpbrk", "strstr"),
)

WRAPPED = (*INSERTED, *_COPIES, *LIBRARY)
"""The names that are renamed."""


def wrapped(name: str) -> str:
    """Return the name that a kernel library uses in place of a name."""
    return f"__wrap_{name}"


def link_flags(checks: bool) -> tuple[str, ...]:
    """Return the flags that link a kernel library; without checks, also delete for device memory."""
    return tuple(f"-Wl,--wrap={name}" for name in (WRAPPED if checks else _DELETE))
