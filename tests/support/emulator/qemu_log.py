"""Instructions that QEMU's user mode emulation executed, from its own log.

`-d in_asm` names the instructions of each block that it translates, `-d exec,nochain` each block that it
enters. A block that was entered need not have been executed to its end:

* a string instruction with REP is one block per iteration; as in hardware it counts once, when it finishes;
* before a signal handler, the instruction that faulted was not executed; which one it was is not logged;
* a block that the emulator has to leave half-way (it changes its own code, or has a LOCK across cache lines)
  goes on with a block of one instruction, which the log shows by the block's flags;
* "Stopped execution" takes the entry back;
* a thread may be killed after it has translated a block and before it enters it: another thread that enters
  the block has no line that says what the block is;
* a thread that is killed may not have begun the block that it entered last. QEMU writes the line of a block
  (`log_cpu_exec`, called by `cpu_tb_exec` in accel/tcg/cpu-exec.c) before it calls the block's code, and that
  begins with the calls of plugins: a thread that is killed in the write has neither. In the same way, a block
  that ends in SYSCALL was executed whole only if a line of `strace` follows, which QEMU writes after it has
  called plugins (`do_syscall`, linux-user/syscall.c), or if the process went on with another program.

Nothing of ptkit is used here.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compiling import compiled

ITEMS = "in_asm,exec,nochain,strace,tid"
_SOURCE = Path(__file__).with_name("log_files.c")

_TRACE = re.compile(r"Trace (\d+): 0x([0-9a-f]+) \[[0-9a-f]+/([0-9a-f]+)/[0-9a-f]+/([0-9a-f]+)\]")
_STOPPED = re.compile(r"Stopped execution of TB chain before 0x([0-9a-f]+) \[([0-9a-f]+)\]")
_INSN = re.compile(r"^0x([0-9a-f]+):  ((?:[0-9a-f]{2} ?)+)(.*)$")
_SIGNAL = re.compile(r"--- (SIG\w+) \{si_signo=\w+, si_code=(-?\w+)(?:, si_addr=0x([0-9a-f]+))?")
_CALL = re.compile(r"\d+ (?:\w+\(|Unknown syscall)")
_FORKED = "log_files: forked by "
_EXECVE = "movl $0x3b, %eax"

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
    end: int  # after the last instruction
    repeats: bool  # the last one is a string instruction with REP
    leaves: bool  # the last one may go elsewhere than to `end`
    calls: bool  # the last one is a system call
    execs: bool = False  # execve


@dataclass(frozen=True)
class Doubt:
    """At instruction `index`, the first n of `ips` come in; n is one of `lengths`."""

    index: int
    ips: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass
class Run:
    """The execution of one thread of one program image."""

    pid: int
    tid: int
    program: int  # how many programs the process had before this one
    ips: array[int] = field(default_factory=lambda: array("Q"))
    doubts: list[Doubt] = field(default_factory=list)


@dataclass(frozen=True)
class _Signal:
    fault: bool  # of the instruction that is executed
    address: int | None


def environment(folder: Path) -> dict[str, str]:
    """Environment in which each qemu-x86_64, and each one that it starts, writes logs into `folder`.

    The folder gets the plugin that keeps the logs of processes apart.
    """
    plugin = folder / "log_files.so"
    compiled(plugin, "-O1", "-shared", "-fPIC", _SOURCE)
    return {
        "QEMU_LOG": ITEMS,
        "QEMU_LOG_FILENAME": f"{folder}/log.%d",
        "QEMU_PLUGIN": f"file={plugin}",
    }


def read(folder: Path) -> list[Run]:
    """The runs of all threads, in the order in which their first system calls were.

    Raises
    ------
    LogError
        If a log says what cannot be, or has instructions that the disassembler does not know.
    """
    files = sorted(map(_File, folder.glob("log.*.*.*")), key=lambda file: file.time)
    for file in files:
        firsts = [one.time for one in files if one.pid == one.tid == file.pid]
        file.program = sum(time <= file.time for time in firsts) - 1
        file.replaced = file.program + 1 < len(firsts)
    images: dict[tuple[int, int], _Image] = {}
    for file in files:
        image = images.setdefault((file.pid, file.program), _Image())
        parent = file.find_blocks(image)
        if parent is not None:
            image.parent = next(images[one.pid, one.program] for one in files if one.path.name == parent)
    return [_Reader(file, images[file.pid, file.program]).read() for file in files]


@dataclass
class _Image:
    """A program in a process: blocks by where their translations lie and begin, and its parent."""

    blocks: dict[tuple[int, int], set[Block]] = field(default_factory=dict)
    # By where they begin: translated by a thread that was killed before it entered them.
    unentered: dict[int, set[Block]] = field(default_factory=dict)
    parent: _Image | None = None

    def block(self, code: int, address: int) -> Block | None:
        """The one that some thread has translated, if there is only one."""
        found = self._entered(code, address) or self.unentered.get(address, set())
        return next(iter(found)) if len(found) == 1 else None

    def _entered(self, code: int, address: int) -> set[Block]:
        found = self.blocks.get((code, address), set())
        return found if found or self.parent is None else self.parent._entered(code, address)


def _known(lines: list[str]) -> list[str]:
    """The lines, by objdump if QEMU's disassembler does not know an instruction (capstone 4: RDSSP)."""
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
    text, before = "", ""
    for line in _known(lines):
        found = _INSN.match(line)
        if found is None or found[3].startswith((".byte", "(bad)")):
            raise LogError(f"no instruction: {line!r}")
        begin = int(found[1], 16)
        end = begin + len(found[2].split())
        if found[3].strip():
            ips.append(begin)
            text, before = " ".join(found[3].split()), text
    words = text.split()
    prefixes = set()
    while len(words) > 1 and words[0] in _PREFIXES:
        prefixes.add(words.pop(0))
    repeats = any(prefix.startswith("rep") for prefix in prefixes) and words[0].startswith(_STRINGS)
    leaves = _LEAVES.match(words[0]) is not None
    calls = words[0] == "syscall"
    return Block(tuple(ips), end, repeats, leaves, calls, calls and before == _EXECVE)


class _File:
    """The log of a thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pid, self.tid, self.time = map(int, path.name.split(".")[1:])
        self.program = 0
        self.replaced = False  # the process went on with another program

    def lines(self) -> Iterator[str | Block]:
        """Lines, and blocks where they were translated."""
        code: list[str] | None = None
        with self.path.open(encoding="latin-1") as file:
            for line in file:
                if code is None:
                    if line.endswith("----------------\n"):
                        code = []
                    else:
                        yield line
                elif line == "\n":
                    yield _block(code)
                    code = None
                elif not line.startswith("IN:"):
                    code.append(line.rstrip("\n"))

    def find_blocks(self, image: _Image) -> str | None:
        """Note where translations lie: a thread enters what it has translated.

        Returns the thread that forked this one, if one did.
        """
        parent = None
        fresh: Block | None = None
        for line in self.lines():
            if isinstance(line, Block):
                fresh = line
            elif fresh is not None and (found := _TRACE.search(line)) is not None:
                if fresh.ips[0] == int(found[3], 16):
                    image.blocks.setdefault((int(found[2], 16), fresh.ips[0]), set()).add(fresh)
                fresh = None
            elif line.startswith(_FORKED):
                parent = line.removeprefix(_FORKED).strip()
        if fresh is not None:
            image.unentered.setdefault(fresh.ips[0], set()).add(fresh)
        return parent


class _Reader:
    """From a thread's log to what it executed."""

    def __init__(self, file: _File, image: _Image) -> None:
        self.file = file
        self.image = image
        self.run = Run(file.pid, file.tid, file.program)
        self.fresh: Block | None = None  # was translated, and not yet entered
        self.mine: dict[int, Block] = {}  # the newest translations of this thread, by where they lie
        self.block: Block | None = None
        self.single = False
        self.before: Block | None = None  # left by its last instruction, a branch, to `block`
        self.called = False  # a system call has begun since `block` was entered
        self.signal: _Signal | None = None

    def read(self) -> Run:
        for line in self.file.lines():
            if isinstance(line, Block):
                self.fresh = line
            elif found := _TRACE.search(line):
                self._enter(int(found[2], 16), int(found[3], 16), int(found[4], 16))
            elif found := _SIGNAL.search(line):
                fault = found[1] in _FAULTS and found[2] not in _SENT
                self.signal = _Signal(fault, int(found[3], 16) if found[3] else None)
                self.before = None  # the block was begun
            elif found := _STOPPED.search(line):
                if self.block is None or self.block.ips[0] != int(found[2], 16):
                    raise LogError(f"{self.file.path.name}: {found[2]} was not entered")
                self.block = None
            elif _CALL.match(line):
                self.called = True
        self._end(self.block)
        return self.run

    def _end(self, block: Block | None) -> None:
        """The block that was entered last. Without a system call that ends the thread, it was killed.

        A recorder that only sees blocks begin then cannot know that the branch before this one was executed.
        """
        if block is not None and block.calls and (self.called or (block.execs and self.file.replaced)):
            return self._executed(block, [len(block.ips)])
        ips = () if block is None else block.ips
        if self.before is not None:
            ips = (self.run.ips.pop(), *ips)
        if ips:
            self.run.doubts.append(Doubt(len(self.run.ips), ips, tuple(range(len(ips) + 1))))

    def _enter(self, code: int, address: int, flags: int) -> None:
        single = flags & _MAX_INSNS == _ONE_INSN
        self.before = None
        if self.block is not None:
            lengths = self._lengths(self.block, address, single)
            self._executed(self.block, lengths)
            branched = self.block.leaves and lengths == [len(self.block.ips)] and self.signal is None
            self.before = self.block if branched and not self.called else None
        if self.fresh is not None and self.fresh.ips[0] == address:
            self.mine[code] = self.fresh
        self.fresh = None
        self.block = self.mine.get(code)
        if self.block is None or self.block.ips[0] != address:
            self.block = self.image.block(code, address)
        if self.block is None:
            raise LogError(f"{self.file.path.name}: which block is {address:#x}, translated at {code:#x}?")
        self.single = single
        self.called = False
        self.signal = None

    def _lengths(self, block: Block, to: int, to_single: bool) -> Sequence[int]:
        """How many instructions of the block can have been executed when the thread goes on at `to`."""
        count = len(block.ips)
        if block.repeats and to == block.ips[-1]:
            return [count - 1]
        if self.single and count == 1 and to == block.ips[0] and not block.leaves:
            return [0]  # left before it was executed, and entered again
        if to_single and not self.single and to in block.ips:
            return [block.ips.index(to)]
        if self.signal is None:
            if to != block.end and not block.leaves:
                raise LogError(f"{self.file.path.name}: from {block.ips[-1]:#x} to {to:#x}")
            return [count]
        if self.signal.fault:
            # There may be no code where the block leads to.
            whole = block.leaves or self.signal.address == block.end
            return range(count + 1 if whole else count)
        # Between two blocks; a string instruction may have been about to repeat.
        return [count - 1, count] if block.repeats else [count]

    def _executed(self, block: Block, lengths: Sequence[int]) -> None:
        if len(lengths) == 1:
            self.run.ips.extend(block.ips[: lengths[0]])
        else:
            self.run.doubts.append(Doubt(len(self.run.ips), block.ips, tuple(lengths)))


def by_thread(runs: Sequence[Run]) -> Mapping[int, list[Run]]:
    """Runs of each thread, in order."""
    threads: dict[int, list[Run]] = {}
    for run in runs:
        threads.setdefault(run.tid, []).append(run)
    return threads
