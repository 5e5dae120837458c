// SPDX-License-Identifier: MIT
/* The model instead of kernel/windows/machine/machine.c. */
#include "machine/machine.h"

#include "host.h"
#include "model.h"
#include "ptkit/ptkit_windows.h"
#include "ptkit/rtit_regs.h"
#include "shims.h"

#define TRACE_EN PT_BIT(PT_CTL_TRACE_EN)
#define PHYSICAL_BITS 39
#define TSC_KHZ 3000000

static struct model_unit units[MODEL_CPUS];
static uint64_t parameters[MODEL_PARAMETERS];
static uint32_t cpuid_words[MODEL_CPUS][MODEL_CPUID_WORDS];
static volatile LONG64 now = 1000000;
static volatile LONG64 interrupts, swallowed, most_accesses;
static volatile LONG faults_left;
static void (*volatile handler)(void);

void model_reset_parameters(void) {
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    uint32_t* words = cpuid_words[cpu];
    words[MODEL_CPUID_7_EBX] = PT_BIT(PT_CPUID_7_EBX_PT);
    words[MODEL_CPUID_14_EBX] = 0x1bf; /* all but injection of PMIs */
    words[MODEL_CPUID_14_ECX] = 0x80000007;
    words[MODEL_CPUID_14_1_EAX] = 0x02490004; /* 4 address ranges */
    words[MODEL_CPUID_14_1_EBX] = 0x003f3fff;
    words[MODEL_CPUID_1_ECX] =
        PT_BIT(PT_CPUID_1_ECX_VMX) | PT_BIT(PT_CPUID_1_ECX_DTES64) | PT_BIT(PT_CPUID_1_ECX_DS_CPL);
    words[MODEL_CPUID_1_EDX] = PT_BIT(PT_CPUID_1_EDX_DS);
  }
  for (uint32_t i = MODEL_CPUID_WORDS; i < MODEL_PARAMETERS; i++) parameters[i] = 0;
  parameters[MODEL_ALLOCATIONS] = ~0ULL;
  faults_left = 0;
  shim_fail_after(-1);
  shim_set_privileged(true);
  programs_begin();
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    uint32_t before;
    struct model_unit* unit = model_take(cpu, &before);
    unit->thread = NULL;
    unit->packet_en = false;
    model_give_back(unit, before);
  }
}

void model_begin(void) {
  interrupts = 0;
  swallowed = 0;
  most_accesses = 0;
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    void* lock = units[cpu].lock;
    units[cpu] = (struct model_unit){.registers = {.cpu = cpu, .mask_ptrs = PT_OUTPUT_MASK_LOWEST},
                                     .lock = lock == NULL ? host_make_lock() : lock};
  }
  model_reset_parameters();
}

struct model_unit* model_unit_of(uint32_t cpu) {
  return &units[cpu];
}

uint64_t model_now(void) { return (uint64_t)now; }

void model_pass(uint64_t ticks) { InterlockedAdd64(&now, (LONG64)ticks); }

static void clear_trace_en(uint32_t cpu) {
  uint32_t before;
  struct model_unit* unit = model_take(cpu % MODEL_CPUS, &before);
  if (unit->registers.ctl & TRACE_EN) model_trace_disabled(unit);
  unit->registers.ctl &= ~TRACE_EN;
  model_give_back(unit, before);
}

bool model_set(const struct model_set* set) {
  if (set->parameter >= MODEL_PARAMETERS) return false;
  if (set->parameter < MODEL_CPUID_WORDS) {
    for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++)
      if (set->cpu == cpu || set->cpu == MODEL_NO_CPU)
        cpuid_words[cpu][set->parameter] = (uint32_t)set->value;
    return true;
  }
  parameters[set->parameter] = set->value;
  if (set->parameter == MODEL_FAULT) faults_left = (LONG)set->value;
  if (set->parameter == MODEL_ALLOCATIONS) shim_fail_after((int32_t)set->value);
  if (set->parameter == MODEL_CLEAR_TRACE_EN) clear_trace_en(set->cpu);
  if (set->parameter == MODEL_UNPRIVILEGED) shim_set_privileged(set->value == 0);
  return true;
}

struct model_counts model_counts(void) {
  struct shim_counts taken = shim_counts();
  struct model_counts counts = {.tsc = model_now(),
                                .interrupts = (uint64_t)interrupts,
                                .swallowed = (uint64_t)swallowed,
                                .most_accesses = (uint64_t)most_accesses,
                                .strays = model_strays(),
                                .runs = taken.runs,
                                .mappings = taken.mappings,
                                .timers = taken.timers,
                                .routines = taken.routines};
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) counts.dropped_bytes += units[cpu].dropped_bytes;
  return counts;
}

/* --- Processors --- */

struct model_unit* model_take(uint32_t cpu, uint32_t* before) {
  *before = host_cpu();
  host_take(units[cpu].lock);
  host_bind(cpu);
  return &units[cpu];
}

void model_deliver(struct model_unit* unit) {
  if (!unit->is_pending || !unit->is_armed) return;
  unit->is_pending = false;
  if (parameters[MODEL_SWALLOW] != 0) {
    unit->global_status = 0;
    InterlockedIncrement64(&swallowed);
    if (parameters[MODEL_SWALLOW] == 2) return;
  }
  if (handler == NULL) return;
  unit->is_armed = false;
  uint32_t accesses = unit->accesses;
  handler();
  InterlockedIncrement64(&interrupts);
  if ((LONG64)(unit->accesses - accesses) > most_accesses) most_accesses = unit->accesses - accesses;
}

void model_give_back(struct model_unit* unit, uint32_t before) {
  model_deliver(unit);
  host_bind(before);
  host_release(unit->lock);
}

static struct model_unit* unit_here(void) { return &units[host_cpu() < MODEL_CPUS ? host_cpu() : 0]; }

static void call(uint32_t cpu, ptkit_function function, void* context) {
  uint32_t before;
  struct model_unit* unit = model_take(cpu, &before);
  function(context);
  model_give_back(unit, before);
}

static uint32_t cpu_count(void) { return MODEL_CPUS; }

static uint32_t cpu_here(void) { return unit_here()->registers.cpu; }

static PROCESSOR_NUMBER cpu_number(uint32_t cpu) {
  PROCESSOR_NUMBER number = {.Group = 0, .Number = (UCHAR)cpu};
  return number;
}

static void call_here(ptkit_function function, void* context) { call(cpu_here(), function, context); }

/* --- Registers --- */

static uint32_t word_of(enum model_parameter word) { return cpuid_words[cpu_here()][word]; }

static bool has_word_bit(enum model_parameter word, uint32_t bit) { return word_of(word) >> bit & 1; }

static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t words[4]) {
  for (int i = 0; i < 4; i++) words[i] = 0;
  if (leaf == 0) {
    words[0] = 0x15;
  } else if (leaf == 1) {
    words[0] = 0x506e3;
    words[2] = word_of(MODEL_CPUID_1_ECX);
    words[3] = word_of(MODEL_CPUID_1_EDX);
  } else if (leaf == 7 && subleaf == 0) {
    words[1] = word_of(MODEL_CPUID_7_EBX);
  } else if (leaf == 0x14 && subleaf == 0) {
    words[0] = 1;
    words[1] = word_of(MODEL_CPUID_14_EBX);
    words[2] = word_of(MODEL_CPUID_14_ECX);
  } else if (leaf == 0x14 && subleaf == 1) {
    words[0] = word_of(MODEL_CPUID_14_1_EAX);
    words[1] = word_of(MODEL_CPUID_14_1_EBX);
  } else if (leaf == 0x15) {
    words[0] = 2;
    words[1] = 156;
    words[2] = 38400000;
  } else if (leaf == 0x80000000) {
    words[0] = 0x80000008;
  } else if (leaf == 0x80000008) {
    words[0] = PHYSICAL_BITS | 48 << PT_CPUID_80000008_EAX_LINEAR_SHIFT;
  }
}

/* Bits of CTL that this processor has, except the ranges. */
static uint64_t ctl_bits(void) {
  static const struct {
    enum model_parameter word;
    uint8_t cpuid_bit;
    uint64_t bits;
  } optional[] = {
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_CR3_FILTER, PT_BIT(PT_CTL_CR3_FILTER)},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_PSB_CYC,
       PT_BIT(PT_CTL_CYC_EN) | 15ULL << PT_CTL_CYC_THRESH_SHIFT | 15ULL << PT_CTL_PSB_FREQ_SHIFT},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_MTC, PT_BIT(PT_CTL_MTC_EN) | 15ULL << PT_CTL_MTC_FREQ_SHIFT},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_PTWRITE, PT_BIT(PT_CTL_PTW_EN) | PT_BIT(PT_CTL_FUP_ON_PTW)},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_POWER_EVENT, PT_BIT(PT_CTL_PWR_EVT_EN)},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_EVENT_TRACE, PT_BIT(PT_CTL_EVENT_EN)},
      {MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_TNT_DISABLE, PT_BIT(PT_CTL_DIS_TNT)},
      {MODEL_CPUID_14_ECX, PT_CPUID_14_ECX_TOPA, PT_BIT(PT_CTL_TOPA)},
  };
  uint64_t bits = TRACE_EN | PT_BIT(PT_CTL_OS) | PT_BIT(PT_CTL_USER) | PT_BIT(PT_CTL_TSC_EN) |
                  PT_BIT(PT_CTL_DIS_RETC) | PT_BIT(PT_CTL_BRANCH_EN);
  for (uint32_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
    if (has_word_bit(optional[i].word, optional[i].cpuid_bit)) bits |= optional[i].bits;
  return bits;
}

static uint32_t ranges_here(void) {
  if (!has_word_bit(MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_IP_FILTER)) return 0;
  return word_of(MODEL_CPUID_14_1_EAX) & (PT_BIT(PT_CPUID_14_1_EAX_RANGES_WIDTH) - 1);
}

static bool ctl_faults(uint64_t before, uint64_t value) {
  uint64_t known = ctl_bits();
  for (uint32_t range = 0; range < PT_MSR_RTIT_ADDR_COUNT; range++) {
    uint64_t config = value >> (PT_CTL_ADDR0_CFG_SHIFT + 4 * range) & 15;
    if (config > (range < ranges_here() ? PT_ADDR_CFG_TRACE_STOP : PT_ADDR_CFG_OFF)) return true;
    known |= 15ULL << (PT_CTL_ADDR0_CFG_SHIFT + 4 * range);
  }
  if (value & ~known) return true;
  if (!(value & TRACE_EN)) return false;
  if (!(value & PT_BIT(PT_CTL_TOPA)) && !has_word_bit(MODEL_CPUID_14_ECX, PT_CPUID_14_ECX_SINGLE_RANGE))
    return true;
  return (before & TRACE_EN) && before != value;
}

static bool fails_by_parameter(void) { return parameters[MODEL_FAULT_CTL] == (uint64_t)cpu_here() + 1; }

static int write_ctl(struct model_unit* unit, uint64_t value) {
  uint64_t before = unit->registers.ctl;
  if (fails_by_parameter() || ctl_faults(before, value)) return -1;
  if ((before & TRACE_EN) && !(value & TRACE_EN)) model_trace_disabled(unit);
  unit->registers.ctl = value;
  if (!(before & TRACE_EN) && (value & TRACE_EN)) {
    if (parameters[MODEL_DENIES]) unit->registers.status |= PT_BIT(PT_STATUS_ERROR);
    model_trace_enabled(unit);
  }
  return 0;
}

static int write_debugctl(struct model_unit* unit, uint64_t value) {
  const uint64_t known = 0xffc7 & ~PT_BIT(PT_DEBUGCTL_ENABLE_UNCORE_PMI);
  if (fails_by_parameter() || value & ~known) return -1;
  unit->registers.debugctl = value;
  return 0;
}

static uint64_t* plain_register(struct model_unit* unit, uint32_t msr) {
  struct model_registers* registers = &unit->registers;
  if (msr >= PT_MSR_RTIT_ADDR0_A && msr < PT_MSR_RTIT_ADDR0_A + 2 * ranges_here())
    return &registers->addr[msr - PT_MSR_RTIT_ADDR0_A];
  switch (msr) {
    case PT_MSR_RTIT_CTL:
      return &registers->ctl;
    case PT_MSR_RTIT_STATUS:
      return &registers->status;
    case PT_MSR_RTIT_OUTPUT_BASE:
      return &registers->output_base;
    case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
      return &registers->mask_ptrs;
    case PT_MSR_RTIT_CR3_MATCH:
      return has_word_bit(MODEL_CPUID_14_EBX, PT_CPUID_14_EBX_CR3_FILTER) ? &registers->cr3_match : NULL;
    default:
      return NULL;
  }
}

/* Reserved bits of the registers that only the trace unit uses. */
static bool is_reserved(uint32_t msr, uint64_t value) {
  switch (msr) {
    case PT_MSR_RTIT_OUTPUT_BASE:
      return value & 0x7f || value >> PHYSICAL_BITS;
    case PT_MSR_RTIT_CR3_MATCH:
      return value & 0x1f;
    case PT_MSR_RTIT_STATUS:
      return value >> (PT_STATUS_PACKET_BYTE_COUNT_SHIFT + PT_STATUS_PACKET_BYTE_COUNT_WIDTH);
    case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
      return false;
    default:
      return value != (uint64_t)((int64_t)(value << 16) >> 16);
  }
}

static bool is_trace_register(uint32_t msr) { return msr >= PT_MSR_RTIT_OUTPUT_BASE && msr < 0x590; }

static int write_other(struct model_unit* unit, uint32_t msr, uint64_t value) {
  switch (msr) {
    case PT_MSR_DEBUGCTL:
      return write_debugctl(unit, value);
    case PT_MSR_DS_AREA:
      unit->registers.ds_area = value;
      return 0;
    case PT_MSR_PERF_GLOBAL_OVF_CTRL:
      unit->global_status &= ~value;
      return 0;
    default:
      return -1;
  }
}

static bool access_faults(struct model_unit* unit) {
  unit->accesses++;
  return faults_left > 0 && InterlockedDecrement(&faults_left) == 0;
}

static int write_msr(void* context, uint32_t msr, uint64_t value) {
  struct model_unit* unit = unit_here();
  UNREFERENCED_PARAMETER(context);
  if (access_faults(unit)) return -1;
  if (!is_trace_register(msr)) return write_other(unit, msr, value);
  if (!has_word_bit(MODEL_CPUID_7_EBX, PT_CPUID_7_EBX_PT)) return -1;
  if (msr == PT_MSR_RTIT_CTL) return write_ctl(unit, value);
  uint64_t* slot = plain_register(unit, msr);
  if (slot == NULL || (unit->registers.ctl & TRACE_EN) || is_reserved(msr, value)) return -1;
  *slot = msr == PT_MSR_RTIT_OUTPUT_MASK_PTRS ? value | PT_OUTPUT_MASK_LOWEST : value;
  return 0;
}

/* Of the stack of last branch records: the values tell which one it is. */
static int read_last_branch(uint32_t msr, uint64_t* value) {
  static const uint32_t begins[] = {PT_MSR_LASTBRANCH_0_FROM_IP, PT_MSR_LASTBRANCH_0_TO_IP,
                                    PT_MSR_LBR_INFO_0};
  for (uint32_t i = 0; i < 3; i++) {
    if (msr < begins[i] || msr >= begins[i] + PT_LBR_COUNT) continue;
    *value = (uint64_t)(i + 1) << 32 | (msr - begins[i]);
    return 0;
  }
  return -1;
}

static int read_other(struct model_unit* unit, uint32_t msr, uint64_t* value) {
  switch (msr) {
    case PT_MSR_DEBUGCTL:
      *value = unit->registers.debugctl;
      return 0;
    case PT_MSR_DS_AREA:
      *value = unit->registers.ds_area;
      return 0;
    case PT_MSR_PERF_GLOBAL_STATUS:
      *value = unit->global_status;
      return 0;
    case PT_MSR_MISC_ENABLE:
      *value = parameters[MODEL_MISC_ENABLE];
      return 0;
    case PT_MSR_PEBS_ENABLE:
      *value = 0;
      return 0;
    case PT_MSR_VMX_MISC:
      *value = PT_BIT(PT_VMX_MISC_PT_IN_VMX);
      return 0;
    case PT_MSR_PLATFORM_INFO:
      *value = 30 << PT_PLATFORM_INFO_MAX_NON_TURBO_SHIFT;
      return 0;
    case PT_MSR_LASTBRANCH_TOS:
      *value = 5;
      return 0;
    case PT_MSR_LBR_SELECT:
      *value = 0;
      return 0;
    default:
      return read_last_branch(msr, value);
  }
}

static int read_msr(void* context, uint32_t msr, uint64_t* value) {
  struct model_unit* unit = unit_here();
  UNREFERENCED_PARAMETER(context);
  *value = 0;
  if (access_faults(unit)) return -1;
  if (!is_trace_register(msr)) return read_other(unit, msr, value);
  const uint64_t* slot = plain_register(unit, msr);
  if (slot == NULL || !has_word_bit(MODEL_CPUID_7_EBX, PT_CPUID_7_EBX_PT)) return -1;
  *value = *slot;
  return 0;
}

/* --- The rest of the machine --- */

static uint64_t ticks(void) { return model_now(); }

static uint32_t tsc_khz(void) { return TSC_KHZ; }

static uint32_t system_flags(void) { return (uint32_t)parameters[MODEL_SYSTEM]; }

static NTSTATUS take_interrupts(void (*function)(void)) {
  if (parameters[MODEL_NO_INTERRUPTS] != 0) return STATUS_DEVICE_BUSY;
  handler = function;
  return STATUS_SUCCESS;
}

/* Each processor is taken once: no handler runs any more. */
static void release_interrupts(void) {
  handler = NULL;
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    uint32_t before;
    struct model_unit* unit = model_take(cpu, &before);
    model_give_back(unit, before);
  }
}

static bool can_arm(void) { return parameters[MODEL_CANNOT_ARM] == 0; }

static void arm_interrupt(void) { unit_here()->is_armed = true; }

static NTSTATUS page_tables(HANDLE pid, uint64_t* kernel, uint64_t* user) {
  uint64_t number = (uint64_t)(ULONG_PTR)pid;
  if (number == 0 || number == parameters[MODEL_DEAD_PROCESS]) return STATUS_NOT_FOUND;
  *kernel = number << 16;
  *user = *kernel | (parameters[MODEL_SYSTEM] & PTKIT_SYSTEM_KVA_SHADOW ? 1 << 12 : 0);
  return STATUS_SUCCESS;
}

const struct ptkit_machine ptkit_machine = {
    .cpuid = cpuid,
    .ops = {.write = write_msr, .read = read_msr},
    .ticks = ticks,
    .tsc_khz = tsc_khz,
    .system_flags = system_flags,
    .cpu_count = cpu_count,
    .cpu_here = cpu_here,
    .cpu_number = cpu_number,
    .call = call,
    .call_here = call_here,
    .take_interrupts = take_interrupts,
    .release_interrupts = release_interrupts,
    .can_arm = can_arm,
    .arm_interrupt = arm_interrupt,
    .page_tables = page_tables,
};
