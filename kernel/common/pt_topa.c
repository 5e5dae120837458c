// SPDX-License-Identifier: MIT
#include "pt_topa.h"

#include "pt_ops.h"
#include "ptkit/rtit_regs.h"

#define PAGE_MASK_BITS (PT_TOPA_LEAST_BYTES - 1)

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
	const struct pt_topa_options *options;
	uint64_t *last; /* entry that was added last */
	uint64_t since_interrupt; /* bytes */
	uint32_t table;
	uint32_t index;
	uint32_t table_count;
};

static const struct pt_table *table_of(const struct builder *builder)
{
	return &builder->topa->tables[builder->table];
}

static int add_entry(struct builder *builder, uint64_t base, uint32_t size)
{
	uint64_t bytes = PT_TOPA_LEAST_BYTES << size;
	uint64_t entry = base | (uint64_t)size << PT_TOPA_SIZE_SHIFT;

	if (builder->index == table_of(builder)->capacity - 1) {
		if (builder->table + 1 == builder->table_count)
			return PT_E_ROOM;
		table_of(builder)->entries[builder->index] =
			builder->topa->tables[builder->table + 1].physical | PT_BIT(PT_TOPA_END);
		builder->table++;
		builder->index = 0;
	}
	builder->since_interrupt += bytes;
	if (builder->options->interrupt_bytes &&
	    builder->since_interrupt >= builder->options->interrupt_bytes) {
		entry |= PT_BIT(PT_TOPA_INT);
		builder->since_interrupt = 0;
	}
	builder->last = &table_of(builder)->entries[builder->index++];
	*builder->last = entry;
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
		*builder->last |= PT_BIT(PT_TOPA_STOP);
		if (builder->options->interrupt_bytes)
			*builder->last |= PT_BIT(PT_TOPA_INT);
	}
	table_of(builder)->entries[builder->index] =
		builder->topa->tables[0].physical | PT_BIT(PT_TOPA_END);
	builder->topa->table_count = builder->table + 1;
}

static struct pt_place first_place(const struct pt_topa *topa)
{
	struct pt_place place = {.bytes = entry_bytes(topa->tables[0].entries[0])};

	return place;
}

int pt_topa_build(struct pt_topa *topa, const struct pt_table *tables, uint32_t table_count,
		  const struct pt_region *regions, uint32_t region_count,
		  const struct pt_topa_options *options)
{
	struct builder builder = {
		.topa = topa,
		.options = options,
		.table_count = table_count,
	};
	uint64_t entries = pt_topa_entries(regions, region_count, options);
	uint32_t i;

	if (!entries || !table_count || (options->one_entry && entries != 1))
		return PT_E_INVALID;
	for (i = 0; i < table_count; i++) {
		if (!table_valid(&tables[i], options))
			return PT_E_INVALID;
	}
	topa->tables = tables;
	topa->table_count = 0;
	topa->entry_count = 0;
	topa->bytes = 0;
	for (i = 0; i < region_count; i++) {
		int error = add_region(&builder, regions[i]);

		if (error)
			return error;
	}
	finish(&builder);
	topa->last = first_place(topa);
	return 0;
}

/* Goes to the next region; false after the last one. */
static bool next_place(const struct pt_topa *topa, struct pt_place *place)
{
	place->begin += place->bytes;
	if (place->begin >= topa->bytes)
		return false;
	place->index++;
	if (topa->tables[place->table].entries[place->index] & PT_BIT(PT_TOPA_END)) {
		place->table++;
		place->index = 0;
	}
	place->bytes = entry_bytes(topa->tables[place->table].entries[place->index]);
	return true;
}

static int find(const struct pt_topa *topa, uint64_t position, struct pt_place *place)
{
	if (position >= topa->bytes)
		return PT_E_INVALID;
	*place = first_place(topa);
	while (position - place->begin >= place->bytes) {
		if (!next_place(topa, place))
			return PT_E_INVALID;
	}
	return 0;
}

int pt_topa_output(const struct pt_topa *topa, uint64_t position, struct pt_output *output)
{
	struct pt_place place;
	int error = find(topa, position, &place);

	if (error)
		return error;
	output->base = topa->tables[place.table].physical;
	output->mask_ptrs = PT_OUTPUT_MASK_LOWEST |
			    (uint64_t)place.index << PT_OUTPUT_TABLE_OFFSET_SHIFT |
			    (position - place.begin) << PT_OUTPUT_OFFSET_SHIFT;
	return 0;
}

int pt_topa_position(struct pt_topa *topa, const struct pt_output *output, uint64_t *position)
{
	uint64_t index = (output->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
			 (PT_BIT(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);
	uint64_t offset = output->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
	struct pt_place place = topa->last;
	uint32_t i;

	for (i = 0; i < topa->entry_count; i++) {
		if (topa->tables[place.table].physical == output->base && place.index == index) {
			/* After STOP the offset is the end of the region. */
			if (offset > place.bytes)
				return PT_E_INVALID;
			topa->last = place;
			*position = place.begin + offset;
			return 0;
		}
		if (!next_place(topa, &place))
			place = first_place(topa);
	}
	return PT_E_INVALID;
}

int pt_topa_mark(const struct pt_topa *topa, uint64_t position, uint32_t bit, bool on)
{
	struct pt_place place;
	uint64_t *entry;
	int error;

	if (bit != PT_TOPA_INT && bit != PT_TOPA_STOP)
		return PT_E_INVALID;
	error = find(topa, position, &place);
	if (error)
		return error;
	entry = &topa->tables[place.table].entries[place.index];
	*entry = on ? *entry | PT_BIT(bit) : *entry & ~PT_BIT(bit);
	return 0;
}
