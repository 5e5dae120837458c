/* A C program's use of ptkit.h, in C99. */
#ifndef PTKIT_TEST_C99_H
#define PTKIT_TEST_C99_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of new edges of the buffer over the code at 1000, or the negative status of the first failure.
 */
int c99_new_edges(const void* code, size_t code_size, const void* buffer, size_t size);
size_t c99_size_of_options(void);
size_t c99_size_of_outcome(void);
size_t c99_size_of_edge(void);
size_t c99_size_of_error(void);

#ifdef __cplusplus
}
#endif

#endif
