"""The names of the functions that instrumentation calls, and the linker flags that redirect the calls to libsim.

``-fsanitize`` makes compilers insert calls of ``__tsan_read4`` and similar functions. Other libraries may define these
names as well, and the loader would bind a kernel to the first definition in the process. The linker therefore renames
the calls to ``__wrap___tsan_read4`` (``--wrap``), which only libsim defines: ``checks/core/hook_names.h``.
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
    *("__ubsan_handle_type_mismatch_v1", "__ubsan_handle_missing_return", "__sanitizer_cov_trace_pc"),
)
"""The functions that instrumentation calls. libsim defines each of them as ``wrapped(name)``."""

# Copies that compilers turn into calls of memcpy and related functions: large structures (clang++) and std::copy (all
# compilers). Older versions of clang++ do not instrument these calls. sim/copies.h reports them to the checks.
_COPIES = ("memcpy", "memmove", "memset")

_DELETE = tuple(
    f"_Zd{which}Pv{size}{alignment}" for which in "la" for size in ("", "m") for alignment in ("", "St11align_val_t")
)

# C and C++ library functions that allocate memory, or access it through a pointer: runtime/library_functions.cpp.
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
"""All function names that the linker renames in a kernel library."""


def wrapped(name: str) -> str:
    """Return the name to which the linker renames ``name``: with the prefix ``__wrap_``."""
    return f"__wrap_{name}"


def link_flags(checks: bool) -> tuple[str, ...]:
    """Return the linker flags that redirect functions to the simulator; without checks, these are only ``delete``."""
    return tuple(f"-Wl,--wrap={name}" for name in (WRAPPED if checks else _DELETE))
