"""Selection of the stores in assembly code that get a check; all other code stays unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.execution.submission_sandbox import store_checks
from grader.execution.submission_sandbox.store_checks import checked_parts, with_checks

HOOKED = "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write4@PLT\n"


def checks(assembly: str) -> list[str]:
    """Return the added checks, each by the last word of its call."""
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
        ("rep; movsl", "range"),
        ("movsb", "range"),
        ("movntdq\t%xmm0, (%rbx)", "16"),
        ("fstpl\t(%rbx)", "16"),
        ("movnti\t%eax, (%rbx)", "16"),  # an upper bound
        ("movw\t%ax, (%rbx)", "2"),
        ("movss\t%xmm0, (%rbx)", "4"),
        ("movd\t%xmm0, (%rbx)", "4"),
        ("movsd\t%xmm0, (%rbx)", "8"),
        *((f"mov{half}\t%xmm0, (%rbx)", "8") for half in ("hps", "hpd", "lps", "lpd")),
        ("movq\t%xmm0, (%rbx)", "8"),
        ("fstpt\t(%rbx)", "16"),
        ("lock cmpxchg16b\t(%rbx)", "16"),
        ("lock cmpxchgl\t%ecx, (%rbx)", "4"),
        ("xchgl\t%eax, (%rdx)", "4"),
        # outside the function's own frame, or possibly outside it
        ("movl\t%eax, -4097(%rbp)", "4"),
        ("movl\t%eax, 0(%rbp)", "4"),
        ("movl\t%eax, -8(%rsp)", "4"),
        ("movl\t%eax, 128(%rsp)", "4"),
        ("movl\t%eax, 8(%rsp,%rcx,4)", "4"),
        ("movl\t%eax, table(%rbx)", "4"),
        ("movl\t%eax, %fs:(%rbx)", "4"),
        ("movl\t%eax, %fs:8(%rsp)", "4"),
    ],
)
def test_a_store_is_checked(store: str, bytes_: str) -> None:
    assert checks(f"f:\n\t{store}\n\tret") == [bytes_]


@pytest.mark.parametrize(
    "line",
    [
        "movl\t%eax, -4(%rbp)",
        "movl\t%eax, -4096(%rbp)",
        "movl\t%eax, (%rsp)",
        "movl\t%eax, 8(%rsp)",
        "movl\t%eax, 127(%rsp)",
        "movsb\t(%rax), %ecx",  # sign-extends
        "prefetcht0\t(%rbx)",
        "idivl\t(%rbx)",
        "mull\t(%rbx)",
        "imulq\t(%rbx)",
        "flds\t(%rbx)",
        "fildl\t(%rbx)",
        "fadds\t(%rbx)",
        "fsubs\t(%rbx)",
        "fmuls\t(%rbx)",
        "fidivl\t(%rbx)",
        "fcoml\t(%rbx)",
        "btl\t%eax, (%rbx)",
        "nopw\t(%rbx)",
        "jmp\t*(%rbx)",
        "notrack jmp\t*(%rbx)",
        "ldmxcsr\t(%rbx)",
        "fldcw\t(%rbx)",
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
def test_other_instructions_and_stores_to_fixed_places_are_not_checked(line: str) -> None:
    assert checks(f"f:\n\t{line}\n\tret") == []


def test_a_store_after_a_check_of_its_address_needs_no_second_check() -> None:
    store = "\tmovl\t%eax, (%rbx)\n"
    assert checks(f"f:\n{HOOKED}{store}\tret") == []
    assert checks(f"f:\n{HOOKED}\t.loc 1 2 3\n.LVL3:\n{store}\tret") == []
    assert checks("f:\n\tleaq\t8(%rbx), %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, 8(%rbx)\n\tret") == []
    for hook in (
        "__tsan_write8",
        "__tsan_unaligned_write4",
        "__tsan_volatile_write4",
        "__tsan_unaligned_volatile_write4",
    ):
        assert checks(f"f:\n\tleaq\t0(%rbx), %rdi\n\tcall\t{hook}\n\tcall\tg\n{store}\tret") == []
    later = HOOKED.replace("\tcall", "\tmovl\t$1, %esi\n\tcall")
    assert checks(f"f:\n{later}{store}\tret") == []
    twice = HOOKED.replace("write4", "write8") + HOOKED
    assert checks(f"f:\n{twice}\tmovq\t%rax, (%rbx)\n\tret") == [], "the larger check covers both stores"


@pytest.mark.parametrize(
    "between",
    ["\taddq\t$8, %rbx\n", "\tpopq\t%rbx\n", ".L3:\n", "\txchgq\t%rbx, %rcx\n", "\tmovl\t%ecx, %ebx\n"],
)
def test_unless_the_address_may_have_changed(between: str) -> None:
    assert checks(f"f:\n{HOOKED}{between}\tmovl\t%eax, (%rbx)\n\tret") == ["4"]


def test_unless_more_bytes_are_written_or_the_call_changed_the_register() -> None:
    assert checks(f"f:\n{HOOKED}\tmovq\t%rax, (%rbx)\n\tret") == ["8"]
    assert checks("f:\n\tmovq\t%rcx, %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, (%rcx)\n\tret") == ["4"]
    assert checks("f:\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read4@PLT\n\tmovl\t%eax, (%rbx)\n\tret") == ["4"]


@pytest.mark.parametrize(
    "between",
    ["addq\t$4, %rdi", "addq\t%rbx, %rdi", "addq\t$4, %rbx", "popq\t%rdi", "call\tg@PLT", "xchgq\t%rdi, %rax"],
)
def test_unless_the_hook_got_another_address(between: str) -> None:
    assert checks(f"f:\n\tmovq\t%rbx, %rdi\n\t{between}\n\tcall\t__tsan_write4\n\tmovl\t%eax, (%rbx)\n\tret") == ["4"]
    for other in ("movq\t%rbx, %rcx", "movq\t(%rbx), %rdi", "addq\t(%rbx), %rdi", "leaq\t(%rbx), %rcx"):
        assert checks(f"f:\n\t{other}\n\tcall\t__tsan_write4\n\tmovl\t%eax, (%rbx)\n\tret") == ["4"]
    assert checks("f:\n\tleaq\t8(%rdi), %rdi\n\tcall\t__tsan_write4\n\tmovl\t%eax, 8(%rdi)\n\tret") == ["4"]


def test_flags_that_are_read_later_are_preserved() -> None:
    asked = with_checks("f:\n\tcmpl\t$1, %eax\n\tmovl\t%eax, (%rcx)\n\tjne\t.L2\n\tret")
    assert "\tpushfq\n" in asked and "\tpopfq\n" in asked
    assert "pushfq" not in with_checks("f:\n\tmovl\t%eax, (%rcx)\n\taddl\t$1, %eax\n\tjne\t.L2\n\tret")


@pytest.mark.parametrize(
    ("behind", "kept"),
    [
        (["jne\t.L2"], True),
        ([".L2:", "ret"], True),  # another branch jumps to this label
        ([".LVL2:", "ret"], False),
        (["addl\t$1, %eax", "jne\t.L2"], False),
        (["cmpq\t%rax, %rbx"], False),
        (["ucomiss\t%xmm0, %xmm1"], False),
        (["imull\t%eax, %ebx"], False),
        (["call\tg@PLT"], False),
        (["movl\t%ecx, %eax", "leaq\t8(%rax), %rbx", "addss\t%xmm0, %xmm1", "cltq", "ret"], False),
        (["movl\t%ecx, %eax", "adcl\t$0, %eax", "ret"], True),
        (["sete\t%al", "ret"], True),
        ([".loc 1 2 3", "ret"], False),
        (["movl\t%ecx, %eax"] * 38 + ["ret"], False),
        (["movl\t%ecx, %eax"] * 40 + ["ret"], True),  # beyond the distance that is searched
        (["movl\t%ecx, %eax"], True),  # at the end of the text
    ],
)
def test_flags_are_live(behind: list[str], kept: bool) -> None:
    lines = [line if line.endswith(":") else f"\t{line}" for line in behind]
    assert ("pushfq" in with_checks("f:\n\tmovl\t%eax, (%rcx)\n" + "\n".join(lines))) is kept


def test_instructions_that_read_and_write_flags() -> None:
    set_ = [f"{name}l" for name in ("add", "sub", "cmp", "test", "and", "or", "xor", "neg", "imul")]
    set_ += ["comiss", "ucomisd", "vcomiss", "vucomisd", "call", "ret"]
    leave = [
        "movl",
        "leaq",
        "pushq",
        "popq",
        "cvtsi2ss",
        "sqrtss",
        "pxor",
        "notl",
        "cltq",
        "cqto",
        "stosq",
        "unpcklps",
        "shufps",
    ]
    leave += [f"{name}{of}" for name in ("add", "sub", "mul", "div", "max", "min") for of in ("ss", "pd")]
    leave += [f"{name}ps" for name in ("and", "or", "xor", "andn")]
    ask = ["je", "setne", "cmovl", "adcl", "sbbq", "shll", "incl", "lahf"]
    for names, behind, kept in (
        (set_, "", False),
        (leave, "", True),
        (leave, "\n\tret", False),
        (ask, "\n\tret", True),
    ):
        for name in names:
            assert ("pushfq" in with_checks(f"f:\n\tmovl\t%eax, (%rcx)\n\t{name}{behind}")) is kept, name


@pytest.mark.parametrize(
    ("store", "bytes_"),
    [("rep stosq", "leaq\t(,%rcx,8), %r10"), ("rep movsw", "leaq\t(,%rcx,2), %r10"), ("movsb", "movl\t$1, %r10d")],
)
def test_how_many_bytes_a_string_instruction_writes(store: str, bytes_: str) -> None:
    saved = f"\tpushq\t%r11\n\tpushq\t%r10\n\tmovq\t%rdi, %r11\n\t{bytes_}\n"
    check = f"{saved}\tcall\tsim_store_range@PLT\n\tpopq\t%r10\n\tpopq\t%r11\n"
    assert with_checks(f"f:\n\t{store}\n\tret") == f"f:\n{check}\t{store}\n\tret"


def test_the_code_of_a_check() -> None:
    assert with_checks("f:\n\tmovl\t%eax, 8(%rbx)\n\tret") == (
        "f:\n\tpushq\t%r11\n\tleaq\t8(%rbx), %r11\n\tcall\tsim_store_4@PLT\n\tpopq\t%r11\n\tmovl\t%eax, 8(%rbx)\n\tret"
    )


def test_addresses_relative_to_the_stack_pointer_are_adjusted() -> None:
    assert "\tleaq\t8+512(%rsp), %r11\n" in with_checks("f:\n\tmovl\t%eax, 512(%rsp)\n\tret")
    assert "\tleaq\t16+512(%rsp), %r11\n" in with_checks("f:\n\tmovl\t%eax, 512(%rsp)\n\tjne\t.L2")


def test_landing_pads_are_not_valid_call_targets() -> None:
    text = (
        "f:\n.LFB0:\n\t.cfi_startproc\n\tendbr64\n\tcall\tg@PLT\n.L7:\n\t.loc 1 2 "
        "3\n.LVL4:\n\tendbr64\n\tret\ng:\n.LFB1:\n\tendbr64\n\tret"
    )
    assert with_checks(text) == text.replace(".LVL4:\n\tendbr64\n", ".LVL4:\n")


def test_other_lines_are_unchanged() -> None:
    text = (
        'f:\n\t.loc 1 2 3\n\t.string "movl (%rax)"\n\tmovl\t%eax, %ebx\n\t.section\t.debug_info\n\tmovl\t%eax, (%rbx)\n'
    )
    assert with_checks(text) == text


@pytest.mark.parametrize("length", [100, 100_000])
def test_long_lines_are_checked_and_not_remembered(length: int) -> None:
    place = f"{'a' * length}(%rbx)"
    store_checks._kept.cache_clear()
    text = with_checks(f"f:\n\tleaq\t{place}, %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, {place}\n\tret")
    assert text.count("call\tsim_store_4@PLT") == (length > 200), "a long operand is not matched with g++'s own check"
    assert store_checks._kept.cache_info().currsize == (5 if length < 200 else 3)


FUNCTION = "{0}:\n\tmovl\t%eax, 8(%rbx)\n\tret\n\t.size\t{0}, .-{0}\n"
DEBUGGING = '\t.section\t.debug_info,"",@progbits\n\tmovl\t%eax, 8(%rbx)\n\t.size\tf, 8\n'


@pytest.mark.parametrize("length", [1, 2, 7, 16, 40, 1000])
def test_assembly_code_in_parts_is_checked_like_the_whole(length: int) -> None:
    text = "\t.text\n" + FUNCTION.format("f") + FUNCTION.format("g") + DEBUGGING + "\tmovl\t%eax, 8(%rbx)\n"
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    assert "".join(checked_parts(parts)) == with_checks(text)
    assert with_checks(text).count("sim_store_4") == 2, "debug sections must stay unchanged"


def test_a_function_is_passed_on_as_soon_as_it_is_complete() -> None:
    taken = []

    def parts() -> Iterator[str]:
        for name in "fgh":
            taken.append(name)
            yield FUNCTION.format(name)

    for name, part in zip("fgh", checked_parts(parts())):
        assert (part, taken[-1]) == (with_checks(FUNCTION.format(name)), name)


@pytest.mark.parametrize("line", ["ldmxcsr\t8(%rbx)", "notrack jmp\t*8(%rbx)", "fldcw\t8(%rbx)"])
def test_reads_are_not_checked(line: str) -> None:
    assert with_checks(f"f:\n\t{line}\n\tret") == f"f:\n\t{line}\n\tret"


def test_an_unknown_address_form_is_checked() -> None:
    assert "call\tsim_store_4@PLT" in with_checks("f:\n\tmovl\t%eax, a$b(%rbx)\n\tret")
