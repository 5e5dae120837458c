/* SPDX-License-Identifier: MIT */
/* Cases of driver_test.c; the driver with the model is loaded, the model as at the beginning. */
#ifndef PTKIT_TESTS_WINDOWS_CASES_H
#define PTKIT_TESTS_WINDOWS_CASES_H

/* tracing_test.c */
void tells_what_processors_have(void);
void writes_the_programs(void);
void traces_until_the_buffer_is_full(void);
void hands_over_while_it_traces(void);
void hands_over_to_another_thread(void);
void loses_nothing_at_the_end(void);
void keeps_the_newest_bytes(void);
void keeps_the_newest_bytes_of_one_range(void);
void goes_on_after_a_pause(void);
void follows_a_thread_from_cpu_to_cpu(void);
void traces_one_process(void);
void traces_user_code_alone(void);
void traces_a_range(void);
void compresses_returns_or_not(void);
void waits_for_the_reader(void);
void goes_on_after_sleep(void);

/* lifecycle_test.c */
void begins_and_ends_again_and_again(void);
void ends_a_wait_by_stop_cancel_and_close(void);
void ends_when_the_handle_is_closed(void);
void ends_when_the_client_is_killed(void);
void gives_all_back(void);
void unloads_and_loads_again(void);

/* requests_test.c */
void refuses_sizes(void);
void refuses_unknown_requests(void);
void refuses_requests_in_other_states(void);
void refuses_configurations(void);
void refuses_what_processors_lack(void);
void refuses_without_trace_unit(void);
void refuses_without_rights(void);
void refuses_reads_outside(void);
void refuses_without_memory(void);

/* neighbours_test.c */
void puts_registers_back(void);
void leaves_the_unit_of_another_tracer(void);
void shares_no_processor(void);
void goes_on_after_swallowed_interrupts(void);
void goes_on_without_interrupts(void);
void goes_on_where_it_was_cleared(void);
void ends_where_a_register_faults(void);
void says_that_a_hypervisor_denies_the_unit(void);
void does_bounded_work_in_interrupts(void);

/* branches_test.c */
void stores_every_branch(void);
void keeps_the_newest_branches(void);
void reads_the_last_branch_stack(void);
void stores_branches_of_one_level(void);

/* sideband_test.c */
void tells_of_processes_and_threads(void);
void tells_of_images(void);
void counts_lost_records(void);

/* lifecycle_test.c: of the client that is killed. */
int trace_until_killed(void);

/* fuzz.c: for PTKIT_FUZZ_SECONDS of the environment, or some seconds. */
void survives_nonsense(void);

#endif /* PTKIT_TESTS_WINDOWS_CASES_H */
