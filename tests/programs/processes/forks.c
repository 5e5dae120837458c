/* Children by fork and by vfork with exec; their exit statuses. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1) return 5;
  int status = 0;
  volatile int sum = 0;
  for (int i = 1; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(i);
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  const pid_t child = vfork();
  if (child == 0) {
    execl(argv[0], argv[0], "child", (char*)0);
    _exit(99);
  }
  waitpid(child, &status, 0);
  printf("%d %d\n", sum, WEXITSTATUS(status));
  return 3;
}
