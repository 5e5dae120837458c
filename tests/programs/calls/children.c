/* fork in the middle of recursion: parent and child both return through the frames that the parent entered.
   vfork whose child calls functions before it becomes another program. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, noipa))

static volatile unsigned long entered, children;

APART static pid_t deep(int depth) {
  ++entered;
  if (depth == 0) return fork();
  const pid_t child = deep(depth - 1);
  if (child == 0) ++entered;
  return child;
}

APART static int forked(int depth) {
  const pid_t child = deep(depth);
  if (child == 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  ++children;
  return WEXITSTATUS(status);
}

APART static void replace(char* program) {
  execl(program, program, "child", (char*)NULL);
  _exit(9);
}

int main(int argc, char** argv) {
  if (argc > 1) return 4;
  int sum = 0;
  for (int depth = 0; depth < 3; ++depth) {
    const int status = forked(depth);
    if (status < 0) exit(depth + 1);
    sum += status;
  }
  const pid_t child = vfork();
  if (child == 0) replace(argv[0]);
  int status = 0;
  waitpid(child, &status, 0);
  printf("deep %lu children %lu status %d %d\n", entered, children, sum, WEXITSTATUS(status));
  return 0;
}
