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

static bool make_regions(struct ptkit_memory *memory)
{
	uint32_t count = find_regions(&memory->pages, NULL);

	memory->regions = ptkit_allocate(count * sizeof(*memory->regions));
	if (memory->regions)
		memory->region_count = find_regions(&memory->pages, memory->regions);
	return memory->regions;
}

/* pt_topa_build() wants ascending addresses. Few tables: a simple sort does. */
static void sort_tables(struct ptkit_memory *memory)
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

static bool make_tables(struct ptkit_memory *memory, uint64_t entries)
{
	/* One entry of each table leads to the next table. */
	uint64_t count = (entries + ENTRIES_OF_TABLE - 2) / (ENTRIES_OF_TABLE - 1);
	uint64_t *first;
	uint32_t i;

	if (!count || !ptkit_pages_make(&memory->table_pages, count * PAGE_SIZE, false))
		return false;
	memory->tables = ptkit_allocate((SIZE_T)count * sizeof(*memory->tables));
	if (!memory->tables)
		return false;
	first = memory->table_pages.linear;
	for (i = 0; i < count; i++) {
		memory->tables[i].entries = first + i * ENTRIES_OF_TABLE;
		memory->tables[i].physical = ptkit_pages_physical(&memory->table_pages, i);
		memory->tables[i].capacity = ENTRIES_OF_TABLE;
	}
	memory->table_count = (uint32_t)count;
	sort_tables(memory);
	return true;
}

static bool build_tables(struct ptkit_memory *memory, const struct pt_topa_options *options)
{
	uint64_t entries = pt_topa_entries(memory->regions, memory->region_count, options);

	return entries && make_tables(memory, entries) &&
	       !pt_topa_build(&memory->topa, memory->tables, memory->table_count, memory->regions,
			      memory->region_count, options);
}

static bool make_all(struct ptkit_memory *memory, const struct ptkit_config *config)
{
	bool topa = config->output == PTKIT_OUTPUT_TOPA;
	struct pt_topa_options options;
	bool contiguous;

	pt_topa_options_make(&ptkit_machine_caps.caps, config, &options);
	contiguous = memory->single_range || (topa && options.one_entry);
	if (contiguous && (config->buffer_bytes & (config->buffer_bytes - 1)))
		return false;
	return ptkit_pages_make(&memory->pages, config->buffer_bytes, contiguous) &&
	       make_regions(memory) && (!topa || build_tables(memory, &options));
}

uint32_t ptkit_memory_make(struct ptkit_memory *memory, const struct ptkit_config *config)
{
	memory->used = config->buffer_bytes;
	memory->single_range = config->output == PTKIT_OUTPUT_SINGLE_RANGE;
	if (make_all(memory, config))
		return PTKIT_REASON_NONE;
	ptkit_memory_free(memory);
	return PTKIT_REASON_MEMORY;
}

void ptkit_memory_free(struct ptkit_memory *memory)
{
	ptkit_pages_free(&memory->pages);
	ptkit_pages_free(&memory->table_pages);
	ptkit_free(memory->tables);
	ptkit_free(memory->regions);
	RtlZeroMemory(memory, sizeof(*memory));
}

void ptkit_memory_clear(struct ptkit_memory *memory)
{
	if (memory->written)
		RtlZeroMemory(memory->pages.linear, (SIZE_T)memory->pages.bytes);
	memory->written = true;
}

bool ptkit_memory_used_from(const struct ptkit_memory *memory, uint64_t position)
{
	const uint8_t *end = (const uint8_t *)memory->pages.linear + memory->used;
	/* A trace unit never fills a page with PAD packets. */
	uint64_t looked_at = min(memory->used - position, PAGE_SIZE);
	const uint8_t *byte;

	for (byte = end - looked_at; byte < end; byte++) {
		if (*byte)
			return true;
	}
	return false;
}

void ptkit_memory_copy(const struct ptkit_memory *memory, uint64_t offset, uint64_t bytes,
		       uint8_t *to)
{
	const uint8_t *linear = memory->pages.linear;
	uint64_t first = min(bytes, memory->used - offset);

	RtlCopyMemory(to, linear + offset, (SIZE_T)first);
	RtlCopyMemory(to + first, linear, (SIZE_T)(bytes - first));
}

bool ptkit_memory_owns(struct ptkit_memory *memory, uint64_t base)
{
	if (memory->single_range)
		return base == memory->regions[0].base;
	return pt_topa_owns(&memory->topa, base);
}

uint32_t ptkit_memory_output(struct ptkit_memory *memory, uint64_t position, struct pt_state *state)
{
	struct pt_output output;
	int error;

	if (memory->single_range)
		error = pt_single_range(memory->regions[0].base, memory->pages.bytes, &output);
	else
		error = pt_topa_output(&memory->topa, position, &output);
	if (error)
		return PTKIT_REASON_ERROR;
	state->output_base = output.base;
	state->output_mask_ptrs = output.mask_ptrs;
	return PTKIT_REASON_NONE;
}

uint32_t ptkit_memory_position(struct ptkit_memory *memory, const struct pt_state *state,
			       uint64_t *position)
{
	struct pt_output output = {
		.base = state->output_base,
		.mask_ptrs = state->output_mask_ptrs,
	};

	if (!memory->single_range)
		return pt_topa_position(&memory->topa, &output, position) ? PTKIT_REASON_ERROR
									  : PTKIT_REASON_NONE;
	*position = pt_single_position(output.mask_ptrs);
	if (output.base == memory->regions[0].base && *position < memory->used)
		return PTKIT_REASON_NONE;
	return PTKIT_REASON_ERROR;
}
