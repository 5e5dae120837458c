/* SPDX-License-Identifier: MIT */
/* Cases of following.c: processes and threads that are followed. */
#ifndef PTKIT_TESTS_KERNEL_FOLLOWING_H
#define PTKIT_TESTS_KERNEL_FOLLOWING_H

void traces_one_process(void);
void traces_a_process_where_it_runs(void);
void traces_one_of_its_threads(void);
void traces_a_thread_with_slow_registers(void);
void traces_itself(void);
void renews_page_tables_after_exec(void);
void traces_children(void);
void forgets_children(void);
void knows_processes_by_more_than_numbers(void);
void comes_to_a_processor_that_is_taken(void);
void keeps_errors_of_switches(void);
void goes_on_elsewhere_when_a_processor_goes(void);
void ends_while_it_is_traced(void);

#endif /* PTKIT_TESTS_KERNEL_FOLLOWING_H */
