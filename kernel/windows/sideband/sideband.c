// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Windows calls drivers when processes and threads begin and end and when images are mapped, at
 * PASSIVE_LEVEL. It calls none at context switches, and none when an image goes: ETW has both, and
 * the client joins them.
 */
#include "sideband/sideband.h"

#include "machine/machine.h"
#include "machine/pool.h"
#include "ptkit/ptkit_windows.h"
#include "sideband/system.h"

#define MOST_PATH_BYTES 1024

static LIST_ENTRY listeners;
static KSPIN_LOCK listeners_lock;

struct image_record {
	struct ptkit_record_image image;
	uint8_t path[MOST_PATH_BYTES];
};

static int32_t number_of(HANDLE id)
{
	return (int32_t)(ULONG_PTR)id;
}

static bool is_followed(const struct ptkit_sideband *sideband, HANDLE pid)
{
	return !sideband->process || sideband->process == pid;
}

static void write_one(struct ptkit_sideband *sideband, struct ptkit_record *record, uint32_t bytes)
{
	if (sideband->ring.pt.data && ptkit_ring_write(&sideband->ring, record, bytes))
		ptkit_report(sideband->waiter, PTKIT_EVENT_SIDEBAND);
}

/* Kernel images are everybody's. */
static void write_all(struct ptkit_record *record, uint32_t bytes, HANDLE pid, uint32_t events)
{
	PLIST_ENTRY entry;
	KIRQL level;

	KeAcquireSpinLock(&listeners_lock, &level);
	for (entry = listeners.Flink; entry != &listeners; entry = entry->Flink) {
		struct ptkit_sideband *sideband =
			CONTAINING_RECORD(entry, struct ptkit_sideband, entry);

		if (pid && !is_followed(sideband, pid))
			continue;
		write_one(sideband, record, bytes);
		if (events && sideband->process)
			ptkit_report(sideband->waiter, events);
	}
	KeReleaseSpinLock(&listeners_lock, level);
}

static void fill_space(struct ptkit_record_space *space, HANDLE pid)
{
	uint64_t kernel;
	uint64_t user;

	space->record.pid = number_of(pid);
	if (!NT_SUCCESS(ptkit_machine.page_tables(pid, &kernel, &user)))
		return;
	space->kernel_cr3 = kernel;
	space->user_cr3 = user;
}

static void process_ends(HANDLE pid)
{
	struct ptkit_record_exit exit = {
		.record = {.type = PTKIT_RECORD_EXIT, .pid = number_of(pid)},
	};

	write_all(&exit.record, sizeof(exit), pid, PTKIT_EVENT_ENDED);
}

static VOID NTAPI on_process(HANDLE parent, HANDLE pid, BOOLEAN begins)
{
	struct ptkit_record_fork fork = {
		.space.record.type = PTKIT_RECORD_FORK,
		.parent_pid = number_of(parent),
		.parent_tid = number_of(PsGetCurrentThreadId()),
	};

	if (!begins) {
		process_ends(pid);
		return;
	}
	fill_space(&fork.space, pid);
	write_all(&fork.space.record, sizeof(fork), pid, 0);
}

static VOID NTAPI on_thread(HANDLE pid, HANDLE tid, BOOLEAN begins)
{
	struct ptkit_record_fork fork = {
		.space.record =
			{
				.type = PTKIT_RECORD_FORK,
				.pid = number_of(pid),
				.tid = number_of(tid),
			},
		.parent_pid = number_of(PsGetCurrentProcessId()),
		.parent_tid = number_of(PsGetCurrentThreadId()),
	};
	struct ptkit_record_exit exit = {
		.record =
			{
				.type = PTKIT_RECORD_EXIT,
				.pid = number_of(pid),
				.tid = number_of(tid),
			},
	};

	if (begins)
		write_all(&fork.space.record, sizeof(fork), pid, 0);
	else
		write_all(&exit.record, sizeof(exit), pid, 0);
}

/* Returns the size of the record. Paths may be paged out: this is not for DISPATCH_LEVEL. */
static uint32_t fill_image(struct image_record *to, const struct ptkit_image *image, HANDLE pid,
			   uint32_t flags)
{
	uint32_t path_bytes = image->path.Buffer ? image->path.Length : 0;

	path_bytes = min(path_bytes, MOST_PATH_BYTES);
	to->image.record.type = PTKIT_RECORD_IMAGE;
	to->image.record.pid = number_of(pid);
	to->image.address = image->address;
	to->image.bytes = image->bytes;
	to->image.flags = flags;
	to->image.path_bytes = path_bytes;
	if (path_bytes)
		RtlCopyMemory(to->path, image->path.Buffer, path_bytes);
	return (uint32_t)sizeof(to->image) + (path_bytes + 7) / 8 * 8;
}

static VOID NTAPI on_image(PUNICODE_STRING path, HANDLE pid, PIMAGE_INFO information)
{
	struct image_record *record = ptkit_allocate(sizeof(*record));
	struct ptkit_image image = {
		.address = (uint64_t)(ULONG_PTR)information->ImageBase,
		.bytes = information->ImageSize,
	};
	uint32_t flags = information->SystemModeImage ? PTKIT_IMAGE_KERNEL : 0;

	if (!record)
		return;
	if (path)
		image.path = *path;
	write_all(&record->image.record, fill_image(record, &image, pid, flags), pid, 0);
	ptkit_free(record);
}

/* A walk over processes and images that exist when a session starts. */
struct walk {
	struct ptkit_sideband *sideband;
	struct image_record *record;
	HANDLE pid;
	uint32_t flags;
};

static void write_image(void *context, const struct ptkit_image *image)
{
	struct walk *walk = context;
	uint32_t bytes;

	RtlZeroMemory(walk->record, sizeof(*walk->record));
	bytes = fill_image(walk->record, image, walk->pid, walk->flags);
	write_one(walk->sideband, &walk->record->image.record, bytes);
}

static void write_process(void *context, HANDLE pid)
{
	struct walk *walk = context;
	struct ptkit_record_space space = {.record.type = PTKIT_RECORD_SPACE};

	fill_space(&space, pid);
	write_one(walk->sideband, &space.record, sizeof(space));
	walk->pid = pid;
	walk->flags = PTKIT_IMAGE_BEFORE;
	ptkit_each_image(pid, write_image, walk);
}

static void write_present(struct ptkit_sideband *sideband)
{
	struct walk walk = {
		.sideband = sideband,
		.record = ptkit_allocate(sizeof(*walk.record)),
		.flags = PTKIT_IMAGE_BEFORE | PTKIT_IMAGE_KERNEL,
	};

	if (!walk.record)
		return;
	ptkit_each_driver(write_image, &walk);
	if (sideband->process)
		write_process(&walk, sideband->process);
	else
		ptkit_each_process(write_process, &walk);
	ptkit_free(walk.record);
}

void ptkit_sideband_start(struct ptkit_sideband *sideband)
{
	KIRQL level;

	if (sideband->ring.pt.data)
		pt_ring_reset(&sideband->ring.pt);
	KeAcquireSpinLock(&listeners_lock, &level);
	InsertTailList(&listeners, &sideband->entry);
	sideband->listening = true;
	KeReleaseSpinLock(&listeners_lock, level);
	if (sideband->ring.pt.data)
		write_present(sideband);
}

void ptkit_sideband_stop(struct ptkit_sideband *sideband)
{
	KIRQL level;

	KeAcquireSpinLock(&listeners_lock, &level);
	if (sideband->listening)
		RemoveEntryList(&sideband->entry);
	sideband->listening = false;
	KeReleaseSpinLock(&listeners_lock, level);
}

bool ptkit_sideband_init(void)
{
	InitializeListHead(&listeners);
	KeInitializeSpinLock(&listeners_lock);
	if (!NT_SUCCESS(PsSetCreateProcessNotifyRoutine(on_process, FALSE)))
		return false;
	if (!NT_SUCCESS(PsSetCreateThreadNotifyRoutine(on_thread)))
		goto no_thread;
	if (!NT_SUCCESS(PsSetLoadImageNotifyRoutine(on_image)))
		goto no_image;
	return true;
no_image:
	PsRemoveCreateThreadNotifyRoutine(on_thread);
no_thread:
	PsSetCreateProcessNotifyRoutine(on_process, TRUE);
	return false;
}

void ptkit_sideband_exit(void)
{
	PsRemoveLoadImageNotifyRoutine(on_image);
	PsRemoveCreateThreadNotifyRoutine(on_thread);
	PsSetCreateProcessNotifyRoutine(on_process, TRUE);
}
