"""Inline PTX: each instruction becomes a C++ call with its operands."""

import contextlib
from pathlib import Path

import pytest

from grader import load_kernel
from grader.frontend import ptx_asm
from grader.frontend.ptx_asm import _Operand, _Ptx
from grader.frontend.rewrite import RewriteError, rewrite
from grader.frontend.toolchain.compilers import Compiler, available_cxx
from grader.setup.errors import BuildError


def asm(statement: str) -> str:
    head = "__device__ void f() {"
    text = rewrite(head + statement + "}").text  # the rewriter adds an attribute so that compilers inline f
    return text[text.index("{") + 1 : -1]


def test_operands_are_numbered_over_outputs_and_inputs():
    assert asm('asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a[0]), "f"(b), "f"(c + 1));') == (
        "::sim::ptx::op_fma<float>((d), (a[0]), (b), (c+1));"
    )


def test_macros_of_the_file_are_expanded():
    text = rewrite(
        '#define NAMES "%0, %1"\n#define PAIR(i) "=f"(d[i]), "=f"(d[i + 1])\n'
        '__device__ void f(float* d) { asm("ld.global.v2.f32 {" NAMES "}, [%2];" : PAIR(2) : "l"(p)); }\n'
    ).text
    assert "; ::sim::ptx::load<::sim::ptx::Global, float>((p), (d[2]), (d[2+1])); }" in text


@pytest.mark.parametrize("compiler", available_cxx(), ids=str)
@pytest.mark.parametrize(
    ("define", "refused"),
    [
        ('#define OP "add"', False),
        ('#define OP "add"\n#/**/undef/**/OP\n#/**/define/**/OP/**/"mul"', True),
        ('#define OP PRIX8\n#define PRIX8 "add"\n#include <cinttypes>', True),
    ],
    ids=["one definition", "comments in directives", "header"],
)
def test_the_compiler_expands_the_same_macros(compiler: Compiler, define: str, refused: bool, tmp_path: Path) -> None:
    """Otherwise a file could show another instruction to the simulator than to nvcc."""
    (tmp_path / "k.cu").write_text(
        f"{define}\n__global__ void f(float* d) {{\n"
        '    if (d) asm("" OP ".f32 %0, %1, %1;" : "=f"(*d) : "f"(*d)); else return;\n}\n'
        'extern "C" void g(float* d, cudaStream_t stream) { f<<<1, 1, 0, stream>>>(d); }\n'
    )
    expected = pytest.raises(BuildError, match="several definitions") if refused else contextlib.nullcontext()
    with expected:
        load_kernel(tmp_path / "k.cu", compiler=compiler.path)


def test_a_parameter_hides_a_macro_and_a_macro_holds_from_its_definition_on():
    text = rewrite(
        '#define x 1\n#define COPY(x) asm("mov.f32 %0, %1;" : "=f"(x) : "f"(LATER))\n#define LATER 2.0f\n'
    ).text
    assert "::sim::ptx::mov<float>((x), (LATER))" in text


@pytest.mark.parametrize(
    "define",
    [
        "",
        '#if A\n#define NAME "%0"\n#endif',
        '#define NAME "%0"\n#undef NAME',
        '#define NAME "%0"\n%:undef NAME\n%:define NAME "%1"',
    ],
)
def test_other_macros_in_the_text_are_refused(define):
    with pytest.raises(RewriteError, match="not a plain string") as refused:
        rewrite(f'{define}\n__device__ void f(int* d) {{ asm("mov.u32 " NAME ", 1;" : "=r"(*d)); }}')
    assert refused.value.hint == "Write the instruction out, or define its macros above it, once, outside of #if."


MMA = 'asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 "\n"{%0,%1}, {%2,%3}, {%4%5}, {%0,%1};\\n"'


def test_vectors_of_registers_are_flattened():
    text = asm(MMA.replace("%5", "") + ' : "+r"(d0), "+r"(d1) : "r"(a0), "r"(a1), "r"(b));')
    a, b, c = ("::sim::ptx::words((a0), (a1))", "::sim::ptx::words((b))", "::sim::ptx::words((d0), (d1))")
    assert f"f16_f16>(SIM_CALLER, {a}, {b}, {c}, (d0), (d1))" in text and text.count("\n") == 1


def test_a_product_with_other_than_its_registers_is_refused():
    with pytest.raises(RewriteError, match="takes 2 registers of d, 2 of a, 1 of b and 2 of c"):
        asm(MMA.replace("%5", ",%5") + ' : "+r"(d0), "+r"(d1) : "r"(a0), "r"(a1), "r"(b0), "r"(b1));')


@pytest.mark.parametrize(
    ("text", "operands", "registers"),
    [
        ("ld.global.v4.f32 {%0,%1}, [%2];", '"=f"(a), "=f"(b) : "l"(p)', 4),
        ("ld.acquire.gpu.global.u32 {%0,%1}, [%2];", '"=r"(a), "=r"(b) : "l"(p)', 1),
        ("st.global.v2.u32 [%0], %1;", ': "l"(p), "r"(a)', 2),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1}, [%2];", '"=r"(a), "=r"(b) : "r"(p)', 4),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1,%2};", ': "r"(p), "r"(a), "r"(b)', 1),
    ],
)
def test_a_load_or_store_with_other_than_its_registers_is_refused(text, operands, registers):
    with pytest.raises(RewriteError, match=f"has {registers} registers? of data"):
        asm(f'asm volatile("{text}" : {operands});')


def test_addresses_predicates_and_declared_registers():
    text = asm(
        'asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.cg.shared.global [%1], [%2+16], 16; }"'
        ' :: "r"(ok), "r"(s), "l"(g) : "memory");'
    )
    assert "bool sim_reg_p;" in text
    assert "if (sim_reg_p) ::sim::ptx::cp_async<::sim::CacheOperator::cg>((s), ::sim::ptx::at((g), 16), 16);" in text
    assert text.startswith("do { ") and text.endswith("} while (0);")


def test_special_registers_immediates_and_names():
    assert (
        asm('asm("mov.u32 %0, %%laneid;" : "=r"(l));') == "::sim::ptx::mov<uint32_t>((l), ::sim::ptx::sreg_laneid());"
    )
    assert "::sim::ptx::f32(0x3F800000u)" in asm('asm("fma.rn.f32 %0, 0f3F800000, %1, %1;" : "=f"(d) : "f"(a));')
    assert (
        asm('asm("mov.u32 %[to], %[from];" : [to] "=r"(a) : [from] "r"(b));') == "::sim::ptx::mov<uint32_t>((a), (b));"
    )
    assert asm('asm volatile("cp.async.wait_group %0;" :: "n"(N - 1));') == "::sim::ptx::cp_async_wait_group((N-1));"


def test_packing_and_unpacking():
    assert "pack<uint16_t, uint32_t>((o), (x), (y))" in asm('asm("mov.b32 %0, {%1, %2};" : "=r"(o) : "h"(x), "h"(y));')
    assert "unpack<uint16_t, uint32_t>((x), (y), (o))" in asm(
        'asm("mov.b32 {%0, %1}, %2;" : "=h"(x), "=h"(y) : "r"(o));'
    )


def test_tied_inputs_are_copied_first():
    text = asm('asm("mov.u32 %0, %0;" : "=r"(a) : "0"(b));')
    assert "(a) = (b); ::sim::ptx::mov<uint32_t>((a), (a));" in text


def test_an_empty_statement_is_a_compiler_barrier():
    assert asm('asm volatile("" ::: "memory");') == '__asm__ volatile("" ::: "memory");'


def test_several_instructions_are_one_statement():
    text = asm('if (x) asm volatile("cp.async.wait_group 0; cp.async.wait_group 1;"); else y();')
    assert text.startswith("if (x) do { ") and "while (0); else y();" in text


def test_labels_belong_to_their_statement():
    text = asm(
        'asm volatile("{\\n.reg .pred P1;\\nWAIT_%=:\\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n"'
        ' "@P1 bra DONE;\\nbra.uni WAIT_%=;\\nDONE:\\n}" :: "r"(bar), "r"(parity) : "memory");'
    )
    assert text == (
        "do { __label__ sim_label_DONE, sim_label_WAIT_0; {bool sim_reg_P1; sim_label_WAIT_0:; "
        "::sim::ptx::mbarrier_wait_parity<::sim::ptx::Shared, true>(sim_reg_P1, (bar), (parity)); "
        "if (sim_reg_P1) goto sim_label_DONE; goto sim_label_WAIT_0; sim_label_DONE:; }} while (0);"
    )


def test_coordinates_follow_the_address():
    operands = [_Operand("", "l", "(map)"), _Operand("", "r", "(x)"), _Operand("", "r", "(y)")]
    assert _Ptx("", operands)._values("[%0, {%1, %2}]") == ["(map)", "::sim::ptx::coordinates((x), (y))"]


def test_constants_become_template_arguments():
    assert "setmaxnreg<(40)>()" in asm('asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(40));')


@pytest.mark.parametrize(
    ("opcode", "advice"),
    [
        ("fence.proxy.tensormap::generic.release.gpu", "on the host"),
        ("tensormap.replace.tile.global_address.global.b1024.b64", "on the host"),
        ("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes", "tiled"),
        ("discard.global.L2", "Remove the instruction"),
        ("fence.proxy.alias", "Remove the instruction"),
    ],
)
def test_instructions_that_are_not_simulated_are_refused_with_advice(opcode, advice):
    with pytest.raises(RewriteError) as caught:
        asm(f'asm volatile("{opcode} [%0], 128;" :: "l"(p) : "memory");')
    assert opcode in caught.value.message and advice in caught.value.hint


def test_instructions_of_a_later_architecture_are_refused(monkeypatch):
    statement = 'asm volatile("mbarrier.try_wait.shared.b64 p, [%0], %1;" :: "r"(bar), "l"(state));'
    monkeypatch.setattr(ptx_asm, "simulated_architecture", lambda: 80)
    with pytest.raises(RewriteError) as caught:
        asm(statement)
    assert "needs sm_90" in caught.value.message and "sm_80" in caught.value.message


def test_instructions_that_one_architecture_has_are_refused_on_another(monkeypatch):
    monkeypatch.setattr(ptx_asm, "simulated_architecture", lambda: 100)
    for statement in ('asm volatile("wgmma.fence.sync.aligned;");', WGMMA):
        with pytest.raises(RewriteError) as caught:
            asm(statement)
        assert "sm_90a" in caught.value.message and "sm_100" in caught.value.message


WGMMA = (
    'asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 '
    '{%0, %1, %2, %3}, %4, %5, p, 1, -1, %7, 1; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) '
    ': "l"(a), "l"(b), "r"(add), "n"(ROWS));'
)


def test_wgmma_is_one_call():
    assert (
        "::sim::ptx::WgmmaForm<8, ::sim::Element::f32, ::sim::Element::bf16, ::sim::Element::bf16, false, 1, -1, "
        "(ROWS), 1>"
        "::from_shared(SIM_CALLER, sim_reg_p, (a), (b), (d[0]), (d[1]), (d[2]), (d[3]))"
    ) in asm(WGMMA)
    registers = WGMMA.replace("%4, %5, p, 1, -1, %7, 1", "{%4, %4, %4, %4}, %5, p, 1, -1, 1")
    assert "false, 1, -1, 0, 1>::from_registers(SIM_CALLER, sim_reg_p, (a), (a), (a), (a), (b), (d[0])," in asm(
        registers
    )


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ('asm("fma.rn.f128 %0, %1, %1, %1;" : "=d"(d) : "d"(a));', "fma.rn.f128"),
        ('asm("bra L1;");', "bra"),
        ('asm("L1: mov.u32 %0, 1; L1: mov.u32 %0, 2;" : "=r"(a));', "L1"),
        (
            'asm("cp.async.bulk.tensor.6d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, '
            '%3}], [%4];" :: "r"(a));',
            "cp.async.bulk.tensor.6d",
        ),
        ('asm("mov.u32 %0, other;" : "=r"(a));', "other"),
        ('asm("mov.u32 %0, %1;" : "=r"(a));', "%1"),
        ("asm(TEXT);", "plain string"),
    ],
)
def test_unknown_instructions_are_named(statement, says):
    with pytest.raises(RewriteError) as caught:
        asm("\n" + statement)
    assert says in caught.value.message and caught.value.line == 2


def test_similar_instructions_are_suggested():
    with pytest.raises(RewriteError) as caught:
        asm('asm("fma.rz.f32 %0, %0, %0, %0;" : "=f"(a));')
    assert "fma.rn.f32" in caught.value.hint
