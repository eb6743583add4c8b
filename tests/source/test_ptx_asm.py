"""Inline PTX: instructions become calls, operands keep their order."""

import pytest

from grader.source.rewrite import RewriteError, rewrite


def asm(statement: str) -> str:
    head = "__device__ void f() {"
    text = rewrite(head + statement + "}").text  # the rewriter adds to the head: compilers must inline f
    return text[text.index("{") + 1 : -1]


def test_operands_are_numbered_over_outputs_and_inputs():
    assert asm('asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a[0]), "f"(b), "f"(c + 1));') == (
        "::sim::ptx::fma_f32((d), (a[0]), (b), (c+1));"
    )


def test_vectors_of_registers_are_flattened():
    text = asm(
        'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "\n"{%0,%1}, {%2}, {%3}, {%0,%1};\\n"'
        ' : "+f"(d0), "+f"(d1) : "r"(a), "r"(b));'
    )
    assert "f32_f16_f16>((d0), (d1), (a), (b), (d0), (d1))" in text and text.count("\n") == 1


def test_addresses_predicates_and_declared_registers():
    text = asm(
        'asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.cg.shared.global [%1], [%2+16], 16; }"'
        ' :: "r"(ok), "r"(s), "l"(g) : "memory");'
    )
    assert "bool sim_reg_p;" in text
    assert "if (sim_reg_p) ::sim::ptx::cp_async((s), ::sim::ptx::at((g), 16), 16);" in text
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


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ('asm("fma.rn.f128 %0, %1, %1, %1;" : "=d"(d) : "d"(a));', "fma.rn.f128"),
        ('asm("bra L1;");', "bra"),
        ('asm("L1: mov.u32 %0, 1;" : "=r"(a));', "L1:"),
        ('asm("mov.u32 %0, other;" : "=r"(a));', "other"),
        ('asm("mov.u32 %0, %1;" : "=r"(a));', "%1"),
        ("asm(TEXT);", "plain string"),
    ],
)
def test_what_is_not_known_is_named(statement, says):
    with pytest.raises(RewriteError) as caught:
        asm("\n" + statement)
    assert says in caught.value.message and caught.value.line == 2


def test_near_instructions_are_suggested():
    with pytest.raises(RewriteError) as caught:
        asm('asm("fma.rz.f32 %0, %0, %0, %0;" : "=f"(a));')
    assert "fma.rn.f32" in caught.value.hint
