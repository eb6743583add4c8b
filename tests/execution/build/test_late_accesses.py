"""Tests which accesses in assembly code get a check that is added after compilation. All other code stays unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.execution.submission_sandbox import late_accesses
from grader.execution.submission_sandbox.late_accesses import checked_parts, with_checks

HOOKED = "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write4@PLT\n"


def checks(assembly: str, kind: str = "store") -> list[str]:
    """Return the sizes of the accesses of a kind that got a check: the name of a check ends with the size."""
    before = assembly.split("\n")
    added = [line for line in with_checks(assembly).split("\n") if line not in before]
    return [line.rpartition(f"sim_{kind}_")[2].removesuffix("@PLT") for line in added if f"sim_{kind}_" in line]


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
        ("fstpl\t(%rbx)", "8"),
        ("movnti\t%eax, (%rbx)", "4"),
        ("movw\t%ax, (%rbx)", "2"),
        ("movss\t%xmm0, (%rbx)", "4"),
        ("movd\t%xmm0, (%rbx)", "4"),
        ("movsd\t%xmm0, (%rbx)", "8"),
        *((f"mov{half}\t%xmm0, (%rbx)", "8") for half in ("hps", "hpd", "lps", "lpd")),
        ("movq\t%xmm0, (%rbx)", "8"),
        ("fstpt\t(%rbx)", "10"),
        ("movl\t%eax, count(%rip)", "4"),  # may be a device variable
        ("lock cmpxchg16b\t(%rbx)", "16"),
        ("lock cmpxchgl\t%ecx, (%rbx)", "4"),
        ("xchgl\t%eax, (%rdx)", "4"),
        # accesses that lie, or may lie, outside the function's own frame
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
        "movl\t(%rbx), %eax",
        "cmpl\t$1, (%rbx)",
        "testb\t$1, (%rbx)",
        "call\t*8(%rax)",
        "pushq\t-8(%r10)",
        "leaq\t8(%rax,%rbx), %rcx",
        "fstp\t%st(1)",  # a register
        "faddp\t%st, %st(1)",
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
    for hook in ("write8", "unaligned_write4", "volatile_write4", "unaligned_volatile_write4"):
        assert checks(f"f:\n\tleaq\t0(%rbx), %rdi\n\tcall\t__tsan_{hook}\n\tcall\tg\n{store}\tret") == []
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
        (["movl\t%ecx, %eax"] * 40 + ["ret"], True),  # the search ends before `ret`: the flags may be used
        (["movl\t%ecx, %eax"], True),  # the code ends before the flags are overwritten
    ],
)
def test_flags_are_live(behind: list[str], kept: bool) -> None:
    lines = [line if line.endswith(":") else f"\t{line}" for line in behind]
    assert ("pushfq" in with_checks("f:\n\tmovl\t%eax, (%rcx)\n" + "\n".join(lines))) is kept


def test_instructions_that_read_and_write_flags() -> None:
    set_ = [f"{name}l" for name in ("add", "sub", "cmp", "test", "and", "or", "xor", "neg", "imul")]
    set_ += ["comiss", "ucomisd", "vcomiss", "vucomisd", "call", "ret"]
    leave = [*("movl", "leaq", "pushq", "popq", "cvtsi2ss", "sqrtss", "pxor"), *("notl", "cltq", "cqto", "stosq")]
    leave += ["unpcklps", "shufps"]
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
    assert with_checks(f"f:\n\t{store}\n\tret").endswith(f"{check}\t{store}\n\tret")


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
    late_accesses._kept.cache_clear()
    assert checks(f"f:\n\tleaq\t{place}, %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t%eax, {place}\n\tret") == []
    assert late_accesses._kept.cache_info().currsize == (5 if length < 200 else 3)


STORE = "\tmovl\t%eax, 8(%rbx)\n"
FUNCTION = "{0}:\n" + STORE + "\tret\n\t.size\t{0}, .-{0}\n"
TEXT = "\t.text\n" + FUNCTION.format("f") + FUNCTION.format("fü")
DEBUGGING = f'\t.section\t.debug_info,"",@progbits\n{STORE}\t.size\tf, 8\n{STORE}'


@pytest.mark.parametrize("length", [1, 2, 7, 16, 40, 1000])
@pytest.mark.parametrize(
    ("text", "stores"), [(TEXT + DEBUGGING, 2), (TEXT, 2), (DEBUGGING, 0), (STORE, 1), ("", 0)], ids=repr
)
def test_assembly_code_in_parts_is_checked_like_the_whole(text: str, stores: int, length: int) -> None:
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    assert "".join(checked_parts(parts)) == with_checks(text)
    assert with_checks(text).count("sim_store_4") == stores, "debug sections must stay unchanged"


def test_a_function_is_passed_on_as_soon_as_it_is_complete() -> None:
    taken = []

    def parts() -> Iterator[str]:
        for name in "fgh":
            taken.append(name)
            yield FUNCTION.format(name)

    for name, part in zip("fgh", checked_parts(parts())):
        assert (part, taken[-1]) == (with_checks(FUNCTION.format(name)), name)


def test_an_unknown_address_form_is_checked() -> None:
    assert "call\tsim_store_4@PLT" in with_checks("f:\n\tmovl\t%eax, a$b(%rbx)\n\tret")


@pytest.mark.parametrize(
    ("load", "bytes_"),
    [
        ("movl\t(%rbx), %eax", "4"),
        ("movq\t8(%rbx), %rax", "8"),
        ("movzbl\t(%rbx,%rax), %eax", "1"),
        ("movzwl\t(%rbx), %eax", "2"),
        ("movslq\t(%rbx), %rax", "4"),
        ("movsbq\t(%rbx), %rax", "1"),
        ("movsb\t(%rax), %ecx", "1"),
        ("movss\t(%rbx), %xmm0", "4"),
        ("movsd\t(%rbx), %xmm0", "8"),
        ("addss\t(%rbx), %xmm0", "4"),
        ("ucomisd\t(%rbx), %xmm0", "8"),
        ("cvtss2sd\t(%rbx), %xmm0", "4"),
        ("cvttss2siq\t(%rbx), %rax", "4"),
        ("cvttsd2sil\t(%rbx), %eax", "8"),
        ("cvtsi2ssq\t(%rbx), %xmm0", "8"),
        ("cvtsi2sdl\t(%rbx), %xmm0", "4"),
        ("cvtps2pd\t(%rbx), %xmm0", "8"),
        ("movdqu\t(%rbx), %xmm0", "16"),
        ("movhps\t(%rbx), %xmm0", "8"),
        ("movd\t(%rbx), %xmm0", "4"),
        ("pinsrw\t$2, (%rbx), %xmm0", "2"),
        ("pxor\t(%rbx), %xmm0", "16"),
        ("flds\t(%rbx)", "4"),
        ("fldt\t(%rbx)", "10"),
        ("fildll\t(%rbx)", "8"),
        ("filds\t(%rbx)", "2"),
        ("fldcw\t(%rbx)", "2"),
        ("ldmxcsr\t(%rbx)", "4"),
        ("cmpl\t$1, (%rbx)", "4"),
        ("cmpb\t(%rbx), %al", "1"),
        ("testb\t$1, (%rbx)", "1"),
        ("idivl\t(%rbx)", "4"),
        ("imulq\t(%rbx)", "8"),
        ("imull\t$3, (%rbx), %eax", "4"),
        ("addl\t(%rbx), %eax", "4"),
        ("addl\t$1, (%rbx)", "4"),
        ("sarl\t%cl, (%rbx)", "4"),
        ("incq\t(%rbx)", "8"),
        ("lock addl\t$1, (%rbx)", "4"),
        ("lock cmpxchgl\t%ecx, (%rbx)", "4"),
        ("xchgl\t%eax, (%rbx)", "4"),
        ("cmovl\t(%rbx), %eax", "4"),
        ("pushq\t-8(%r10)", "8"),
        ("call\t*8(%rax)", "8"),
        ("rep movsq", "range"),
        ("lodsb", "range"),
        ("repz cmpsb", "range"),
        ("movl\t-4(%rbp,%rax,4), %eax", "4"),
        ("movl\t-4097(%rbp), %eax", "4"),
        ("movl\t4096(%rbp), %eax", "4"),
        ("movl\t128(%rsp), %eax", "4"),
        ("movl\ttable(%rip), %eax", "4"),
    ],
)
def test_a_load_is_checked(load: str, bytes_: str) -> None:
    assert checks(f"f:\n\t{load}\n\tret", "load")[:1] == [bytes_]


@pytest.mark.parametrize(
    "line",
    [
        "movl\t-4(%rbp), %eax",
        "movl\t16(%rbp), %eax",  # an argument
        "movl\t8(%rsp), %eax",
        "movss\t.LC0(%rip), %xmm0",
        "movq\tg@GOTPCREL(%rip), %rax",
        "movq\tx@gottpoff(%rip), %rax",
        "movq\t%fs:0, %rax",
        "leaq\t8(%rax,%rbx), %rcx",
        "nopw\t(%rbx)",
        "prefetcht0\t(%rbx)",
        "movl\t%eax, (%rbx)",
        "movups\t%xmm0, (%rbx)",
        "sete\t(%rbx)",
        "fstps\t(%rbx)",
        "cvtss2si\t%xmm0, %eax",
        "rep stosq",
        "ret",
    ],
)
def test_an_instruction_that_loads_nothing_or_from_a_fixed_place_is_not(line: str) -> None:
    assert checks(f"f:\n\t{line}\n\tret", "load") == []


def test_a_read_of_the_own_frame_needs_no_call() -> None:
    text = with_checks("f:\n\tmovl\t-80(%rbp,%rax,4), %ecx\n\tret")
    assert text == (
        "f:\n\tpushq\t%r11\n\tleaq\t-80(%rbp,%rax,4), %r11\n\tcmpq\t%rsp, %r11\n\tjb\t7f\n"
        "\tcmpq\t%rbp, %r11\n\tjb\t8f\n7:\tcall\tsim_load_4@PLT\n8:\n\tpopq\t%r11\n"
        "\tmovl\t-80(%rbp,%rax,4), %ecx\n\tret"
    )


READ = "\tcall\t__tsan_read4@PLT\n"


@pytest.mark.parametrize(
    "body",
    [
        f"\tmovq\t%rbx, %rdi\n{READ}\tmovl\t(%rbx), %eax",
        f"\tleaq\t8(%rbx), %rax\n\tmovq\t%rax, %rdi\n{READ}\tmovl\t8(%rbx), %eax",
        f"\tmovq\t%rbx, %rdi\n{READ}\tmovq\t%rbx, %rax\n\tmovl\t(%rax), %eax",
        f"\tleaq\t(%rbx,%r12,4), %r13\n\tmovq\t%r13, %rdi\n{READ}\tmovl\t(%rbx,%r12,4), %eax",
        f"\tleaq\t4(%rbx), %rdi\n{READ}\taddq\t$4, %rbx\n\tmovl\t(%rbx), %eax",
        "\tmovl\t$24, %esi\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read_range@PLT\n\tmovdqu\t(%rbx), %xmm0\n"
        "\tmovq\t16(%rbx), %rax",
        "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_vptr_read@PLT\n\tmovq\t(%rbx), %rax",
        f"\tleaq\ttable(%rip), %rdi\n{READ}\tmovl\ttable(%rip), %eax",
        "\tleaq\t-80(%rbp), %r12\n\tmovl\t8(%r12), %eax",
        f"\tmovq\t-24(%rbp), %rdi\n{READ}\tmovss\t%xmm0, -64(%rbp)\n\tmovq\t-24(%rbp), %rax\n\tmovl\t(%rax), %eax",
        f"\tmovq\t%rax, -24(%rbp)\n\tmovq\t%rax, %rdi\n{READ}\tmovq\t-24(%rbp), %rax\n\tmovl\t(%rax), %eax",
    ],
)
def test_a_load_behind_the_hook_of_its_address_needs_no_check(body: str) -> None:
    assert checks(f"f:\n{body}\n\tret", "load") == []


@pytest.mark.parametrize(
    ("body", "bytes_"),
    [
        (f"\tmovq\t%rbx, %rdi\n{READ}\tmovq\t(%rbx), %rax", "8"),  # more bytes
        (f"\tmovq\t%rbx, %rdi\n{READ}.L3:\n\tmovl\t(%rbx), %eax", "4"),  # a jump to the label may skip the hook
        (f"\tmovq\t%rbx, %rdi\n{READ}\taddq\t%rax, %rbx\n\tmovl\t(%rbx), %eax", "4"),
        (f"\tmovq\t%rcx, %rdi\n{READ}\tmovl\t(%rcx), %eax", "4"),  # calls change rcx
        ("\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write4@PLT\n\tmovl\t(%rbx), %eax", "4"),
        ("\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read_range@PLT\n\tmovl\t(%rbx), %eax", "4"),  # of unknown length
        (f"\tmovq\t%rax, %rdi\n\tidivl\t%ecx\n{READ}\tmovq\t%rdi, %rbx\n\tmovl\t(%rbx), %eax", "4"),
        ("\tmovq\t%rax, %rbx\n\tcqto\n\tmovl\t(%rax), %ecx\n\tmovl\t(%rbx), %ecx", "4"),
        ("\tleaq\t-80(%rbp), %r12\n\taddq\t%rax, %r12\n\tmovl\t(%r12), %eax", "4"),
        # The address is a value in the frame, which the code between the hook and the load may change.
        *(
            (f"\tmovq\t-24(%rbp), %rdi\n{READ}\t{between}\n\tmovq\t-24(%rbp), %rax\n\tmovl\t(%rax), %eax", "4")
            for between in (
                "movl\t%ecx, -20(%rbp)",
                "movups\t%xmm0, -32(%rbp)",
                "movl\t%ecx, (%rbx)",
                "movl\t%ecx, -80(%rbp,%rbx)",
                "addq\t$8, -24(%rbp)",
                "call\tf@PLT",
                "rep stosq",
            )
        ),
    ],
)
def test_a_load_from_another_address_is_checked(body: str, bytes_: str) -> None:
    assert checks(f"f:\n{body}\n\tret", "load")[-1:] == [bytes_]


def test_functions_of_the_simulators_headers_are_left_alone() -> None:
    load = "\tmovl\t(%rbx), %eax\n\tmovl\t%eax, (%rcx)\n\tret"
    for name in ("_ZZN3sim6launchIJEEvvENKUlvE_clEv", "_ZN3sim10LocalArrayIA8_fE4markEPS2_PKc", "grader_call_twice"):
        assert with_checks(f"{name}:\n.L3:\n{load}") == f"{name}:\n.L3:\n{load}"
        assert "sim_load_4" in with_checks(f"{name}:\n{load}\nx{name}:\n{load}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("subq\t$128, %rsp", ["movl\t$16, %ecx"]),
        ("subq\t$4096, %rsp", ["movl\t$512, %ecx"]),
        ("subq\t%rax, %rsp", ["movq\t%rax, %rcx", "shrq\t$3, %rcx"]),  # alloca
    ],
)
def test_a_large_frame_is_filled(line: str, words: list[str]) -> None:
    found = [text.strip() for text in with_checks(f"f:\n\t{line}\n\tret").split("\n")]
    begin = found.index(line)
    assert found[begin + 4 : begin + 4 + len(words)] == words
    assert "rep stosq" in found


@pytest.mark.parametrize("line", ["subq\t$120, %rsp", "addq\t$128, %rsp", "subq\t$128, %rax", "subq\t%rsp, %rax"])
def test_a_small_frame_is_not_filled(line: str) -> None:
    assert with_checks(f"f:\n\t{line}\n\tret") == f"f:\n\t{line}\n\tret"
