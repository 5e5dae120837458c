/* SPDX-License-Identifier: MIT */
/* Cases that are not in driver_test.c; the module with the model is loaded. */
#ifndef PTKIT_TESTS_KERNEL_CASES_H
#define PTKIT_TESTS_KERNEL_CASES_H

/* sideband_test.c */
void tells_what_threads_do(void);
void tells_of_one_process(void);
void tells_of_one_thread(void);
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
void shares_no_branches(void);

/* interrupts_test.c */
void goes_on_by_interrupts_alone(void);
void takes_interrupts_during_requests(void);

/* lifecycle_test.c */
void begins_nothing_on_a_processor_that_goes(void);
void stops_once_after_a_start_that_failed(void);
void can_only_be_stopped_after_a_stop_that_failed(void);
void goes_on_in_its_own_buffer(void);
void stays_while_it_traces(void);
void leaves_nothing_behind(void);

/* walk.c */
void walks_all_sequences_of_requests(void);

#endif /* PTKIT_TESTS_KERNEL_CASES_H */
