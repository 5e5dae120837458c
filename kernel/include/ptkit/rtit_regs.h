/* SPDX-License-Identifier: MIT */
/*
 * The model-specific registers of Processor Trace: numbers and bits. Shared by drivers and by the C++ core.
 * Source: Intel SDM vol. 3, "Intel Processor Trace", section "Configuration and Control"; numbers: vol. 4.
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
#define PT_STATUS_PEND_PSB_PMI 6
#define PT_STATUS_PEND_TOPA_PMI 7
#define PT_STATUS_PACKET_BYTE_COUNT_SHIFT 32
#define PT_STATUS_PACKET_BYTE_COUNT_WIDTH 17

#endif /* PTKIT_RTIT_REGS_H */
