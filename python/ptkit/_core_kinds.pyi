"""Enumerations of the core. Made by `tools/make_stub.py`: do not edit."""

import enum

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

class StackFlag(enum.IntFlag):
    IP_KNOWN = 1
    FRAME_KNOWN = 2
    ENTRY_KNOWN = 4
    INNERMOST = 8
    SYSCALL = 16
    INTERRUPT = 32
    TIME_KNOWN = 64
    COVERED = 128
    IMPORT = 256

class TimeSource(enum.IntEnum):
    NONE = 0
    TSC = 1
    MTC = 2
    CYC = 3
    CBR = 4
    RECORD = 5
