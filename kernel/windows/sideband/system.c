// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Classes and structures of the system's queries are those that Microsoft's winternl.h and tools
 * use. */
#include <ntifs.h>

#include "machine/pool.h"
#include "sideband/system.h"

#define BASIC_CLASS 0
#define PROCESS_CLASS 5
#define MODULE_CLASS 11
#define MEMORY_BASIC_CLASS 0
#define MEMORY_FILE_NAME_CLASS 2
#define MEMORY_IS_IMAGE 0x1000000
#define QUERY_INFORMATION 0x400
#define MOST_QUERY_BYTES (64U << 20)
#define PATH_CHARACTERS 512

struct basic {
	ULONG zero;
	ULONG timer_resolution;
	ULONG page_bytes;
	ULONG pages;
	ULONG lowest_page;
	ULONG highest_page;
	ULONG granularity;
	ULONG_PTR addresses[2];
	KAFFINITY processors;
	CCHAR count;
};

struct module {
	HANDLE section;
	PVOID mapped_base;
	PVOID base;
	ULONG bytes;
	ULONG flags;
	USHORT load_order;
	USHORT init_order;
	USHORT load_count;
	USHORT name_offset;
	char path[256];
};

struct modules {
	ULONG count;
	struct module modules[];
};

struct process {
	ULONG next; /* offset of the next one; 0: the last one */
	ULONG threads;
	LARGE_INTEGER times[6];
	UNICODE_STRING name;
	LONG priority;
	HANDLE pid;
};

struct memory {
	PVOID base;
	PVOID allocation;
	ULONG first_protection;
	ULONG partition;
	SIZE_T bytes;
	ULONG state;
	ULONG protection;
	ULONG type;
};

NTSTATUS NTAPI ZwQuerySystemInformation(ULONG class, PVOID information, ULONG bytes,
					PULONG returned);
NTSTATUS NTAPI ZwQueryVirtualMemory(HANDLE process, PVOID address, ULONG class, PVOID information,
				    SIZE_T bytes, PSIZE_T returned);

uint64_t ptkit_physical_bytes(void)
{
	struct basic basic = {0};

	ZwQuerySystemInformation(BASIC_CLASS, &basic, sizeof(basic), NULL);
	return (uint64_t)basic.pages * basic.page_bytes;
}

/* Null: there is no memory, or the system refuses. The list may grow between two queries. */
static void *query(ULONG class)
{
	ULONG bytes = 64U << 10;

	for (; bytes <= MOST_QUERY_BYTES; bytes *= 2) {
		void *answer = ptkit_allocate(bytes);
		NTSTATUS status;

		if (!answer)
			return NULL;
		status = ZwQuerySystemInformation(class, answer, bytes, NULL);
		if (NT_SUCCESS(status))
			return answer;
		ptkit_free(answer);
		if (status != STATUS_INFO_LENGTH_MISMATCH)
			return NULL;
	}
	return NULL;
}

static void give_driver(const struct module *module, ptkit_image_function *function, void *context)
{
	WCHAR path[sizeof(module->path)];
	struct ptkit_image image = {
		.address = (uint64_t)(ULONG_PTR)module->base,
		.bytes = module->bytes,
		.path.Buffer = path,
		.path.MaximumLength = sizeof(path),
	};
	USHORT i;

	for (i = 0; i < sizeof(module->path) && module->path[i]; i++)
		path[i] = (unsigned char)module->path[i];
	image.path.Length = i * sizeof(WCHAR);
	function(context, &image);
}

void ptkit_each_driver(ptkit_image_function *function, void *context)
{
	struct modules *modules = query(MODULE_CLASS);
	ULONG i;

	for (i = 0; modules && i < modules->count; i++)
		give_driver(&modules->modules[i], function, context);
	ptkit_free(modules);
}

static char lower(char character)
{
	return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
}

static bool has_name(const struct module *module, const char *name)
{
	USHORT i;

	for (i = module->name_offset; i < sizeof(module->path); i++, name++) {
		if (lower(module->path[i]) != lower(*name))
			return false;
		if (!*name)
			return true;
	}
	return false;
}

bool ptkit_find_driver(const char *name, uint64_t *address, uint64_t *bytes)
{
	struct modules *modules = query(MODULE_CLASS);
	bool found = false;
	ULONG i;

	for (i = 0; modules && i < modules->count && !found; i++) {
		found = has_name(&modules->modules[i], name);
		*address = (uint64_t)(ULONG_PTR)modules->modules[i].base;
		*bytes = modules->modules[i].bytes;
	}
	ptkit_free(modules);
	return found;
}

void ptkit_each_process(void (*function)(void *context, HANDLE pid), void *context)
{
	uint8_t *processes = query(PROCESS_CLASS);
	const struct process *process = (const void *)processes;

	while (process) {
		if (process->pid)
			function(context, process->pid);
		process = process->next ? (const void *)((const uint8_t *)process + process->next)
					: NULL;
	}
	ptkit_free(processes);
}

struct name {
	UNICODE_STRING path;
	WCHAR characters[PATH_CHARACTERS];
};

static void give_image(HANDLE process, const struct ptkit_image *found, struct name *name,
		       ptkit_image_function *function, void *context)
{
	struct ptkit_image image = *found;

	if (!image.bytes)
		return;
	if (NT_SUCCESS(ZwQueryVirtualMemory(process, (PVOID)(ULONG_PTR)image.address,
					    MEMORY_FILE_NAME_CLASS, name, sizeof(*name), NULL)))
		image.path = name->path;
	function(context, &image);
}

/* Parts of one image follow one another. */
static void walk(HANDLE process, struct name *name, ptkit_image_function *function, void *context)
{
	struct ptkit_image image = {0};
	struct memory memory;
	uint64_t address = 0;

	while (NT_SUCCESS(ZwQueryVirtualMemory(process, (PVOID)(ULONG_PTR)address,
					       MEMORY_BASIC_CLASS, &memory, sizeof(memory),
					       NULL)) &&
	       memory.bytes) {
		uint64_t base = (uint64_t)(ULONG_PTR)memory.allocation;
		bool is_image = memory.type == MEMORY_IS_IMAGE;

		if (!is_image || base != image.address) {
			give_image(process, &image, name, function, context);
			image.address = is_image ? base : 0;
			image.bytes = 0;
		}
		address = (uint64_t)(ULONG_PTR)memory.base + memory.bytes;
		if (is_image)
			image.bytes = address - base;
	}
	give_image(process, &image, name, function, context);
}

void ptkit_each_image(HANDLE pid, ptkit_image_function *function, void *context)
{
	CLIENT_ID id = {.UniqueProcess = pid};
	OBJECT_ATTRIBUTES attributes;
	struct name *name = ptkit_allocate(sizeof(*name));
	HANDLE process;

	InitializeObjectAttributes(&attributes, NULL, OBJ_KERNEL_HANDLE, NULL, NULL);
	if (name && NT_SUCCESS(ZwOpenProcess(&process, QUERY_INFORMATION, &attributes, &id))) {
		walk(process, name, function, context);
		ZwClose(process);
	}
	ptkit_free(name);
}
