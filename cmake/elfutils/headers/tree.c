#define _SEARCH_PRIVATE
#include <search.h>
#include <stdlib.h>

void tdestroy(void* root, void (*free_key)(void*)) {
  node_t* const node = root;
  if (node == NULL) return;
  tdestroy(node->llink, free_key);
  tdestroy(node->rlink, free_key);
  free_key(node->key);
  free(node);
}
