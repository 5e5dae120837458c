/* SPDX-License-Identifier: MIT */
/* Cases that are not in driver_test.c; the module with the model is loaded. */
#ifndef PTKIT_TESTS_KERNEL_CASES_H
#define PTKIT_TESTS_KERNEL_CASES_H

/* sideband_test.c */
void tells_what_threads_do(void);
void tells_of_one_process(void);
void tells_of_one_thread(void);
void tells_of_threads_that_a_thread_begins(void);
void tells_of_children(void);
void numbers_threads_as_the_opener_does(void);
void tells_of_modules(void);
void counts_lost_records(void);
void wakes_up_at_a_quarter(void);
void maps_rings_for_reading_only(void);

/* branches_test.c */
void stores_no_branches_under_isolation(void);
void stores_branches_where_it_can(void);
void keeps_the_newest_branches(void);
void stores_branches_until_it_is_full(void);
void ends_branches_by_an_interrupt(void);
void hands_branches_over(void);
void names_threads_of_branches(void);
void shares_no_branches(void);

/* interrupts_test.c */
void goes_on_by_interrupts_alone(void);
void takes_interrupts_during_requests(void);
void does_bounded_work_in_interrupts(void);
void knows_where_lazy_units_are(void);

/* neighbours_test.c */
void puts_registers_back(void);
void puts_registers_back_while_it_waits(void);
void goes_on_after_interrupts_that_perf_took(void);
void claims_late_interrupts_for_a_while(void);
void stops_what_a_hypervisor_restored(void);
void goes_on_where_it_was_cleared(void);
void reserves_units_against_perf(void);
void traces_until_shutdown(void);

/* sweep_test.c */
void goes_on_beside_neighbours(void);
void shares_a_processor_by_switches(void);

/* limits_test.c */
void asks_for_rights_again(void);
void charges_locked_memory(void);
void clears_buffers_while_others_go_on(void);
void has_what_all_processors_have(void);
void knows_errata_of_single_ranges(void);
void wakes_up_only_where_interrupts_are_seen(void);
void switches_with_address_masking(void);

/* lifecycle_test.c */
void begins_nothing_on_a_processor_that_goes(void);
void stops_once_after_a_start_that_failed(void);
void can_only_be_stopped_after_a_stop_that_failed(void);
void goes_on_in_its_own_buffer(void);
void interrupts_no_more_without_a_session(void);
void stays_while_it_traces(void);
void leaves_nothing_behind(void);

/* power_test.c */
void goes_on_when_a_processor_comes_back(void);
void goes_on_after_sleep_without_registers(void);
void goes_on_after_suspend(void);

/* walk.c */
void walks_all_sequences_of_requests(void);

#endif /* PTKIT_TESTS_KERNEL_CASES_H */
