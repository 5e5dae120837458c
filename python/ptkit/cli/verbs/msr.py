"""``ptkit msr``: registers of tracing in words."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from ptkit import msr
from ptkit.cli import common
from ptkit.cli.addresses import ADDRESSES, DecimalAddress, note_decimals
from ptkit.cli.output.json_values import hexadecimal, print_document, with_hexadecimals
from ptkit.cli.output.terminal import print_text
from ptkit.errors import ConfigError, OpenError
from ptkit.msr.numbers import assignments, is_decimal
from ptkit.support.inputs import is_pipe, read_pipe, read_regular
from ptkit.support.memory import free

DESCRIPTION = """\
  explain REGISTER VALUE   what a value means, field by field
  check REGISTER=VALUE...  what is wrong with values that a driver has written, by the manual's rules, and
                           what may have set STATUS.Error; exit status 1: a processor would refuse it
  plan OPTIONS             the sequence of register accesses for a configuration, and what the manual's rules
                           say about it; exit status 1: a processor would refuse it
  bts OPTIONS              the same for Branch Trace Store
  cpuid [FILE]             what CPUID leaves 07H, 14H and 15H say of tracing, field by field
  list                     the registers, by number and name
Numbers are 0x2409, WinDbg's fffff806`85380000 and what it prints of registers, or decimal digits; those of
registers are hexadecimal: 570 is 0x570. No register is written."""
EXAMPLES = """examples:
  ptkit msr explain 0x570 0x2409
  ptkit msr explain 570 '00000000`0000240c'
  ptkit msr explain DEBUGCTL 0x1c0
  ptkit msr check 0x560=0x12340000 0x561=0x7f 0x570=0x2409 0x571=0x10
  ptkit msr check 'msr[570] = 00000000`0000240d'
  ptkit msr explain DEBUGCTLA 0x1c
  ptkit msr plan --user --tsc --mtc-period 3 --filter 0x401000-0x401fff --cr3 0x12345000 --single 1M
  ptkit msr plan --os --cyc --topa 64M --interrupt-every 16M --sequence start --sequence interrupt
  ptkit msr plan --perf intel_pt/tsc,mtc,mtc_period=3/u --json
  ptkit msr bts 64K --user --reserve 100
  ptkit msr bts 64K --reserve 100 --bits32 --netburst
  ptkit msr cpuid
  cpuid -1 -r | ptkit msr cpuid /dev/stdin"""

_WORD = re.compile(r"(?:0[xX])?[0-9a-fA-F]{8}")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
_FLAGS = {
    "--user": ("user", True, "trace CPL 1 to 3"),
    "--os": ("os", True, "trace CPL 0"),
    "--tsc": ("tsc_en", True, "TSC packets"),
    "--mtc": ("mtc_en", True, "MTC packets"),
    "--cyc": ("cyc_en", True, "CYC packets"),
    "--no-return-compression": ("dis_retc", True, "every RET as a TIP packet"),
    "--no-branches": ("branch_en", False, "no packets about branches"),
    "--no-tnt": ("dis_tnt", True, "no TNT packets"),
    "--ptw": ("ptw_en", True, "PTW packets for PTWRITE"),
    "--fup-on-ptw": ("fup_on_ptw", True, "a FUP after each PTW packet"),
    "--power": ("pwr_evt_en", True, "packets about power events"),
    "--events": ("event_en", True, "packets about events (CFE, EVD)"),
}
# Values, and the bit without which they mean nothing.
_VALUES = {
    "--mtc-period": ("mtc_freq", "mtc_en", "the field MTCFreq; with --mtc"),
    "--cyc-threshold": ("cyc_thresh", "cyc_en", "the field CycThresh; with --cyc"),
}
_BTS_SEQUENCES = ("before", "start", "interrupt", "stop")
# Default addresses of the output: any address will do, as nothing is written.
_BASE = 1 << 32
_TABLE = _BASE - (1 << 24)
_LEAST_PSB = 2048


def _size(text: str) -> int:
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: write bytes, such as 4096, 64K, 4M or 1G")
    return common.number()(digits) << _UNITS[unit]


def msr_number(text: str) -> int:
    """Read a number of 64 bits as WinDbg, the manual and C write it."""
    try:
        value = msr.number(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return DecimalAddress(value) if is_decimal(text) else value


def _range(text: str) -> tuple[int, int]:
    first, separator, last = text.partition("-")
    if not separator or not first:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range: write FIRST-LAST, such as 0x1000-0x1fff")
    return msr_number(first), msr_number(last)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    explain = actions.add_parser("explain", help="what a value means")
    explain.add_argument("register", metavar="REGISTER", help="number or name, such as 0x570 or RTIT_CTL")
    explain.add_argument("value", metavar="VALUE", type=msr_number, help="64 bits, such as 0x2409")
    common.add_json_option(explain)
    check = actions.add_parser("check", help="what is wrong with values of registers")
    check.add_argument(
        "values",
        metavar="REGISTER=VALUE",
        nargs="+",
        help="such as 0x570=0x2409, or lines of WinDbg's rdmsr; - reads them from standard input",
    )
    _add_cpuid(check)
    common.add_json_option(check)
    plan = actions.add_parser("plan", help="the sequence of register accesses")
    _add_plan(plan)
    common.add_json_option(plan)
    bts = actions.add_parser("bts", help="the sequence of register accesses for Branch Trace Store")
    bts.add_argument("size", metavar="BYTES", type=_size, help="size of the buffer")
    bts.add_argument("--os", action="store_true", help="store branches at CPL 0")
    bts.add_argument("--user", action="store_true", help="store branches at CPL 1 to 3 (neither: both)")
    bts.add_argument(
        "--reserve",
        metavar="RECORDS",
        type=common.number(),
        default=0,
        help="interrupt when space for so many records is left (default: none, the buffer is a ring)",
    )
    bts.add_argument(
        "--bits32", action="store_true", help="DS area and records of a 32-bit system: words of 4 bytes"
    )
    bts.add_argument(
        "--netburst", action="store_true", help="bits of MSR_DEBUGCTLA: NetBurst (Pentium 4, family 15)"
    )
    bts.add_argument(
        "--buffer", metavar="ADDRESS", type=msr_number, default=0x200000, help="address of the buffer"
    )
    bts.add_argument(
        "--area", metavar="ADDRESS", type=msr_number, default=0x100000, help="address of the DS area"
    )
    bts.add_argument(
        "--sequence",
        choices=_BTS_SEQUENCES,
        action="append",
        help="sequence to print; may be repeated (default: all)",
    )
    common.add_json_option(bts)
    cpuid = actions.add_parser("cpuid", help="CPUID leaves about tracing")
    cpuid.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="words as `cpuid -r` prints them (default: those of this processor)",
    )
    common.add_json_option(cpuid)
    listing = actions.add_parser("list", help="the registers")
    common.add_json_option(listing)


def _add_cpuid(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--cpuid",
        metavar="FILE",
        help="file with CPUID words, as `cpuid -r` prints them (default: those of this processor; without "
        "Processor Trace, of one with every feature)",
    )


def _add_plan(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is traced", ADDRESSES)
    group.add_argument("--perf", metavar="EVENT", help="begin with an event of perf, such as intel_pt/tsc/u")
    for option, (field, value, help) in _FLAGS.items():
        group.add_argument(option, dest=field, action="store_const", const=value, help=help)
    for option, (field, _, help) in _VALUES.items():
        group.add_argument(option, dest=field, metavar="N", type=common.number(), help=help)
    group.add_argument("--psb-period", metavar="BYTES", type=_size, help="bytes between PSBs: a power of two")
    group.add_argument(
        "--cr3", metavar="VALUE", type=msr_number, help="trace only with this CR3: one process"
    )
    # Verbs that decode call the same ranges --range and --stop-range.
    ranges = {
        ("--filter", "--range"): "trace only code in a range, both ends inclusive",
        ("--trace-stop", "--stop-range"): "stop where a range is entered",
    }
    for names, help in ranges.items():
        group.add_argument(
            *names,
            metavar="FIRST-LAST",
            type=_range,
            action="append",
            default=[],
            help=f"{help}; up to four",
        )
    group = parser.add_argument_group("where output goes")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--topa", metavar="BYTES", type=_size, help="tables of physical addresses (default: 4M)"
    )
    where.add_argument("--single", metavar="BYTES", type=_size, help="one range of memory")
    group.add_argument(
        "--base",
        metavar="ADDRESS",
        type=msr_number,
        default=_BASE,
        help="physical address of the memory",
    )
    group.add_argument(
        "--table",
        metavar="ADDRESS",
        type=msr_number,
        default=_TABLE,
        help="physical address of the tables",
    )
    group.add_argument(
        "--interrupt-every",
        metavar="BYTES",
        type=_size,
        default=0,
        help="set INT in a table entry after so many bytes",
    )
    group.add_argument(
        "--stop-when-full", action="store_true", help="set STOP in the last table entry (default: a ring)"
    )
    group = parser.add_argument_group("processor and sequence")
    _add_cpuid(group)
    group.add_argument(
        "--sequence",
        choices=msr.SEQUENCES,
        action="append",
        help="sequence to print; may be repeated (default: start, stop)",
    )


def run(options: argparse.Namespace) -> int:
    """Explain, plan or list."""
    note_decimals(options)
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "explain": _explain,
        "check": _check,
        "plan": _plan,
        "bts": _bts,
        "cpuid": _cpuid,
        "list": _list,
    }
    return actions[options.action](options)


def _list(options: argparse.Namespace) -> int:
    if options.json:
        rows = [with_hexadecimals(asdict(row), {"number"}) for row in msr.registers()]
        print_document("msr list", {"registers": rows})
        return 0
    for row in msr.registers():
        print(f"{row.number:#7x}  {row.name:<28} {row.words}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    register = msr.register(options.register)
    fields = msr.explain(register.name, options.value)
    if options.json:
        rows = [with_hexadecimals(asdict(field), {"value"}) for field in fields]
        about = with_hexadecimals(asdict(register), {"number"})
        members = {"register": about, "value": hexadecimal(options.value), "fields": rows}
        print_document("msr explain", members)
        return 0
    print(f"{register.name} ({register.number:#x}) = {options.value:#x}: {register.words}")
    for field in fields:
        value = f"{field.value:#x}" if field.width > 8 else str(field.value)
        print(f"  {field.bits:>5}  {field.name:<24} {value:>12}  {field.words}")
    if register.name == "IA32_DEBUGCTL" and _of_netburst(options.value):
        print(
            "note: bits 2 and 3 are TR and BTS of MSR_DEBUGCTLA, which NetBurst processors (Pentium 4) have "
            f"under this number: ptkit msr explain DEBUGCTLA {options.value:#x}"
        )
    return 0


def _check(options: argparse.Namespace) -> int:
    lines = sys.stdin.read() if options.values == ["-"] else " ".join(options.values)
    values: dict[int | str, int | str] = {}
    for name, value in assignments(lines):
        register = msr.register(name)
        if register.number in values:
            raise ConfigError(f"{register.name} ({register.number:#x}) is given twice")
        values[register.number] = value
        if is_decimal(value) and value != "0" and len(value) > 1:
            print_text(
                f"ptkit msr: note: {register.name}={value} is decimal; hexadecimal is 0x{value}", errors=True
            )
    found, processor = _capabilities(options)
    checked = msr.check_registers(values, found)
    if options.json:
        document = {
            "processor": processor,
            "violations": [asdict(violation) for violation in checked.violations],
            "registers": {name: hexadecimal(value) for name, value in checked.registers.items()},
            "notes": checked.notes,
            "causes": checked.causes,
        }
        print_document("msr check", document)
        return 1 if checked.refused else 0
    print(f"checked against {processor}")
    for violation in checked.violations:
        print(f"{'refused' if violation.refused else 'note'}: {violation}")
    for note in checked.notes:
        print(f"note: {note}")
    for cause in checked.causes:
        print(f"cause: {cause}")
    if not checked.violations:
        print("no rule is broken")
    return 1 if checked.refused else 0


def _cpuid(options: argparse.Namespace) -> int:
    found = msr.capabilities(None if options.file is None else _cpuid_text(options.file))
    fields = msr.explain_cpuid(found)
    if options.json:
        rows = [with_hexadecimals(asdict(field), {"value"}) for field in fields]
        print_document("msr cpuid", {"present": found.present, "fields": rows})
        return 0
    if not fields:
        print("no leaf about tracing (07H, 14H, 15H)")
    for field in fields:
        value = f"{field.value:#x}" if field.width > 3 else str(field.value)
        print(f"{field.location:<17}  {field.name:<14} {value:>10}  {field.words}")
    return 0


def _of_netburst(debugctl: int) -> bool:
    """Whether TR and BTS are set as NetBurst has them, and not as later processors do."""
    return debugctl & 0xCC == 0xC


def _cpuid_text(path: str) -> str:
    if _WORD.fullmatch(path) and not Path(path).exists():
        raise ConfigError(
            f"{path} is one word: give a file with lines as `cpuid -r` prints them, such as "
            "0x00000014 0x01: eax=0x02490002 ebx=0x003f3fff ecx=0x00000000 edx=0x00000000"
        )
    data = read_pipe(path, *free()) if is_pipe(path) else read_regular(path)
    return data.decode(errors="replace")


def _capabilities(options: argparse.Namespace) -> tuple[msr.Capabilities | None, str]:
    """The processor, None for one that can do everything, and in words which one that is."""
    if options.cpuid is not None:
        try:
            text = _cpuid_text(options.cpuid)
        except OpenError as error:
            raise OpenError(f"--cpuid {error}") from None
        found = msr.capabilities(text)
        if not found.present:
            raise ConfigError(f"--cpuid {options.cpuid}: a processor without Processor Trace (leaf 7)")
        return found, f"the words of {options.cpuid}"
    here = msr.capabilities()
    if here.present:
        return here, "this processor"
    return None, "a unit that can do everything, as this processor has none (--cpuid FILE: that of another)"


def _config(options: argparse.Namespace) -> msr.RtitConfig:
    config = msr.RtitConfig(branch_en=True) if options.perf is None else msr.from_perf(options.perf)
    changes = {}
    for field, _, _ in _FLAGS.values():
        if (value := getattr(options, field)) is not None:
            changes[field] = value
    for field, enable, _ in _VALUES.values():
        if (value := getattr(options, field)) is not None:
            changes[field] = value
            changes[enable] = True
    if options.psb_period is not None:
        changes["psb_freq"] = _psb_freq(options.psb_period)
    if options.cr3 is not None:
        changes |= {"cr3_filter": True, "cr3_match": options.cr3}
    ranges = [(1, span) for span in options.filter] + [(2, span) for span in options.trace_stop]
    if len(ranges) > 4:
        raise ConfigError(f"--filter, --trace-stop: there are four ranges, and {len(ranges)} were given")
    for index, (use, _) in enumerate(ranges):
        changes[f"addr{index}_cfg"] = use
    return replace(config, **changes, addr=tuple(span for _, span in ranges))


def _psb_freq(period: int) -> int:
    if period < _LEAST_PSB or period & (period - 1):
        raise ConfigError(f"--psb-period {period}: it must be a power of two, {_LEAST_PSB} at least")
    return period.bit_length() - _LEAST_PSB.bit_length()


def _with_output(
    config: msr.RtitConfig, options: argparse.Namespace, found: msr.Capabilities | None
) -> tuple[msr.RtitConfig, list[msr.Step]]:
    if options.single is not None:
        if options.interrupt_every or options.stop_when_full:
            raise ConfigError("--single: one range has neither interrupts nor an end; use --topa")
        return msr.with_single_range(config, options.base, options.single), []
    size = options.topa if options.topa is not None else 4 << 20
    return msr.with_topa(
        config,
        options.table,
        [(options.base, size)],
        interrupt_bytes=options.interrupt_every,
        ring=not options.stop_when_full,
        found=found,
    )


def _plan(options: argparse.Namespace) -> int:
    found, processor = _capabilities(options)
    config, memory = _with_output(_config(options), options, found)
    if not (config.os or config.user or config.pwr_evt_en):
        raise ConfigError("nothing would be traced: give --user, --os or both, or a perf event by --perf")
    violations = msr.check(config, found)
    refused = any(violation.refused for violation in violations)
    names = options.sequence or ["start", "stop"]
    plans = {} if refused else {name: msr.plan(config, name) for name in names}
    event, lost = msr.to_perf(config)
    if options.json:
        print_document(
            "msr plan",
            {
                "processor": processor,
                "violations": [asdict(violation) for violation in violations],
                "registers": {name: hexadecimal(value) for name, value in config.registers.items()},
                "memory": [] if refused else _step_rows(memory),
                "sequences": {name: _step_rows(steps) for name, steps in plans.items()},
                "perf": {"event": event, "lost": lost},
            },
        )
        return 1 if refused else 0
    print(f"checked against {processor}")
    for violation in violations:
        print(f"{'refused' if violation.refused else 'note'}: {violation}")
    if refused:
        return 1
    _print_steps("before", memory)
    for name, steps in plans.items():
        _print_steps(name, steps)
    print(f"perf: -e {event}" + (f" (not said by it: {', '.join(lost)})" if lost else ""))
    return 0


def _bts(options: argparse.Namespace) -> int:
    both = options.os == options.user
    plans = msr.bts_plan(
        options.size,
        buffer=options.buffer,
        area=options.area,
        reserve=options.reserve,
        os=both or options.os,
        user=both or options.user,
        bits32=options.bits32,
        netburst=options.netburst,
    )
    if options.sequence:
        if "interrupt" in options.sequence and "interrupt" not in plans:
            raise ConfigError("--sequence interrupt: a ring has no interrupt; give --reserve RECORDS")
        plans = {name: plans[name] for name in options.sequence}
    if options.json:
        rows = {name: _step_rows(steps) for name, steps in plans.items()}
        print_document("msr bts", {"sequences": rows})
        return 0
    for name, steps in plans.items():
        _print_steps(name, steps)
    return 0


def _step_rows(steps: list[msr.Step]) -> list[dict[str, object]]:
    rows = [
        {"place" if name == "address" else name: value for name, value in asdict(step).items()}
        for step in steps
    ]
    return [with_hexadecimals(row, {"place", "value"}) for row in rows]


def _print_steps(title: str, steps: list[msr.Step]) -> None:
    if steps:
        print(f"{title}:")
    for number, step in enumerate(steps, 1):
        print(f"  {number:2}. {step}")
