/* Fibers that several threads take from a queue: each goes on in whatever thread takes it next. Each stack lies in
   4 MiB of its own. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone, noipa))

enum { kThreads = 3, kFibers = 8, kRounds = 40, kStackBytes = 1 << 16, kApart = 4 << 20, kRegisters = 6 };

struct fiber {
  void* sp;
  int id, done;
};

static struct fiber fibers[kFibers];
static struct fiber* queue[kFibers];
static int first, waiting, left = kFibers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;
static unsigned long entries, outers, inners, yields, leaves, runs;

/* Keeps the stack pointer in *from, and goes on with the stack `to`. */
void swap_stack(void** from, void* to);
__asm__(
    ".text\n.globl swap_stack\n.type swap_stack,@function\nswap_stack:\n push %rbp\n push %rbx\n push %r12\n"
    "push %r13\n push %r14\n push %r15\n mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n"
    "pop %r12\n pop %rbx\n pop %rbp\n ret\n.size swap_stack,.-swap_stack\n");

static __thread void* home;
static __thread struct fiber* current;

static void count(unsigned long* one) { __atomic_add_fetch(one, 1, __ATOMIC_RELAXED); }

/* The thread may be another one after each switch, so its variables are found anew. */
APART static void** home_of_thread(void) { return &home; }
APART static struct fiber** current_of_thread(void) { return &current; }

APART static void leaf(int n) {
  count(&leaves);
  for (volatile int i = 0; i < n; ++i) continue;
}

APART static void yield_now(void) {
  count(&yields);
  struct fiber* const own = *current_of_thread();
  swap_stack(&own->sp, *home_of_thread());
}

APART static void inner(int id) {
  count(&inners);
  leaf(10 + id);
  yield_now();
  leaf(5);
}

APART static void outer(int id) {
  count(&outers);
  for (int round = 0; round < kRounds; ++round) {
    inner(id);
    __asm__ volatile("");
  }
}

static void entry(void) {
  count(&entries);
  outer((*current_of_thread())->id);
  (*current_of_thread())->done = 1;
  for (;;) yield_now();
}

APART static void run(struct fiber* one) {
  count(&runs);
  *current_of_thread() = one;
  swap_stack(home_of_thread(), one->sp);
  __asm__ volatile("");
}

static struct fiber* take(void) {
  struct fiber* one = NULL;
  pthread_mutex_lock(&lock);
  if (waiting > 0) {
    one = queue[first];
    first = (first + 1) % kFibers;
    --waiting;
  }
  pthread_mutex_unlock(&lock);
  return one;
}

static void put(struct fiber* one) {
  pthread_mutex_lock(&lock);
  queue[(first + waiting++) % kFibers] = one;
  pthread_mutex_unlock(&lock);
}

static void* work(void* unused) {
  pthread_barrier_wait(&ready);
  while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0) {
    struct fiber* const one = take();
    if (one == NULL) continue;
    run(one);
    if (one->done) {
      __atomic_sub_fetch(&left, 1, __ATOMIC_RELEASE);
    } else {
      put(one);
    }
  }
  return unused;
}

static void make(int id) {
  char* const memory =
      mmap(NULL, kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void** sp = (void**)(memory + kApart / 2 + kStackBytes - 8);
  *--sp = 0;
  *--sp = (void*)entry;
  sp -= kRegisters;
  memset(sp, 0, kRegisters * sizeof *sp);
  fibers[id] = (struct fiber){sp, id, 0};
  put(&fibers[id]);
}

int main(void) {
  pthread_t threads[kThreads];
  for (int id = 0; id < kFibers; ++id) make(id);
  pthread_barrier_init(&ready, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("entry %lu outer %lu inner %lu yield_now %lu run %lu leaf %lu\n", entries, outers, inners, yields, runs,
         leaves);
  return 0;
}
