/*
 * Talks to the one who runs the machine: `host put NAME FILE`, `host off`, `host log never|tracing|always`,
 * `host fault none|time|filter|topa|interrupt|returns`. instrument/host_port.h is the other side.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA 0x4e8
#define ORDERS 0x4ec
#define FAULT 5

static void send(const void *bytes, size_t size)
{
	const size_t words = size / 4;

	outsl(DATA, bytes, words);
	outsb(DATA, (const char *)bytes + words * 4, size % 4);
}

static int put(const char *name, const char *path)
{
	static char buffer[1 << 16];
	struct stat status;
	const int file = open(path, O_RDONLY);
	uint64_t left;

	if (file < 0 || fstat(file, &status) != 0) {
		perror(path);
		return 1;
	}
	const uint32_t length = strlen(name);
	const uint64_t size = left = status.st_size;

	send(&length, sizeof length);
	send(&size, sizeof size);
	send(name, length);
	while (left > 0) {
		const ssize_t got = read(file, buffer, left < sizeof buffer ? left : sizeof buffer);

		if (got <= 0) {
			fprintf(stderr, "%s became shorter\n", path);
			return 1;
		}
		send(buffer, got);
		left -= got;
	}
	return 0;
}

static int order(const char *what, const char *const *names, unsigned int count, unsigned int first)
{
	for (unsigned int number = 0; number < count; ++number) {
		if (strcmp(what, names[number]) == 0) {
			outl(first + number, ORDERS);
			return 0;
		}
	}
	return 2;
}

static int order_log(const char *what)
{
	static const char *const names[] = { "off", "never", "tracing", "always" };

	return order(what, names, sizeof names / sizeof *names, 1);
}

static int order_fault(const char *what)
{
	static const char *const names[] = { "none", "time", "filter", "topa", "interrupt", "returns" };

	return order(what, names, sizeof names / sizeof *names, FAULT);
}

int main(int count, char **arguments)
{
	if (iopl(3) != 0) {
		perror("iopl");
		return 1;
	}
	if (count == 4 && strcmp(arguments[1], "put") == 0)
		return put(arguments[2], arguments[3]);
	if (count == 2 && strcmp(arguments[1], "off") == 0)
		return order_log("off");
	if (count == 3 && strcmp(arguments[1], "log") == 0)
		return order_log(arguments[2]);
	if (count == 3 && strcmp(arguments[1], "fault") == 0)
		return order_fault(arguments[2]);
	fprintf(stderr, "usage: host put NAME FILE | off | log never|tracing|always | fault NAME\n");
	return 2;
}
