// SPDX-License-Identifier: MIT
/* Runs cases: all, or those that the command line names. Each loads the driver, and unloads it at the end. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "session.h"

int failures;
bool may_be_abandoned;

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
#define CASE(name) \
  { #name, name }
    CASE(tells_what_processors_have),
    CASE(writes_the_programs),
    CASE(traces_until_the_buffer_is_full),
    CASE(hands_over_while_it_traces),
    CASE(hands_over_to_another_thread),
    CASE(loses_nothing_at_the_end),
    CASE(keeps_the_newest_bytes),
    CASE(keeps_the_newest_bytes_of_one_range),
    CASE(goes_on_after_a_pause),
    CASE(follows_a_thread_from_cpu_to_cpu),
    CASE(traces_one_process),
    CASE(traces_user_code_alone),
    CASE(traces_a_range),
    CASE(compresses_returns_or_not),
    CASE(waits_for_the_reader),
    CASE(goes_on_after_sleep),
    CASE(begins_and_ends_again_and_again),
    CASE(ends_a_wait_by_stop_cancel_and_close),
    CASE(ends_when_the_handle_is_closed),
    CASE(ends_when_the_client_is_killed),
    CASE(gives_all_back),
    CASE(unloads_and_loads_again),
    CASE(refuses_sizes),
    CASE(refuses_unknown_requests),
    CASE(refuses_requests_in_other_states),
    CASE(refuses_configurations),
    CASE(refuses_what_processors_lack),
    CASE(refuses_without_trace_unit),
    CASE(refuses_without_rights),
    CASE(refuses_reads_outside),
    CASE(refuses_without_memory),
    CASE(puts_registers_back),
    CASE(leaves_the_unit_of_another_tracer),
    CASE(shares_no_processor),
    CASE(goes_on_after_swallowed_interrupts),
    CASE(goes_on_without_interrupts),
    CASE(goes_on_where_it_was_cleared),
    CASE(ends_where_a_register_faults),
    CASE(says_that_a_hypervisor_denies_the_unit),
    CASE(does_bounded_work_in_interrupts),
    CASE(stores_every_branch),
    CASE(keeps_the_newest_branches),
    CASE(reads_the_last_branch_stack),
    CASE(stores_branches_of_one_level),
    CASE(tells_of_processes_and_threads),
    CASE(tells_of_images),
    CASE(counts_lost_records),
    CASE(survives_nonsense),
};

/* The driver is loaded for each case: what a case breaks stays its own. */
static void run_case(const char* name, void (*run)(void)) {
  failures = 0;
  CHECK_EQUAL(driver_load(), 0);
  if (failures == 0) {
    run();
    int32_t status = driver_unload();
    CHECK(status == 0 || (may_be_abandoned && status == DEVICE_INVALID_REQUEST));
  }
  printf("%s %s\n", failures == 0 ? "ok" : "not ok", name);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  if (argc == 2 && strcmp(argv[1], "trace-until-killed") == 0) return trace_until_killed();
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    bool wanted = argc < 2;
    for (int j = 1; j < argc; j++) wanted |= strcmp(argv[j], cases[i].name) == 0;
    if (wanted) run_case(cases[i].name, cases[i].run);
  }
  return 0;
}
