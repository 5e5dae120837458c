/*
 * Traces with ptkit.ko on processor 0:
 *     trace topa|single|ring|wake|bts|btsring user|kernel|both all|process|range|stop FILE [PROGRAM ARGUMENT...]
 * Without a program, work() below in a child. FILE gets the trace; what it says is for the test to read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

#define ROUNDS 300

extern char __start_traced_code[], __stop_traced_code[]; /* made by the linker */

__attribute__((section("traced_code"), noinline)) static unsigned int work(unsigned int number)
{
	unsigned int steps = 0;

	while (number != 1 && steps < 200) {
		number = number % 2 ? 3 * number + 1 : number / 2;
		++steps;
	}
	return steps;
}

/* Work, and what is neither work nor of this process' own code. */
static void do_something(void)
{
	volatile unsigned int sum = 0;

	for (unsigned int i = 1; i <= ROUNDS; ++i) {
		sum += work(i);
		if (i % 10 == 0)
			getppid();
		if (i % 100 == 0)
			sched_yield();
	}
}

/* Stopped before anything else, so that it can be traced from its beginning. */
static pid_t begin(char **program)
{
	const pid_t child = fork();

	must(child >= 0, "fork");
	if (child == 0) {
		/* A page fault would come between entering work() and its first instruction. */
		*(volatile char *)__start_traced_code;
		raise(SIGSTOP);
		if (program[0] == NULL) {
			do_something();
			_exit(0);
		}
		execvp(program[0], program);
		_exit(127);
	}
	must(waitpid(child, NULL, WUNTRACED) == child, "waitpid");
	return child;
}

static struct ptkit_config make_config(char **words, pid_t child)
{
	struct ptkit_config config;

	memset(&config, 0, sizeof config);
	config.target = PTKIT_TARGET_CPU;
	config.buffer_bytes = BUFFER_BYTES;
	config.flags = PTKIT_TRACE_BRANCHES | PTKIT_TRACE_TSC;
	if (strcmp(words[0], "single") == 0) {
		config.output = PTKIT_OUTPUT_SINGLE_RANGE;
		config.mode = PTKIT_MODE_RING;
	}
	if (strcmp(words[0], "ring") == 0) {
		config.buffer_bytes = RING_BYTES;
		config.mode = PTKIT_MODE_RING;
	}
	if (strncmp(words[0], "bts", 3) == 0) {
		config.output = PTKIT_OUTPUT_BTS;
		config.flags = PTKIT_TRACE_BRANCHES;
	}
	if (strcmp(words[0], "btsring") == 0) {
		config.buffer_bytes = RING_BYTES;
		config.mode = PTKIT_MODE_RING;
	}
	if (strcmp(words[0], "wake") == 0) {
		config.buffer_bytes = RING_BYTES;
		config.wake_up_bytes = RING_BYTES / 8;
	}
	if (strcmp(words[1], "kernel") != 0)
		config.flags |= PTKIT_TRACE_USER;
	if (strcmp(words[1], "user") != 0)
		config.flags |= PTKIT_TRACE_KERNEL;
	if (strcmp(words[2], "process") == 0)
		config.process = child;
	if (strcmp(words[2], "range") == 0 || strcmp(words[2], "stop") == 0) {
		config.range_count = 1;
		config.ranges[0].first = (unsigned long)__start_traced_code;
		config.ranges[0].last = (unsigned long)__stop_traced_code - 1;
		config.ranges[0].action =
			strcmp(words[2], "stop") == 0 ? PTKIT_RANGE_STOP : PTKIT_RANGE_FILTER;
	}
	return config;
}

int main(int count, char **arguments)
{
	struct ptkit_config config;
	cpu_set_t first;
	pid_t child;
	const int session = open(PTKIT_DEVICE, O_RDWR | O_CLOEXEC);

	must(count >= 5 && session >= 0, PTKIT_DEVICE);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	must(sched_setaffinity(0, sizeof first, &first) == 0, "sched_setaffinity");
	child = begin(arguments + 5);
	config = make_config(arguments + 1, child);
	printf("work %p %p child %d\n", (void *)__start_traced_code, (void *)__stop_traced_code, child);
	must(ioctl(session, PTKIT_CONFIGURE, &config) == 0, "PTKIT_CONFIGURE");
	must(ioctl(session, PTKIT_START) == 0, "PTKIT_START");
	kill(child, SIGCONT);
	if (config.wake_up_bytes) {
		read_until_end(session, child, arguments[4]);
		return 0;
	}
	must(waitpid(child, NULL, 0) == child, "waitpid");
	must(ioctl(session, PTKIT_PAUSE) == 0, "PTKIT_PAUSE");
	save(session, 0, config.buffer_bytes, arguments[4]);
	must(ioctl(session, PTKIT_STOP) == 0, "PTKIT_STOP");
	close(session);
	return 0;
}
