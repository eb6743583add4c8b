"""The rows of a library's line table: the line and column of each instruction.

DWARF stores the table as a program for a small state machine (section 6.2 of its standard). pyelftools can run it, but
creates several objects for each row, which is too slow for a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_START = (0, 1, 1, 0)


def rows(program: Any) -> Iterator[tuple[int, int, int, int]]:
    """Yield address, file number, line and column of each row; ``program`` is pyelftools' line program of a unit."""
    header = program.header
    base, lowest, span = header["opcode_base"], header["line_base"], header["line_range"]
    step, operands = header["minimum_instruction_length"], header["standard_opcode_lengths"]
    program.stream.seek(program.program_start_offset)
    code = program.stream.read(program.program_end_offset - program.program_start_offset)
    address, file, line, column = _START
    place = 0
    while place < len(code):
        opcode = code[place]
        place += 1
        if opcode >= base:
            advance, change = divmod(opcode - base, span)
            address += advance * step
            line += lowest + change
            yield address, file, line, column
        elif opcode == 0:
            length, place = _number(code, place)
            if code[place] == _END_SEQUENCE:
                address, file, line, column = _START
            elif code[place] == _SET_ADDRESS:
                address = int.from_bytes(code[place + 1 : place + min(length, 9)], "little")
            place += length
        elif opcode == _COPY:
            yield address, file, line, column
        elif opcode == _ADVANCE_PC:
            value, place = _number(code, place)
            address += value * step
        elif opcode == _ADVANCE_LINE:
            value, place = _number(code, place, signed=True)
            line += value
        elif opcode == _SET_FILE:
            file, place = _number(code, place)
        elif opcode == _SET_COLUMN:
            column, place = _number(code, place)
        elif opcode == _CONST_ADD_PC:
            address += (255 - base) // span * step
        elif opcode == _FIXED_ADVANCE_PC:
            address += int.from_bytes(code[place : place + 2], "little")
            place += 2
        else:  # opcodes without an effect on lines
            for _ in range(operands[opcode - 1]):
                _, place = _number(code, place)


def _number(code: bytes, place: int, signed: bool = False) -> tuple[int, int]:
    """Return a number in LEB128 (seven bits per byte) and the position after it."""
    value = shift = 0
    while shift < 64:
        byte = code[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value - (1 << shift) if signed and byte & 64 else value, place
    raise ValueError("the line table has a number of more than 64 bits")
