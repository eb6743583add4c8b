"""Tables that map PTX instructions to functions of ``simulator/include/sim/ptx.h``.

An opcode such as ``ld.global.nc.L1::no_allocate.v4.f32`` is a name followed by modifiers. Each row of the tables has a
pattern for opcodes, and a template for the C++ function's name and template arguments. In braces, the template names
the parts that the pattern captures (type, space, rounding ...). ``_MEANINGS`` translates these parts to C++.
Modifiers that are only hints, such as ``L1::no_allocate``, are matched and ignored.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# The C++ type for each PTX type. PTX keeps an f16 in a 16-bit register, whose C++ type is uint16_t.
TYPES = {
    **{f"{sign}{bits}": f"uint{bits}_t" for sign in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
}
_WIDE = {f"{sign}{bits}": TYPES[f"{sign}{2 * bits}"] for sign in "us" for bits in (16, 32)}
_WIDE |= {"u64": "unsigned __int128", "s64": "__int128"}
# The template arguments for arithmetic of 16-bit types: the type of a pair, and that of the register.
_PAIRS = {
    "f16x2": "__half2, uint32_t",
    "bf16x2": "__nv_bfloat162, uint32_t",
    "f16": "__half2, uint16_t",
    "bf16": "__nv_bfloat162, uint16_t",
}
_FORMATS = {"f16": "F16", "bf16": "BF16"}
_ROUNDINGS = {"rn": "nearest", "rz": "zero", "rm": "down", "rp": "up"}
_ROUNDINGS |= {f"{mode}i": direction for mode, direction in _ROUNDINGS.items()}
_SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "device", "gl": "device", "sys": "system"}
_SPACES = {
    **dict.fromkeys(("", "const", "param", "local"), "::sim::ptx::Generic"),
    **dict.fromkeys(("shared", "shared::cta"), "::sim::ptx::Shared"),
    "shared::cluster": "::sim::ptx::SharedCluster",
    "global": "::sim::ptx::Global",
}
_ATOMIC = {name: name for name in ("add", "min", "max")}
_ATOMIC |= {
    "exch": "exchange",
    "and": "bit_and",
    "or": "bit_or",
    "xor": "bit_xor",
    "inc": "increment",
    "dec": "decrement",
}
_WARP = {"idx": "index", "bfly": "exclusive_or", "uni": "uniform"}

# mma.sync: its shapes, and the types of d, a, b and c. The simulator reads the same file.
_MMA_SHAPES = Path(__file__).parents[1] / "simulator" / "include" / "sim" / "mma_shapes.def"
_MMA_ROW = re.compile(r"^SIM_MMA\( *(\d+), *(\d+), *(\d+), *(\w+), *(\w+), *(\w+)\)$", re.MULTILINE)
_MMA = {
    f"m{m}n{n}k{k}.row.col.{d}.{a}.{b}.{d}": f"m{m}n{n}k{k}_{d}_{a}_{b}"
    for m, n, k, d, a, b in _MMA_ROW.findall(_MMA_SHAPES.read_text(encoding="utf-8"))
}


def _mma(shape: str, saturates: bool) -> str | None:
    """Return the function for an mma.sync shape and types; None if there is none. Only s32 accumulators saturate."""
    if shape not in _MMA or (saturates and ".s32." not in shape):
        return None
    kind = f"::sim::Mma::{_MMA[shape]}"
    return f"mma<::sim::saturating({kind})>" if saturates else f"mma<{kind}>"


_BITS = {"f16": 16, "bf16": 16, **dict.fromkeys(("f32", "tf32", "s32"), 32)}


def mma_registers(opcode: str) -> tuple[int, int, int, int]:
    """Return the 32-bit registers of a thread for d, a, b and c of an mma.sync."""
    m, n, k = map(int, re.findall(r"\.m(\d+)n(\d+)k(\d+)\.", opcode)[0])
    d, a, b, c = (_BITS.get(name, 8) for name in opcode.split(".")[-4:])
    return m * n * d // 1024, m * k * a // 1024, k * n * b // 1024, m * n * c // 1024


# The depth K of a wgmma instruction, by the types of d, a and b. K is the number of elements of a in 32 bytes.
_WGMMA_DEPTHS = {
    **{(d, "f16", "f16"): 16 for d in ("f16", "f32")},
    ("f32", "bf16", "bf16"): 16,
    ("f32", "tf32", "tf32"): 8,
    **{(d, a, b): 32 for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")},
    **{("s32", a, b): 32 for a in ("s8", "u8") for b in ("s8", "u8")},
}
_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k(?P<k>\d+)\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)"
    r"(?P<saturates>\.satfinite)?"
)

# tcgen05.ld and tcgen05.st: for each shape its name in sim::TensorShape, and the registers of a thread for .x1.
_TENSOR_SHAPES = {
    "32x32b": ("lanes32_bits32", 1),
    "16x64b": ("lanes16_bits64", 1),
    "16x128b": ("lanes16_bits128", 2),
    "16x256b": ("lanes16_bits256", 4),
}
_TENSOR_ACCESS = re.compile(
    rf"tcgen05\.(?P<what>ld|st)\.sync\.aligned\.(?P<shape>{'|'.join(_TENSOR_SHAPES)})\.x(?P<n>1|2|4|8|16|32|64|128)\.b32"
)
_TENSOR_PRODUCT = re.compile(r"tcgen05\.mma\.cta_group::(?P<group>[12])\.kind::f16")
_SCALED_PRODUCT = re.compile(
    r"tcgen05\.mma\.cta_group::1\.kind::(?P<kind>mxf8f6f4|mxf4|mxf4nvf4)\.block_scale"
    r"(?:\.(?P<size>scale_vec::[124]X|block16|block32))?"
)
# The scale factors of a row for each form of a block-scaled tcgen05.mma (PTX ISA, "Valid combinations of
# scale_vectorsize with types and MMA-Kind").
_SCALES: dict[str, dict[str | None, int]] = {
    "mxf8f6f4": {None: 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {None: 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
_CTA_GROUP = r"\.cta_group::(?P<group>[12])"

# Parts of the patterns below. _CACHE and _ADVICE match cache operators and eviction priorities, which are ignored: they
# are hints that do not change a result.
_SPACE = r"(?:\.(?P<space>global|shared(?:::cta|::cluster)?|const|param|local))?"
_OBJECT = r"(?:\.(?P<space>shared(?:::cta|::cluster)?))?"  # the space of an mbarrier's address; none: generic
_CACHE = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|nc))*"
_ADVICE = r"(?:\.L1::\w+)?(?:\.L2::(?:evict_\w+|64B|128B|256B))*"
_SCOPE = r"(?:\.(?P<scope>cta|cluster|gpu|sys))?"
_ORDER = r"(?:\.(?P<order>relaxed|acquire|release|acq_rel))?"
_MULTICAST = r"(?P<multicast>\.multicast::cluster)?(?:\.L2::cache_hint)?"
_DIMENSIONS = r"(?P<dimensions>[1-5])d"
_FTZ = r"(?:\.ftz)?"
_ROUND = r"(?:\.(?:rn|rz|rm|rp))?"
_ANY = r"\.(?P<type>[busf](?:8|16|32|64))"
_INTEGER = r"\.(?P<type>[bus](?:16|32|64))"
_NUMBER = r"\.(?P<type>[us](?:16|32|64)|f32|f64)"
_TO_NARROW = r"cvt\.rn\.satfinite(?P<relu>\.relu)?\.(?P<narrow>e4m3|e5m2)x2"
_PAIR = r"\.(?P<pair>b?f16(?:x2)?)"

_Fields = dict[str, str]


def _truth(value: object) -> str:
    """Return ``true`` or ``false``, as in C++."""
    return "true" if value else "false"


def _reduction(name: str) -> str:
    """Return the C++ name of the reduction that a bulk copy performs."""
    return f"::sim::Reduction::{_ATOMIC.get(name) if name in ('and', 'or', 'xor') else name}"


def _relation(name: str) -> str:
    """Return the template arguments for a relation of ``setp``. ``ltu``, for example, is the negation of ``ge``."""
    opposite = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}.get(name)
    return f"::sim::ptx::Compare::{opposite or name}, {_truth(opposite)}"


# The C++ text for a captured part, by the part's name. Other parts are inserted unchanged.
_MEANINGS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("amount", "by_row", "counted", "drops", "of_a", "read", "relu", "t"), _truth),
    "expects": lambda part: "_expect_tx" if part else "",
    "group": lambda part: _truth(part == "2"),  # true for cta_group::2, a pair of blocks
    "kind": lambda part: _WARP.get(part, part),
    "multicast": lambda part: "_multicast" if part else "",
    "narrow": str.upper,
    "op": lambda part: _ATOMIC[part],
    "order": lambda part: f"::sim::MemoryOrder::{part or 'relaxed'}",
    "ordered": lambda part: _truth(part != "relaxed"),
    "pair": lambda part: _PAIRS[part],
    "parity": lambda part: "_parity" if part else "",
    "reduction": _reduction,
    "relation": _relation,
    "scope": lambda part: f"::sim::Scope::{_SCOPES[part or 'gpu']}",
    "small": lambda part: _FORMATS[part],
    "space": lambda part: _SPACES[part],
    "type": lambda part: TYPES[part],
}


def _filled(template: str, f: _Fields) -> str:
    """Put what the captured parts mean into a template. ``{wide}`` is the type with twice the bits."""
    values = {name: _MEANINGS.get(name, str)(part) for name, part in f.items()}
    return template.format_map(values | {"wide": _WIDE.get(f.get("type", ""), "")})


def _rounding(name: str) -> str:
    return f"::sim::Rounding::{_ROUNDINGS[name]}"


def _convert(f: _Fields) -> str | None:
    """Return the function for a cvt between two types of numbers."""
    to, source, mode = f["to"], f["source"], f.get("mode") or "rn"
    if to in _FORMATS and source == "f32":
        return f"cvt_to_small<::sim::{_FORMATS[to]}, {_rounding(mode)}>"
    if source in _FORMATS and to == "f32":
        return f"cvt_from_small<::sim::{_FORMATS[source]}>"
    if to in TYPES and source in TYPES:
        mode = mode if f.get("mode") or not source.startswith("f") or to.startswith("f") else "rzi"
        return f"cvt<{_rounding(mode)}, {TYPES[to]}, {TYPES[source]}>"
    return None


_RULES: list[tuple[str, str | Callable[[_Fields], str | None]]] = [
    # tensor memory
    (
        rf"tcgen05\.alloc{_CTA_GROUP}\.sync\.aligned(?:\.(?P<space>shared::cta))?\.b32",
        "tcgen05_alloc<{group}, {space}>",
    ),
    (rf"tcgen05\.dealloc{_CTA_GROUP}\.sync\.aligned\.b32", "tcgen05_dealloc<{group}>"),
    (rf"tcgen05\.relinquish_alloc_permit{_CTA_GROUP}\.sync\.aligned", "tcgen05_relinquish_alloc_permit<{group}>"),
    (rf"tcgen05\.cp{_CTA_GROUP}\.128x(?P<bits>128|256)b", "tcgen05_cp<{group}, {bits}, false>"),
    (rf"tcgen05\.cp{_CTA_GROUP}\.32x128b\.warpx4", "tcgen05_cp<{group}, 128, true>"),
    (
        rf"tcgen05\.commit{_CTA_GROUP}\.mbarrier::arrive::one(?:\.(?P<space>shared::cluster))?"
        r"(?P<multicast>\.multicast::cluster)?\.b64",
        "tcgen05_commit{multicast}<{group}, {space}>",
    ),
    (r"tcgen05\.wait::(?P<what>ld|st)\.sync\.aligned", "tcgen05_wait_{what}"),
    (r"tcgen05\.fence::(?P<when>before|after)_thread_sync", "tcgen05_fence_{when}"),
    # tensor cores
    (
        r"wmma\.load\.(?:(?P<of_a>a)|b)\.sync\.aligned\.(?:(?P<by_row>row)|col)\.m16n16k16\.shared\.bf16",
        "wmma_load_bf16<{of_a}, {by_row}>",
    ),
    (r"mma\.sync\.aligned\.m8n8k4\.row\.col\.f64\.f64\.f64\.f64", "mma_f64"),
    (
        r"mma\.sync\.aligned\.(?P<shape>\w+\.row\.col)(?P<saturates>\.satfinite)?(?P<types>\.[\w.]+)",
        lambda f: _mma(f["shape"] + f["types"], bool(f["saturates"])),
    ),
    (
        r"(?P<name>ld|st)matrix\.sync\.aligned\.m8n8\.x[124](?P<t>\.trans)?(?:\.shared(?:::cta)?)?\.b16",
        "{name}matrix<{t}>",
    ),
    (r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16", "movmatrix"),
    (r"wgmma\.(?P<name>fence|commit_group|wait_group)\.sync\.aligned", "wgmma_{name}"),
    # asynchronous copies
    (rf"cp\.async\.(?P<cache>c[ag])\.shared(?:::cta)?\.global{_ADVICE}", "cp_async<::sim::CacheOperator::{cache}>"),
    (r"cp\.async\.(?P<name>commit_group|wait_group|wait_all)", "cp_async_{name}"),
    (
        rf"cp\.async\.mbarrier\.arrive(?P<counted>\.noinc)?{_OBJECT}\.b64",
        "cp_async_mbarrier_arrive<{space}, {counted}>",
    ),
    (
        rf"cp\.async\.bulk\.shared::(?:cta|cluster)\.global\.mbarrier::complete_tx::bytes{_MULTICAST}",
        "cp_async_bulk_load{multicast}",
    ),
    (r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?", "cp_async_bulk_store"),
    (r"cp\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes", "cp_async_bulk_shared"),
    (
        r"st\.async(?:\.weak)?(?:\.shared::cluster)?\.mbarrier::complete_tx::bytes(?:\.v[24])?"
        r"\.(?P<type>[bus](?:32|64)|f32|f64)",
        "st_async<{type}>",
    ),
    (
        r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?\.(?:"
        r"(?P<op>add)\.(?:(?P<type>u32|s32|u64|f32|f64)|noftz\.(?P<half>f16|bf16))|"
        r"(?P<least>min|max)\.(?P<ordered>u32|s32|u64|s64|f16|bf16)|(?P<wrap>inc|dec)\.(?P<u>u32)|"
        r"(?P<bits>and|or|xor)\.(?P<b>b32|b64))",
        lambda f: (
            f"cp_reduce_async_bulk<{_reduction(f['op'] or f['least'] or f['wrap'] or f['bits'])}, ::sim::ElementType::"
            f"{f['type'] or f['half'] or f['ordered'] or f['u'] or f['b'].replace('b', 'u')}>"
        ),
    ),
    # tensor copies
    (
        rf"cp\.async\.bulk\.tensor\.{_DIMENSIONS}\.shared::(?:cta|cluster)\.global(?:\.tile)?"
        rf"\.mbarrier::complete_tx::bytes{_MULTICAST}",
        "cp_async_bulk_tensor_load{multicast}<{dimensions}>",
    ),
    (
        rf"cp\.async\.bulk\.tensor\.{_DIMENSIONS}\.shared::(?:cta|cluster)\.global(?:\.tile)?"
        rf"\.mbarrier::complete_tx::bytes{_CTA_GROUP}(?:\.L2::cache_hint)?",
        "cp_async_bulk_tensor_load<{dimensions}, {group}>",
    ),
    (
        rf"cp\.async\.bulk\.tensor\.{_DIMENSIONS}\.global\.shared::cta(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?",
        "cp_async_bulk_tensor_store<{dimensions}, ::sim::Reduction::none>",
    ),
    (
        rf"cp\.reduce\.async\.bulk\.tensor\.{_DIMENSIONS}\.global\.shared::cta"
        r"\.(?P<reduction>add|min|max|inc|dec|and|or|xor)(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?",
        "cp_async_bulk_tensor_store<{dimensions}, {reduction}>",
    ),
    (
        rf"cp\.async\.bulk\.prefetch\.tensor\.{_DIMENSIONS}\.L2\.global(?:\.tile)?(?:\.L2::cache_hint)?",
        "cp_async_bulk_prefetch_tensor<{dimensions}>",
    ),
    (r"prefetch(?:\.(?:const|param))?\.tensormap", "prefetch_tensormap"),
    (r"fence\.proxy\.tensormap::generic\.acquire\.(?:cta|cluster|gpu|sys)", "fence_proxy_tensormap"),
    (r"cp\.async\.bulk\.commit_group", "cp_async_bulk_commit_group"),
    (r"cp\.async\.bulk\.wait_group(?P<read>\.read)?", "cp_async_bulk_wait_group<{read}>"),
    # barriers and fences
    (r"(?:bar|barrier)(?:\.cta)?\.(?P<name>sync|arrive)(?:\.aligned)?", "bar_{name}"),
    (r"barrier\.cluster\.arrive(?:\.(?P<ordered>release|relaxed))?(?:\.aligned)?", "barrier_cluster_arrive<{ordered}>"),
    (r"barrier\.cluster\.wait(?:\.acquire)?(?:\.aligned)?", "barrier_cluster_wait"),
    (r"bar\.warp\.sync", "bar_warp_sync"),
    (r"membar\.(?P<scope>cta|gl|sys)", "fence<{scope}>"),
    (r"fence(?:\.(?:sc|acq_rel))?\.(?P<scope>cta|cluster|gpu|sys)", "fence<{scope}>"),
    (r"fence\.(?P<order>acquire|release)\.(?P<scope>cta|cluster|gpu|sys)", "fence<{scope}, {order}>"),
    (r"fence\.proxy\.async(?:\.global|\.shared::(?:cta|cluster))?", "fence_proxy_async"),
    (r"fence\.mbarrier_init\.release\.cluster", "fence_mbarrier_init"),
    (r"griddepcontrol\.(?P<what>wait|launch_dependents)", "griddepcontrol_{what}"),
    # mbarriers
    (rf"mbarrier\.(?P<name>init|inval){_OBJECT}\.b64", "mbarrier_{name}<{space}>"),
    (
        rf"mbarrier\.arrive(?P<drops>_drop)?(?P<expects>\.expect_tx)?(?:\.(?P<ordered>release|relaxed)\.(?:cta|cluster))?"
        rf"{_OBJECT}\.b64",
        "mbarrier_arrive{expects}<{space}, {ordered}, {drops}>",
    ),
    (
        rf"mbarrier\.(?P<name>expect|complete)_tx(?:\.relaxed\.(?:cta|cluster))?{_OBJECT}\.b64",
        "mbarrier_{name}_tx<{space}>",
    ),
    (
        rf"mbarrier\.(?:test|try)_wait(?P<parity>\.parity)?(?:\.(?P<ordered>acquire|relaxed)\.(?:cta|cluster))?"
        rf"{_OBJECT}\.b64",
        "mbarrier_wait{parity}<{space}, {ordered}>",
    ),
    (r"mbarrier\.pending_count\.b64", "mbarrier_pending_count"),
    # hints: they have no influence on a result, but their operands are checked
    (rf"prefetch(?:{_SPACE}\.L[12](?:::evict_(?:last|normal))?|u\.L1)", "prefetch<{space}>"),
    (r"applypriority(?:\.global)?\.L2::evict_normal", "prefetch_bytes"),
    (r"cp\.async\.bulk\.prefetch\.L2\.global(?:\.L2::cache_hint)?", "prefetch_bytes"),
    (r"createpolicy\.fractional\.L2::evict_\w+(?:\.L2::evict_\w+)?\.b64", "createpolicy"),
    # the register budget is a hint; the simulator checks that the whole warpgroup executes it with a legal value
    (r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32", "setmaxnreg<{{0}}>"),
    # memory
    (
        rf"ld(?:\.weak)?\.(?P<space>global)(?=.*\.nc\b){_CACHE}{_ADVICE}{_CACHE}(?:\.v[24])?{_ANY}",
        "load_read_only<{space}, {type}>",
    ),
    (rf"ldu?(?:\.weak)?{_SPACE}{_CACHE}{_ADVICE}{_CACHE}(?:\.v[24])?{_ANY}", "load<{space}, {type}>"),
    (rf"ld\.volatile{_SPACE}{_ANY}", "load_volatile<{space}, {type}>"),
    (
        rf"ld\.(?P<order>relaxed|acquire){_SCOPE}{_SPACE}{_ADVICE}(?:\.v2)?\.(?P<type>[bus](?:32|64))",
        "load_atomic<{space}, {type}, {scope}, {order}>",
    ),
    (rf"st(?:\.weak)?{_SPACE}{_CACHE}{_ADVICE}(?:\.v[24])?{_ANY}", "store<{space}, {type}>"),
    (rf"st\.volatile{_SPACE}{_ANY}", "store_volatile<{space}, {type}>"),
    (
        rf"st\.(?P<order>relaxed|release){_SCOPE}{_SPACE}{_ADVICE}\.(?P<type>[bus](?:32|64))",
        "store_atomic<{space}, {type}, {scope}, {order}>",
    ),
    (
        rf"(?P<name>atom|red){_ORDER}{_SCOPE}{_SPACE}\.(?P<op>{'|'.join(_ATOMIC)})\.(?P<type>[bus](?:32|64)|f32|f64)",
        "{name}<{space}, {type}, ::sim::AtomicOp::{op}, {scope}, {order}>",
    ),
    (rf"atom{_ORDER}{_SCOPE}{_SPACE}\.cas\.(?P<type>b32|b64)", "atom_cas<{space}, {type}, {scope}, {order}>"),
    # warp-level
    (r"shfl\.sync\.(?P<kind>idx|up|down|bfly)\.b32", "shfl<::sim::Shuffle::{kind}>"),
    (r"vote\.sync\.ballot\.b32", "vote<::sim::Vote::ballot, uint32_t>"),
    (r"vote\.sync\.(?P<kind>all|any|uni)\.pred", "vote<::sim::Vote::{kind}, bool>"),
    (r"activemask\.b32", "activemask"),
    (r"match\.any\.sync\.(?P<type>b32|b64)", "match_any<{type}>"),
    (r"redux\.sync\.(?P<op>add|min|max|and|or|xor)\.(?P<type>b32|u32|s32)", "redux<::sim::Reduce::{op}, {type}>"),
    (r"elect\.sync", "elect"),
    # distributed shared memory
    (r"mapa(?:\.(?P<space>shared::cluster))?\.(?P<type>u32|u64)", "mapa<{space}, {type}>"),
    (r"getctarank(?:\.(?P<space>shared::cluster))?\.u(?:32|64)", "getctarank<{space}>"),
    # moves and conversions
    (rf"mov{_ANY}", "mov<{type}>"),
    (r"mov\.pred", "mov<bool>"),
    (r"(?P<name>pack|unpack)\.b32", "{name}<uint16_t, uint32_t>"),
    (r"(?P<name>pack|unpack)\.b64", "{name}<uint32_t, uint64_t>"),
    (r"cvta\.to\.shared(?:::cta|::cluster)?\.u(?:32|64)", "cvta_to_shared"),
    (r"cvta\.to\.global\.u64", "cvta_to_global"),
    (r"cvta\.shared(?:::cta|::cluster)?\.u64", "cvta_shared"),
    (r"cvta\.global\.u64", "cvta_to_global"),
    (r"cvt\.rn(?P<relu>\.relu)?\.(?P<small>f16|bf16)x2\.f32", "cvt_to_pair<::sim::{small}, {relu}>"),
    (rf"{_TO_NARROW}\.f32", "cvt_to_narrow_pair<::sim::{narrow}, {relu}>"),
    (rf"{_TO_NARROW}\.f16x2", "cvt_half_pair_to_narrow<::sim::{narrow}, {relu}>"),
    (r"cvt\.rn(?P<relu>\.relu)?\.f16x2\.(?P<narrow>e4m3|e5m2)x2", "cvt_narrow_pair_to_half<::sim::{narrow}, {relu}>"),
    (r"cvt\.rna\.tf32\.f32", "cvt_rna_tf32"),
    (rf"cvt(?:\.(?P<mode>{'|'.join(_ROUNDINGS)}))?{_FTZ}(?:\.sat)?\.(?P<to>\w+)\.(?P<source>\w+)", _convert),
    # arithmetic
    (rf"(?P<name>ex2|lg2|sin|cos)\.approx{_FTZ}\.f32", "op_{name}<float>"),
    (r"tanh\.approx\.f32", "op_tanh<float>"),
    (rf"(?P<name>rcp|sqrt)\.(?:approx|rn){_FTZ}\.(?P<type>f32|f64)", "op_{name}<{type}>"),
    (rf"rsqrt\.approx{_FTZ}\.(?P<type>f32|f64)", "op_reciprocal_root<{type}>"),
    (rf"div\.(?:approx|full|rn){_FTZ}\.(?P<type>f32|f64)", "op_div<{type}>"),
    (r"(?P<name>div|rem)\.(?P<type>[us](?:16|32|64))", "op_{name}<{type}>"),
    (rf"(?P<name>add|sub|mul){_ROUND}{_FTZ}\.(?P<type>f32|f64)", "op_{name}<{type}>"),
    (r"(?P<name>add|sub)\.(?P<type>[us](?:16|32|64))", "op_{name}<{type}>"),
    (r"mul\.hi\.(?P<type>[us](?:32|64))", "mul_hi<{type}, {wide}>"),
    (r"(?P<name>mul|mad)\.wide\.(?P<type>[us](?:16|32))", "{name}_wide<{type}, {wide}>"),
    (r"(?P<name>mul|mad)\.lo\.(?P<type>[us](?:16|32|64))", "op_{name}<{type}>"),
    (rf"(?:fma|mad)\.rn{_FTZ}\.(?P<type>f32|f64)", "op_fma<{type}>"),
    (rf"(?P<name>min|max){_FTZ}{_NUMBER}", "op_{name}<{type}>"),
    (rf"(?P<name>abs|neg){_FTZ}\.(?P<type>s(?:16|32|64)|f32|f64)", "op_{name}<{type}>"),
    (r"(?P<name>and|or|xor|not)\.(?P<type>b(?:16|32|64))", "op_{name}_bits<{type}>"),
    (r"(?P<name>and|or|xor)\.pred", "op_{name}_bits<bool>"),
    (r"not\.pred", "not_pred"),
    (r"(?P<name>brev|popc|clz|prmt)\.b32", "op_{name}<uint32_t>"),
    (r"bfind(?P<amount>\.shiftamt)?\.(?P<type>[us](?:32|64))", "bfind<{type}, {amount}>"),
    (r"shl\.(?P<type>b(?:16|32|64))", "shl<{type}>"),
    (rf"shr{_INTEGER}", "shr<{type}>"),
    (r"shf\.(?P<side>[lr])\.(?P<mode>wrap|clamp)\.b32", "op_shf_{side}_{mode}<uint32_t>"),
    (r"bfe\.(?P<type>[us]32)", "bfe<{type}>"),
    (r"(?P<name>bfi|lop3)\.b32", "{name}"),
    (r"dp4a\.(?P<type>u32|s32)\.(?P=type)", "op_dp4a<{type}>"),
    (
        r"setp\.(?P<relation>eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu)(?:\.ftz)?\.(?P<type>[bus](?:16|32|64)|f32|f64)",
        "setp<{relation}, {type}>",
    ),
    (rf"selp{_ANY}", "selp<{type}>"),
    (rf"(?P<name>add|sub|mul){_ROUND}{_FTZ}{_PAIR}", "pair_{name}<{pair}>"),
    (rf"(?P<name>min|max|neg|abs){_FTZ}{_PAIR}", "pair_{name}<{pair}>"),
    (rf"(?P<name>ex2|tanh)\.approx{_FTZ}{_PAIR}", "pair_{name}<{pair}>"),
    (rf"fma\.rn{_FTZ}{_PAIR}", "pair_fma<{pair}>"),
    # the rest
    (r"trap", "trap"),
    (r"nanosleep\.u32", "nanosleep"),
]


@functools.lru_cache(maxsize=1)
def _compiled() -> list[tuple[re.Pattern[str], str | Callable[[_Fields], str | None]]]:
    return [(re.compile(pattern), make) for pattern, make in _RULES]


@functools.lru_cache(maxsize=512)
def function_for(opcode: str) -> str | None:
    """Return the function of ``sim::ptx`` for an opcode such as ``ld.global.v4.f32``; None if it is not simulated.

    If the result contains ``{0}``, the first operand is a constant that must be inserted there. The caller passes
    ``pack.b32`` or ``unpack.b32`` for a ``mov.b32`` from or to a pair of registers in braces.
    """
    for written in dict.fromkeys((opcode, _in_order(opcode))):
        for pattern, make in _compiled():
            if match := pattern.fullmatch(written):
                parts = match.groupdict("")
                if name := _filled(make, parts) if isinstance(make, str) else make(parts):
                    return name
    return None


_ORDERS = [
    r"sync|aligned",
    r"volatile|weak|relaxed|acquire|release|acq_rel",
    r"cta|cluster|gpu|sys",
    r"m8n8",
    r"x[124]",
    r"trans",
    r"global|shared|shared::\w+|const|param|local",
]
"""Modifiers of loads and stores, in the order of the PTX ISA. ptxas accepts them in any order."""


def _in_order(opcode: str) -> str:
    """Sort the modifiers of a load or store into the order of the tables. Modifiers not in ``_ORDERS`` come last."""
    name, *modifiers = opcode.split(".")
    if name not in ("ld", "st", "ldmatrix", "stmatrix"):
        return opcode

    def place(modifier: str) -> int:
        return next((k for k, names in enumerate(_ORDERS) if re.fullmatch(names, modifier)), len(_ORDERS))

    return ".".join([name, *sorted(modifiers, key=place)])


@dataclass(frozen=True)
class WgmmaForm:
    """A form of wgmma.mma_async. Its operands are d, a, b and scale-d, followed by constants in some forms."""

    arguments: str
    """The arguments of the template ``sim::ptx::WgmmaForm``: columns, types, and whether the sums saturate."""
    scales: bool
    """True if the form has the constants imm-scale-a and imm-scale-b, 1 or -1."""
    transposes: bool
    """True if the form has the constant imm-trans-b, 0 or 1; and imm-trans-a if a is in shared memory."""


def wgmma_form(opcode: str) -> WgmmaForm | None:
    """Return the form of a wgmma.mma_async, or None if it is not simulated."""
    match = _WGMMA.fullmatch(opcode)
    if not match or _WGMMA_DEPTHS.get((match["d"], match["a"], match["b"])) != int(match["k"]):
        return None
    n, integer = int(match["n"]), match["d"] == "s32"
    if n % 8 or not 8 <= n <= 256 or (integer and n > 32 and n % 16) or (match["saturates"] and not integer):
        return None
    types = ", ".join(f"::sim::Element::{match[name]}" for name in "dab")
    transposes = match["a"] in ("f16", "bf16")
    return WgmmaForm(f"{n}, {types}, {_truth(bool(match['saturates']))}", not integer, transposes)


@dataclass(frozen=True)
class TensorAccess:
    """A form of tcgen05.ld or tcgen05.st: the function of ``sim::ptx``, and the number of registers of a thread."""

    function: str
    loads: bool
    registers: int


def tensor_access(opcode: str) -> TensorAccess | None:
    """Return the form of a tcgen05.ld or tcgen05.st, or None if it is not simulated."""
    match = _TENSOR_ACCESS.fullmatch(opcode)
    if not match:
        return None
    shape, each = _TENSOR_SHAPES[match["shape"]]
    registers = each * int(match["n"])
    if registers > 128:
        return None
    return TensorAccess(
        f"tcgen05_{match['what']}<::sim::TensorShape::{shape}, {match['n']}>", match["what"] == "ld", registers
    )


def tensor_product(opcode: str) -> str | None:
    """Return ``true`` for a tcgen05.mma with cta_group::2, ``false`` for cta_group::1, None if it is not simulated."""
    match = _TENSOR_PRODUCT.fullmatch(opcode)
    return _truth(match["group"] == "2") if match else None


def block_scaled_product(opcode: str) -> str | None:
    """Return the template arguments of a tcgen05.mma with .block_scale; None if the form is not simulated."""
    match = _SCALED_PRODUCT.fullmatch(opcode)
    scales = _SCALES[match["kind"]].get(match["size"]) if match else None
    return f"::sim::Tcgen05Kind::{match['kind']}, {scales}" if match and scales else None


#: The first compute capability (times ten) that has an instruction. The first pattern that matches an opcode applies.
#: An instruction without a pattern is available since sm_80, the simulator's oldest architecture.
_SINCE = [
    (100, r"tcgen05\..*|clusterlaunchcontrol\..*|.*\.cta_group::.*"),
    (89, r"mma\.sync\..*\.e[45]m[23]\..*|cvt\..*\be[45]m[23]x2.*"),
    (90, r"mbarrier\.(?:try_wait|expect_tx|complete_tx|arrive(?:_drop)?\.expect_tx)\b.*"),
    (90, r"cp\.async\.bulk\b.*|fence\.(?:proxy\.async|mbarrier_init)\b.*|griddepcontrol\..*|.*\bcluster\b.*"),
    (90, r"mapa\..*|getctarank\..*|st\.async\b.*|red\.async\b.*"),
    (90, r"cp\.reduce\.async\.bulk\b.*|prefetch(?:\.\w+)?\.tensormap|fence\.proxy\.tensormap.*|tensormap\..*"),
    (90, r"setmaxnreg\..*|elect\.sync|stmatrix\..*|wgmma\..*|(?:ex2|tanh)\.approx(?:\.ftz)?\.bf16(?:x2)?"),
]
#: Instructions that exist on one compute capability only.
_ONLY = [(90, r"wgmma\..*"), (100, r"tcgen05\..*")]
_ARCHITECTURES = Path(__file__).parents[1] / "simulator" / "include" / "sim" / "architectures.h"

#: Instructions that are valid PTX but not simulated, each with advice for the learner.
_REFUSED = [
    (r"cp\.(?:reduce\.)?async\.bulk\.(?:prefetch\.)?tensor\..*(?:im2col|gather4|scatter4).*",
     "Only tensor maps of tiled mode are simulated (cuTensorMapEncodeTiled): use that mode."),
    (r"tensormap\..*|fence\.proxy\.tensormap.*",
     "The simulator cannot change tensor maps on the device. Encode each on the host, with cuTensorMapEncodeTiled."),
    (r"fence\.proxy\.alias", "Remove the instruction: on the simulator each memory location has only one address."),
    (r"discard\..*",
     "Remove the instruction: it only improves performance, and makes the memory's contents undefined."),
    (r"mbarrier\.arrive(?:_drop)?\.noComplete\..*", "Use mbarrier.arrive without .noComplete."),
    (r"wgmma\.mma_async\.sp\..*", "Sparse wgmma is not simulated: use the dense form."),
    (r"tcgen05\.shift\..*",
     "tcgen05.shift is not simulated: load the rows of tensor memory, and store them at another place."),
    (r"tcgen05\.cp\..*",
     "tcgen05.cp is simulated for the shapes 128x128b, 128x256b and 32x128b.warpx4, without a format conversion."),
    (r"tcgen05\.mma\.(?:ws|sp)\b.*",
     "Supported are the dense forms tcgen05.mma.cta_group::1.kind::f16 and tcgen05.mma.cta_group::2.kind::f16."),
    (r"tcgen05\.mma\..*block_scale.*",
     "Supported with cta_group::1 are kind::mxf8f6f4 with scale_vec::1X or block32, kind::mxf4 with scale_vec::2X or "
     "block32, and kind::mxf4nvf4 with scale_vec::2X, 4X, block32 or block16."),
    (r"tcgen05\.mma\..*",
     "Supported are kind::f16 and, with .block_scale, kind::mxf8f6f4, mxf4 and mxf4nvf4, without .collector or other "
     "modifiers."),
    (r"tcgen05\.(?:ld|st)\..*",
     "Supported are .32x32b, .16x64b, .16x128b and .16x256b with .x1 to .x128 and .b32. The modifiers pack::16b, "
     "unpack::16b and red are not supported."),
    (r"tcgen05\..*", "See the lessons of days 12 to 14 for the forms that are simulated."),
    (r"cp\.async\.bulk\.tensor\..*multicast::cluster\.cta_group::.*",
     "Remove .cta_group, which the simulator does not support here. Each block's mbarrier must count its own bytes."),
]  # fmt: skip


@functools.lru_cache(maxsize=1)
def simulated_architecture() -> int:
    """Return the default compute capability of the simulated device, times ten: 90."""
    match = re.search(r"^#define SIM_SM (\d+)$", _ARCHITECTURES.read_text(encoding="utf-8"), re.MULTILINE)
    assert match
    return int(match[1])


def architecture_for(text: str) -> int | None:
    """Return the compute capability (times ten) that a text's PTX instructions need; None if the default is enough."""
    return 100 if re.search(r"\btcgen05\.|\.cta_group::", text) else None


def first_architecture(opcode: str) -> int:
    """Return the first compute capability (times ten) that has the instruction, but at least 80."""
    return next((sm for sm, pattern in _SINCE if re.fullmatch(pattern, opcode)), 80)


def only_architecture(opcode: str) -> int | None:
    """Return the only compute capability (times ten) that has the instruction; None if several have it."""
    return next((sm for sm, pattern in _ONLY if re.fullmatch(pattern, opcode)), None)


def instead_of(opcode: str) -> str | None:
    """Return advice for an instruction that is valid PTX but not simulated; None if there is none."""
    return next((advice for pattern, advice in _REFUSED if re.fullmatch(pattern, opcode)), None)


#: An opcode of each family that is simulated, as an example in messages.
EXAMPLES = {
    "mma": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "wgmma": "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
    "tcgen05": "tcgen05.mma.cta_group::1.kind::f16",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16",
    "cp": "cp.async.cg.shared.global or cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
    "bar": "bar.sync",
    "mbarrier": "mbarrier.try_wait.parity.shared::cta.b64",
    "ld": "ld.global.nc.v4.f32",
    "st": "st.global.v4.f32",
    "atom": "atom.global.add.f32",
    "red": "red.global.add.f32",
    "shfl": "shfl.sync.bfly.b32",
    "cvt": "cvt.rn.f16x2.f32",
    "fma": "fma.rn.f32",
    "add": "add.f32",
    "mul": "mul.lo.u32",
    "mad": "mad.lo.u32",
    "ex2": "ex2.approx.f32",
    "rcp": "rcp.approx.f32",
    "mov": "mov.b32",
    "setp": "setp.ne.b32",
    "fence": "fence.acq_rel.gpu",
    "vote": "vote.sync.ballot.b32",
}

#: The special registers that ``sim/ptx.h`` supports, without the percent sign.
SPECIAL_REGISTERS = frozenset(
    [
        f"{name}.{axis}"
        for name in ("tid", "ctaid", "ntid", "nctaid", "cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid")
        for axis in "xyz"
    ]
    + ["cluster_ctarank", "cluster_nctarank", "is_explicit_cluster"]
    + [f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")]
    + ["laneid", "warpid", "nwarpid", "smid", "nsmid", "clock", "clock64", "globaltimer", "dynamic_smem_size"]
)
