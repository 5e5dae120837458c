#pragma once

#include_next <search.h>

// Frees a tree of tsearch(), and what its nodes name.
void tdestroy(void* root, void (*free_key)(void*));
