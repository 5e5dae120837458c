/* Code that is written at run time, and written again at the same address. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char* code;

static void emit(int value, int size) {
  unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0x90, 0x90, 0xc3}; /* mov eax, value; nop; nop; ret */
  memcpy(bytes + 1, &value, 4);
  if (size == 6) bytes[5] = 0xc3;
  memcpy(code, bytes, sizeof bytes);
}

int main(void) {
  int sum = 0;
  code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 6; ++i) {
    emit(i, i % 2 == 0 ? 6 : 8);
    sum += ((int (*)(void))code)();
  }
  mprotect(code, 8192, PROT_READ | PROT_EXEC);
  sum += ((int (*)(void))code)();
  mprotect(code, 8192, PROT_READ | PROT_WRITE);
  emit(100, 8);
  mprotect(code, 8192, PROT_READ | PROT_EXEC);
  sum += ((int (*)(void))code)();
  /* An instruction that lies on two pages. */
  mprotect(code, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
  code += 4093;
  emit(1000, 8);
  sum += ((int (*)(void))code)();
  emit(2000, 6);
  sum += ((int (*)(void))code)();
  printf("%d\n", sum);
  return 0;
}
