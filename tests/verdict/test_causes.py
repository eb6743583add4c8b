"""If one mistake causes several findings, its cause is reported once and first. Races name the missing barrier."""

from __future__ import annotations

import pytest
from msgspec import structs

from grader.verdict import Finding, Memory, Side, merged
from grader.verdict.causes import DIVERGENT, causes_first
from grader.verdict.findings import KINDS
from grader.verdict.findings.barriers import BlockedThreads, Waiting
from grader.verdict.findings.races import NearbyAtomic
from grader.verdict.wording.findings import fix, several, why


def memory(name: str) -> Memory:
    return Memory(kind="tensor", space="global", name=name, bytes=64)


def side(line: int, access: str = "read", column: int = 9, name: str = "x") -> Side:
    return Side(access=access, bytes=4, file="a.cu", line=line, column=column, memory=memory(name))


def finding(check: str, kind: str, at: Side, other: Side | None = None) -> Finding:
    return Finding(**structs.asdict(at), check=check, kind=kind, other=other, payload=KINDS[kind].sample)


OUTSIDE = finding("memcheck", "out_of_bounds", side(7, name="y"))


@pytest.mark.parametrize(
    ("follows", "consequence"),
    [
        (True, finding("racecheck", "between_blocks", side(7, name="out"), side(7, "write", 5, "out"))),
        (True, finding("racecheck", "between_blocks", side(6, "write", 5, "out"), side(7, column=0, name="out"))),
        (True, finding("initcheck", "uninitialized_read", side(7, name="out"))),
        (False, finding("racecheck", "between_blocks", side(7, column=30, name="out"), side(8, "write", name="out"))),
        (False, finding("initcheck", "uninitialized_read", side(9, name="out"))),
        (False, finding("memcheck", "misaligned", side(7, name="out"))),
    ],
)
def test_findings_caused_by_an_access_out_of_bounds(follows: bool, consequence: Finding) -> None:
    told = causes_first([consequence, OUTSIDE])
    if follows:
        assert told == [structs.replace(OUTSIDE, hides=True)] and "are left out" in several(told, 4)
        assert causes_first([*told, consequence]) == told
    else:
        assert told == [consequence, OUTSIDE]


@pytest.mark.parametrize(("column", "first"), [(9, True), (0, True), (30, False)], ids=["same", "unknown", "another"])
def test_an_access_out_of_bounds_comes_before_wrong_values_of_its_expression(column: int, first: bool) -> None:
    inside = side(7, column=column, name="y")
    race = finding("racecheck", "between_blocks", side(6, "write", name="y"), inside)
    uninitialized = finding("initcheck", "uninitialized_read", inside)
    barrier = finding("synccheck", DIVERGENT[0], side(5, ""))
    for wrong in (race, uninitialized):
        ordered = [OUTSIDE, barrier, wrong] if first else [barrier, wrong, OUTSIDE]
        assert causes_first([wrong, barrier, OUTSIDE]) == ordered


def test_races_caused_by_work_on_the_wrong_stream() -> None:
    wrong = finding("synccheck", "default_stream", side(5, ""))
    in_default = structs.replace(side(5, "write"), work="scale", stream=0)
    in_own = structs.replace(side(6, "write"), work="scale", stream=2)
    caller = structs.replace(side(0), work="the caller of the launcher", stream=1)
    assert causes_first([finding("racecheck", "between_streams", in_default, caller), wrong]) == [
        structs.replace(wrong, hides=True)
    ]
    another = finding("racecheck", "between_streams", in_own, caller)
    assert causes_first([another, wrong]) == [another, wrong] and causes_first([another]) == [another]


@pytest.mark.parametrize("kind", DIVERGENT)
def test_a_divergent_barrier_comes_before_the_races_that_it_causes(kind: str) -> None:
    race = finding("racecheck", "within_block", side(3), side(4, "write"))
    barrier = finding("synccheck", kind, side(5, ""))
    assert causes_first([race, barrier]) == [barrier, race]
    assert causes_first([OUTSIDE, race, barrier]) == [OUTSIDE, barrier, race]


@pytest.mark.parametrize(
    ("operations", "first"),
    [
        (("__syncthreads", "__shfl_xor_sync"), True),
        (("__syncthreads", "mbarrier"), False),  # a race may be the reason why no thread arrives
        (("__syncthreads",), False),
        (("__shfl_xor_sync", "__syncwarp"), False),
    ],
)
def test_a_deadlock_at_different_barriers_comes_before_races(operations: tuple[str, ...], first: bool) -> None:
    race = finding("racecheck", "within_block", side(3), side(4, "write"))
    waits = [Waiting(threads=8, first=0, operation=name, site=0, line=5, file="a.cu") for name in operations]
    deadlock = structs.replace(
        finding("synccheck", "deadlock", side(5, "")), payload=BlockedThreads(waits=waits, exited=0)
    )
    assert causes_first([race, deadlock]) == ([deadlock, race] if first else [race, deadlock])


def test_threads_of_several_warps_need_a_barrier_of_the_block() -> None:
    near = finding("racecheck", "within_warp", side(3), side(4, "write"))
    far = structs.replace(near, kind="within_block")
    assert "Put __syncwarp() between" in fix(near) and "__syncthreads" not in fix(near)
    for order in ([near, far], [far, near]):
        (race,) = merged(order)
        assert race.kind == "within_block" and race.count == 2
    elsewhere = finding("racecheck", "within_block", side(3), side(8, "write"))
    first, second = causes_first([near, elsewhere])
    assert (first.kind, second.kind) == ("within_warp", "within_block") and fix(first) == fix(second)
    tile = finding("racecheck", "within_block", side(8, "write", name="tile"), side(3, name="tile"))
    assert "__syncthreads" in fix(causes_first([near, tile])[0])
    assert "__syncwarp" in fix(causes_first([near, structs.replace(tile, other=None)])[0])
    assert several([near, elsewhere], 4).count("__syncwarp") == 1
    assert several(causes_first([near, elsewhere]), 4).count("Put __syncthreads()") == 1
    assert several(causes_first([near, elsewhere]), 4).count("__syncwarp") == 0


def test_only_one_access_is_atomic() -> None:
    race = finding("racecheck", "between_blocks", side(3, "atomic"), side(4))
    assert "Make the other access atomic" in fix(race) and "use atomics" not in fix(race)
    writes = structs.replace(finding("racecheck", "between_blocks", side(3, "write"), side(4)), payload=None)
    assert "use atomics" in fix(writes)


def test_atomic_operations_of_the_block_need_a_wider_scope() -> None:
    for kind in ("between_blocks", "within_cluster"):
        assert "drop the suffix _block" in fix(finding("racecheck", kind, side(3, "atomic"), side(4, "atomic")))


@pytest.mark.parametrize("kind", ["within_warp", "within_block"])
def test_a_lock_needs_a_fence(kind: str) -> None:
    race = finding("racecheck", kind, side(3), side(4, "write"))
    locked = structs.replace(race, payload=NearbyAtomic(atomic="a.cu:2"))
    assert "at a.cu:2 takes a lock, put __threadfence_block()" in fix(locked)
    assert "a lock" not in fix(structs.replace(race, payload=NearbyAtomic()))


def test_volatile_orders_nothing() -> None:
    for kind in ("between_blocks", "within_block", "within_warp"):
        race = finding("racecheck", kind, side(3, "volatile read"), side(4, "volatile write"))
        assert "orders nothing" in why(race)
        with_atomic = finding("racecheck", kind, side(3, "atomic"), side(4, "volatile write"))
        assert "makes nothing atomic" in why(with_atomic) and "atomic as well" in fix(with_atomic)
    assert "volatile" not in why(finding("racecheck", "between_blocks", side(3), side(4, "write")))


def test_an_index_past_an_array_is_compared_with_the_block() -> None:
    past = finding("memcheck", "index_out_of_bounds", side(3))
    assert "in a one-dimensional block, threadIdx.x numbers all threads, and threadIdx.y is 0" in fix(past)
