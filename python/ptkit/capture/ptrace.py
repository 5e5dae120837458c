"""ptrace: whether programs can be started under it here. All back ends but ``emulator`` hold them by it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["refused"]

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_STATUS = Path("/proc/self/status")
_CAP_SYS_PTRACE = 19


def _may_trace_all() -> bool:
    """Whether this process has CAP_SYS_PTRACE."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return True
    found = [int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")]
    return not found or bool(found[0] >> _CAP_SYS_PTRACE & 1)


def refused() -> tuple[str, str]:
    """Say why programs cannot be started under ptrace, and what to do; empty if they can.

    Returns
    -------
    missing, remedy : str
    """
    try:
        scope = int(_SCOPE.read_text())
    except (OSError, ValueError):
        return "", ""
    missing = f"ptrace is not permitted (kernel.yama.ptrace_scope = {scope})"
    if scope >= 3:
        return missing, "boot without that setting"
    if scope == 2 and not _may_trace_all():
        return missing, "run with the capability CAP_SYS_PTRACE, or set it to 1"
    return "", ""
