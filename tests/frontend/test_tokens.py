"""The tokenizer: comments, strings and preprocessor lines contain no code."""

import pytest

from grader.frontend.tokens import Source, join, split_commas


def words(text: str) -> list[str]:
    return [token.text for token in Source(text).tokens]


def test_comments_strings_and_characters_are_single_tokens_or_nothing():
    text = 'a /* <<< */ b // "x\n c "q<<<1>>>" \'"\' d'
    assert words(text) == ["a", "b", "c", '"q<<<1>>>"', "'\"'", "d"]


def test_a_raw_string_ends_at_its_own_delimiter():
    assert words('x = R"ab(")" )b" ")ab"; y') == ["x", "=", 'R"ab(")" )b" ")ab"', ";", "y"]


def test_digit_separators_and_exponents_belong_to_the_number():
    assert words("1'000'000 + 1e-5f + 0x1p+3 + .5f") == ["1'000'000", "+", "1e-5f", "+", "0x1p+3", "+", ".5f"]


def test_a_backslash_continues_a_line_comment():
    assert words("a // one \\\n two\nb") == ["a", "b"]


def test_an_unfinished_string_ends_with_its_line():
    assert words('a "b\nc') == ["a", '"b', "c"]


def test_directives_are_separate_and_macros_keep_their_bodies():
    source = Source("#include <cmath>\n#define SQ(x) ((x) * \\\n (x))\n#define ON\nint y;\n")
    assert [i.name for i in source.includes] == ["cmath"]
    assert [(m.name, m.parameters) for m in source.macros] == [("SQ", ("x",)), ("ON", None)]
    assert join(source.macros[0].body) == "((x)*(x))"
    assert [t.text for t in source.tokens] == ["int", "y", ";"]


def test_digraphs_of_the_number_sign():
    source = Source("%:include <cmath>\n %:define GLUE(a, b) a %:%: b\n%:ifdef A\nint x = y %2;\n%:endif\n")
    assert [d.name for d in source.directives] == ["include", "define", "ifdef", "endif"]
    assert [i.name for i in source.includes] == ["cmath"]
    assert [t.text for t in source.macros[0].body] == ["a", "##", "b"]
    assert [t.text for t in source.tokens] == ["int", "x", "=", "y", "%", "2", ";"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x<:i:> = a<%1%>;", ["x", "[", "i", "]", "=", "a", "{", "1", "}", ";"]),
        ("f<::sim::A>(x)", ["f", "<", "::", "sim", "::", "A", ">", "(", "x", ")"]),
        ("f<::>", ["f", "[", "]"]),
        ("f<:::A:>", ["f", "[", "::", "A", "]"]),
        ("a < b % c > d", ["a", "<", "b", "%", "c", ">", "d"]),
        ("c ? a : b", ["c", "?", "a", ":", "b"]),
        ("k<<<::grid, b>>>()", ["k", "<", "<", "<", "::", "grid", ",", "b", ">", ">", ">", "(", ")"]),
        ('"<%" /* :> */', ['"<%"']),
    ],
)
def test_digraphs_of_brackets(text, expected):
    assert words(text) == expected


def test_a_comment_in_a_directive_may_span_lines():
    assert words("#define A 1 /* one\n two */ + 2\nint x;") == ["int", "x", ";"]


def test_an_apostrophe_in_a_directive_opens_nothing():
    assert words("#error don't\nint x;\n#error 'y'\nint z;") == ["int", "x", ";", "int", "z", ";"]


def test_if_zero_hides_code_up_to_its_else_or_endif():
    text = "#if 0\na\n#if 1\nb\n#endif\nc\n#else\nd\n#endif\ne"
    assert words(text) == ["d", "e"]


def test_lines_and_columns_start_at_one():
    source = Source("ab\n  cd\n")
    token = source.tokens[1]
    assert (source.line(token.start), source.column(token.start), source.line_text(2)) == (2, 3, "  cd")


def test_commas_in_templates_and_brackets_do_not_split():
    parts = split_commas(Source("a, f(b, c), P<d, e> x, g < h, i").tokens)
    assert [join(part) for part in parts] == ["a", "f(b, c)", "P<d, e> x", "g<h", "i"]
