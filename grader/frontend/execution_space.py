"""Checks nvcc's rules for calls between host functions, device functions and kernels.

A kernel must not call a function without ``__device__``. nvcc reports this as an error, but the simulator's C++
compiler does not, because on the simulator every function runs on the CPU. The rules are those of the CUDA programming
guide (Function Execution Space Specifiers, and the restrictions of C++ in device code). They are applied to the file's
tokens, with the file's own macros expanded. Scopes and overloads are not resolved: a call is accepted if any function
of that name may be called, or if the name may be a variable, a parameter or a macro that cannot be expanded
(``macros.py``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from grader.frontend.declarations import strip_attributes
from grader.frontend.functions import Declarations, Function, Space, after, collect, device_lambda_end, index_of
from grader.frontend.launch_syntax import angle_opening, is_triple
from grader.frontend.limits import spend
from grader.frontend.tokens import NOT_TYPES, Source, Token, angle_end, word_set

_OVERLOADED = word_set("min max abs")
"""Functions that CUDA defines for host and device. A function of the same name in the file is another overload."""
_CONTAINER_METHODS = word_set("""
size empty begin end data at front back get reset count find insert erase fill swap load store length str value
""")
"""Names of methods of standard containers. A call ``x.size()`` is not checked, because ``x`` may be a container."""

# The parts of namespace std that device code may use: types, constexpr functions of C++17, and the functions of
# <cmath>, for which CUDA has device versions.
_STD_TYPES = re.compile(
    r"(is_|remove_|add_|make_(un)?signed|tuple|u?int\d+_t$|u?int(ptr|max)_t$)\w*|\w+_[tv]$|"
    r"(numeric_limits|array|pair|integral_constant|conditional|enable_if|decay|common_type|underlying_type|byte|"
    r"(make_)?(index|integer)_sequence|index_sequence_for|true_type|false_type|initializer_list|conjunction|disjunction|"
    r"negation|alignment_of|aligned_storage|aligned_union|extent|rank|plus|minus|multiplies|less|greater|equal_to|"
    r"round_toward_zero|round_to_nearest)$"
)
_STD_FUNCTIONS = word_set("""
bit_cast min max clamp move forward get tie make_tuple make_pair declval as_const addressof printf memcpy memset malloc
free strlen size data begin end abs fabs sqrt cbrt exp exp2 expm1 log log2 log10 log1p pow sin cos tan asin acos atan
atan2 sinh cosh tanh asinh acosh atanh erf erfc tgamma lgamma ceil floor trunc round lround llround rint lrint
llrint nearbyint fmod remainder remquo copysign nextafter fdim fmax fmin fma frexp ldexp scalbn scalbln ilogb logb modf
hypot isnan isinf isfinite isnormal signbit isgreater isgreaterequal isless islessequal islessgreater isunordered nan
nanf
""")
_HOST_LIBRARY = word_set("""
abort exit _Exit atexit getenv system rand srand random time puts putchar fprintf fputs fopen fclose fread fwrite
fflush scanf sscanf sprintf snprintf perror qsort bsearch atoi atof strtol strtod usleep sleep
""")
_DEVICE_INTRINSIC = re.compile(
    r"__(sync(threads|warp)\w*|shfl\w*|ballot\w*|any_sync|all_sync|match_\w+|activemask|threadfence\w*|"
    r"reduce_\w+|ld(g|c[agsv])|"
    r"nanosleep|(exp|exp10|log|log2|log10|sin|cos|tan|pow|fdivide)f|f(add|mul|ma|rcp|sqrt|div)_r[nzud]|popc(ll)?|clz(ll)?|"
    r"brev(ll)?|ffs(ll)?|cvta_\w+|cluster(?!_dims__)\w+)$|atomic[A-Z][A-Za-z]*$|"
    r"cuda(GridDependencySynchronize|TriggerProgrammaticLaunchCompletion)$|curand(4|_\w+)?$|skipahead(_sequence)?$"
)
_MOST_ARGUMENTS = 60
"""The maximum number of tokens in the template arguments of a call."""
_NOT_ON_THE_DEVICE = {
    "try": "exceptions",
    "catch": "exceptions",
    "throw": "exceptions",
    "typeid": "typeid",
    "dynamic_cast": "dynamic_cast",
}


def check_execution_spaces(source: Source, declared: Declarations) -> None:
    """Raise RewriteError for the first call, launch or use of a variable that nvcc would not accept."""
    functions = list(declared.functions)
    for macro in source.macros:  # check a macro's body only if it defines functions
        functions += [function for function in collect(source, macro.body).functions if len(function.body)]
    names: dict[str, list[Function]] = {}
    for function in functions:
        names.setdefault(function.name, []).append(function)
        _check_kernel(source, function)
    macros = {macro.name for macro in source.macros}
    for function in functions:
        if len(function.body):
            _Body(source, function, names, declared, macros).check()


def _check_kernel(source: Source, function: Function) -> None:
    """Raise RewriteError if a ``__global__`` function breaks a rule for kernels."""
    if function.space is not Space.KERNEL:
        return
    head = [function.tokens[k] for k in function.head]
    declared = [t.text for t in strip_attributes(head)]
    before = declared[: index_of(declared, "(")]
    at = next(t for t in head if t.text == "__global__")
    if "__host__" in before or "__device__" in before:
        raise source.error(at, f"{function.name}: a kernel is only __global__", "Remove __host__ and __device__.")
    if "void" not in before:
        raise source.error(
            at,
            f"the kernel {function.name} returns a value",
            "A kernel must return void, because the host continues before the kernel runs. Write results to memory.",
        )
    if function.owner:
        raise source.error(
            at, f"the kernel {function.name} is a member of {function.owner}", "Define the kernel outside of classes."
        )
    if "..." in declared[index_of(declared, "(") :] and "template" not in [t.text for t in head]:
        raise source.error(at, f"the kernel {function.name} takes an ellipsis", "Name every parameter.")


class _Body:
    """Checks the body of one function, which is a sequence of tokens."""

    def __init__(
        self,
        source: Source,
        function: Function,
        names: dict[str, list[Function]],
        declared: Declarations,
        macros: set[str],
    ) -> None:
        self.source, self.function, self.names = source, function, names
        around = function.namespace
        spend(source, function.tokens[function.head.start], len(declared.host_variables))
        self.variables = {name for space, name in declared.host_variables if space == around[: len(space)]}
        self.tokens = function.tokens
        self.unknown = macros | self._declared_here()

    def _declared_here(self) -> set[str]:
        """Return the names of parameters, local variables and lambdas: roughly, each word that follows a type."""
        declared = set()
        for k in [*self.function.head, *self.function.body]:
            token, before = self.tokens[k], self.tokens[k - 1]
            if token.kind != "word" or k == 0 or (token.text == self.function.name and k in self.function.head):
                continue
            following = self._at(k + 1)
            typed = before.kind == "word" and before.text not in NOT_TYPES
            # `float* p = q`, `T& x` and `vector<int> v` declare a name, but `a * f(x)` does not declare f.
            typed = typed or (before.text in ("*", "&", ">", "&&") and following in ("=", ";", ",", ")", "{", "[", ":"))
            # `int a = 1, b = 2;` declares b, too. A structured binding `auto [a, b]` declares both names.
            more = (before.text == "," and following in ("=", "[", ";", "{")) or (
                before.text in ("[", ",") and following in (",", "]")
            )
            if typed or more:
                declared.add(token.text)
        return declared

    def check(self) -> None:
        """Raise RewriteError for the first construct that is not allowed in this function."""
        for k, device in self._places():
            token = self.tokens[k]
            if token.kind != "word" or (self.tokens[k - 1].text == "::" and self.tokens[k - 2].text == "std"):
                continue
            if token.text == "std" and device:
                if self.tokens[k - 1].text != "::" or self.tokens[k - 2].text != "cuda":  # libcu++ is device code
                    self._standard_library(k)
            elif token.text in self.unknown:
                continue
            elif device:
                self._on_the_device(k)
            else:
                self._on_the_host(k)

    def _places(self) -> Iterator[tuple[int, bool]]:
        """Yield the indices of the body's tokens and whether each is device code.

        The body of a ``__host__ __device__`` function is treated as host code: in both, nvcc rejects calls of device
        functions. Two kinds of such bodies are not checked. Preprocessor lines may separate host code from device code.
        A template is checked by nvcc only when it is instantiated.
        """
        space = self.function.space
        head = [self.tokens[k].text for k in self.function.head]
        if space is Space.BOTH and ("template" in head or self.function.owner or self._has_sides()):
            return
        if space is Space.HOST and self.function.of_template:
            return
        lambda_end = -1
        for k in self.function.body:
            if space is Space.HOST and self.tokens[k].text == "__device__":
                lambda_end = max(lambda_end, device_lambda_end(self.source, self.function, k))
            yield k, space in (Space.DEVICE, Space.KERNEL) or k < lambda_end

    def _has_sides(self) -> bool:
        body = self.function.body
        start, end = self.tokens[body.start].start, self.tokens[body.stop - 1].end
        return self.source.directive_between(start, end) is not None

    def _call(self, k: int) -> bool:
        """Return whether the name at ``k`` may be called there: a ``(`` follows, possibly after template arguments."""
        following = k + 1
        if self._at(following) == "<" and not is_triple(self.tokens, following, "<"):
            following = angle_end(self.tokens, following, _MOST_ARGUMENTS, (";", "{", "}"))
        return self._at(following) == "("

    def _at(self, k: int) -> str:
        """Return the text of a token; empty past the last one."""
        return self.tokens[k].text if k < len(self.tokens) else ""

    def _candidates(self, k: int) -> list[Function]:
        """Return the functions of the file that the name at ``k`` may refer to."""
        found, before = self.names.get(self.tokens[k].text, []), self.tokens[k - 1].text
        spend(self.source, self.tokens[k], len(found))
        if before in (".", "->"):
            of_any_class = self.tokens[k].text in _CONTAINER_METHODS or not self._call(k)
            return [] if of_any_class else [f for f in found if f.owner]
        if before != "::":
            around = self.function.namespace
            found = [f for f in found if f.namespace == around[: len(f.namespace)]]
        elif outer := self._qualifier(k - 2):  # compare only the last name, because aliases are not resolved
            found = [f for f in found if outer in (f.owner, *f.namespace[-1:])]
        return [f for f in found if not f.owner or f.owner in (self.function.owner, self.tokens[k - 2].text)]

    def _qualifier(self, k: int) -> str:
        """Return the name of the class or namespace that ends at token ``k``, such as ``S`` in ``n::S<int>``."""
        if self.tokens[k].text == ">":
            k = (angle_opening(self.tokens, k) or 0) - 1
        word = self.tokens[k]
        return word.text if k >= 0 and word.kind == "word" and word.text not in NOT_TYPES else ""

    def _on_the_device(self, k: int) -> None:
        token, name = self.tokens[k], self.tokens[k].text
        if name in _NOT_ON_THE_DEVICE:
            what = _NOT_ON_THE_DEVICE[name]
            raise self.source.error(
                token,
                f"{name}: device code has no {what}",
                f"Write device code without {name}, which is only for the host.",
            )
        if name in self.variables and self.tokens[k - 1].text not in (".", "->", "::"):
            raise self.source.error(
                token,
                f"{name} is a host variable: code on the GPU cannot access it",
                f"Declare it __device__ or __constant__, or pass it to {self.function.name} as an argument.",
            )
        named = self.names.get(name, [])
        spend(self.source, token, len(named))
        constructors = [f for f in named if f.owner == name]
        if constructors and not any(f.in_device_code for f in constructors) and self._creates(k):
            raise self.source.error(
                token,
                f"the constructor of {name} is a host function: code on the GPU cannot call it",
                f"Write __device__ (or __host__ __device__) before {name}(...) in the class.",
            )
        called = self._call(k)
        if not called and self.tokens[k + 1].text not in (";", ",", ")"):
            return  # the name is neither called nor passed as a function pointer
        functions = self._candidates(k)
        if functions and name not in _OVERLOADED and not any(f.in_device_code for f in functions):
            self._refuse_call_on_the_device(token, functions[0])
        if called and not functions and name in _HOST_LIBRARY and self.tokens[k - 1].text not in (".", "->", "::"):
            raise self.source.error(
                token,
                f"{name} is a function of the host's C library: code on the GPU cannot call it",
                "printf, assert, malloc and the functions of <cmath> are available in device code.",
            )

    def _creates(self, k: int) -> bool:
        """Return whether the class name at ``k`` creates an object: ``S s;``, ``S s(2);``, ``S(2)``, ``S{2}``."""
        following = self.tokens[k + 1] if k + 1 < len(self.tokens) else None
        return following is not None and (following.kind == "word" or following.text in ("(", "{"))

    def _refuse_call_on_the_device(self, token: Token, called: Function) -> None:
        if called.space is Space.KERNEL:
            raise self.source.error(
                token,
                f"{called.name} is a kernel: code on the GPU cannot call it like a function",
                "Move the shared code into a __device__ function.",
            )
        raise self.source.error(
            token,
            f"{called.name} is a host function: code on the GPU cannot call it",
            f"Write __device__ before it: __device__ ... {called.name}(...)",
        )

    def _standard_library(self, k: int) -> None:
        """Raise RewriteError if device code uses a function or class of namespace std that is only for the host."""
        if k + 2 >= len(self.tokens) or self.tokens[k + 1].text != "::":
            return
        name = self.tokens[k + 2]
        if name.text in _STD_FUNCTIONS or _STD_TYPES.match(name.text):
            return
        how = (
            "In device code, the C++ library provides types, constexpr functions such as std::min, and <cmath>. "
            "Use arrays, pointers and loops."
        )
        if name.text in ("cout", "cerr", "clog", "endl"):
            how = 'To print in a kernel, use printf: printf("%f\\n", x).'
        raise self.source.error(
            self.tokens[k], f"std::{name.text} is a host function or class: code on the GPU cannot use it", how
        )

    def _launch_arguments(self, k: int) -> None:
        """Raise RewriteError if a launch passes a host lambda to the kernel."""
        tokens = self.tokens
        end = k + 4
        while end < self.function.body.stop and not is_triple(tokens, end, ">"):
            if tokens[end].text in (";", "{", "}") or is_triple(tokens, end, "<"):
                return  # this is not the configuration of a launch
            end += 1
        if end + 3 >= len(tokens) or tokens[end + 3].text != "(":
            return
        depth = 0
        arguments = range(end + 3, after(tokens, end + 3) - 1)
        spend(self.source, tokens[k], len(arguments))
        for n in arguments:
            depth += (tokens[n].text in ("(", "{")) - (tokens[n].text in (")", "}"))
            starts = depth == 1 and tokens[n].text in ("(", ",")
            word = tokens[n + 1]
            named = word.text in self.host_lambdas and tokens[n + 2].text in (",", ")")
            if starts and (named or (word.text == "[" and self._is_host_lambda(n + 1))):
                raise self.source.error(
                    word,
                    f"the host lambda passed to the kernel {tokens[k].text} cannot be called on the GPU",
                    "Write __device__ after the lambda's capture list: [=] __device__ (...) { ... }",
                )

    def _is_host_lambda(self, k: int) -> bool:
        """Return whether the lambda that begins at token ``k`` is not marked ``__device__``."""
        opened = next(
            (n for n in range(after(self.tokens, k), self.function.body.stop) if self.tokens[n].text == "{"), k
        )
        spend(self.source, self.tokens[k], (opened if opened > k else self.function.body.stop) - k)
        return opened > k and all(self.tokens[n].text != "__device__" for n in range(k, opened))

    @functools.cached_property
    def host_lambdas(self) -> set[str]:
        """The names of variables in this body that are host lambdas: ``auto f = [=](...) { ... }``."""
        tokens = self.tokens
        return {
            tokens[k - 2].text
            for k in self.function.body
            if tokens[k].text == "["
            and tokens[k - 1].text == "="
            and tokens[k - 3].text == "auto"
            and self._is_host_lambda(k)
        }

    def _on_the_host(self, k: int) -> None:
        token, name = self.tokens[k], self.tokens[k].text
        if name == "__shared__":
            raise self.source.error(
                token,
                "a __shared__ variable is declared in a host function",
                "Shared memory belongs to a block: declare it in the kernel.",
            )
        functions = self._candidates(k)
        if k + 1 < len(self.tokens) and is_triple(self.tokens, k + 1, "<"):
            if functions and not any(f.space is Space.KERNEL for f in functions):
                raise self.source.error(
                    token,
                    f"{name} is not a kernel: only a __global__ function can be launched with <<<...>>>",
                    f"Write __global__ before it: __global__ void {name}(...)",
                )
            self._launch_arguments(k)
            return
        if not self._call(k):
            return
        if functions and name not in _OVERLOADED and not any(f.space in (Space.HOST, Space.BOTH) for f in functions):
            if functions[0].space is Space.KERNEL:
                raise self.source.error(
                    token,
                    f"{name} is a kernel: it must be launched, not called",
                    f"Write {name}<<<grid, block, shared_bytes, stream>>>(...).",
                )
            if not functions[0].constexpr:
                raise self.source.error(
                    token,
                    f"{name} is a device function: the host cannot call it",
                    f"Write __device__ before {self.function.name} if it is meant for the GPU, "
                    f"or __host__ __device__ before {name}.",
                )
        if not functions and _DEVICE_INTRINSIC.match(name) and self.tokens[k - 1].text not in (".", "->", "::"):
            raise self.source.error(
                token,
                f"{name} is a device function: the host cannot call it",
                f"Write __device__ before {self.function.name} if it is meant for the GPU; otherwise use a kernel.",
            )
