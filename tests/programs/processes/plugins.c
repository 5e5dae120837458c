/* Libraries that come and go, one where another one was before. */
#include <dlfcn.h>
#include <stdio.h>

static int calls;

static void* use(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_NOW);
  if (handle == NULL) return NULL;
  double (*const function)(double) = (double (*)(double))dlsym(handle, name);
  void* const address = (void*)function;
  for (int i = 0; i < 20 && function != NULL; ++i) calls += function(i) >= 0;
  dlclose(handle);
  return address;
}

int main(void) {
  void* const first = use("libm.so.6", "cbrt");
  void* const other = use("libquadmath.so.0", "nosuch");
  void* const again = use("libm.so.6", "cbrt");
  use("libgcc_s.so.1", "nosuch");
  use("libm.so.6", "exp2");
  printf("%d %d %d\n", calls, first == again, other == NULL);
  return 0;
}
