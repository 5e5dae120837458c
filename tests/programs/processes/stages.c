/* A program whose function of work is called WORK (-DWORK=name). It works, then runs the programs that are its arguments, one
   after the other: all of them lie at the same addresses. */
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>

extern char** environ;

__attribute__((noinline)) unsigned WORK(unsigned rounds) {
  unsigned sum = 1;
  while (rounds-- > 0) sum = sum % 3 == 0 ? sum / 3 : sum * 5 + 1;
  return sum;
}

int main(int argc, char** argv) {
  int failed = WORK(2000) == 7;
  for (int i = 1; i < argc; ++i) {
    pid_t child = 0;
    int status = 1;
    char* words[] = {argv[i], NULL};
    if (posix_spawn(&child, argv[i], NULL, NULL, words, environ) == 0) waitpid(child, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
