"""Symbols that a submission must not import, read from the symbol tables of libraries."""

from __future__ import annotations

import platform
import re
import struct
import subprocess
from pathlib import Path

import pytest

from grader.execution.jail import imports
from grader.frontend.toolchain.compilers import find_cxx
from tests.attacks import fuzz


def test_an_unreadable_library_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF\x02" + bytes(100), b"MZ" + bytes(200)):
        (tmp_path / "kernel.so").write_bytes(content)
        assert imports.refused(tmp_path / "kernel.so", tmp_path / "kernel.so") == ["?"]


def test_libc_functions_that_follow_a_pointer_are_not_on_the_list() -> None:
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    listed = subprocess.run(["nm", "-D", "--defined-only", libc], capture_output=True, text=True, check=True).stdout
    names = {name.partition("@")[0] for *_, name in (line.split() for line in listed.splitlines())}
    allowed = {name for name in names if imports.is_allowed(name)}
    harmless = r"(l?l)?abs|s?rand|putchar"
    harmless += r"|_?exit|_Exit|quick_exit|abort|stdout|stderr|__errno_location|__cxa_(atexit|finalize)|copysign[fl]?|ldexp[fl]?|scalbn[fl]?"  # noqa: E501
    assert len(names) > 2000
    assert sorted(allowed) == [name for name in sorted(names) if re.fullmatch(harmless, name)]


MATHEMATICS = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax
fmin fmod hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround nearbyint nextafter nexttoward
pow remainder rint round roundeven scalbln scalbn sin sinh sqrt tan tanh tgamma trunc y0 y1 yn"""  # noqa: E501
ARITHMETIC = """__ashlti3 __ashrti3 __lshrti3 __multi3 __divti3 __udivti3 __modti3 __umodti3 __negti2 __clzti2 __ctzti2 __ffsti2 __parityti2
__popcountdi2 __bswapdi2 __powidf2 __powixf2 __floattisf __floatuntidf __fixdfti __fixunssfti __extendhfsf2 __extendsftf2 __truncdfhf2
__truncsfbf2 __addtf3 __subtf3 __multf3 __divtf3 __muldc3 __divsc3 __eqtf2 __netf2 __lttf2 __letf2 __gttf2 __getf2 __unordtf2"""  # noqa: E501
LANGUAGE = """__gxx_personality_v0 _Unwind_Resume __cxa_begin_catch __cxa_end_catch __cxa_throw __cxa_rethrow __cxa_free_exception
__cxa_guard_acquire __cxa_guard_release __cxa_guard_abort __cxa_atexit __cxa_finalize __cxa_pure_virtual
__cxa_throw_bad_array_new_length _ZSt9terminatev _ZSt20__throw_length_errorPKc _ZTIi _ZTSi _ZTVN10__cxxabiv117__class_type_infoE
_ZNSt9exceptionD2Ev _ZNKSt9exception4whatEv _ZTVSt9exception _ZNSt6chrono3_V212steady_clock3nowEv
_ZNSt6chrono3_V212system_clock3nowEv __tls_get_addr __clang_call_terminate __gmon_start__ _ITM_registerTMCloneTable
__x86_indirect_thunk_rax __llvm_external_retpoline_r11"""  # noqa: E501
SIMULATOR = """_ZN3sim9configureEv _ZNK3sim4nameEv sim_cudaMalloc sim_cuTensorMapEncodeTiled sim_printf sim_malloc sim_free sim_clock
sim___assert_fail sim_trap __wrap_memcpy sim_store_4"""  # noqa: E501


def test_allowed_imports() -> None:
    """Check that a library may import builtins, harmless functions, and symbols of the C++ runtime and simulator."""
    names = [f + of for f in MATHEMATICS.split() for of in ("", "f", "l")]
    names += [*ARITHMETIC.split(), *LANGUAGE.split(), *SIMULATOR.split()]
    assert [name for name in names if not imports.is_allowed(name)] == []
    assert [name for name in names if imports.is_allowed(f"x{name}") or imports.is_allowed(f"{name}@")] == []


@pytest.mark.parametrize(
    "name",
    [
        "modf",
        "frexpl",
        "sincos",
        "remquo",
        "lgamma_r",
        "__udivmodti4",
        "__divmodti4",
        "sim_configure",
        "sim_reset",
        "sim_call",
        "sim_report",
        "_ZNSolsEi",
        "x",
        "strcpy",
        "strlen",
        "nan",
        "memset",
    ],
)
def test_refused_imports(name: str) -> None:
    assert not imports.is_allowed(name)


def test_names_of_the_standard_library_are_shown_as_they_are_written() -> None:
    assert imports.shown("_ZNSt13runtime_errorC1EPKc") == "std::runtime_error"
    assert imports.shown("_ZNKSt7__cxx1112basic_stringIcE5emptyEv") == "std::basic_string"
    assert imports.shown("fork") == "fork"


NONE, OBJECT, FUNCTION, SECTION, FILE = range(5)


def library(path: Path, symbols: list[tuple[str, int, int]], table: int = imports._DYNAMIC) -> Path:
    path.write_bytes(fuzz.library(symbols, table))
    return path


REAL = """
extern "C" int fork();
extern __thread int of_another;
int plain = 3;
const int constant = 4;
extern "C" int one() { return fork() + of_another + plain; }
extern "C" void* pick() { return reinterpret_cast<void*>(&one); }
extern "C" __attribute__((ifunc("pick"))) int chosen();
asm(".text; .globl code; .type code, %object; .size code, 4; code: .long 5; .type not_code, %object; .data; not_code: .long 5");
"""  # noqa: E501


def test_symbols_of_a_linked_library_are_read(tmp_path: Path) -> None:
    argv = [*find_cxx().command, "-shared", "-fPIC", "-x", "c++", "-", "-o", str(tmp_path / "real.so")]
    subprocess.run(argv, input=REAL, text=True, check=True)
    content = (tmp_path / "real.so").read_bytes()
    assert imports.refused_of(content, set()) == ["chosen", "code", "fork", "of_another"]
    assert imports.refused_of(content, {"one", "plain", "fork"}) == [
        "chosen",
        "code",
        "fork",
        "of_another",
        "one",
        "plain",
    ]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="indirect calls are checked only on x86-64")
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("int one() { return 1; } int (*volatile two)() = one;", False),
        ("int one() { return 0xfa1e0ff3; }", True),
        ("int one() { return 0xfa1e0ff2; }", False),
        ('asm(".text; movabsq $0x00fa1e0ff3000000, %rax");', True),
        ("extern const int one[2] = {(int)0xfa1e0ff3, 1};", False),  # in data, which is not executable
        ('asm(".text; movl $0x0ffa1e0f, -13(%rax)");', True),
    ],
)
def test_a_function_entry_inside_a_constant(code: str, found: bool, tmp_path: Path) -> None:
    argv = [*find_cxx().command, "-shared", "-fPIC", "-O1", "-fcf-protection=branch", "-x", "c++", "-"]
    subprocess.run([*argv, "-o", str(tmp_path / "real.so")], input=code, text=True, check=True)
    assert imports.entries_in_constants((tmp_path / "real.so").read_bytes()) is found


@pytest.mark.parametrize(
    ("section", "kind", "flags", "begins", "found"),
    [
        (".text", 1, 6, 0x1000, True),
        (".text", 1, 6, 0x1004, False),
        (".plt", 1, 6, 0x1000, False),  # not searched: generated by the linker
        (".plt.sec", 1, 6, 0x1000, False),
        (".data", 1, 2, 0x1000, False),  # not executable
        (".bss", 8, 6, 0x1000, False),  # not searched: has no content in the file
    ],
)
def test_sections_that_are_searched_for_function_entries(
    section: str, kind: int, flags: int, begins: int, found: bool, tmp_path: Path
) -> None:
    """Check sections by ELF's numbers for types and flags (2: SHF_ALLOC, 4: SHF_EXECINSTR)."""
    content = library(tmp_path / "a.so", [("f", FUNCTION, 3)], imports._ALL).read_bytes()
    (place,) = struct.unpack_from("<Q", content, 40)
    tables = content[place:]
    names = b"\0" + section.encode() + b"\0"
    head = bytearray(content[:place] + b"\x90" * 4 + imports._ENDBR64 + names)
    struct.pack_into("<Q", head, 64 + imports._SYMBOL.size + 8, begins)
    struct.pack_into("<Q", head, 40, len(head))
    struct.pack_into("<HHH", head, 58, imports._SECTION.size, 5, 4)
    tables += imports._SECTION.pack(1, kind, flags, 0x1000, place, 8, 0, 0, 1, 0)
    tables += imports._SECTION.pack(0, 3, 0, 0, place + 8, len(names), 0, 0, 1, 0)
    assert imports.entries_in_constants(bytes(head) + tables) is found


def test_invalid_numbers_are_refused() -> None:
    content = fuzz.seeds("symbols")[0].encode("latin-1")
    assert imports.refused_of(content, {"sim_launch"}) == ["_ZNSolsEi", "fork", "mine", "sim_launch"]
    (sections,) = struct.unpack_from("<Q", content, 40)
    for where, number in ((40, (1 << 64) - 1), (sections + 64 + 24, 1 << 63), (sections + 64 + 32, 1 << 62)):
        changed = bytearray(content)
        struct.pack_into("<Q", changed, where, number)
        assert imports.refused_of(bytes(changed), set()) == ["?"], where


def test_lists_and_names_that_overlap_are_refused(tmp_path: Path) -> None:
    """Overlapping tables in a small file could expand to gigabytes."""
    names = bytearray(library(tmp_path / "a.so", [("a" * 3000, FUNCTION, 0), *[("b", FUNCTION, 0)] * 9]).read_bytes())
    assert imports.symbols(bytes(names), imports._DYNAMIC, defined=False) == {"a" * 3000, "b"}
    for entry in range(2, 11):
        struct.pack_into("<I", names, 64 + imports._SYMBOL.size * entry, 1)
    with pytest.raises(ValueError, match="overlapping names"):
        imports.symbols(bytes(names), imports._DYNAMIC, defined=False)
    lists = bytearray(library(tmp_path / "a.so", [("b", FUNCTION, 0)] * 30).read_bytes())
    (place,) = struct.unpack_from("<Q", lists, 40)
    lists[place : place + 64] = lists[place + 64 : place + 128]
    with pytest.raises(ValueError, match="overlapping tables"):
        imports.symbols(bytes(lists), imports._DYNAMIC, defined=False)


def test_used_and_defined_symbols(tmp_path: Path) -> None:
    symbols = [
        ("fork", FUNCTION, 0),
        ("mine", FUNCTION, 7),
        ("data", OBJECT, 0),
        ("any", NONE, 0),
        ("a.c", FILE, 0),
    ]
    content = library(tmp_path / "a.so", symbols).read_bytes()
    assert imports.symbols(content, imports._DYNAMIC, defined=False) == {"fork", "data", "any"}
    assert imports.symbols(content, imports._DYNAMIC, defined=True) == {"mine"}
    elsewhere = [("absolute", FUNCTION, 0xFFF1), ("past the last section", FUNCTION, 3), ("in a table", FUNCTION, 2)]
    content = library(tmp_path / "a.so", elsewhere).read_bytes()
    assert imports.symbols(content, imports._DYNAMIC, defined=True, executable=True) == set(), (
        "symbols outside code were returned"
    )
    with pytest.raises(ValueError, match="no symbol table"):
        imports.symbols(content, imports._ALL, defined=True)


def test_forbidden_symbols_are_refused(tmp_path: Path) -> None:
    libsim = library(tmp_path / "libsim.so", [("sim_launch", FUNCTION, 3), ("fork", FUNCTION, 0)])
    honest = library(tmp_path / "honest.so", [("putchar", FUNCTION, 0), ("sim_launch", FUNCTION, 0)], imports._DYNAMIC)
    assert imports.refused(honest, libsim) == ["?"], "a library without a symbol table must be refused"
    both = tmp_path / "both.so"

    def with_both(used: list[str], defined: list[str]) -> list[str]:
        """Return the refused symbols of a library with a dynamic and a full symbol table that share their strings."""
        content = bytearray(
            library(both, [*((n, FUNCTION, 0) for n in used), *((n, FUNCTION, 5) for n in defined)]).read_bytes()
        )
        (place,) = struct.unpack_from("<Q", content, 40)
        dynamic = bytes(content[place + imports._SECTION.size : place + 2 * imports._SECTION.size])
        every = bytearray(dynamic)
        struct.pack_into("<I", every, 4, imports._ALL)
        struct.pack_into("<H", content, 60, 4)
        both.write_bytes(bytes(content + every))
        return imports.refused(both, libsim)

    assert with_both(["putchar", "sim_printf"], ["my_kernel"]) == []
    assert with_both(["putchar", "fork", "__write"], []) == ["__write", "fork"]
    assert with_both(["putchar"], ["sim_launch", "mine"]) == ["sim_launch"]
    assert with_both([], ["__tsan_read4"]) == ["__tsan_read4"]
