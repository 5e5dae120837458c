// SPDX-License-Identifier: MIT
#include "pt_topa.h"

#include "pt_ops.h"
#include "ptkit/rtit_regs.h"

#define PAGE_MASK_BITS (PT_TOPA_LEAST_BYTES - 1)

int pt_single_range(uint64_t base, uint64_t bytes, struct pt_output *output)
{
	if (bytes < PT_SINGLE_RANGE_LEAST || bytes > PT_SINGLE_RANGE_MOST || (bytes & (bytes - 1)))
		return PT_E_INVALID;
	if (base & (bytes - 1))
		return PT_E_INVALID;
	output->base = base;
	output->mask_ptrs = bytes - 1;
	return 0;
}

uint64_t pt_single_position(uint64_t mask_ptrs)
{
	return mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
}

uint64_t pt_bytes_between(uint64_t size, uint64_t from, uint64_t to)
{
	return to >= from ? to - from : size - from + to;
}

void pt_cursor_move(struct pt_cursor *cursor, uint64_t size, uint64_t position, uint64_t turns)
{
	cursor->total += turns * size + position - cursor->position;
	cursor->position = position;
}

uint32_t pt_newest_parts(uint64_t size, uint64_t position, uint64_t bytes, struct pt_part parts[2])
{
	uint32_t count = 0;

	if (bytes > size)
		bytes = size;
	if (bytes > position) {
		parts[count].bytes = bytes - position;
		parts[count].offset = size - parts[count].bytes;
		count++;
		bytes = position;
	}
	if (bytes) {
		parts[count].bytes = bytes;
		parts[count].offset = position - bytes;
		count++;
	}
	return count;
}

static uint64_t end_of_memory(const struct pt_topa_options *options)
{
	return PT_BIT(options->physical_bits);
}

static bool options_valid(const struct pt_topa_options *options)
{
	return options->largest_size <= PT_TOPA_LARGEST_SIZE &&
	       options->physical_bits > PT_TOPA_BASE_SHIFT && options->physical_bits < 64;
}

static bool span_valid(uint64_t base, uint64_t bytes, const struct pt_topa_options *options)
{
	uint64_t end = end_of_memory(options);

	return !(base & PAGE_MASK_BITS) && bytes && bytes <= end && base <= end - bytes;
}

static bool region_valid(const struct pt_region *region, const struct pt_topa_options *options)
{
	return span_valid(region->base, region->bytes, options) &&
	       !(region->bytes & PAGE_MASK_BITS);
}

static bool table_valid(const struct pt_table *table, const struct pt_topa_options *options)
{
	return table->capacity >= 2 &&
	       span_valid(table->physical, (uint64_t)table->capacity * PT_TOPA_ENTRY_BYTES,
			  options);
}

/* The largest entry at the beginning of a region. */
static uint32_t first_size(const struct pt_region *region, const struct pt_topa_options *options)
{
	uint32_t size = 0;

	while (size < options->largest_size) {
		uint64_t next = PT_TOPA_LEAST_BYTES << (size + 1);

		if (region->bytes < next || region->base & (next - 1))
			break;
		size++;
	}
	return size;
}

static uint64_t entry_bytes(uint64_t entry)
{
	uint64_t size = (entry >> PT_TOPA_SIZE_SHIFT) & (PT_BIT(PT_TOPA_SIZE_WIDTH) - 1);

	return PT_TOPA_LEAST_BYTES << size;
}

uint64_t pt_topa_entries(const struct pt_region *regions, uint32_t count,
			 const struct pt_topa_options *options)
{
	uint64_t entries = 0;
	uint32_t i;

	if (!options_valid(options))
		return 0;
	for (i = 0; i < count; i++) {
		struct pt_region rest = regions[i];

		if (!region_valid(&rest, options))
			return 0;
		while (rest.bytes) {
			uint64_t bytes = PT_TOPA_LEAST_BYTES << first_size(&rest, options);

			rest.base += bytes;
			rest.bytes -= bytes;
			entries++;
		}
	}
	return entries;
}

struct builder {
	struct pt_topa *topa;
	struct pt_table *tables;
	const struct pt_topa_options *options;
	uint64_t since_interrupt; /* bytes */
	uint32_t table;
	uint32_t index;
	uint32_t table_count;
};

static struct pt_table *table_of(const struct builder *builder)
{
	return &builder->tables[builder->table];
}

static int add_entry(struct builder *builder, uint64_t base, uint32_t size)
{
	uint64_t bytes = PT_TOPA_LEAST_BYTES << size;
	uint64_t entry = base | (uint64_t)size << PT_TOPA_SIZE_SHIFT;

	if (builder->index == table_of(builder)->capacity - 1) {
		if (builder->table + 1 == builder->table_count)
			return PT_E_ROOM;
		table_of(builder)->entries[builder->index] =
			builder->tables[builder->table + 1].physical | PT_BIT(PT_TOPA_END);
		builder->table++;
		builder->index = 0;
		table_of(builder)->begin = builder->topa->bytes;
	}
	builder->since_interrupt += bytes;
	if (builder->options->interrupt_bytes &&
	    builder->since_interrupt >= builder->options->interrupt_bytes) {
		entry |= PT_BIT(PT_TOPA_INT);
		builder->since_interrupt = 0;
	}
	builder->topa->last = &table_of(builder)->entries[builder->index++];
	*builder->topa->last = entry;
	builder->topa->entry_count++;
	builder->topa->bytes += bytes;
	return 0;
}

static int add_region(struct builder *builder, struct pt_region rest)
{
	int error = 0;

	while (rest.bytes && !error) {
		uint32_t size = first_size(&rest, builder->options);

		error = add_entry(builder, rest.base, size);
		rest.base += PT_TOPA_LEAST_BYTES << size;
		rest.bytes -= PT_TOPA_LEAST_BYTES << size;
	}
	return error;
}

/*
 * After the last region a table leads to the first one, even if STOP keeps the unit from following
 * it.
 */
static void finish(struct builder *builder)
{
	if (!builder->options->ring) {
		*builder->topa->last |= PT_BIT(PT_TOPA_STOP);
		if (builder->options->interrupt_bytes)
			*builder->topa->last |= PT_BIT(PT_TOPA_INT);
	}
	table_of(builder)->entries[builder->index] =
		builder->topa->tables[0].physical | PT_BIT(PT_TOPA_END);
	builder->topa->table_count = builder->table + 1;
}

static bool tables_valid(const struct pt_table *tables, uint32_t count,
			 const struct pt_topa_options *options)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!table_valid(&tables[i], options) ||
		    (i && tables[i].physical <= tables[i - 1].physical))
			return false;
	}
	return true;
}

int pt_topa_build(struct pt_topa *topa, struct pt_table *tables, uint32_t table_count,
		  const struct pt_region *regions, uint32_t region_count,
		  const struct pt_topa_options *options)
{
	struct builder builder = {
		.topa = topa,
		.tables = tables,
		.options = options,
		.table_count = table_count,
	};
	uint64_t entries = pt_topa_entries(regions, region_count, options);
	struct pt_topa empty = {.tables = tables};
	uint32_t i;

	if (!entries || !table_count || (options->one_entry && entries != 1) ||
	    !tables_valid(tables, table_count, options))
		return PT_E_INVALID;
	*topa = empty;
	tables[0].begin = 0;
	for (i = 0; i < region_count; i++) {
		int error = add_region(&builder, regions[i]);

		if (error)
			return error;
	}
	finish(&builder);
	return 0;
}

/* The last table that has at most this physical address, or that begins at most at this position.
 */
static const struct pt_table *find_table(struct pt_topa *topa, uint64_t value, bool physical)
{
	uint32_t low = 0;
	uint32_t high = topa->table_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		const struct pt_table *table = &topa->tables[middle];

		topa->looked_at++;
		if ((physical ? table->physical : table->begin) <= value)
			low = middle;
		else
			high = middle;
	}
	return &topa->tables[low];
}

/* The entry of a region, and the part of the buffer that the region is. */
struct slot {
	const struct pt_table *table;
	uint32_t index;
	uint64_t begin;
	uint64_t bytes;
};

static uint64_t entry_at(struct pt_topa *topa, const struct pt_table *table, uint32_t index)
{
	topa->looked_at++;
	return table->entries[index];
}

static struct slot first_slot(struct pt_topa *topa, const struct pt_table *table)
{
	struct slot slot = {.table = table, .begin = table->begin};

	slot.bytes = entry_bytes(entry_at(topa, table, 0));
	return slot;
}

/* Goes to the next region of the table; false after the last one. */
static bool next_slot(struct pt_topa *topa, struct slot *slot)
{
	uint64_t entry = entry_at(topa, slot->table, slot->index + 1);

	if (entry & PT_BIT(PT_TOPA_END))
		return false;
	slot->begin += slot->bytes;
	slot->index++;
	slot->bytes = entry_bytes(entry);
	return true;
}

static int find(struct pt_topa *topa, uint64_t position, struct slot *slot)
{
	if (position >= topa->bytes)
		return PT_E_INVALID;
	*slot = first_slot(topa, find_table(topa, position, false));
	while (position - slot->begin >= slot->bytes) {
		if (!next_slot(topa, slot))
			return PT_E_INVALID;
	}
	return 0;
}

int pt_topa_output(struct pt_topa *topa, uint64_t position, struct pt_output *output)
{
	struct slot slot;
	int error = find(topa, position, &slot);

	if (error)
		return error;
	output->base = slot.table->physical;
	output->mask_ptrs = PT_OUTPUT_MASK_LOWEST |
			    (uint64_t)slot.index << PT_OUTPUT_TABLE_OFFSET_SHIFT |
			    (position - slot.begin) << PT_OUTPUT_OFFSET_SHIFT;
	return 0;
}

bool pt_topa_owns(struct pt_topa *topa, uint64_t base)
{
	return find_table(topa, base, true)->physical == base;
}

int pt_topa_position(struct pt_topa *topa, const struct pt_output *output, uint64_t *position)
{
	uint64_t index = (output->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
			 (PT_BIT(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);
	uint64_t offset = output->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
	struct slot slot = first_slot(topa, find_table(topa, output->base, true));

	if (slot.table->physical != output->base)
		return PT_E_INVALID;
	while (slot.index < index && next_slot(topa, &slot))
		;
	if (slot.index == index) {
		/* After STOP the offset is the end of the region. */
		*position = slot.begin + offset;
		return offset > slot.bytes ? PT_E_INVALID : 0;
	}
	/* A unit may follow the END entry with the next byte only. */
	*position = (slot.begin + slot.bytes) % topa->bytes;
	return slot.index + 1 == index && !offset ? 0 : PT_E_INVALID;
}

static uint64_t *entry_before(const struct pt_topa *topa, const struct slot *slot)
{
	if (slot->index)
		return &slot->table->entries[slot->index - 1];
	if (slot->table == topa->tables)
		return topa->last;
	return &slot->table[-1].entries[slot->table[-1].capacity - 2];
}

int pt_topa_stop_before(struct pt_topa *topa, uint64_t position, uint64_t *begin)
{
	struct slot slot;
	int error = find(topa, position, &slot);

	if (error)
		return error;
	pt_topa_do_not_stop(topa);
	topa->stop = entry_before(topa, &slot);
	topa->unchanged = *topa->stop;
	*topa->stop |= PT_BIT(PT_TOPA_STOP) | PT_BIT(PT_TOPA_INT);
	*begin = slot.begin;
	return 0;
}

void pt_topa_do_not_stop(struct pt_topa *topa)
{
	if (topa->stop)
		*topa->stop = topa->unchanged;
	topa->stop = NULL;
}

void pt_topa_silence(struct pt_topa *topa)
{
	uint32_t table;

	for (table = 0; table < topa->table_count; table++) {
		uint64_t *entry = topa->tables[table].entries;

		for (; !(*entry & PT_BIT(PT_TOPA_END)); entry++)
			*entry &= ~PT_BIT(PT_TOPA_INT);
	}
}
