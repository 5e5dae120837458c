/*
 * Follows processes and threads with ptkit.ko:
 *     follow process|exec|children|task user|kernel|both topa|ring|wake|slow FILE
 * FILE.0 and so on get the traces of processors; that of a task has no processor. The log of the truth has
 * all that is executed from the beginning of tracing to its end; with `wake` and `slow` (a reader that is), what is
 * traced.
 *
 * Code of each thread is its own, in a section of its own; it makes system calls without a library's help.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/io.h>
#include <sys/syscall.h>
#include <time.h>

#include "session.h"

#define ORDERS 0x4ec /* instrument/host_port.h */
#define LOG_NEVER 2
#define LOG_TRACING 3
#define LOG_ALWAYS 4

#define ROUNDS 400

static int start_line[2]; /* a pipe: workers wait until it is closed */
static volatile pid_t *followed_task; /* in memory that all share */

static inline __attribute__((always_inline)) long call(long number, long first, long second, long third)
{
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(first), "S"(second), "d"(third)
		     : "rcx", "r11", "memory");
	return result;
}

/* Calculates, calls the kernel, lets others run, and changes the processor if there are two. */
static inline __attribute__((always_inline)) void work(unsigned int rounds)
{
	for (unsigned int i = 1; i <= rounds; ++i) {
		volatile unsigned long cpus = 1UL << i / 50 % 2;
		unsigned int number = i;

		for (unsigned int steps = 0; number != 1 && steps < 50; ++steps)
			number = number % 2 ? 3 * number + 1 : number / 2;
		if (i % 10 == 0)
			call(SYS_getppid, 0, 0, 0);
		if (i % 25 == 0)
			call(SYS_sched_yield, 0, 0, 0);
		if (i % 50 == 0)
			call(SYS_sched_setaffinity, 0, sizeof cpus, (long)&cpus);
	}
}

#define WORKER(name, rounds)                                                                   \
	__attribute__((section(#name "_code"), noinline)) static void *name(void *task)        \
	{                                                                                      \
		char nothing;                                                                  \
                                                                                               \
		if (task != NULL)                                                              \
			*(volatile pid_t *)task = call(SYS_gettid, 0, 0, 0);                   \
		call(SYS_read, start_line[0], (long)&nothing, 1);                              \
		work(rounds);                                                                  \
		call(SYS_exit, 0, 0, 0);                                                       \
		return task;                                                                   \
	}                                                                                      \
	extern char __start_##name##_code[], __stop_##name##_code[]

WORKER(first, ROUNDS);
WORKER(second, ROUNDS);
WORKER(third, ROUNDS);
WORKER(long_one, 40 * ROUNDS);

__attribute__((section("followed_code"), noinline)) static void be_followed(void)
{
	work(ROUNDS);
}

__attribute__((section("noise_code"), noinline)) static void make_noise(void)
{
	static const struct timespec pause = { .tv_nsec = 500000 };

	for (;;) {
		work(50);
		call(SYS_nanosleep, (long)&pause, 0, 0);
	}
}

extern char __start_followed_code[], __stop_followed_code[];
extern char __start_noise_code[], __stop_noise_code[];

static void show(const char *name, const char *start, const char *stop)
{
	printf("code %s %p %p\n", name, (const void *)start, (const void *)stop);
}

static void show_code(void)
{
	show("first", __start_first_code, __stop_first_code);
	show("second", __start_second_code, __stop_second_code);
	show("third", __start_third_code, __stop_third_code);
	show("long_one", __start_long_one_code, __stop_long_one_code);
	show("followed", __start_followed_code, __stop_followed_code);
	show("noise", __start_noise_code, __stop_noise_code);
}

/* Starts /bin/another, which is this program at another address. */
static void become_another(void)
{
	execl("/bin/another", "another", "be", NULL);
	_exit(127);
}

static void have_children(void)
{
	for (int i = 0; i < 3; ++i) {
		const pid_t child = fork();

		if (child == 0) {
			be_followed();
			become_another();
		}
		waitpid(child, NULL, 0);
	}
}

/* Of these threads the long one is the first, if it is there. */
static void have_threads(const char *scenario, const char *output)
{
	const int task = strcmp(scenario, "task") == 0;
	const int is_long = task && strcmp(output, "topa") != 0;
	pthread_t threads[3];

	pthread_create(&threads[0], NULL, is_long ? long_one : first, (void *)followed_task);
	pthread_create(&threads[1], NULL, second, NULL);
	pthread_create(&threads[2], NULL, third, NULL);
	usleep(1000); /* until they wait */
	raise(SIGSTOP);
	close(start_line[1]);
	for (int i = 0; i < 3; ++i)
		pthread_join(threads[i], NULL);
}

static pid_t begin(const char *scenario, const char *output)
{
	const pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		if (strcmp(scenario, "task") == 0 || strcmp(scenario, "process") == 0) {
			have_threads(scenario, output);
			_exit(0);
		}
		raise(SIGSTOP);
		be_followed();
		if (strcmp(scenario, "exec") == 0)
			become_another();
		have_children();
		_exit(0);
	}
	must(waitpid(child, NULL, WUNTRACED) == child, "waitpid");
	return child;
}

static pid_t begin_noise(void)
{
	const pid_t noise = fork();

	must(noise >= 0, "fork");
	if (noise == 0)
		make_noise();
	return noise;
}

static struct ptkit_config make_config(char **words, pid_t child)
{
	struct ptkit_config config;

	memset(&config, 0, sizeof config);
	config.target = PTKIT_TARGET_ALL;
	config.buffer_bytes = BUFFER_BYTES;
	config.flags = PTKIT_TRACE_BRANCHES | PTKIT_TRACE_TSC;
	if (strcmp(words[0], "task") == 0) {
		config.target = PTKIT_TARGET_TASK;
		config.task = *followed_task;
	} else {
		config.process = child;
	}
	if (strcmp(words[0], "children") == 0)
		config.flags |= PTKIT_TRACE_CHILDREN;
	if (strcmp(words[1], "kernel") != 0)
		config.flags |= PTKIT_TRACE_USER;
	if (strcmp(words[1], "user") != 0)
		config.flags |= PTKIT_TRACE_KERNEL;
	if (strcmp(words[2], "topa") != 0)
		config.buffer_bytes = RING_BYTES;
	if (strcmp(words[2], "ring") == 0)
		config.mode = PTKIT_MODE_RING;
	if (strcmp(words[2], "wake") == 0 || strcmp(words[2], "slow") == 0)
		config.wake_up_bytes = RING_BYTES / 8;
	return config;
}

static void save_all(int session, const struct ptkit_config *config, const char *path)
{
	const int task = config->target == PTKIT_TARGET_TASK;
	char name[256];

	for (int cpu = 0; cpu < (task ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN)); ++cpu) {
		snprintf(name, sizeof name, "%s.%d", path, cpu);
		save(session, cpu, config->buffer_bytes, name);
	}
}

static void wait_and_save(int session, const struct ptkit_config *config, pid_t child, const char *path)
{
	must(waitpid(child, NULL, 0) == child, "waitpid");
	must(ioctl(session, PTKIT_PAUSE) == 0, "PTKIT_PAUSE");
	outl(LOG_NEVER, ORDERS);
	save_all(session, config, path);
	must(ioctl(session, PTKIT_STOP) == 0, "PTKIT_STOP");
}

/* Reads only what is full, until the child ends. */
static void read_late(int session, pid_t child, const char *path)
{
	const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	const unsigned char *mapped = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, session, 0);
	struct ptkit_status status = { .cpu = 0 };
	uint64_t tail = 0;
	int ended = 0;

	must(file >= 0 && mapped != MAP_FAILED, "mmap");
	while (!ended) {
		usleep(1000);
		ended = waitpid(child, NULL, WNOHANG) == child;
		if (ended)
			must(ioctl(session, PTKIT_PAUSE) == 0, "PTKIT_PAUSE");
		must(ioctl(session, PTKIT_STATUS, &status) == 0, "PTKIT_STATUS");
		if (ended || (status.flags & PTKIT_STATUS_FULL))
			tail = read_on(session, mapped, file, tail);
	}
	must(ioctl(session, PTKIT_STATUS, &status) == 0, "PTKIT_STATUS");
	must(status.error == 0 && status.tail == status.head, "no error");
	must(ioctl(session, PTKIT_STOP) == 0, "PTKIT_STOP");
	printf("waited %d times\n", (int)status.stops);
	close(file);
}

int main(int count, char **arguments)
{
	struct ptkit_config config;
	char name[256];
	pid_t child, noise;
	int session;

	if (count == 2 && strcmp(arguments[1], "be") == 0) {
		be_followed();
		return 0;
	}
	session = open(PTKIT_DEVICE, O_RDWR | O_CLOEXEC);
	must(count == 5 && session >= 0, PTKIT_DEVICE);
	followed_task = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(followed_task != MAP_FAILED, "mmap");
	must(pipe(start_line) == 0 && ioperm(ORDERS, 4, 1) == 0, "ioperm");
	show_code();
	fflush(stdout);
	child = begin(arguments[1], arguments[3]);
	close(start_line[1]);
	noise = begin_noise();
	config = make_config(arguments + 1, child);
	must(ioctl(session, PTKIT_CONFIGURE, &config) == 0, "PTKIT_CONFIGURE");
	outl(config.wake_up_bytes ? LOG_TRACING : LOG_ALWAYS, ORDERS);
	must(ioctl(session, PTKIT_START) == 0, "PTKIT_START");
	kill(child, SIGCONT);
	if (config.wake_up_bytes) {
		snprintf(name, sizeof name, "%s.0", arguments[4]);
		if (strcmp(arguments[3], "slow") == 0)
			read_late(session, child, name);
		else
			read_until_end(session, child, name);
		outl(LOG_NEVER, ORDERS);
	} else {
		wait_and_save(session, &config, child, arguments[4]);
	}
	kill(noise, SIGKILL);
	close(session);
	return 0;
}
