"""Which stores of an assembly get a check, and that what surrounds them stays as it was."""

from __future__ import annotations

import pytest

from grader.building.stores import with_checks

HOOKED = "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write4@PLT\n"


def checks(assembly: str) -> list[str]:
    """What was added, the call's last word of each."""
    before = assembly.split("\n")
    added = [line for line in with_checks(assembly).split("\n") if line not in before]
    return [line.rpartition("sim_store_")[2].removesuffix("@PLT") for line in added if "sim_store_" in line]


@pytest.mark.parametrize(
    ("store", "bytes_"),
    [
        ("movl\t%eax, (%rbx)", "4"),
        ("movups\t%xmm0, 16(%rbx)", "16"),
        ("movb\t$1, -80(%rbp,%rax)", "1"),
        ("addq\t$1, 8(%rax)", "8"),
        ("movl\t%eax, 8(%rbp)", "4"),
        ("movl\t%eax, -70000(%rbp)", "4"),
        ("movq\t%rax, 512(%rsp)", "8"),
        ("lock addl\t$1, (%rdx)", "4"),
        ("xchgl\t(%rdx), %eax", "4"),
        ("sete\t(%rdx)", "1"),
        ("rep stosq", "range"),
    ],
)
def test_a_store_is_checked(store: str, bytes_: str) -> None:
    assert checks(f"f:\n\t{store}\n\tret") == [bytes_]


@pytest.mark.parametrize(
    "line",
    [
        "movl\t%eax, -4(%rbp)",
        "movl\t%eax, 8(%rsp)",
        "movl\t%eax, count(%rip)",
        "movl\t(%rbx), %eax",
        "cmpl\t$1, (%rbx)",
        "testb\t$1, (%rbx)",
        "call\t*8(%rax)",
        "pushq\t-8(%r10)",
        "leaq\t8(%rax,%rbx), %rcx",
        "ret",
    ],
)
def test_what_stores_nothing_or_at_a_fixed_place_is_not(line: str) -> None:
    assert checks(f"f:\n\t{line}\n\tret") == []


def test_a_store_behind_the_check_of_its_address_needs_no_other() -> None:
    store = "\tmovl\t%eax, (%rbx)\n"
    assert checks(f"f:\n{HOOKED}{store}\tret") == []
    assert checks(f"f:\n{HOOKED}\t.loc 1 2 3\n.LVL3:\n{store}\tret") == []
    assert checks("f:\n\tleaq\t8(%rbx), %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, 8(%rbx)\n\tret") == []


@pytest.mark.parametrize(
    "between",
    ["\taddq\t$8, %rbx\n", "\tpopq\t%rbx\n", ".L3:\n", "\txchgq\t%rbx, %rcx\n", "\tmovl\t%ecx, %ebx\n"],
)
def test_not_when_the_address_may_be_another_by_then(between: str) -> None:
    assert checks(f"f:\n{HOOKED}{between}\tmovl\t%eax, (%rbx)\n\tret") == ["4"]


def test_nor_when_more_bytes_are_written_or_the_call_has_changed_the_register() -> None:
    assert checks(f"f:\n{HOOKED}\tmovq\t%rax, (%rbx)\n\tret") == ["8"]
    assert checks("f:\n\tmovq\t%rcx, %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, (%rcx)\n\tret") == ["4"]
    assert checks("f:\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read4@PLT\n\tmovl\t%eax, (%rbx)\n\tret") == ["4"]


def test_flags_that_are_asked_for_later_are_kept() -> None:
    asked = with_checks("f:\n\tcmpl\t$1, %eax\n\tmovl\t%eax, (%rcx)\n\tjne\t.L2\n\tret")
    assert "\tpushfq\n" in asked and "\tpopfq\n" in asked
    assert "pushfq" not in with_checks("f:\n\tmovl\t%eax, (%rcx)\n\taddl\t$1, %eax\n\tjne\t.L2\n\tret")


def test_a_place_that_counts_from_the_top_of_the_stack_is_counted_from_there() -> None:
    assert "\tleaq\t8+512(%rsp), %r11\n" in with_checks("f:\n\tmovl\t%eax, 512(%rsp)\n\tret")


def test_where_exceptions_land_no_call_may_lead() -> None:
    text = "f:\n.LFB0:\n\t.cfi_startproc\n\tendbr64\n\tcall\tg@PLT\n.L7:\n\t.loc 1 2 3\n.LVL4:\n\tendbr64\n\tret\ng:\n.LFB1:\n\tendbr64\n\tret"
    assert with_checks(text) == text.replace(".LVL4:\n\tendbr64\n", ".LVL4:\n")


def test_all_else_stays() -> None:
    text = (
        'f:\n\t.loc 1 2 3\n\t.string "movl (%rax)"\n\tmovl\t%eax, %ebx\n\t.section\t.debug_info\n\tmovl\t%eax, (%rbx)\n'
    )
    assert with_checks(text) == text
