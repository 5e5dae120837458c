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

#endif /* PTKIT_TESTS_KERNEL_CASES_H */
