// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "unit/memory.h"

#include "common/pt_config.h"
#include "machine/caps.h"
#include "machine/pool.h"
#include "ptkit/rtit_regs.h"

#define ENTRIES_OF_TABLE (PAGE_SIZE / PT_TOPA_ENTRY_BYTES)

/* Pages that follow one another are one region. */
static uint32_t find_regions(const struct ptkit_pages *pages, struct pt_region *regions)
{
	uint64_t count = pages->bytes >> PAGE_SHIFT;
	uint64_t next = 0;
	uint32_t found = 0;
	uint64_t i;

	for (i = 0; i < count; i++) {
		uint64_t address = ptkit_pages_physical(pages, i);

		if (!i || address != next)
			found++;
		if (regions && (!i || address != next)) {
			regions[found - 1].base = address;
			regions[found - 1].bytes = 0;
		}
		if (regions)
			regions[found - 1].bytes += PAGE_SIZE;
		next = address + PAGE_SIZE;
	}
	return found;
}

static bool make_regions(struct ptkit_trace *trace)
{
	struct pt_memory *memory = &trace->pt.memory;
	uint32_t count = find_regions(&trace->pages, NULL);

	memory->regions = ptkit_allocate(count * sizeof(*memory->regions));
	if (memory->regions)
		memory->region_count = find_regions(&trace->pages, memory->regions);
	return memory->regions;
}

/* pt_topa_build() wants ascending addresses. Few tables: a simple sort does. */
static void sort_tables(struct pt_memory *memory)
{
	uint32_t i;
	uint32_t j;

	for (i = 1; i < memory->table_count; i++) {
		struct pt_table table = memory->tables[i];

		for (j = i; j && memory->tables[j - 1].physical > table.physical; j--)
			memory->tables[j] = memory->tables[j - 1];
		memory->tables[j] = table;
	}
}

static bool make_tables(struct ptkit_trace *trace, uint64_t entries)
{
	/* One entry of each table leads to the next table. */
	uint64_t count = (entries + ENTRIES_OF_TABLE - 2) / (ENTRIES_OF_TABLE - 1);
	struct pt_memory *memory = &trace->pt.memory;
	uint64_t *first;
	uint32_t i;

	if (!count || !ptkit_pages_make(&trace->table_pages, count * PAGE_SIZE, false))
		return false;
	memory->tables = ptkit_allocate((SIZE_T)count * sizeof(*memory->tables));
	if (!memory->tables)
		return false;
	first = trace->table_pages.linear;
	for (i = 0; i < count; i++) {
		memory->tables[i].entries = first + i * ENTRIES_OF_TABLE;
		memory->tables[i].physical = ptkit_pages_physical(&trace->table_pages, i);
		memory->tables[i].capacity = ENTRIES_OF_TABLE;
	}
	memory->table_count = (uint32_t)count;
	sort_tables(memory);
	return true;
}

static bool build_tables(struct ptkit_trace *trace, const struct pt_topa_options *options)
{
	struct pt_memory *memory = &trace->pt.memory;
	uint64_t entries = pt_topa_entries(memory->regions, memory->region_count, options);

	return entries && make_tables(trace, entries) &&
	       !pt_topa_build(&memory->topa, memory->tables, memory->table_count, memory->regions,
			      memory->region_count, options);
}

bool ptkit_memory_make(struct ptkit_trace *trace, const struct ptkit_config *config)
{
	struct pt_memory *memory = &trace->pt.memory;
	bool topa = config->output == PTKIT_OUTPUT_TOPA;
	uint64_t bytes = config->buffer_bytes;
	struct pt_topa_options options;
	bool contiguous;

	pt_topa_options_make(&ptkit_machine_caps.caps, config, &options);
	memory->single_range = config->output == PTKIT_OUTPUT_SINGLE_RANGE;
	contiguous = memory->single_range || (topa && options.one_entry);
	if (contiguous && (bytes & (bytes - 1)))
		return false;
	if (!ptkit_pages_make(&trace->pages, bytes, contiguous))
		return false;
	memory->bytes = bytes;
	memory->used = bytes;
	memory->linear = trace->pages.linear;
	memory->last_page = (uint64_t *)memory->linear + (bytes - PAGE_SIZE) / sizeof(uint64_t);
	if (make_regions(trace) && (!topa || build_tables(trace, &options)))
		return true;
	ptkit_memory_free(trace);
	return false;
}

void ptkit_memory_free(struct ptkit_trace *trace)
{
	ptkit_pages_free(&trace->pages);
	ptkit_pages_free(&trace->table_pages);
	ptkit_free(trace->pt.memory.tables);
	ptkit_free(trace->pt.memory.regions);
	RtlZeroMemory(&trace->pt.memory, sizeof(trace->pt.memory));
}

void ptkit_memory_clear(struct ptkit_trace *trace)
{
	if (trace->pt.memory.written)
		RtlZeroMemory(trace->pages.linear, (SIZE_T)trace->pages.bytes);
	trace->pt.memory.written = true;
}

void ptkit_memory_copy(const struct ptkit_trace *trace, uint64_t offset, uint64_t bytes,
		       uint8_t *to)
{
	const uint8_t *linear = trace->pages.linear;
	uint64_t first = min(bytes, trace->pt.memory.used - offset);

	RtlCopyMemory(to, linear + offset, (SIZE_T)first);
	RtlCopyMemory(to + first, linear, (SIZE_T)(bytes - first));
}
