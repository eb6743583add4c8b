"""The tokenizer: splits C++ source into tokens with positions, for all other modules of the front end.

Comments, strings (including raw ones), character literals and preprocessor lines are recognized first, so that their
contents are never mistaken for code. The body of a ``#define`` is tokenized separately, because it may contain
launches.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.frontend.messages import RewriteError

_LEXEME = re.compile(
    r"""
      (?P<space>   (?: [ \t\r\f\v\n] | \\\r?\n )+ )
    | (?P<comment> // (?: \\\r?\n | [^\n] )* | /\* (?: .*? \*/ | .* ) )
    | (?P<raw>     (?: u8|u|U|L )? R" (?P<delimiter> [^()\\\s]{0,16} ) \( (?: .*? \) (?P=delimiter) " | .* ) )
    | (?P<string>  (?: u8|u|U|L )? " (?: [^"\\\n] | \\. )* "? )
    | (?P<char>    (?: u8|u|U|L )? ' (?: [^'\\\n] | \\. )* '? )
    | (?P<number>  \.?[0-9] (?: '[0-9A-Za-z_] | [eEpP][+-] | [0-9A-Za-z_.] )* )
    | (?P<word>    [^\W\d][\w$]* )
    | (?P<mark>    :: | -> | \.\.\. | \#\# | %:%: | %: | <% | %> | :> | <: (?!:(?![:>]))
                   | && | \|\| | [=!<>]= (?!=) | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_DIGRAPHS = {"%:": "#", "%:%:": "##", "<%": "{", "%>": "}", "<:": "[", ":>": "]"}
"""C++'s second spellings of marks. In ``<::``, ``<`` is a mark of its own unless ``:`` or ``>`` follows."""
_DIRECTIVE = re.compile(r"[ \t]*(?:#|%:)[ \t]*(?P<name>\w*)")
_DEFINE_HEAD = re.compile(r"(?:[ \t]|\\\r?\n)*(?P<name>[^\W\d]\w*)(?P<parameters>\([^)]*\))?")
_INCLUDE = re.compile(r'(?:[ \t])*(?P<header><[^>\n]+>|"[^"\n]+")')


@dataclass(frozen=True, slots=True)
class Token:
    """A token. ``kind`` is word, number, string, raw (a raw string), char or mark (an operator or bracket)."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Directive:
    """A preprocessor line with its continuation lines. ``text`` is the text after the name, including comments."""

    name: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Macro:
    """A ``#define``: its parameters (None if it takes none) and the tokens of its body."""

    name: str
    parameters: tuple[str, ...] | None
    body: Tokens
    start: int


@dataclass(frozen=True)
class Include:
    """An ``#include``. ``header`` is the text with its brackets or quotes, such as ``<mma.h>``."""

    header: str
    start: int

    @property
    def name(self) -> str:
        return self.header[1:-1]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, for a table of C++ words."""
    return frozenset(text.split())


NOT_TYPES = word_set("return else do case goto throw new delete co_return sizeof and or not")
"""Words after which a name is used, not declared."""


class Source:
    """A tokenized file. ``tokens`` are those of its code; macros, includes and other directives are separate."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = Tokens()
        self.directives: list[Directive] = []
        self.macros: list[Macro] = []
        self.includes: list[Include] = []
        self.looks = 0
        """The number of repeated reads: see ``limits.py``."""
        self.translated = 0
        """The number of characters that the front end inserted."""
        self.internal_variables = False
        """True if the variables of device memory have internal linkage: see ``rewrite``."""
        self.architecture: int | None = None
        """The compute capability (times ten) of the target device; None for the default."""
        self.attributes: Mapping[tuple[str, str], list[str]] = {}
        """The arguments of attributes that a preprocessor has found, by the names of attribute and kernel."""
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._read()

    @property
    def sequences(self) -> list[Tokens]:
        """The tokens of the code, and those of each macro's body."""
        return [self.tokens, *(macro.body for macro in self.macros)]

    def line(self, position: int) -> int:
        """Return the 1-based line of a character position."""
        return bisect.bisect_right(self._line_starts, position)

    def column(self, position: int) -> int:
        """Return the 1-based column of a character position."""
        return position - self._line_starts[self.line(position) - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of a 1-based line, without its newline."""
        if not 1 <= line <= len(self._line_starts):
            return ""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def error(self, at: Token | Directive | Include | int, message: str, hint: str = "") -> RewriteError:
        """Return an error at a token, a preprocessor line or a character position, with its source line."""
        start = at if isinstance(at, int) else at.start
        line = self.line(start)
        return RewriteError(line, self.column(start), message, hint, source_line=self.line_text(line))

    def directive_between(self, start: int, end: int) -> Directive | None:
        """Return the first preprocessor line that begins between two positions."""
        first = bisect.bisect_right(self.directives, start, key=lambda directive: directive.start)
        found = self.directives[first] if first < len(self.directives) else None
        return found if found and found.start < end else None

    def directive_at(self, position: int) -> Directive | None:
        """Return the preprocessor line that contains a position."""
        before = bisect.bisect_right(self.directives, position, key=lambda directive: directive.start) - 1
        found = self.directives[before] if before >= 0 else None
        return found if found and position < found.end else None

    def _read(self) -> None:
        position, at_line_start, dead_below = 0, True, 0  # dead_below: #if levels inside an "#if 0"
        text = self.text
        while position < len(text):
            match = _LEXEME.match(text, position)
            assert match is not None  # "." matches anything
            lexeme = match.group()
            if at_line_start and lexeme in ("#", "%:"):
                end = self._directive_end(position)
                directive = self._directive(position, end)
                dead_below = self._skipping(directive, dead_below)
                position, at_line_start = end, True
                continue
            if match.lastgroup == "space":
                at_line_start = at_line_start or "\n" in lexeme.replace("\\\n", "").replace("\\\r\n", "")
            elif token := _token(match):
                at_line_start = False
                if not dead_below:
                    self.tokens.append(token)
            position = match.end()

    def _directive_end(self, position: int) -> int:
        """Return the position of the newline that ends a preprocessor line, after continuation lines and comments."""
        text = self.text
        while position < len(text) and text[position] != "\n":
            match = _LEXEME.match(text, position)
            assert match is not None
            if match.lastgroup == "space":
                newline = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)*").match(text, position)
                assert newline is not None
                position = newline.end()
            elif match.lastgroup in ("string", "char"):
                # The apostrophe in "#error don't" does not begin a character literal that ends on a later line.
                position = match.end() if "\n" not in match.group() else position + 1
            else:
                position = match.end()
        return position

    def _directive(self, start: int, end: int) -> Directive:
        head = _DIRECTIVE.match(self.text, start, end)
        assert head is not None
        directive = Directive(head["name"], self.text[head.end() : end], start, end)
        self.directives.append(directive)
        return directive

    def _skipping(self, directive: Directive, dead_below: int) -> int:
        """Record the macro or include of a directive, and track ``#if 0``, whose code is skipped.

        ``dead_below`` is the number of open ``#if``, from the ``#if 0`` on; it is 0 outside of skipped code. Return its
        value after the directive.
        """
        name = directive.name
        if dead_below:
            if name in ("if", "ifdef", "ifndef"):
                return dead_below + 1
            if name == "endif" or (dead_below == 1 and name in ("else", "elif")):
                return dead_below - 1
            return dead_below
        if name == "if" and re.fullmatch(r"\s*0\s*(//.*|/\*.*)?", directive.text, re.DOTALL):
            return 1
        offset = directive.end - len(directive.text)
        if name == "define" and (head := _DEFINE_HEAD.match(directive.text)):
            inner = head["parameters"]
            parameters = None if inner is None else tuple(p.strip() for p in inner[1:-1].split(",") if p.strip())
            body = self._tokens_between(offset + head.end(), directive.end)
            self.macros.append(Macro(head["name"], parameters, body, directive.start))
        elif name == "include" and (match := _INCLUDE.match(directive.text)):
            self.includes.append(Include(match["header"], directive.start))
        return 0

    def _tokens_between(self, start: int, end: int) -> Tokens:
        tokens, position = Tokens(), start
        while position < end:
            match = _LEXEME.match(self.text, position, end)
            assert match is not None
            if token := _token(match):
                tokens.append(token)
            position = match.end()
        return tokens


def _token(match: re.Match[str]) -> Token | None:
    """Return the token that a lexeme is; None for white space and comments. A digraph has the text of its mark."""
    kind = "raw" if match.lastgroup == "delimiter" else match.lastgroup or ""
    text = _DIGRAPHS.get(match.group(), match.group())
    return None if kind in ("space", "comment") else Token(kind, text, match.start(), match.end())


OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}
DEPTH = dict.fromkeys(OPENERS, 1) | dict.fromkeys(CLOSERS, -1)
"""The change of the nesting depth at each bracket."""


class Tokens(list[Token]):
    """A list of tokens that computes the pairs of matching brackets only once."""

    @functools.cached_property
    def partners(self) -> list[int]:
        """For each token that is a bracket, the index of the matching bracket; -1 for all other tokens."""
        partners = [-1] * len(self)
        opened: list[int] = []
        for i, token in enumerate(self):
            if token.text in OPENERS:
                opened.append(i)
            elif token.text in CLOSERS and opened:
                partners[i] = opened.pop()
                partners[partners[i]] = i
        return partners


def angle_end(tokens: Sequence[Token], index: int, most: int = 1 << 20, stops: Sequence[str] = ()) -> int:
    """Return the index after the ``>`` that closes the ``<`` at ``index``; the number of tokens if there is none.

    Only the next ``most`` tokens are searched, up to the first of the marks ``stops``.
    """
    depth = 0
    for k in range(index, min(index + most, len(tokens))):
        depth += {"<": 1, ">": -1}.get(tokens[k].text, 0)
        if depth == 0:
            return k + 1
        if tokens[k].text in stops:
            break
    return len(tokens)


def closing(tokens: Sequence[Token], index: int) -> int | None:
    """Return the index of the bracket that closes the one at ``index``, or None."""
    return _partner(tokens, index, OPENERS)


def opening(tokens: Sequence[Token], index: int) -> int | None:
    """Return the index of the bracket that opens the one at ``index``, or None."""
    return _partner(tokens, index, CLOSERS)


def _partner(tokens: Sequence[Token], index: int, kinds: Mapping[str, str]) -> int | None:
    if index >= len(tokens) or tokens[index].text not in kinds:
        return None
    tokens = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
    partner = tokens.partners[index]
    return None if partner < 0 else partner


def split_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas that are outside of all brackets.

    A ``<`` after a word is a bracket of template arguments if a ``>`` closes it.
    """
    parts: list[list[Token]] = [[]]
    depth = angles = 0
    closed = _closed_angles(tokens)
    for i, token in enumerate(tokens):
        text = token.text
        depth += DEPTH.get(text, 0)
        if text == "<" and depth == 0 and i and tokens[i - 1].kind == "word" and i in closed:
            angles += 1
        elif text == ">" and depth == 0 and angles:
            angles -= 1
        if text == "," and depth == 0 and angles == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _closed_angles(tokens: Sequence[Token]) -> set[int]:
    """Return the indices of each ``<`` that may open template arguments.

    A ``>`` must close it before the enclosing bracket ends, and before any ``;``, ``&&`` or ``||``.
    """
    closed: set[int] = set()
    levels: list[list[int]] = [[]]  # for each open bracket, the indices of the ``<`` open inside
    for i, token in enumerate(tokens):
        text = token.text
        if text in OPENERS:
            levels.append([])
        elif text in CLOSERS:
            levels.pop()
            if not levels:
                levels = [[]]
        elif text == "<":
            levels[-1].append(i)
        elif text == ">" and levels[-1]:
            closed.add(levels[-1].pop())
        elif text in (";", "&&", "||"):
            levels[-1].clear()
    return closed


def join(tokens: Sequence[Token]) -> str:
    """Return tokens as text on one line, with blanks only where tokens must be separated, and after commas."""
    out: list[str] = []
    for token in tokens:
        if out and _needs_blank(out[-1], token.text):
            out.append(" ")
        out.append(token.text)
    return "".join(out)


def _needs_blank(before: str, after: str) -> bool:
    if _wordy(before[-1]) and (_wordy(after[0]) or after[0] in "\"'"):
        return True
    if before[-1] == after[0] and before[-1] in "+-&":
        return True  # without a blank, "- -" would become a decrement
    return before == "," or (before in (">", "*", "&") and _wordy(after[0]))


def _wordy(character: str) -> bool:
    return character.isalnum() or character == "_"
