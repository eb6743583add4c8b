"""Registers ``__device__`` and ``__constant__`` variables, so that the simulator knows their bounds."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from grader.frontend.declarations import DEVICE_VARIABLES, is_variable, names_of_variables, template_header
from grader.frontend.limits import spend
from grader.frontend.region import Region
from grader.frontend.tokens import Token


class GlobalVariables:
    """Registers the variables of a region. It knows which of them host code names."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.source, self.tokens = region.source, region.tokens

    def register(self, start: int, end: int, scope: str) -> None:
        """Register the variables of the declaration ``start`` to ``end``, if it has any, in a scope of this kind."""
        declaration = list(self.tokens[start:end])
        spend(self.source, self.tokens[end], len(declaration))
        kinds = [DEVICE_VARIABLES[t.text] for t in declaration if t.text in DEVICE_VARIABLES]
        words = {t.text for t in declaration}
        if not kinds or words & {"__shared__", "extern", "using", "typedef"}:
            return
        if "template" in words:
            self._register_template(declaration, end, scope)
            return
        if not is_variable(declaration):
            return
        names = names_of_variables(declaration)
        kind = "constant" if "constant" in kinds else kinds[0]
        if scope == "class":
            return
        labels = [name.replace("::", "_") for name in names]
        text = "".join(
            f" static ::sim::RegisterGlobal sim_global_{label}("
            f'"{name}", (void*)&{name}, sizeof({name}), ::sim::GlobalKind::{kind}{self._named(name)});'
            for name, label in zip(names, labels, strict=True)
        )
        qualifier = next(t for t in declaration if t.text in DEVICE_VARIABLES)
        in_order = "SIM_IN_ORDER" if len(names) == 1 else "SIM_SEVERAL_IN_ORDER"
        internal = self.source.internal_variables and "static" not in words and not any("::" in name for name in names)
        self.region.edit(qualifier.start, qualifier.start, f"{'static ' if internal else ''}{in_order} ")
        zone = "SIM_INTERNAL_ZONE" if internal else "SIM_ZONE"
        self.region.edit(self.tokens[end].end, self.tokens[end].end, f"{text} {zone}({labels[0]})")

    def _named(self, variable: str) -> str:
        return ", true" if variable.rpartition("::")[2] in self._names_on_host else ""

    @functools.cached_property
    def _names_on_host(self) -> set[str]:
        return {token.text for token in self.tokens if token.start in self.region.on_host}

    def _register_template(self, declaration: Sequence[Token], end: int, scope: str) -> None:
        """Register each instantiation of a variable template, such as ``template <int n> __device__ int x``.

        An object of class ``RegisterGlobal`` registers the variable. The variable's alignment attribute refers to this
        object, so that C++ instantiates the object whenever it instantiates the variable.
        """
        if scope != "namespace" or not is_variable(declaration):
            return
        qualifier = next(t for t in declaration if t.text in DEVICE_VARIABLES)
        header, names = template_header(declaration), names_of_variables(declaration)
        if header is None or len(names) != 1:
            what = f"this form of a {qualifier.text} variable template is not simulated"
            raise self.source.error(qualifier, what, "Name each template parameter, and do not specialize it.")
        [name] = names
        kind = "constant" if any(t.text == "__constant__" for t in declaration) else "device"
        template, known = f"template <{header.parameters}>", f"sim_known_{name.replace('::', '_')}"
        variable = f"{name}<{header.arguments}>"
        before = f"namespace {{ {template} struct {known} {{ static ::sim::RegisterGlobal variable; }}; }} "
        self.region.edit(declaration[0].start, declaration[0].start, before)
        registered = f"::sim::Known<&{known}<{header.arguments}>::variable>::alignment"
        self.region.edit(qualifier.start, qualifier.start, f"__attribute__((aligned({registered}))) ")
        text = f" namespace {{ {template} ::sim::RegisterGlobal {known}<{header.arguments}>::variable("
        text += f'"{name}", (void*)&{variable}, sizeof({variable}), ::sim::GlobalKind::{kind}); }}'
        self.region.edit(self.tokens[end].end, self.tokens[end].end, text)
