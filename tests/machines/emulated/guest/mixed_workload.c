/* A mixed workload that is hard to follow: libraries at addresses of earlier libraries, signals of every kind,
   threads, a child with libraries of its own, another program, and two threads that wake each other on one CPU.
   mixed_workload FIRST SECOND [PROGRAM...] prints the address of the function of each library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define TURNS 4
#define STEPS 30
#define TICKS 3
#define QUESTIONS 20

typedef int (*Step)(int);

static sigjmp_buf out;
static char* page;
static volatile sig_atomic_t ticks;
static volatile int sink;

static void on_usr1(int number) { sink += number; }
static void on_usr2(int number) { siglongjmp(out, number); }
static void on_alarm(int number) { ticks += number == SIGALRM; }
static void on_segv(int number, siginfo_t* info, void* context) {
  (void)context;
  if (info->si_addr != page) siglongjmp(out, number);
  mprotect(page, 4096, PROT_READ | PROT_WRITE); /* and the store is tried again */
}

static void use(const char* who, const char* path, int turn) {
  void* const library = dlopen(path, RTLD_NOW);
  const Step step = library == NULL ? NULL : (Step)dlsym(library, "step");

  if (step == NULL) _exit(3);
  for (int i = 1; i <= STEPS; ++i) sink += step(i + turn);
  printf("%s %s %p\n", who, path, (void*)step);
  dlclose(library);
}

static void take_signals(void) {
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};

  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  if (sigsetjmp(out, 1) == 0) raise(SIGUSR2);
  if (sigsetjmp(out, 1) == 0) *(volatile char*)8 = 1;
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(volatile char*)page = 1;
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; ticks < TICKS; ++i) sink += i % 3 ? i : -i;
  setitimer(ITIMER_REAL, &never, NULL);
}

static void* toil(void* step) {
  for (int i = 1; i <= STEPS; ++i) {
    sink += ((Step)step)(i);
    if (i % 10 == 0) sched_yield();
  }
  return NULL;
}

/* Threads in a library, and a child that has another one at an equal address. */
static void share(char** arguments) {
  pthread_t threads[THREADS];
  void* const library = dlopen(arguments[1], RTLD_NOW);
  void* const step = dlsym(library, "step");

  printf("threads %s %p\n", arguments[1], step);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    toil(step);
    dlclose(library);
    use("child", arguments[2], 7);
    fflush(stdout);
    if (arguments[3] != NULL) execv(arguments[3], arguments + 3);
    _exit(arguments[3] != NULL ? 127 : 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, toil, step);
  for (int i = 0; i < THREADS; ++i) pthread_kill(threads[i], SIGUSR1);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  waitpid(child, NULL, 0);
  dlclose(library);
}

static int question[2], answer[2];

static void* give_answers(void* unused) {
  char byte;

  (void)unused;
  while (read(question[0], &byte, 1) == 1 && write(answer[1], &byte, 1) == 1) continue;
  return NULL;
}

/* On one CPU a thread that waits for the other one's answer switches to it, and that one back: no question without. */
static void ask_on_one_cpu(void) {
  cpu_set_t all, one;
  pthread_t thread;
  char byte = 0;

  CPU_ZERO(&one);
  CPU_SET(0, &one);
  if (pipe(question) != 0 || pipe(answer) != 0 || sched_getaffinity(0, sizeof all, &all) != 0) _exit(4);
  if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(4);
  pthread_create(&thread, NULL, give_answers, NULL);
  for (int i = 0; i < QUESTIONS; ++i) {
    if (write(question[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1) _exit(4);
  }
  close(question[1]);
  pthread_join(thread, NULL);
  sched_setaffinity(0, sizeof all, &all);
}

int main(int count, char** arguments) {
  struct sigaction on_fault;

  if (count < 3) return 2;
  memset(&on_fault, 0, sizeof on_fault);
  on_fault.sa_sigaction = on_segv;
  on_fault.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &on_fault, NULL);
  signal(SIGUSR1, on_usr1);
  signal(SIGUSR2, on_usr2);
  signal(SIGALRM, on_alarm);
  for (int turn = 0; turn < TURNS; ++turn) use("main", arguments[1 + turn % 2], turn);
  take_signals();
  share(arguments);
  ask_on_one_cpu();
  return 0;
}
