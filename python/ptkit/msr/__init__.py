"""The registers of Processor Trace: what values mean, which a processor takes, in which order it gets them.

Section names are those of the Intel SDM, volume 3, chapter "Intel Processor Trace".

>>> from ptkit import msr
>>> for field in msr.explain("RTIT_CTL", 0x2409):
...     if field.value:
...         print(field.name, "-", field.words)
TraceEn - traces
User - traces CPL 1 to 3
TSCEn - TSC packets
BranchEn - packets of branches
>>> config = msr.RtitConfig(user=True, branch_en=True, mtc_en=True, mtc_freq=3)
>>> config = msr.with_single_range(config, 0x100000, 1 << 20)
>>> print(msr.plan(config)[-1])
write IA32_RTIT_CTL = 0xe209: tracing begins: TraceEn, User, MTCEn, BranchEn, MTCFreq 3
"""

from ptkit.msr.config import RtitConfig, config_of, from_perf, to_perf
from ptkit.msr.cpuid import explain_cpuid
from ptkit.msr.numbers import number
from ptkit.msr.records import Capabilities, CpuidField, FieldValue, Register, Step, Violation
from ptkit.msr.registers import capabilities, explain, register, registers
from ptkit.msr.sequences import SEQUENCES, bts_plan, check, plan, with_single_range, with_topa
from ptkit.msr.written import RegisterCheck, check_registers

__all__ = [
    "SEQUENCES",
    "Capabilities",
    "CpuidField",
    "FieldValue",
    "Register",
    "RegisterCheck",
    "RtitConfig",
    "Step",
    "Violation",
    "bts_plan",
    "capabilities",
    "check",
    "check_registers",
    "config_of",
    "explain",
    "explain_cpuid",
    "from_perf",
    "number",
    "plan",
    "register",
    "registers",
    "to_perf",
    "with_single_range",
    "with_topa",
]
