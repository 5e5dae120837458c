/* SPDX-License-Identifier: MIT */
/*
 * The model-specific registers of Processor Trace, Branch Trace Store and last branch records, and the CPUID
 * words that describe them: numbers and bits. Shared by drivers and by the C++ core; no includes. Source:
 * Intel SDM vol. 3, chapters "Intel Processor Trace" (section "Configuration and Control"), "Debug, Branch
 * Profile, TSC, ..." and "Last Branch Records"; numbers: vol. 4.
 */
#ifndef PTKIT_RTIT_REGS_H
#define PTKIT_RTIT_REGS_H

/* Register numbers. */
#define PT_MSR_RTIT_OUTPUT_BASE 0x560
#define PT_MSR_RTIT_OUTPUT_MASK_PTRS 0x561
#define PT_MSR_RTIT_CTL 0x570
#define PT_MSR_RTIT_STATUS 0x571
#define PT_MSR_RTIT_CR3_MATCH 0x572
#define PT_MSR_RTIT_ADDR0_A 0x580 /* ADDRn_A = 0x580 + 2 n, ADDRn_B = 0x581 + 2 n, n < 4 */
#define PT_MSR_RTIT_ADDR_COUNT 4

/* OUTPUT_BASE: physical address, bits 6:0 reserved. */
#define PT_OUTPUT_BASE_SHIFT 7

/* OUTPUT_MASK_PTRS. The lowest bits always read as ones. */
#define PT_OUTPUT_MASK_LOWEST 0x7f
#define PT_OUTPUT_TABLE_OFFSET_SHIFT 7 /* index of the entry in the ToPA table */
#define PT_OUTPUT_TABLE_OFFSET_WIDTH 25
#define PT_OUTPUT_OFFSET_SHIFT 32
#define PT_OUTPUT_OFFSET_WIDTH 32

/* CR3_MATCH: bits 4:0 reserved. */
#define PT_CR3_MATCH_SHIFT 5

/* Entries of a table of physical addresses (ToPA), 8 bytes each, as bit numbers. */
#define PT_TOPA_ENTRY_BYTES 8
#define PT_TOPA_END 0
#define PT_TOPA_INT 2
#define PT_TOPA_STOP 4
#define PT_TOPA_SIZE_SHIFT 6 /* 4 KiB << size */
#define PT_TOPA_SIZE_WIDTH 4
#define PT_TOPA_BASE_SHIFT 12

/* IA32_RTIT_CTL: single bits, as bit numbers. */
#define PT_CTL_TRACE_EN 0
#define PT_CTL_CYC_EN 1
#define PT_CTL_OS 2
#define PT_CTL_USER 3
#define PT_CTL_PWR_EVT_EN 4
#define PT_CTL_FUP_ON_PTW 5
#define PT_CTL_FABRIC_EN 6
#define PT_CTL_CR3_FILTER 7
#define PT_CTL_TOPA 8
#define PT_CTL_MTC_EN 9
#define PT_CTL_TSC_EN 10
#define PT_CTL_DIS_RETC 11
#define PT_CTL_PTW_EN 12
#define PT_CTL_BRANCH_EN 13
#define PT_CTL_EVENT_EN 31
#define PT_CTL_DIS_TNT 55
#define PT_CTL_INJECT_PSB_PMI_ON_ENABLE 56

/* IA32_RTIT_CTL: fields, as first bit and width. */
#define PT_CTL_MTC_FREQ_SHIFT 14
#define PT_CTL_MTC_FREQ_WIDTH 4
#define PT_CTL_CYC_THRESH_SHIFT 19
#define PT_CTL_CYC_THRESH_WIDTH 4
#define PT_CTL_PSB_FREQ_SHIFT 24
#define PT_CTL_PSB_FREQ_WIDTH 4
#define PT_CTL_ADDR0_CFG_SHIFT 32 /* ADDRn_CFG at 32 + 4 n */
#define PT_CTL_ADDR_CFG_WIDTH 4

/* Values of ADDRn_CFG. */
#define PT_ADDR_CFG_OFF 0
#define PT_ADDR_CFG_FILTER 1
#define PT_ADDR_CFG_TRACE_STOP 2

/* IA32_RTIT_STATUS, as bit numbers. */
#define PT_STATUS_FILTER_EN 0
#define PT_STATUS_CONTEXT_EN 1
#define PT_STATUS_TRIGGER_EN 2
#define PT_STATUS_ERROR 4
#define PT_STATUS_STOPPED 5
#define PT_STATUS_PEND_PSB 6
#define PT_STATUS_PEND_TOPA_PMI 7
#define PT_STATUS_PACKET_BYTE_COUNT_SHIFT 32
#define PT_STATUS_PACKET_BYTE_COUNT_WIDTH 17

/* Other registers that tracing touches; bits as bit numbers. */
#define PT_MSR_PERF_GLOBAL_STATUS 0x38e
#define PT_MSR_PERF_GLOBAL_OVF_CTRL 0x390 /* newer name: IA32_PERF_GLOBAL_STATUS_RESET */
#define PT_PERF_GLOBAL_TRACE_TOPA_PMI 55
#define PT_PERF_GLOBAL_OVF_BUFFER 62 /* of the DS area */
#define PT_MSR_VMX_MISC 0x485
#define PT_VMX_MISC_PT_IN_VMX 14 /* clear: VMXON clears TraceEn, and setting it then faults */
#define PT_MSR_PLATFORM_INFO 0xce
#define PT_PLATFORM_INFO_MAX_NON_TURBO_SHIFT 8
#define PT_PLATFORM_INFO_MAX_NON_TURBO_WIDTH 8
#define PT_MSR_MISC_ENABLE 0x1a0
#define PT_MISC_ENABLE_BTS_UNAVAILABLE 11

/* CPUID, as bit numbers. */
#define PT_CPUID_1_ECX_DTES64 2 /* the DS area has its layout of 64-bit mode */
#define PT_CPUID_1_ECX_DS_CPL 4 /* BTS_OFF_OS and BTS_OFF_USR are there */
#define PT_CPUID_1_ECX_VMX 5
#define PT_CPUID_1_EDX_DS 21
#define PT_CPUID_7_EBX_PT 25
#define PT_CPUID_7_1_EAX_LAM 26
#define PT_CPUID_14_EBX_CR3_FILTER 0
#define PT_CPUID_14_EBX_PSB_CYC 1
#define PT_CPUID_14_EBX_IP_FILTER 2
#define PT_CPUID_14_EBX_MTC 3
#define PT_CPUID_14_EBX_PTWRITE 4
#define PT_CPUID_14_EBX_POWER_EVENT 5
#define PT_CPUID_14_EBX_PSB_PMI_PRESERVATION 6
#define PT_CPUID_14_EBX_EVENT_TRACE 7
#define PT_CPUID_14_EBX_TNT_DISABLE 8
#define PT_CPUID_14_ECX_TOPA 0
#define PT_CPUID_14_ECX_TOPA_MULTIPLE 1
#define PT_CPUID_14_ECX_SINGLE_RANGE 2
#define PT_CPUID_14_ECX_TRACE_TRANSPORT 3
#define PT_CPUID_14_ECX_LIP 31
#define PT_CPUID_14_1_EAX_RANGES_WIDTH 3       /* from bit 0: address ranges */
#define PT_CPUID_14_1_EAX_MTC_SHIFT 16         /* bitmap of the values of MTCFreq */
#define PT_CPUID_14_1_EBX_CYC_SHIFT 0          /* of CycThresh */
#define PT_CPUID_14_1_EBX_PSB_SHIFT 16         /* of PSBFreq */
#define PT_CPUID_80000008_EAX_PHYSICAL_WIDTH 8 /* from bit 0: MAXPHYADDR */
#define PT_CPUID_80000008_EAX_LINEAR_SHIFT 8
#define PT_CPUID_80000008_EAX_LINEAR_WIDTH 8

/* Branch Trace Store. */
#define PT_MSR_DS_AREA 0x600
#define PT_MSR_PEBS_ENABLE 0x3f1 /* precise events, which use the DS area, too */
#define PT_MSR_DEBUGCTL 0x1d9
#define PT_DEBUGCTL_LBR 0
#define PT_DEBUGCTL_BTF 1
#define PT_DEBUGCTL_BUS_LOCK_DETECT 2
#define PT_DEBUGCTL_TR 6
#define PT_DEBUGCTL_BTS 7
#define PT_DEBUGCTL_BTINT 8
#define PT_DEBUGCTL_BTS_OFF_OS 9
#define PT_DEBUGCTL_BTS_OFF_USR 10
#define PT_DEBUGCTL_FREEZE_LBRS_ON_PMI 11
#define PT_DEBUGCTL_FREEZE_PERFMON_ON_PMI 12
#define PT_DEBUGCTL_ENABLE_UNCORE_PMI 13
#define PT_DEBUGCTL_FREEZE_WHILE_SMM 14
#define PT_DEBUGCTL_RTM 15
/* MSR_DEBUGCTLA of NetBurst (Pentium 4, family 15) has the number of DEBUGCTL, and lower bits. */
#define PT_DEBUGCTLA_TR 2
#define PT_DEBUGCTLA_BTS 3
#define PT_DEBUGCTLA_BTINT 4
#define PT_DEBUGCTLA_BTS_OFF_OS 5
#define PT_DEBUGCTLA_BTS_OFF_USR 6

/* Registers of the local APIC by their offset; in x2APIC mode MSR 800H + offset / 16. */
#define PT_APIC_EOI 0x0b0
#define PT_APIC_LVT_PC 0x340 /* performance monitoring counters: PMI of ToPA and of BTS */
#define PT_APIC_LVT_NMI (4U << 8)
#define PT_APIC_LVT_MASK 16 /* set by the processor when it delivers the interrupt */

/* Last branch records: model-specific and architectural ones. Up to 32 of each have consecutive numbers. */
#define PT_LBR_COUNT 32
#define PT_MSR_LBR_SELECT 0x1c8
#define PT_MSR_LASTBRANCH_TOS 0x1c9
#define PT_MSR_LASTBRANCH_0_FROM_IP 0x680
#define PT_MSR_LASTBRANCH_0_TO_IP 0x6c0
#define PT_MSR_LBR_INFO_0 0xdc0
#define PT_MSR_ARCH_LBR_CTL 0x14ce
#define PT_MSR_ARCH_LBR_DEPTH 0x14cf
#define PT_MSR_ARCH_LBR_0_INFO 0x1200
#define PT_MSR_ARCH_LBR_0_FROM_IP 0x1500
#define PT_MSR_ARCH_LBR_0_TO_IP 0x1600

/* MSR_LBR_SELECT: a set bit leaves branches of its kind out. */
#define PT_LBR_SELECT_CPL_EQ_0 0
#define PT_LBR_SELECT_CPL_NEQ_0 1
#define PT_LBR_SELECT_JCC 2
#define PT_LBR_SELECT_NEAR_REL_CALL 3
#define PT_LBR_SELECT_NEAR_IND_CALL 4
#define PT_LBR_SELECT_NEAR_RET 5
#define PT_LBR_SELECT_NEAR_IND_JMP 6
#define PT_LBR_SELECT_NEAR_REL_JMP 7
#define PT_LBR_SELECT_FAR_BRANCH 8
#define PT_LBR_SELECT_EN_CALLSTACK 9

/* IA32_LBR_CTL: a set bit records branches of its kind. */
#define PT_ARCH_LBR_CTL_LBR_EN 0
#define PT_ARCH_LBR_CTL_OS 1
#define PT_ARCH_LBR_CTL_USR 2
#define PT_ARCH_LBR_CTL_CALL_STACK 3
#define PT_ARCH_LBR_CTL_JCC 16
#define PT_ARCH_LBR_CTL_NEAR_REL_JMP 17
#define PT_ARCH_LBR_CTL_NEAR_IND_JMP 18
#define PT_ARCH_LBR_CTL_NEAR_REL_CALL 19
#define PT_ARCH_LBR_CTL_NEAR_IND_CALL 20
#define PT_ARCH_LBR_CTL_NEAR_RET 21
#define PT_ARCH_LBR_CTL_OTHER_BRANCH 22

/* MSR_LBR_INFO_n and IA32_LBR_n_INFO. */
#define PT_LBR_INFO_CYC_CNT_WIDTH 16
#define PT_ARCH_LBR_INFO_BR_TYPE_SHIFT 56
#define PT_ARCH_LBR_INFO_BR_TYPE_WIDTH 4
#define PT_ARCH_LBR_INFO_CYC_CNT_VALID 60
#define PT_LBR_INFO_TSX_ABORT 61
#define PT_LBR_INFO_IN_TSX 62
#define PT_LBR_INFO_MISPRED 63

#endif /* PTKIT_RTIT_REGS_H */
