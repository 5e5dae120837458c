"""What QEMU's user mode emulation itself says that it executed, from its own log.

`-d in_asm` names the instructions of each block that it translates, `-d exec,nochain` each block that it
enters. A block that was entered need not have been executed to its end:

* a string instruction with REP is one block per iteration; as in hardware it counts once, when it finishes;
* before a signal handler, the instruction that faulted was not executed; which one it was is not logged;
* a block that the emulator has to leave half-way (it changes its own code, or has a LOCK across cache lines)
  goes on with a block of one instruction, which the log shows by the block's flags;
* "Stopped execution" takes the entry back.

Nothing of ptkit is used here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ITEMS = "in_asm,exec,nochain,strace,plugin"
_SOURCE = Path(__file__).with_name("log_files.c")

_TRACE = re.compile(r"Trace (\d+): 0x([0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/[0-9a-f]+/([0-9a-f]+)\]")
_STOPPED = re.compile(r"Stopped execution of TB chain before 0x([0-9a-f]+) \[([0-9a-f]+)\]")
_INSN = re.compile(r"^0x([0-9a-f]+):  ((?:[0-9a-f]{2} ?)+)(.*)$")
_SIGNAL = re.compile(r"--- (SIG\w+) \{si_signo=\w+, si_code=(-?\w+)")
_FORKED = re.compile(r"log_files: goes on from (\d+) of (.*)$")
_CPU_BEGINS = re.compile(r"log_files: cpu (\d+) begins")
_CPU_IS = re.compile(r"log_files: cpu (\d+) is (\d+)")

_ONE_INSN = 1  # of the flags' part that says how many instructions a block may have
_MAX_INSNS = 0x1FF
_FAULTS = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP"}
_SENT = {"SI_USER", "SI_TKILL", "SI_QUEUE", "0", "-1", "-6"}
_PREFIXES = {"lock", "bnd", "notrack", "data16", "addr32", "rex64", "rep", "repe", "repz", "repne", "repnz"}
_STRINGS = ("movs", "stos", "cmps", "scas", "lods", "ins", "outs")
_LEAVES = re.compile(
    r"j|call|ret|lret|loop|syscall|sysenter|int|iret|into|hlt|ud[012]|ljmp|lcall|xbegin|xabort"
)


class LogError(Exception):
    """The log does not hang together: it says what was met where."""


@dataclass(frozen=True)
class Block:
    """A translated block."""

    ips: tuple[int, ...]
    end: int  # behind the last instruction
    repeats: bool  # the last one is a string instruction with REP
    leaves: bool  # the last one may go elsewhere than to `end`
    traps: bool  # the last one is a breakpoint
    calls: bool  # the last one is a system call


@dataclass(frozen=True)
class Doubt:
    """At `place` among the instructions, the first n of `ips` come in; n is one of `lengths`."""

    place: int
    ips: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass
class Run:
    """What one thread of one program image executed."""

    pid: int
    tid: int
    program: int  # how many programs the process had before this one
    ips: array[int] = field(default_factory=lambda: array("Q"))
    doubts: list[Doubt] = field(default_factory=list)


@dataclass
class _Cpu:
    run: Run
    block: Block | None = None
    code: int = 0  # where the translation lies: the block's identity
    single: bool = False
    signal: str = ""


def environment(folder: Path) -> dict[str, str]:
    """What makes every qemu-x86_64 that is started, and those that these start, write logs into `folder`.

    The folder gets the plugin that keeps the logs of processes apart.
    """
    plugin = folder / "log_files.so"
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(plugin), str(_SOURCE)],
        check=True,
        capture_output=True,
    )
    return {
        "QEMU_LOG": ITEMS,
        "QEMU_LOG_FILENAME": f"{folder}/log.%d",
        "QEMU_PLUGIN": f"file={plugin}",
    }


def read(folder: Path) -> list[Run]:
    """The runs of all processes, in the order in which they began.

    Raises
    ------
    LogError
        If a log says what cannot be, or has instructions that the disassembler does not know.
    """
    paths = sorted(folder.glob("log.*.*"), key=lambda path: int(path.name.split(".")[2]))
    runs = []
    for path in paths:
        pid = int(path.name.split(".")[1])
        earlier = [one for one in paths if int(one.name.split(".")[1]) == pid]
        runs += _Log(path, pid, earlier.index(path)).read()
    return runs


def _known(lines: list[str]) -> list[str]:
    """The same lines; by objdump if QEMU's disassembler does not know an instruction (capstone 4: RDSSP)."""
    if not any(".byte" in line for line in lines):
        return lines
    code = b"".join(bytes.fromhex(found[2]) for line in lines if (found := _INSN.match(line)))
    begin = int(lines[0].split(":")[0], 16)
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", f"--adjust-vma={begin}", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in text.splitlines() if "\t" in line]
    return [f"0x{row[0].strip()}  {row[1].strip():24} {''.join(row[2:])}" for row in rows]


def _block(lines: list[str]) -> Block:
    """From the lines of `in_asm`: address, bytes, text; long instructions go on in a line without text."""
    ips: list[int] = []
    end = 0
    text = ""
    for line in _known(lines):
        found = _INSN.match(line)
        if found is None or found[3].startswith((".byte", "(bad)")):
            raise LogError(f"no instruction: {line!r}")
        begin = int(found[1], 16)
        end = begin + len(found[2].split())
        if found[3].strip():
            ips.append(begin)
            text = found[3].strip()
    words = text.split()
    prefixes = set()
    while len(words) > 1 and words[0] in _PREFIXES:
        prefixes.add(words.pop(0))
    repeats = any(prefix.startswith("rep") for prefix in prefixes) and words[0].startswith(_STRINGS)
    leaves = _LEAVES.match(words[0]) is not None
    calls = words[0] == "syscall"
    return Block(tuple(ips), end, repeats, leaves, words[0].startswith("int"), calls)


class _Log:
    """One file."""

    def __init__(self, path: Path, pid: int, program: int) -> None:
        self.path = path
        self.pid = pid
        self.program = program
        self.runs: list[Run] = []
        self.cpus: dict[int, _Cpu] = {}
        self.latest: dict[int, Block] = {}  # by address, since it was last looked at
        self.codes: dict[int, tuple[int, Block]] = {}  # by where the translation lies
        self.line = 0

    def read(self) -> list[Run]:
        self._replay(self.path, None)
        for number in list(self.cpus):
            self._end(number)
        return [run for run in self.runs if run.ips or run.doubts]

    def _lines(self, path: Path, limit: int | None) -> Iterator[str]:
        """Lines up to a place in the file."""
        done = 0
        with path.open(encoding="latin-1") as file:
            for line in file:
                done += len(line)
                if limit is not None and done > limit:
                    return
                yield line

    def _replay(self, path: Path, limit: int | None) -> None:
        code: list[str] | None = None
        for number, line in enumerate(self._lines(path, limit), 1):
            self.line = number
            if code is not None:
                if line == "\n":
                    block = _block(code)
                    self.latest[block.ips[0]] = block
                    code = None
                elif not line.startswith("IN:"):
                    code.append(line.rstrip("\n"))
            elif "Trace " in line and (found := _TRACE.search(line)):
                self._enter(int(found[1]), int(found[2], 16), int(found[3], 16), int(found[4], 16))
            elif line.endswith("----------------\n"):
                code = []
            else:
                self._other(line)

    def _other(self, line: str) -> None:
        if found := _SIGNAL.search(line):
            kind = "fault" if found[1] in _FAULTS and found[2] not in _SENT else "sent"
            for cpu in self.cpus.values():
                cpu.signal = "fault" if "fault" in (kind, cpu.signal) else kind
        elif found := _STOPPED.search(line):
            self._take_back(int(found[1], 16), int(found[2], 16))
        elif found := _FORKED.search(line):
            parent = Path(found[2])
            self._replay(parent, int(found[1]))
            self._become_child()
        elif found := _CPU_BEGINS.search(line):
            self._end(int(found[1]))
        elif found := _CPU_IS.search(line):
            self._cpu(int(found[1])).run.tid = int(found[2])

    def _become_child(self) -> None:
        """Only the thread that forked goes on, behind its system call."""
        self.runs = []
        for number, cpu in list(self.cpus.items()):
            if cpu.block is None or not cpu.block.leaves:
                del self.cpus[number]
                continue
            cpu.run = Run(self.pid, self.pid, self.program)
            cpu.block = None

    def _cpu(self, number: int) -> _Cpu:
        if number not in self.cpus:
            self.cpus[number] = _Cpu(Run(self.pid, 0, self.program))
            self.runs.append(self.cpus[number].run)
        elif self.cpus[number].run not in self.runs:
            self.runs.append(self.cpus[number].run)
        return self.cpus[number]

    def _enter(self, number: int, code: int, address: int, flags: int) -> None:
        cpu = self._cpu(number)
        single = flags & _MAX_INSNS == _ONE_INSN
        if cpu.block is not None:
            self._leave(cpu, cpu.block, address, single)
        known = self.codes.get(code)
        fresh = self.latest.pop(address, None)
        if fresh is not None:
            self.codes[code] = (address, fresh)
        elif known is None or known[0] != address:
            raise LogError(f"{self.path.name}:{self.line}: block {address:#x} was not translated")
        cpu.block = self.codes[code][1]
        cpu.code = code
        cpu.single = single
        cpu.signal = ""

    def _take_back(self, code: int, address: int) -> None:
        for cpu in reversed(self.cpus.values()):
            if cpu.block is not None and cpu.code == code and cpu.block.ips[0] == address:
                cpu.block = None
                return
        raise LogError(f"{self.path.name}:{self.line}: {address:#x} was not entered")

    def _leave(self, cpu: _Cpu, block: Block, to: int, to_single: bool) -> None:
        """The thread went on at `to`."""
        count = len(block.ips)
        if block.repeats and to == block.ips[-1]:
            return self._executed(cpu, block, count - 1)
        if cpu.single and count == 1 and to == block.ips[0] and not block.leaves:
            return None  # left before it was executed, and entered again
        if to_single and not cpu.single and to in block.ips:
            return self._executed(cpu, block, block.ips.index(to))
        if cpu.signal == "fault":
            last = count if block.traps else count - 1
            return self._doubt(cpu, block, range(last + 1) if to != block.end else [count])
        if to == block.end or (block.leaves and not cpu.signal):
            return self._executed(cpu, block, count)
        if not cpu.signal:
            raise LogError(f"{self.path.name}:{self.line}: from {block.ips[-1]:#x} to {to:#x}")
        # Between two blocks; a string instruction may have been about to repeat.
        return self._doubt(cpu, block, [count - 1, count] if block.repeats else [count])

    def _end(self, number: int) -> None:
        """Nothing more is heard of the thread."""
        cpu = self.cpus.pop(number, None)
        if cpu is None or cpu.block is None:
            return
        count = len(cpu.block.ips)
        self._doubt(cpu, cpu.block, [count] if cpu.block.calls else range(count + 1))

    def _executed(self, cpu: _Cpu, block: Block, count: int) -> None:
        cpu.run.ips.extend(block.ips[:count])

    def _doubt(self, cpu: _Cpu, block: Block, lengths: range | list[int]) -> None:
        if len(lengths) == 1:
            self._executed(cpu, block, lengths[0])
        else:
            cpu.run.doubts.append(Doubt(len(cpu.run.ips), block.ips, tuple(lengths)))


def by_thread(runs: Sequence[Run]) -> Mapping[int, list[Run]]:
    """Runs of each thread, in order."""
    threads: dict[int, list[Run]] = {}
    for run in runs:
        threads.setdefault(run.tid, []).append(run)
    return threads
