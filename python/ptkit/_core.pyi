"""The C++ core. Its names are not public. `tests/codebase/test_stubs.py` compares this file with it."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Buffer

from ptkit.errors import TraceWarning

_Cpuid = Sequence[int]
_Steps = list[tuple[str, int, int, str]]
_Output = tuple[int, int, _Steps, int]
# Readers with `whole` give a RunColumn in place of the array of `offset`.
_Columns = tuple[int, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]

class BranchKind(enum.IntEnum):
    COND = 0
    JUMP = 1
    JUMP_INDIRECT = 2
    CALL = 3
    CALL_INDIRECT = 4
    RETURN = 5
    FAR_CALL = 6
    FAR_RETURN = 7
    FAR_JUMP = 8
    SYSCALL = 9
    SYSRET = 10
    IRET = 11
    VMENTRY = 12
    VMEXIT = 13
    ASYNC = 14
    TX_ABORT = 15
    UNKNOWN = 16

class CallEnd(enum.IntEnum):
    RETURN = 0
    UNWIND = 1
    LONGJMP = 2
    TAIL = 3
    ABORT = 4
    SWITCH = 5
    GAP = 6
    END = 7

class CallFlag(enum.IntFlag):
    EXACT = 1
    PARENT_KNOWN = 2
    ENTRY_KNOWN = 4
    CALL_KNOWN = 8
    RETURN_KNOWN = 16
    CONTINUES_KNOWN = 32
    RECURSIVE = 64
    IN_TX = 128
    BEGIN_SEEN = 256
    TIME_KNOWN = 512
    END_TIME_KNOWN = 1024
    UNDECIDED = 2048
    IMPORT = 4096
    BEGINS_BEFORE = 8192
    ENDS_AFTER = 16384

class CallKind(enum.IntEnum):
    ROOT = 0
    CALL = 1
    TAIL = 2
    PLT = 3
    SIGNAL = 4
    INTERRUPT = 5
    SYSCALL = 6
    INLINED = 7
    THREAD = 8
    RESUMED = 9

class ErrorCode(enum.IntEnum):
    OK = 0
    END_OF_STREAM = 1
    NO_SYNC = 2
    BAD_OPCODE = 3
    BAD_PACKET = 4
    TRUNCATED_PACKET = 5
    BAD_IP_COMPRESSION = 6
    NO_IP = 7
    NO_CODE = 8
    BAD_INSN = 9
    TNT_MISMATCH = 10
    TIP_MISMATCH = 11
    FUP_MISMATCH = 12
    INFINITE_LOOP = 13
    RETURN_STACK_EMPTY = 14
    UNEXPECTED_PACKET = 15
    OVERFLOW_LOST = 16
    RING_WRAPPED = 17
    SWITCH_DAMAGED = 18
    NO_MEMORY = 19
    BAD_CONFIG = 20
    IO_ERROR = 21
    BAD_FILE = 22
    UNSUPPORTED = 23
    INTERRUPTED = 24
    BUFFER_FULL = 25
    RECORD_MISMATCH = 26
    BAD_RECORD = 27
    NO_PACKETS = 28
    NOT_TRACED = 29
    WALK_TOO_LONG = 30

class ErrorFlag(enum.IntFlag):
    IP_KNOWN = 1
    FILE_KNOWN = 2
    TIME_KNOWN = 64

class EventFlag(enum.IntFlag):
    IP_KNOWN = 1
    STATUS = 2
    RESUMED = 4
    NON_ROOT = 8
    HW = 16
    CR2_KNOWN = 32
    PAYLOAD_KNOWN = 64
    MULT = 128
    ICNT_KNOWN = 256
    TIME_KNOWN = 512
    QUALIFICATION_KNOWN = 1024

class EventKind(enum.IntEnum):
    ENABLED = 0
    DISABLED = 1
    ASYNC_DISABLED = 2
    ASYNC_BRANCH = 3
    OVERFLOW = 4
    PAGING = 5
    ASYNC_PAGING = 6
    VMCS = 7
    ASYNC_VMCS = 8
    EXEC_MODE = 9
    TSX_BEGIN = 10
    TSX_COMMIT = 11
    TSX_ABORT = 12
    STOP = 13
    EXSTOP = 14
    MWAIT = 15
    PWRE = 16
    PWRX = 17
    PTWRITE = 18
    CBR = 19
    MNT = 20
    TICK = 21
    IFLAG = 22
    INTERRUPT = 23
    IRET = 24
    SMI = 25
    RSM = 26
    SIPI = 27
    INIT = 28
    VMENTRY = 29
    VMEXIT = 30
    SHUTDOWN = 31
    UINTR = 32
    UIRET = 33
    TRIG = 34
    SWINTR = 35
    SYSCALL = 36
    PEBS_BEGIN = 37
    PEBS_ITEM = 38
    PEBS_END = 39
    EVENT_DATA = 40
    STATUS = 41

class FunctionFlag(enum.IntFlag):
    ENTRY_KNOWN = 1
    FILE_KNOWN = 2
    EXACT = 4
    PARENT_KNOWN = 8
    SYSCALL = 16
    INTERRUPT = 32
    TIME_KNOWN = 64
    INLINED = 128
    COUNT_EXACT = 256
    IMPORT = 512

class GapCause(enum.IntEnum):
    ERROR = 0
    OVERFLOW = 1
    LOST = 2
    START = 3
    TNT_DISABLED = 4
    TRACE_STOP = 5
    FILTERED = 6

class InsnClass(enum.IntEnum):
    OTHER = 0
    COND_JUMP = 1
    JUMP = 2
    JUMP_INDIRECT = 3
    CALL = 4
    CALL_INDIRECT = 5
    RETURN = 6
    FAR_CALL = 7
    FAR_RETURN = 8
    FAR_JUMP = 9
    PTWRITE = 10

class MomentFlag(enum.IntFlag):
    IP_KNOWN = 1
    FRAME_KNOWN = 2
    ENTRY_KNOWN = 4
    INNERMOST = 8
    SYSCALL = 16
    INTERRUPT = 32
    TIME_KNOWN = 64
    COVERED = 128
    IMPORT = 256

class PacketFlag(enum.IntFlag):
    IP_KNOWN = 1
    IP_BIT = 2
    NR = 4
    HW = 8
    MULT = 16
    ICNT = 32
    IN_PSB = 64
    TIME_KNOWN = 128

class PacketKind(enum.IntEnum):
    PAD = 0
    PSB = 1
    PSBEND = 2
    TNT_8 = 3
    TNT_64 = 4
    TIP = 5
    TIP_PGE = 6
    TIP_PGD = 7
    FUP = 8
    PIP = 9
    VMCS = 10
    MODE_EXEC = 11
    MODE_TSX = 12
    TSC = 13
    MTC = 14
    TMA = 15
    CYC = 16
    CBR = 17
    OVF = 18
    TRACE_STOP = 19
    MNT = 20
    PTW = 21
    EXSTOP = 22
    MWAIT = 23
    PWRE = 24
    PWRX = 25
    BBP = 26
    BIP = 27
    BEP = 28
    CFE = 29
    EVD = 30
    TRIG = 31
    INVALID = 32

class RecordFlag(enum.IntFlag):
    PREDICTED = 1
    PREDICTION_KNOWN = 2
    IN_TX = 4
    ABORT = 8
    FIRST = 16
    CODE32 = 32
    MAY_REPEAT = 64

class RowFlag(enum.IntFlag):
    FROM_KNOWN = 1
    TO_KNOWN = 2
    TAKEN = 4
    IN_TX = 8
    PREDICTED = 16
    PREDICTION_KNOWN = 32
    TIME_KNOWN = 64

class StackAnomaly(enum.IntEnum):
    RETURN_ELSEWHERE = 0
    SKIPPED_FRAMES = 1
    JUMP_INSIDE = 2
    SIGNAL_RETURN = 3
    INTERRUPT_RETURN = 4
    TOO_DEEP = 5
    ENTERED_ELSEWHERE = 6
    UNDECIDED = 7

class StackAnomalyFlag(enum.IntFlag):
    FROM_KNOWN = 1
    FRAME_KNOWN = 2
    EXPECTED_KNOWN = 4
    NO_CALL_BEFORE = 8
    TIME_KNOWN = 64

class TimeSource(enum.IntEnum):
    NONE = 0
    TSC = 1
    MTC = 2
    CYC = 3
    CBR = 4
    RECORD = 5

def records_of_ds(data: Buffer, record_bytes: int, bts_index: int | None = None) -> bytes: ...

class SymbolList:
    def __init__(self, path: str | bytes, data: Buffer) -> None: ...
    @property
    def kind(self) -> str: ...

class Bundle:
    format: str
    source: str
    def __init__(self) -> None: ...
    def add_stream(
        self,
        data: Buffer,
        *,
        name: str = "",
        cpu: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        space: int = 0,
        switches: Sequence[tuple[int, int | None, int | None, int]] = ...,
        by_offset: bool = False,
        kind: str = "packets",
    ) -> int: ...
    def add_stream_file(self, path: str | bytes) -> int: ...
    def outside_files(self, *, code: bool) -> list[str]: ...
    def add_space(self, *, pid: int | None = None, cr3: int | None = None) -> int: ...
    def add_code(
        self, address: int, data: Buffer, *, space: int = 0, cr3: int | None = None, name: str | bytes = ""
    ) -> int: ...
    def add_image(
        self,
        path: str | bytes,
        *,
        load_address: int | None = None,
        space: int = 0,
        cr3: int | None = None,
        in_memory: bool | None = None,
    ) -> int: ...
    def put_under_pages(self, added: int, over: Sequence[int] = ...) -> None: ...
    def image_bytes(self, file: int) -> int: ...
    def compare_with_pages(self, file: int) -> tuple[int, int]: ...
    def set_cpu(self, family: int, model: int, stepping: int = 0) -> None: ...
    def set_cs_base(self, base: int) -> None: ...
    def set_rtit_ctl(self, value: int) -> None: ...
    def spaces_of_cr3(self, cr3: int) -> list[int]: ...
    def set_sync(self, sync: bool) -> None: ...
    def begin_ring_at(self, offset: int) -> None: ...
    def set_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> None: ...
    def set_clock(
        self,
        *,
        tsc_ctc_ratio: tuple[int, int] | None = None,
        mtc_period: int | None = None,
        max_nonturbo_ratio: int | None = None,
        tsc_hz: int | None = None,
        perf_time: tuple[int, int, int] | None = None,
    ) -> None: ...
    @property
    def configuration(self) -> dict[str, Any]: ...
    @property
    def streams(self) -> list[dict[str, Any]]: ...
    @property
    def spaces(self) -> list[tuple[int | None, int | None]]: ...
    @property
    def code(self) -> list[tuple[int, int, bool, int, int]]: ...
    @property
    def code_count(self) -> int: ...
    @property
    def names(self) -> list[tuple[int, int, int, int, bool]]: ...
    @property
    def files(self) -> list[tuple[str, str]]: ...
    @property
    def threads(self) -> list[tuple[int | None, int | None, str]]: ...
    @property
    def metadata(self) -> str: ...
    @property
    def warnings(self) -> list[TraceWarning]: ...

def ask_driver() -> dict[str, Any]: ...
def ask_perf(what: str = "packets") -> dict[str, str]: ...

class HardwareRecorder:
    def run(self) -> dict[str, Any]: ...
    def request_stop(self) -> None: ...
    def request_detach(self) -> None: ...
    def snapshot(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def progress(self) -> tuple[int, int]: ...
    @property
    def pid(self) -> int: ...
    @property
    def started(self) -> bool: ...

class DriverRecorder(HardwareRecorder):
    def __init__(self, **options: Any) -> None: ...

class PerfRecorder(HardwareRecorder):
    def __init__(self, **options: Any) -> None: ...

class EmulatorRecorder:
    def __init__(self, **options: Any) -> None: ...
    def run(self) -> dict[str, Any]: ...
    def request_stop(self) -> None: ...
    def request_detach(self) -> None: ...
    def snapshot(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def progress(self) -> tuple[int, int]: ...
    @property
    def pid(self) -> int: ...

class Session:
    def __init__(
        self,
        bundle: Bundle,
        callback: Callable[[int, int, int], Buffer | None] | None = None,
        debug_folders: list[bytes] | None = None,
    ) -> None: ...
    def read_code(self, ip: int, size: int, space: int = 0, tsc: int = 0) -> bytes: ...
    def take_debug_problems(self) -> list[TraceWarning]: ...
    @property
    def kept_instructions(self) -> int: ...
    @property
    def decoded_bytes(self) -> int: ...
    @property
    def code_bits(self) -> list[int]: ...
    @property
    def filter_signs(self) -> int: ...
    def has_code(self) -> bool: ...
    @property
    def own_spaces(self) -> list[int]: ...
    @property
    def has_lists(self) -> bool: ...
    def tsc_to_ns(self, tsc: NDArray[np.uint64]) -> NDArray[np.int64]: ...

class StreamBytes:
    def __init__(self, bundle: Bundle, stream: int) -> None: ...
    def read(self, begin: int, end: int) -> bytes: ...

class NewFile:
    def __init__(self, path: str | bytes) -> None: ...
    def write(self, bytes: Buffer) -> None: ...
    def finish(self) -> None: ...

class LineWriter:
    def __init__(
        self,
        session: Session,
        modules: Sequence[bytes],
        cs_base: int = 0,
        file_offsets: bool = False,
        names: str = "symbol",
        short_names: bool = False,
    ) -> None: ...
    def show(self, names: Mapping[bytes, bytes]) -> None: ...
    def begin(self, rows: int) -> None: ...
    def literal(self, text: str) -> None: ...
    def begin_group(self) -> None: ...
    def end_group(self) -> None: ...
    def number(
        self,
        cells: NDArray[Any],
        form: str,
        *,
        known: NDArray[np.bool_] | None = None,
        unknown: str = "",
        before: str = "",
        after: str = "",
        width: int = 0,
    ) -> None: ...
    def label(
        self,
        cells: NDArray[Any],
        labels: Sequence[bytes],
        *,
        known: NDArray[np.bool_] | None = None,
        unknown: str = "",
    ) -> None: ...
    def texts(self, texts: list[bytes]) -> None: ...
    def address(
        self,
        style: str,
        end: str,
        ips: NDArray[np.uint64],
        spaces: NDArray[np.uint32],
        known: NDArray[np.bool_] | None = None,
        times: tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]] | None = None,
        from_ip: NDArray[np.uint64] | None = None,
        from_known: NDArray[np.bool_] | None = None,
    ) -> None: ...
    def names(
        self,
        from_ip: NDArray[np.uint64],
        from_known: NDArray[np.bool_] | None,
        to_ip: NDArray[np.uint64],
        to_known: NDArray[np.bool_] | None,
        indirect: NDArray[np.bool_] | None,
        spaces: NDArray[np.uint32],
        times: tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]] | None = None,
    ) -> None: ...
    def instruction(
        self,
        style: str,
        ips: NDArray[np.uint64],
        sizes: NDArray[np.uint8],
        modes: NDArray[np.uint8],
        spaces: NDArray[np.uint32],
        tsc: NDArray[np.uint64],
        time_known: NDArray[np.bool_],
    ) -> None: ...
    def packet(
        self,
        kinds: NDArray[np.uint8],
        payload: NDArray[np.uint64],
        payload2: NDArray[np.uint64],
        flags: NDArray[np.uint8],
        *,
        width: int = 0,
    ) -> None: ...
    def write(
        self,
        output: Callable[[memoryview], object],
        notes: Sequence[tuple[int, bytes]] = [],
        shown: NDArray[np.bool_] | None = None,
        *,
        strip: bool = True,
    ) -> None: ...

class CoverageResult:
    @property
    def bytes(self) -> int: ...
    @property
    def instructions(self) -> int: ...
    @property
    def branches(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def new_edges(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def gaps(self) -> int: ...
    @property
    def new_bits(self) -> int: ...

class Coverage:
    def __init__(
        self,
        session: Session,
        *,
        map_size: int,
        resync: str,
        ranges: Sequence[tuple[str, int, int]] | None = None,
        rtit_ctl: int | None = None,
        sync: bool = True,
        space: int = 0,
    ) -> None: ...
    def decode(
        self,
        buffer: Buffer | Sequence[Buffer],
        bitmap: NDArray[np.uint8] | None = None,
        virgin: NDArray[np.uint8] | None = None,
        *,
        clear: bool = False,
    ) -> CoverageResult: ...
    def edges(self) -> _Columns: ...
    def new_edges(self) -> _Columns: ...
    def edges_into(
        self,
        from_ip: NDArray[np.uint64] | None = None,
        to_ip: NDArray[np.uint64] | None = None,
        kind: NDArray[np.uint8] | None = None,
        count: NDArray[np.int64] | None = None,
    ) -> int: ...
    def errors(self) -> _Columns: ...
    def gaps(self) -> _Columns: ...
    def forget(self, first: int, last: int) -> None: ...
    def set_images(self, session: Session) -> None: ...

class Index:
    @staticmethod
    def build(session: Session, *, resync: str, threads: int, segment: int, trace: str | bytes) -> Index: ...
    @staticmethod
    def open(path: bytes, session: Session, *, resync: str, trace: str | bytes) -> Index: ...
    def with_sums(self, session: Session, *, resync: str, trace: str | bytes, sums: Buffer) -> Index: ...
    def sums(self) -> NDArray[np.uint8]: ...
    def save(self, path: bytes) -> None: ...
    def segments(self, stream: int) -> list[dict[str, Any]]: ...
    @property
    def size(self) -> int: ...
    @property
    def streams(self) -> int: ...

class RunColumn:
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def array(self) -> NDArray[Any]: ...

class RowBudget:
    def __init__(
        self,
        *,
        row_bytes: int = 0,
        after_bytes: int = 0,
        most_rows: int | None = None,
        estimate: bool = True,
        root: str = "",
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def expected_rows(self) -> int: ...

class BlockCounts:
    def __init__(self) -> None: ...
    def add(
        self,
        ip: NDArray[np.uint64],
        instructions: NDArray[np.int32],
        mode: NDArray[np.uint8],
        space: NDArray[np.uint32],
    ) -> None: ...
    def instructions(self, session: Session) -> dict[str, NDArray[Any]]: ...

class CallQuery:
    def __init__(
        self,
        session: Session,
        *,
        streams: Sequence[int],
        selection: dict[str, Any],
        engine: str,
        resync: str,
        threads: int,
        time: bool,
        tails_replaced: bool = False,
        frames: str = "native",
        inlines: bool = False,
        budget: RowBudget | None = None,
        window: tuple[int, int] | None = None,
        window_by: str = "time",
        select_sides: bool = False,
        index: Index | None = None,
        states: Sequence[Buffer] = ...,
    ) -> None: ...
    @property
    def refused_bytes(self) -> int: ...
    def calls(
        self, columns: Sequence[str], with_sums: bool = False
    ) -> tuple[tuple[_Columns, _Columns, CallNotes, dict[str, _Columns] | None], _Columns, _Columns]: ...
    def sums(
        self, *, tree: bool, kept: bool, noted: bool = False
    ) -> tuple[tuple[dict[str, _Columns], list[NDArray[np.uint8]]], _Columns, _Columns]: ...
    def frames_at(self, places: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64]]]) -> _Columns: ...
    def moments(self, least: NDArray[np.uint64], most: NDArray[np.uint64]) -> _Columns: ...
    def names_python(self) -> bool: ...

class CallNotes:
    def functions(
        self, columns: dict[str, NDArray[Any]], rows: int, *, by: str, tails_replaced: bool
    ) -> _Columns | None: ...
    def tree(self, columns: dict[str, NDArray[Any]], rows: int) -> _Columns | None: ...
    def parts(
        self, columns: dict[str, NDArray[Any]], rows: int, more: dict[str, NDArray[np.uint8]], kinds: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def outermost(
        self, columns: dict[str, NDArray[Any]], rows: int, more: dict[str, NDArray[np.uint8]]
    ) -> NDArray[np.uint8]: ...
    def names(self) -> _Columns: ...

class CallReader:
    def __init__(self, query: CallQuery, *, columns: Sequence[str]) -> None: ...
    def read(self, rows: int) -> tuple[_Columns, _Columns, _Columns]: ...

class Reader:
    def __init__(
        self,
        session: Session,
        table: str,
        *,
        columns: Sequence[str],
        streams: Sequence[int],
        selection: dict[str, Any],
        engine: str,
        resync: str,
        time: bool,
        context: bool,
        ticks: bool,
        sync: bool,
        side_tables: bool,
        select_sides: bool = False,
        whole: bool = False,
        threads: int = 1,
        index: Index | None = None,
        budget: RowBudget | None = None,
    ) -> None: ...
    def read(self, rows: int | None, stop_on_error: bool = False) -> _Columns: ...
    def reserve(self, rows: int) -> None: ...
    def make_part(self, rows: int) -> None: ...
    def fill(
        self, stop_on_error: bool = False
    ) -> tuple[int, dict[str, NDArray[Any]], bool, dict[str, NDArray[Any]]]: ...
    def errors(self) -> _Columns | None: ...
    def gaps(self) -> _Columns | None: ...
    @property
    def prefers_segments(self) -> bool: ...
    @property
    def error_rows(self) -> int: ...
    @property
    def instructions(self) -> int: ...
    @property
    def bytes_done(self) -> int: ...
    @property
    def bytes_total(self) -> int: ...

_Names = tuple[int, NDArray[np.int32], NDArray[np.uint8]]
_Field = tuple[str, str, str, NDArray[Any], NDArray[np.uint8] | None, int, _Names | None]

def arrow_array(rows: int, fields: Sequence[_Field]) -> tuple[Any, Any]: ...
def arrow_stream(rows: int, fields: Sequence[_Field]) -> Any: ...
def stream_span(session: Session, stream: int) -> tuple[int, int] | None: ...
def stream_switches(session: Session, stream: int) -> list[tuple[int, int, int, int]]: ...
def stream_threads(session: Session, stream: int) -> set[tuple[int, int]]: ...
def count_packets(session: Session, stream: int, sync: bool) -> dict[str, Any]: ...
def edge_hash(from_ip: NDArray[np.uint64], to_ip: NDArray[np.uint64]) -> NDArray[np.uint32]: ...
def disassemble(code: Buffer, ip: int, mode: int, cs_base: int = 0) -> str: ...
def encode_packets(
    kind: NDArray[Any],
    payload: NDArray[Any],
    payload2: NDArray[Any],
    flags: NDArray[Any],
    *,
    block_items: int = 0,
) -> bytes: ...
def engines() -> list[str]: ...
def event_texts(
    kind: ArrayLike,
    payload: ArrayLike,
    payload2: ArrayLike,
    payload3: ArrayLike,
    flags: ArrayLike,
    *,
    annotated: bool = False,
) -> list[str]: ...
def describe_content(head: bytes) -> str: ...
def mode_of_new_file(path: bytes) -> int: ...
def refused_output(path: bytes) -> str: ...
def make_warning(code: str, arguments: Sequence[str], place: str) -> TraceWarning: ...
def formats() -> list[tuple[str, str, bool]]: ...
def instruction_size(code: Buffer, mode: int) -> int: ...
def isa() -> str: ...
def isas() -> list[str]: ...
def lookup_symbol(
    session: Session, name: str, files: Sequence[int] = ()
) -> list[tuple[str, int, int, int, int]]: ...
def mappings(session: Session) -> dict[str, NDArray[Any]]: ...
def match_symbols(
    session: Session, pattern: str, with_names: bool = True
) -> list[tuple[str, int, int, int, int]]: ...
def memory_left(root: str = "") -> tuple[int, str]: ...
def msr_bts(
    area: int, buffer: int, bytes: int, reserve: int, *, os: bool, user: bool, bits32: bool, netburst: bool
) -> tuple[_Steps, _Steps, _Steps, _Steps]: ...
def msr_capabilities(cpuid: Sequence[_Cpuid]) -> dict[str, Any]: ...
def msr_check_values(
    registers: dict[str, Any], cpuid: Sequence[_Cpuid] | None
) -> list[tuple[int, str, str, str, str]]: ...
def msr_check(
    fields: dict[str, Any], cpuid: Sequence[_Cpuid] | None
) -> list[tuple[int, str, str, str, str]]: ...
def msr_cpuid() -> list[list[int]]: ...
def msr_explain(name: str, value: int) -> list[tuple[str, int, int, int, str]]: ...
def msr_fields(ctl: int) -> dict[str, Any]: ...
def msr_from_perf(text: str) -> dict[str, Any]: ...
def msr_program(sequence: str, fields: dict[str, Any], next: dict[str, Any] | None) -> _Steps: ...
def msr_registers() -> list[tuple[int, str, str]]: ...
def msr_single_range(base: int, bytes: int) -> _Output: ...
def msr_to_perf(fields: dict[str, Any]) -> tuple[str, int, list[str]]: ...
def msr_topa(
    table: int,
    regions: Sequence[tuple[int, int]],
    interrupt_bytes: int,
    ring: bool,
    largest_size: int,
    cpuid: Sequence[_Cpuid] | None,
) -> _Output: ...
def msr_values(fields: dict[str, Any]) -> dict[str, Any]: ...

_Times = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]]

def name_lines(
    session: Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    times: _Times | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.uint64], list[str]]: ...
def name_inlined(
    session: Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    known: NDArray[np.bool_] | None,
    times: _Times | None,
    levels: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], list[str]]: ...
def inline_levels(
    session: Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]
) -> NDArray[np.uint8]: ...
def source_frames(
    session: Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    times: _Times | None = None,
) -> list[tuple[str, str, int]]: ...
def name_files(
    session: Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    known: NDArray[np.bool_] | None = None,
    times: _Times | None = None,
    offsets: bool = True,
    rva: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]: ...
def code_regions(session: Session) -> list[tuple[int, int, int, int, int, int]]: ...
def find_regions(
    session: Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], times: _Times | None = None
) -> NDArray[np.int32]: ...
def anon_memory(session: Session) -> list[tuple[str, int, int, int]]: ...
def name_symbols(
    session: Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    known: NDArray[np.bool_] | None = None,
    times: _Times | None = None,
    offsets: bool = True,
    imports: bool = False,
    modules: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.uint64], list[str]]: ...
def has_imports(session: Session) -> bool: ...
def add_modules(bundle: Bundle, symbols: SymbolList) -> None: ...
def add_symbols(
    bundle: Bundle, symbols: SymbolList, base: int | None = None, cr3: int | None = None
) -> None: ...
def open_bundle(
    path: str | bytes,
    format: str = "",
    binaries: Sequence[str | bytes] = [],
    bts_index: int | None = None,
    without_psb: bool = False,
) -> Bundle: ...
def open_bundle_bytes(
    name: str | bytes,
    data: Buffer,
    format: str = "",
    binaries: Sequence[str | bytes] = [],
    bts_index: int | None = None,
    without_psb: bool = False,
) -> Bundle: ...
def packet_texts(
    kind: ArrayLike, payload: ArrayLike, payload2: ArrayLike, flags: ArrayLike, *, annotated: bool = False
) -> list[tuple[str, str, str]]: ...
def pool_bytes() -> int: ...
def read_all(
    readers: Sequence[Reader], threads: int
) -> tuple[_Columns, _Columns | None, _Columns | None]: ...
def record_steps(*, progress: Callable[[int], None] | None = ..., **options: Any) -> dict[str, Any]: ...
def reference_version() -> tuple[str, tuple[int, int]] | None: ...
def save_bundle(bundle: Bundle, path: bytes, *, redact: bool = False) -> int: ...
def schema() -> dict[str, dict[str, Any]]: ...
def set_pool_limit(bytes: int) -> None: ...
def short_names(names: list[str]) -> list[str]: ...
def similar_names(name: str, among: list[str], limit: int = 5) -> list[str]: ...
def similar_symbols(session: Session, name: str, limit: int = 5) -> list[str]: ...
def status_text(code: int) -> tuple[str, str]: ...
def sums_identity(session: Session) -> int: ...
def trim_memory(keep: int = 0) -> int: ...
def write_file(path: bytes, contents: Buffer) -> None: ...
def write_perf_data(bundle: Bundle, path: bytes, *, code: str = "needed") -> dict[str, Any]: ...
