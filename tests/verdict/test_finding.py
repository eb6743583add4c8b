"""One rule decides whether two findings are equal. Merging equal findings is order-independent and idempotent."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from grader.verdict import Finding, Memory, Side, merged

lines = st.sampled_from([0, 7, 9])
memories = st.none() | st.builds(
    Memory,
    kind=st.sampled_from(["tensor", "__shared__"]),
    space=st.just("global"),
    name=st.sampled_from(["x", "y"]),
    offset=st.integers(0, 8),
)
sides = st.builds(Side, file=st.just("a.cu"), line=lines, memory=memories, thread=st.none() | st.just([1, 0, 0]))
findings = st.builds(
    Finding,
    check=st.sampled_from(["memcheck", "racecheck"]),
    kind=st.sampled_from(["within_warp", "between_blocks", "leak"]),
    file=st.just("a.cu"),
    line=lines,
    memory=memories,
    other=st.none() | sides,
    count=st.integers(1, 5),
    case=st.sampled_from(["one", "two"]),
)


def counted(found: list[Finding]) -> Counter[object]:
    counts: Counter[object] = Counter()
    for finding in found:
        counts[finding.identity] += finding.count
    return counts


@given(st.lists(findings, max_size=12), st.randoms())
def test_merging_keeps_identities_and_counts_in_any_order(found: list[Finding], random) -> None:  # type: ignore[no-untyped-def]
    once = merged(found)
    assert len(once) == len({finding.identity for finding in found}) and counted(once) == counted(found)
    assert merged(once) == once
    shuffled = random.sample(found, len(found))
    assert counted(merged(shuffled)) == counted(once)
    cut = random.randint(0, len(found))
    assert counted(merged(merged(found[:cut]) + merged(found[cut:]))) == counted(once)


@given(findings)
def test_merging_changes_no_input(finding: Finding) -> None:
    before = structs.replace(finding)
    merged([finding, finding])
    assert finding == before


def test_the_sides_of_a_race_may_be_swapped() -> None:
    memory = Memory(kind="__shared__", space="shared", name="tile")
    write = Side(access="write", file="a.cu", line=3, memory=memory)
    read = Side(access="read", file="a.cu", line=5, memory=memory)
    one = Finding(**structs.asdict(write), other=read, check="racecheck", kind="within_warp")
    two = Finding(**structs.asdict(read), other=write, check="racecheck", kind="within_block")
    assert one.identity == two.identity
    elsewhere = structs.replace(two, other=structs.replace(write, line=4))
    assert elsewhere.identity != one.identity
    assert structs.replace(one, memory=structs.replace(memory, name="other")).identity != one.identity


def test_memory_without_a_name_is_told_apart_by_its_column() -> None:
    memory = Memory(kind="cudaMalloc", space="global", name="")
    one = Finding(check="initcheck", kind="uninitialized_read", file="a.cu", line=7, column=3, memory=memory)
    other = structs.replace(one, column=9)
    assert one.identity != other.identity
    named = structs.replace(memory, name="x")
    assert structs.replace(one, memory=named).identity == structs.replace(other, memory=named).identity
