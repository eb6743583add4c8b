"""Translates inline PTX, ``asm volatile("mma.sync... ;" : outputs : inputs)``, to calls of functions of ``sim::ptx``.

Each PTX instruction becomes a call of one function, which :mod:`grader.frontend.ptx_instructions` selects; the operands
keep their order, but loads and mma.sync take their results last, because the number of results varies. Registers that
the PTX text declares become variables, guard predicates become ``if`` statements, and labels become C++ labels. An
instruction that is not in the tables is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from grader.frontend.ptx_instructions import (
    EXAMPLES,
    SPECIAL_REGISTERS,
    TYPES,
    TensorAccess,
    WgmmaForm,
    block_scaled_product,
    first_architecture,
    function_for,
    instead_of,
    mma_registers,
    only_architecture,
    simulated_architecture,
    tensor_access,
    tensor_product,
    wgmma_form,
)
from grader.frontend.tokens import DEPTH, Token, closing, join, split_commas

_REGISTER_TYPES = TYPES | {"pred": "bool", "f16": "uint16_t", "f16x2": "uint32_t"}
_MOST_REGISTERS = 255
"""The maximum number of registers that one asm statement may declare. A GPU thread has at most 255 registers."""
_MOST_TEXT = 1 << 18
"""The maximum number of characters of C++ into which one asm statement is translated."""
_COMMENT = re.compile(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")


class UnknownPtx(Exception):
    """An error in an asm statement, or an instruction that the simulator does not support."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class _Operand:
    name: str  # the name of an operand that is written as [name] "r"(x); otherwise empty
    constraint: str
    expression: str


def translate(tokens: Sequence[Token], architecture: int | None = None) -> str:
    """Translate the tokens between the parentheses of an asm statement to a C++ expression or do-while statement.

    ``architecture`` is the device's compute capability times ten; None for the default device.
    """
    written, *operands = _sections(tokens)
    text = _text(written)
    outputs, inputs = ([_operand(part) for part in split_commas(some)] for some in [*operands, [], []][:2])
    statements = [
        f"{outputs[int(o.constraint)].expression} = {o.expression}"
        for o in inputs
        if re.fullmatch(r"[0-9]{1,4}", o.constraint) and int(o.constraint) < len(outputs)
    ]
    ptx = _Ptx(text, [*outputs, *inputs], architecture)
    statements += ptx.run()
    if ptx.labels:
        statements.insert(0, "__label__ " + ", ".join(sorted(ptx.labels)))  # GNU C: the labels are local to this block
    if not statements:
        return '__asm__ volatile("" ::: "memory")'
    if len(statements) == 1 and "{" not in statements[0] and not statements[0].startswith("if "):
        return statements[0]
    lines = "".join(s if s in ("{", "}") else s + "; " for s in statements)
    return f"do {{ {lines}}} while (0)"


def _sections(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split an asm statement at its colons: the text, the outputs, the inputs, the clobbers."""
    sections: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += DEPTH.get(token.text, 0)
        if depth == 0 and token.text in (":", "::"):
            sections.extend([] for _ in token.text)
        else:
            sections[-1].append(token)
    return sections


def _text(tokens: Sequence[Token]) -> str:
    """Return the PTX text of adjacent string literals."""
    if not tokens or any(t.kind not in ("string", "raw") for t in tokens):
        raise UnknownPtx(
            "the text of this asm statement is not a plain string",
            "Write the instruction out, or define its macros above it, once, outside of #if.",
        )
    parts = []
    for token in tokens:
        if token.kind == "raw":
            parts.append(re.sub(r'^[^(]*\((.*)\)[^)]*"$', r"\1", token.text, flags=re.DOTALL))
        else:
            inner = token.text[token.text.index('"') + 1 : -1].replace("\\\n", "")
            parts.append(re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), inner))
    return "".join(parts)


def _operand(tokens: Sequence[Token]) -> _Operand:
    name, k = "", 0
    if tokens[0].text == "[" and len(tokens) > 3:
        name, k = tokens[1].text, 3
    close = closing(tokens, k + 1) if k + 1 < len(tokens) else None
    if tokens[k].kind != "string" or close is None:
        raise UnknownPtx(f"the operand {join(tokens)} of this asm statement cannot be read")
    constraint = tokens[k].text.strip('"').lstrip("=+&")
    return _Operand(name, constraint, f"({join(tokens[k + 2 : close])})")


_OPCODE = re.compile(r"([^\s{\[]*)\s*(.*)", re.DOTALL)
"""A pattern for an opcode and its operands. A blank between them is optional: ``mma.sync...{%0, %1}``."""


class _Ptx:
    """Translates the PTX text of one asm statement."""

    def __init__(self, text: str, operands: Sequence[_Operand], architecture: int | None = None) -> None:
        self.architecture = architecture or simulated_architecture()
        text = text.replace("%=", "0")  # "%=" makes labels unique, which is not necessary here
        self.text = _COMMENT.sub(" ", text)
        self.operands = operands
        self.named = {operand.name: operand for operand in reversed(operands)}
        self.length = 0
        self.registers: set[str] = set()
        self.labels: set[str] = set()
        self.targets: dict[str, str] = {}

    def run(self) -> list[str]:
        out: list[str] = []
        position = 0
        text = self.text
        while position < len(text):
            if text[position].isspace() or text[position] == ";":
                position += 1
            elif text[position] in "{}":
                out.append(text[position])
                position += 1
            elif match := _LABEL.match(text, position):
                out.append(self._define_label(match[1]))
                position = match.end()
            else:
                end = text.find(";", position)
                end = len(text) if end < 0 else end
                out.extend(self._statement(" ".join(text[position:end].split())))
                position = end + 1
        if out.count("{") != out.count("}"):
            raise UnknownPtx("the braces in this asm statement do not match")
        for label, target in self.targets.items():
            if label not in self.labels:
                raise UnknownPtx(f"inline PTX branches to {target}, which is not a label of this asm statement")
        return [] if all(s in "{}" for s in out) else out

    def _define_label(self, name: str) -> str:
        label = _label(name)
        if label in self.labels:
            raise UnknownPtx(f"inline PTX defines the label {name} twice")
        self.labels.add(label)
        return f"{label}:"

    def _statement(self, text: str) -> list[str]:
        if text.startswith(".reg"):
            return self._declare(text)
        guard = ""
        match = re.match(r"@(!?)\s*(\S+)\s+(.*)$", text)
        if match:
            guard, text = f"if ({match[1]}{self._value(match[2])}) ", match[3]
        opcode, rest = _OPCODE.fullmatch(text).groups()  # type: ignore[union-attr]
        if len(opcode) > 200:
            raise UnknownPtx(f"the PTX instruction {opcode[:40]}... is not simulated")
        if opcode.startswith((".", "$")):
            raise UnknownPtx(f"'{opcode}' in inline PTX is not simulated", "Directives are not supported: use C++.")
        if opcode in ("bra", "bra.uni"):
            self.targets[_label(rest)] = rest
            return [f"{guard}goto {_label(rest)}"]
        parts = _split(rest)
        if opcode.startswith(("ld.", "st.")) and ".L2::cache_hint" in opcode and len(parts) == 3:
            opcode, parts = opcode.replace(".L2::cache_hint", ""), parts[:2]  # ignore the cache policy
        looked_up = opcode
        if opcode.startswith("mov.b") and parts:
            if parts[0].startswith("{"):
                looked_up = opcode.replace("mov.", "unpack.", 1)
            elif parts[-1].startswith("{"):
                looked_up = opcode.replace("mov.", "pack.", 1)
        translate, name = self._special(opcode), function_for(looked_up)
        if translate is None and name is None:
            raise UnknownPtx(f"the PTX instruction {opcode} is not simulated", self._suggestion(opcode))
        needed, only, have = first_architecture(opcode), only_architecture(opcode), self.architecture
        if needed > have:
            raise UnknownPtx(f"the PTX instruction {opcode} needs sm_{needed}, and the simulated device is sm_{have}")
        if only not in (None, have):
            raise UnknownPtx(f"the PTX instruction {opcode} exists only on sm_{only}a; the device is sm_{have}")
        if translate is not None:
            return [guard + translate(parts)]
        assert name is not None
        if name.startswith("mma<"):
            return [guard + self._mma(opcode, name, parts)]
        self._check_registers(opcode, parts)
        if opcode.startswith("ld"):
            parts = [*parts[-1:], *parts[:-1]]
        values = [value for part in parts for value in self._values(part)]
        if opcode.startswith(("ldmatrix", "stmatrix")):
            values.insert(0, "SIM_CALLER")
        if "{0}" in name:
            if not values:
                raise UnknownPtx(f"the PTX instruction {opcode} has no operands")
            name = name.format(values.pop(0))
        return [f"{guard}::sim::ptx::{name}({', '.join(values)})"]

    def _special(self, opcode: str) -> Callable[[Sequence[str]], str] | None:
        """Return the translation of an instruction whose operands have an order of their own; None for others."""
        if form := wgmma_form(opcode):
            return partial(self._wgmma, opcode, form)
        if access := tensor_access(opcode):
            return partial(self._tensor_access, opcode, access)
        if pair := tensor_product(opcode):
            return partial(self._tensor_product, opcode, pair)
        if scaled := block_scaled_product(opcode):
            return partial(self._block_scaled_product, opcode, scaled)
        return None

    def _check_registers(self, opcode: str, parts: Sequence[str]) -> None:
        """Raise an error if a load or store does not have as many registers as its .vN or .xN says."""
        memory = re.match(r"(ld|st)(?:u|matrix|\.async)?\.(?!bulk)", opcode)
        if memory is None or len(parts) < 2:
            return
        vector = re.search(r"\.[vx](\d)(?=\.)", opcode)
        wanted = int(vector[1]) if vector else 1
        given = len(self._values(parts[0 if memory[1] == "ld" else 1]))
        if given != wanted:
            raise UnknownPtx(f"{opcode} has {wanted} register{'s' if wanted > 1 else ''} of data, not {given}")

    def _mma(self, opcode: str, name: str, parts: Sequence[str]) -> str:
        """Translate mma.sync. The C++ function takes the operands A, B and C first, and then the results."""
        operands = [self._values(part) for part in parts]
        counts = mma_registers(opcode)
        if tuple(map(len, operands)) != counts:
            raise UnknownPtx(
                f"{opcode} takes {counts[0]} registers of d, {counts[1]} of a, {counts[2]} of b and {counts[3]} of c"
            )
        words = [f"::sim::ptx::words({', '.join(values)})" for values in operands[1:]]
        return f"::sim::ptx::{name}({', '.join(['SIM_CALLER', *words, *operands[0]])})"

    def _wgmma(self, opcode: str, form: WgmmaForm, parts: Sequence[str]) -> str:
        """Translate wgmma.mma_async. Its last operands are constants, which become template arguments."""
        in_registers = len(parts) > 1 and parts[1].startswith("{")
        constants = 2 * form.scales + form.transposes * (1 if in_registers else 2)
        if len(parts) != 4 + constants or not parts[0].startswith("{"):
            raise UnknownPtx(
                f"{opcode} takes the operands {{accumulators}}, a, b and scale-d, and then {constants} constants",
                f"This {opcode} has {len(parts)} operands.",
            )
        self._check_predicate(f"scale-d of {opcode}", parts[3])
        values = [self._value(part) for part in parts[4:]]
        if in_registers and form.transposes:
            values.insert(2, "0")
        arguments = ", ".join([form.arguments, *values])
        operands = [*self._values(parts[1]), self._value(parts[2]), *self._values(parts[0])]
        place = "registers" if in_registers else "shared"
        called = ", ".join(["SIM_CALLER", self._value(parts[3]), *operands])
        return f"::sim::ptx::WgmmaForm<{arguments}>::from_{place}({called})"

    def _tensor_access(self, opcode: str, access: TensorAccess, parts: Sequence[str]) -> str:
        """Translate tcgen05.ld and tcgen05.st. The C++ function takes the address first, and then all registers."""
        registers, address = (parts[0], parts[-1]) if access.loads else (parts[-1], parts[0])
        if len(parts) != 2 or not registers.startswith("{") or not address.startswith("["):
            order = "{registers}, [address]" if access.loads else "[address], {registers}"
            raise UnknownPtx(f"{opcode} takes {order}")
        values = self._values(registers)
        if len(values) != access.registers:
            raise UnknownPtx(
                f"{opcode} takes {access.registers} registers", f"This {opcode} has {len(values)} registers."
            )
        return f"::sim::ptx::{access.function}({', '.join(['SIM_CALLER', *self._values(address), *values])})"

    def _tensor_product(self, opcode: str, pair: str, parts: Sequence[str]) -> str:
        """Translate tcgen05.mma. Its operand A is a descriptor, or in brackets an address in tensor memory."""
        if len(parts) != 5 or any(part.startswith("{") for part in parts):
            raise UnknownPtx(
                f"{opcode} takes [d], a, b, an instruction descriptor and enable-input-d",
                "The disable-output-lane mask and scale-input-d are not simulated.",
            )
        self._check_predicate(f"enable-input-d of {opcode}", parts[4])
        place = "_tensor_memory" if parts[1].startswith("[") else ""
        values = [value for part in parts for value in self._values(part)]
        return f"::sim::ptx::tcgen05_mma{place}<{pair}>({', '.join(['SIM_CALLER', *values])})"

    def _block_scaled_product(self, opcode: str, form: str, parts: Sequence[str]) -> str:
        """Translate tcgen05.mma with .block_scale. The scale factors are in tensor memory."""
        if len(parts) != 7 or not parts[4].startswith("[") or not parts[5].startswith("["):
            raise UnknownPtx(
                f"{opcode} takes [d], a, b, an instruction descriptor, [scale-A], [scale-B] and enable-input-d"
            )
        if parts[1].startswith("["):
            raise UnknownPtx(f"the simulator supports {opcode} only with A in shared memory, not in tensor memory")
        self._check_predicate(f"enable-input-d of {opcode}", parts[6])
        values = [value for part in parts for value in self._values(part)]
        return f"::sim::ptx::tcgen05_mma_block_scale<{form}>({', '.join(['SIM_CALLER', *values])})"

    def _is_register(self, text: str) -> bool:
        """Return True for an operand of the asm statement, unless its constraint is "n", an integer constant."""
        match = re.fullmatch(r"%(?:(\d+)|\[(\w+)\])", text)
        if match is None:
            return False
        if match[2]:
            return match[2] not in self.named or self.named[match[2]].constraint != "n"
        return int(match[1]) >= len(self.operands) or self.operands[int(match[1])].constraint != "n"

    def _check_predicate(self, what: str, operand: str) -> None:
        if self._is_register(operand):
            raise UnknownPtx(
                f"{what} must be a predicate, but {operand} is a register",
                "Declare a predicate in the same asm statement: .reg .pred p; setp.ne.b32 p, %n, 0;",
            )

    @staticmethod
    def _suggestion(opcode: str) -> str:
        if advice := instead_of(opcode):
            return advice
        example = EXAMPLES.get(opcode.split(".")[0])
        if example is None:
            return "Use C++ or an intrinsic of CUDA instead."
        return f"Use C++, an intrinsic of CUDA, or a form that the simulator supports, such as {example}."

    def _declare(self, text: str) -> list[str]:
        match = re.match(r"\.reg\s*\.(\w+)\s+(.*)$", text)
        if not match or match[1] not in _REGISTER_TYPES:
            raise UnknownPtx(f"'{text[:80]}' in inline PTX is not simulated")
        names: list[str] = []
        for name in match[2].replace("%", "").split(","):
            several = re.fullmatch(r"(\w+)<([0-9]+)>", name.strip())
            count = int(several[2][:9]) if several else 1
            if len(self.registers) + len(names) + count > _MOST_REGISTERS:
                raise UnknownPtx(
                    f"the asm statement declares more than {_MOST_REGISTERS} registers",
                    "A thread of a GPU has no more registers.",
                )
            names += [f"{several[1]}{i}" for i in range(count)] if several else [name.strip()]
        self.registers.update(names)
        return [f"{_REGISTER_TYPES[match[1]]} " + ", ".join(f"sim_reg_{name}" for name in names)]

    def _values(self, text: str, depth: int = 0) -> list[str]:
        if depth > 4:
            raise UnknownPtx("the braces in this asm statement are nested too deeply")
        if text.startswith("{") and text.endswith("}"):
            return [value for part in _split(text[1:-1]) for value in self._values(part, depth + 1)]
        if text.startswith("[") and text.endswith("]"):
            address, *coordinates = _split(text[1:-1])  # [map, {x, y}] has coordinates in a tensor
            values = ", ".join(value for part in coordinates for value in self._values(part, depth + 1))
            return [self._address(address), *([f"::sim::ptx::coordinates({values})"] if coordinates else [])]
        return [self._value(part.strip()) for part in text.split("|")]  # shfl has a result and a predicate: d|p

    def _address(self, text: str) -> str:
        match = re.fullmatch(r"([^+\s]+)\s*\+\s*(-?\w+)", text)
        if match:
            return f"::sim::ptx::at({self._value(match[1])}, {self._value(match[2])})"
        return self._value(text)

    def _value(self, text: str) -> str:
        """Translate one operand to C++.

        The total length of all operands is limited: a statement could use a long C++ expression many times.
        """
        operator = "!" if text.startswith("!") else ""
        value = operator + self._read_value(text.removeprefix("!").strip())
        self.length += len(value)
        if self.length > _MOST_TEXT:
            raise UnknownPtx("this asm statement is too long", "Split it, and assign long operands to variables first.")
        return value

    def _read_value(self, text: str) -> str:
        if match := re.fullmatch(r"%([0-9]{1,9})", text):
            if int(match[1]) >= len(self.operands):
                raise UnknownPtx(f"the asm statement uses %{match[1]}, but has {len(self.operands)} operands")
            return self.operands[int(match[1])].expression
        if match := re.fullmatch(r"%\[(\w+)\]", text):
            if match[1] not in self.named:
                raise UnknownPtx(f"the asm statement uses %[{match[1]}], which is not one of its operands")
            return self.named[match[1]].expression
        if text == "_":
            return "::sim::ptx::sink()"
        name = text.lstrip("%")
        if name in self.registers:
            return f"sim_reg_{name}"
        if text.startswith("%") and name in SPECIAL_REGISTERS:
            register, *axis = name.split(".")
            return ".".join([f"::sim::ptx::sreg_{register}()", *axis])
        if text.startswith("%%"):
            raise UnknownPtx(f"the special register %{name} is not simulated")
        if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
            return f"::sim::ptx::f32(0x{match[1]}u)"
        if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
            return f"::sim::ptx::f64(0x{match[1]}ull)"
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|[0-9]+)U?", text):
            return text
        if re.fullmatch(r"-?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?", text):
            return text
        raise UnknownPtx(f"'{text[:80]}' in inline PTX is neither an operand nor a register that the text declares")


def _label(name: str) -> str:
    """Return the C++ label for a PTX label such as ``LAB_WAIT``."""
    return "sim_label_" + re.sub(r"\W", "_", name.strip())


def _split(text: str) -> list[str]:
    """Split at commas outside braces and brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += DEPTH.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]
