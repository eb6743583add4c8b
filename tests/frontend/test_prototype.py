"""Launcher prototypes: parsed from source and compared with the exercise's prototype."""

import pytest

from grader.frontend.prototype import (
    PrototypeError,
    explain_difference,
    find_launchers,
    parse_prototype,
    require_launcher,
)

EXPECTED = "void relu(const float* x, float* out, int n, cudaStream_t stream)"


def one(parameters: str):
    return find_launchers(f'extern "C" void f({parameters}) {{ }}')[0].parameters


@pytest.mark.parametrize(
    ("written", "kind", "dtype", "const"),
    [
        ("const float* __restrict__ x", "pointer", "f32", True),
        ("float const *x", "pointer", "f32", True),
        ("float *const x", "pointer", "f32", False),
        ("float x[]", "pointer", "f32", False),
        ("const __half* x", "pointer", "f16", True),
        ("half* x", "pointer", "f16", False),
        ("const __nv_bfloat16* x", "pointer", "bf16", True),
        ("const float4* x", "pointer", "f32", True),
        ("unsigned char* x", "pointer", "u8", False),
        ("const void* x", "pointer", "any", True),
        ("long long x", "scalar", "i64", False),
        ("std::int64_t x", "scalar", "i64", False),
        ("unsigned long long int x", "scalar", "u64", False),
        ("unsigned x", "scalar", "u32", False),
        ("size_t x", "scalar", "u64", False),
        ("const int x", "scalar", "i32", False),
        ("bool x", "scalar", "bool", False),
        ("double x", "scalar", "f64", False),
        ("cudaStream_t x", "stream", "", False),
    ],
)
def test_each_kind_of_parameter(written, kind, dtype, const):
    (parameter,) = one(written)
    assert (parameter.name, parameter.kind, parameter.dtype, parameter.const) == ("x", kind, dtype, const)


def test_names_may_be_missing():
    assert [p.name for p in one("const float*, int, cudaStream_t")] == ["", "", ""]
    assert one("") == () and one("void") == ()


def test_launchers_in_a_block_and_alone_kernels_and_variables_left_out():
    text = """
    // extern "C" void comment(int n);
    extern "C" {
    static int counter = 3;
    void first(int n) { if (n) { } }
    void second(float* x, cudaStream_t stream);
    }
    extern "C" __global__ void kernel(float* x) { }
    extern "C" void third(int n, cudaStream_t stream) { }
    """
    found = find_launchers(text)
    assert [(p.name, p.line) for p in found] == [("first", 5), ("second", 6), ("third", 9)]


def test_a_definition_replaces_its_declaration():
    found = find_launchers('extern "C" void f(int n);\n\nextern "C" void f(int n) { }\n')
    assert [(p.name, p.line) for p in found] == [("f", 3)]


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("float& x", "reference"),
        ("float** x", "pointer to a pointer"),
        ("int n = 3", "default value"),
        ("std::vector<float> x", "cannot pass"),
        ("MyStruct s", "cannot pass"),
    ],
)
def test_parameters_that_python_cannot_pass(parameters, says):
    with pytest.raises(PrototypeError, match=says) as caught:
        one(parameters)
    assert "line 1" in caught.value.message


def differences(actual: str) -> list[str]:
    return explain_difference(parse_prototype(actual), parse_prototype(EXPECTED))


def test_other_names_and_spellings_are_no_difference():
    assert differences("void relu(float const *in, float *result, int32_t count, cudaStream_t s)") == []
    assert explain_difference(parse_prototype("void f(int64_t n)"), parse_prototype("void f(long long n)")) == []
    assert explain_difference(parse_prototype("void f(half* n)"), parse_prototype("void f(__half* n)")) == []


def test_each_wrong_parameter_is_named():
    found = differences("void relu(float* x, const float* out, long long n, cudaStream_t stream)")
    assert len(found) == 3
    assert "parameter 1 is 'float* x', expected 'const float* x'" in found[0]
    assert "an output cannot be const" in found[1]
    assert "8 bytes" in found[2]


def test_missing_and_extra_parameters_are_named():
    assert differences("void relu(const float* x, float* out, cudaStream_t stream)")[1] == "missing: int n"
    extra = differences("void relu(const float* x, float* out, int n, int stride, cudaStream_t stream)")
    assert extra[1] == "not expected: int stride"


def test_swapped_names_of_one_type_are_a_difference():
    wanted = parse_prototype("void f(const float* q, const float* k)")
    found = explain_difference(parse_prototype("void f(const float* k, const float* q)"), wanted)
    assert "order is different" in found[0]


def test_a_vector_pointer_is_not_a_scalar_pointer():
    assert differences("void relu(const float4* x, float* out, int n, cudaStream_t stream)")


def test_a_missing_launcher_lists_the_functions_found_and_the_expected_one():
    found = find_launchers('extern "C" void rellu(int n) { }')
    with pytest.raises(PrototypeError) as caught:
        require_launcher(found, parse_prototype(EXPECTED), "relu.cu")
    assert "it has rellu" in caught.value.message and EXPECTED in caught.value.message
    assert "without extern" in caught.value.hint
    with pytest.raises(PrototypeError, match="no extern"):
        require_launcher([], parse_prototype(EXPECTED), "relu.cu")


def test_a_wrong_launcher_names_its_line_and_the_expected_prototype():
    found = find_launchers('\n\nextern "C" void relu(float* x) { }')
    with pytest.raises(PrototypeError) as caught:
        require_launcher(found, parse_prototype(EXPECTED), "relu.cu")
    assert caught.value.message.startswith("relu.cu:3:") and EXPECTED in caught.value.message
