"""Real traces against the reference figures, by both engines."""

from __future__ import annotations

import pytest
from figures import LIBXDC, LLDB, fnv, known_edges, need_libipt, open_trace

ENGINES = ("ptkit", "libipt")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LIBXDC)
def test_libxdc_figures(name: str, engine: str) -> None:
    if engine == "libipt":
        need_libipt()
    trace = open_trace(f"libxdc/{name}", engine=engine, resync="psb")
    figures = LIBXDC[name]
    ips = trace.instructions(columns=["ip"])["ip"]
    assert len(ips) == figures.instructions
    assert fnv(ips.tolist()) == figures.hash_ips
    edges, conditional = known_edges(trace)
    assert int(conditional.sum()) == figures.conditionals
    assert fnv(edges[conditional].ravel().tolist()) == figures.hash_cond
    assert len(edges) == figures.branches
    assert fnv(edges.ravel().tolist()) == figures.hash_edges


@pytest.mark.parametrize("name", LIBXDC)
def test_libxdc_errors(name: str) -> None:
    # Not for libipt: the version in use reads ahead and misses PSBs, so its number of errors differs.
    trace = open_trace(f"libxdc/{name}", resync="psb")
    figures = LIBXDC[name]
    assert len(trace.errors) == figures.errors
    if figures.errors:
        assert all("no code at this address" in message for message in trace.errors.messages())


def test_better_resync_sees_the_same_order() -> None:
    at_psb = open_trace("libxdc/dyn_test", resync="psb").instructions(columns=["ip"])["ip"].tolist()
    at_ip = open_trace("libxdc/dyn_test", resync="ip").instructions(columns=["ip"])["ip"].tolist()
    assert len(at_ip) >= len(at_psb)
    rest = iter(at_ip)
    assert all(ip in rest for ip in at_psb)  # consumes `rest`: a subsequence


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LLDB)
def test_lldb_instructions(name: str, engine: str) -> None:
    if engine == "libipt":
        need_libipt()
    trace = open_trace(f"lldb/{name}", engine=engine, resync="psb")
    assert [f"{ip:x}" for ip in trace.instructions()["ip"].tolist()] == LLDB[name].split()


def test_lldb_hash_and_missing_linker() -> None:
    ips = open_trace("lldb/intelpt-trace/trace.json").instructions()["ip"].tolist()
    assert fnv(ips) == 0xB04EB468476BBB67
    errors = open_trace("lldb/intelpt-trace-multi-file/multi-file-no-ld.json", resync="psb").errors
    assert errors["ip"].tolist() == [0x7FFFF7DF1950]
    assert errors.named("code") == ["NO_CODE"]
