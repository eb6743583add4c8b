"""Properties of the rewriter, tested on random programs composed of difficult pieces."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.frontend.rewrite import rewrite
from grader.frontend.tokens import Source

SOLUTIONS = Path(__file__).parents[2] / "solutions"
DIGRAPHS = {"{": "<%", "}": "%>", "[": "<:", "]": ":>"}

# Statements that the rewriter must not change. Many resemble constructs that it rewrites.
PLAIN = [
    "int a = b << 3;",
    "a >>= 2; // k<<<1, 2>>>(x);",
    "/* __shared__\n int t; */",
    'const char* s = "k<<<1, 2>>>(\\"x\\")";',
    'auto r = R"(asm("x") <<< )";',
    "char c = '\\'', d = '\"';",
    "if (a < b && c > d) { a = 1'000; }",
    "ns::vector<ns::pair<int, A<B<int>>>> v;",
    "\n#pragma unroll\n",
    "\n#define SHIFT(x) \\\n  ((x) << 2)\n",
    "\n#if N > 3\nint z;\n#else\nlong z;\n#endif\n",
    "auto f = [](int i) { return i > 3; };",
    "{ int i; }",
    "é();",
]
# Constructs that the rewriter changes, some with newlines that it must keep.
CONSTRUCTS = [
    "k<<<grid, block>>>(x, n);",
    "k<T,\n 4><<<(n + 3) / 4,\n f<A<B>>(),\n 0, s>>>(x,\n y);",
    "ns::k<<<a > b ? 1 : 2, dim3(1, 2)>>>();",
    "__shared__ float a[32][33], b;",
    "__shared__\n float c[4\n];",
    "extern __shared__ __align__(16) char d[];",
    "__shared__ typename X<T, 3>::Storage e;",
    'asm volatile("" ::: "memory"\n);',
    "\n#define GO(K) K<<<1, \\\n 2>>>(x)\n",
    "\n#define TILE(n) __shared__ float n[4]; \\\n int m\n",
]

blanks = st.sampled_from([" ", "\n", "\t", "  \n\n "])
plain_text = st.lists(st.tuples(blanks, st.sampled_from(PLAIN)), max_size=8).map(lambda p: "".join(a + b for a, b in p))
pieces = st.lists(st.tuples(plain_text, st.sampled_from(CONSTRUCTS)), max_size=5)


@settings(max_examples=150)
@given(plain_text, st.sampled_from(["void f() {{{}}}\n", "__global__ void k() {{{}}}", "{}"]))
def test_code_without_constructs_is_untouched(code, around):
    text = around.format(code)
    once = rewrite(text)
    assert once.text == text and once.edits == ()
    assert rewrite(once.text).text == text


@settings(max_examples=150)
@given(pieces, plain_text)
def test_lines_stay_and_other_text_is_untouched(parts, tail):
    code = "__global__ void program() {" + "".join(a + "\n" + b for a, b in parts) + tail + "\n}"
    done = rewrite(code)
    assert done.text.count("\n") == code.count("\n")
    position = 0
    for edit in done.edits:
        # Text between two edits stays unchanged.
        assert code[position : edit.start] in done.text
        assert code.count("\n", edit.start, edit.end) == edit.text.count("\n")
        position = edit.end
    for a, _ in parts:
        assert a in done.text
    # No construct is left to rewrite.
    assert rewrite(done.text).text == done.text


@settings(max_examples=150)
@given(pieces, plain_text)
def test_unchanged_characters_map_back_to_themselves(parts, tail):
    code = "__global__ void program() {" + "".join(a + "\n" + b for a, b in parts) + tail + "\n}"
    done = rewrite(code)
    shift, last = 0, 0
    for edit in done.edits:
        for position in range(last, edit.start):
            assert done.original_position(position + shift) == position
        shift += len(edit.text) - (edit.end - edit.start)
        last = edit.end
    assert done.original_position(len(done.text) - 1) == len(code) - 1


@settings(max_examples=300)
@given(st.text(alphabet="ab<>(){}[],;:\"'/*\\\n#R_=x1 ", max_size=60))
def test_any_text_is_tokenized_in_order_without_overlap(text):
    source = Source(text)
    position = 0
    for token in source.tokens:
        assert position <= token.start < token.end <= len(text)
        assert text[token.start : token.end] in (token.text, DIGRAPHS.get(token.text))
        position = token.end


@settings(max_examples=300)
@given(st.text(alphabet="ak<>(){}[],;:\"'/*\\\n#=1 ", max_size=50))
def test_nonsense_is_refused_or_left_in_its_lines(text):
    from grader.setup.errors import GraderError

    try:
        done = rewrite(text)
    except GraderError as problem:
        assert problem.message
    else:
        assert done.text.count("\n") == text.count("\n")


def with_digraphs(text):
    """Write the brackets of a program as digraphs."""
    source = Source(text)
    brackets = [token for tokens in source.sequences for token in tokens if token.text in DIGRAPHS]
    for bracket in sorted(brackets, key=lambda token: token.start, reverse=True):
        text = text[: bracket.start] + DIGRAPHS[bracket.text] + text[bracket.end :]
    return text


@pytest.mark.parametrize("kernel", sorted(SOLUTIONS.glob("*/*.cu")), ids=lambda kernel: kernel.stem)
def test_digraphs_are_read_as_the_brackets(kernel):
    text = kernel.read_text()
    plain, other = (Source(rewrite(each).text) for each in (text, with_digraphs(text)))
    assert "<%" in with_digraphs(text) and [token.text for token in other.tokens] == [
        token.text for token in plain.tokens
    ]
