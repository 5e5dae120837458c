// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "common/pt_config.h"
#include "machine/caps.h"
#include "machine/compat.h"
#include "ptkit/rtit_regs.h"
#include "unit/memory.h"

#define ENTRIES_OF_TABLE (PAGE_SIZE / PT_TOPA_ENTRY_BYTES)

static void *region_memory(const struct pt_region *region)
{
	return phys_to_virt(region->base);
}

/* Zeroed: mappings must not show data of earlier owners of the memory. */
static struct page *allocate(unsigned int order, int node)
{
	gfp_t flags = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

	/*
	 * A large region must cost little. For a single page the allocator retries, but does not
	 * call the OOM killer.
	 */
	flags |= order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	return alloc_pages_node(node, flags, order);
}

static int add_region(struct pt_memory *memory, unsigned int order, int node)
{
	struct page *page = allocate(order, node);
	struct pt_region *region = &memory->regions[memory->region_count];

	if (!page)
		return -ENOMEM;
	region->base = page_to_phys(page);
	region->bytes = (u64)PAGE_SIZE << order;
	memory->last_page = page_address(page) + region->bytes - PAGE_SIZE;
	memory->region_count++;
	return 0;
}

/* Allocates regions as large as possible: fewer regions need shorter tables. */
static int allocate_regions(struct pt_memory *memory, int node, unsigned int largest)
{
	unsigned int order = largest;
	u64 rest = memory->bytes;

	while (rest) {
		if (fatal_signal_pending(current))
			return -EINTR;
		while (((u64)PAGE_SIZE << order) > rest)
			order--;
		if (!add_region(memory, order, node))
			rest -= (u64)PAGE_SIZE << order;
		else if (order)
			order--;
		else
			return -ENOMEM;
	}
	return 0;
}

static int by_address(const void *left, const void *right)
{
	const struct pt_table *first = left;
	const struct pt_table *second = right;

	return first->physical < second->physical ? -1 : first->physical > second->physical;
}

static int allocate_tables(struct pt_memory *memory, u64 entries, int node)
{
	/* One entry of each table leads to the next table. */
	u32 count = DIV_ROUND_UP(entries, ENTRIES_OF_TABLE - 1);

	memory->tables = kvcalloc(count, sizeof(*memory->tables), GFP_KERNEL_ACCOUNT);
	if (!memory->tables)
		return -ENOMEM;
	for (; memory->table_count < count; memory->table_count++) {
		struct pt_table *table = &memory->tables[memory->table_count];
		struct page *page = allocate(0, node);

		if (!page)
			return -ENOMEM;
		table->entries = page_address(page);
		table->physical = page_to_phys(page);
		table->capacity = ENTRIES_OF_TABLE;
	}
	sort(memory->tables, count, sizeof(*memory->tables), by_address, NULL);
	return 0;
}

static int build_tables(struct pt_memory *memory, const struct pt_topa_options *options, int node)
{
	u64 entries = pt_topa_entries(memory->regions, memory->region_count, options);
	int error;

	error = allocate_tables(memory, entries, node);
	if (error)
		return error;
	error = pt_topa_build(&memory->topa, memory->tables, memory->table_count, memory->regions,
			      memory->region_count, options);
	/* Only one rule can be broken: the processor takes one region, and there are more. */
	return error ? -ENOMEM : 0;
}

/*
 * Maps all regions one after the other: Branch Trace Store uses linear addresses. They are mapped
 * twice: memory that goes on at the beginning of the buffer is contiguous, too.
 */
static int map_linear(struct pt_memory *memory)
{
	u64 count = memory->bytes >> PAGE_SHIFT;
	struct page **pages = kvmalloc_array(2 * count, sizeof(*pages), GFP_KERNEL);
	u64 filled = 0;
	u32 i;

	if (!pages)
		return -ENOMEM;
	for (i = 0; i < memory->region_count; i++) {
		unsigned long first = PHYS_PFN(memory->regions[i].base);
		unsigned long end = first + (memory->regions[i].bytes >> PAGE_SHIFT);

		for (; first < end; first++)
			pages[filled++] = pfn_to_page(first);
	}
	memcpy(pages + count, pages, count * sizeof(*pages));
	memory->linear = vmap(pages, 2 * count, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	memory->mirrored = true;
	return memory->linear ? 0 : -ENOMEM;
}

int ptkit_memory_make(struct pt_memory *memory, const struct ptkit_config *config, int node)
{
	struct pt_topa_options options;
	unsigned int largest;
	int error;

	pt_topa_options_make(&ptkit_caps, config, &options);
	largest = min_t(unsigned int, PTKIT_LARGEST_ORDER, options.largest_size);
	memory->bytes = config->buffer_bytes;
	memory->single_range = config->output == PTKIT_OUTPUT_SINGLE_RANGE;
	/* The worst case: each region is one page. */
	memory->regions =
		kvcalloc(memory->bytes >> PAGE_SHIFT, sizeof(*memory->regions), GFP_KERNEL_ACCOUNT);
	if (!memory->regions)
		return -ENOMEM;
	memory->used = memory->bytes;
	if (!memory->single_range) {
		error = allocate_regions(memory, node, largest);
		if (!error && config->output == PTKIT_OUTPUT_BTS)
			error = map_linear(memory);
		else if (!error)
			error = build_tables(memory, &options, node);
	} else if (get_order(memory->bytes) > PTKIT_LARGEST_ORDER) {
		error = -ENOMEM;
	} else {
		error = add_region(memory, get_order(memory->bytes), node);
	}
	if (error)
		ptkit_memory_free(memory);
	return error;
}

void ptkit_memory_free(struct pt_memory *memory)
{
	u32 i;

	vunmap(memory->linear);
	for (i = 0; i < memory->table_count; i++)
		free_page((unsigned long)memory->tables[i].entries);
	for (i = 0; i < memory->region_count; i++) {
		struct pt_region *region = &memory->regions[i];

		free_pages((unsigned long)region_memory(region), get_order(region->bytes));
	}
	kvfree(memory->tables);
	kvfree(memory->regions);
	memset(memory, 0, sizeof(*memory));
}

/* kmemleak does not track pages, only these two arrays. */
void ptkit_memory_abandon(struct pt_memory *memory)
{
	pt_topa_silence(&memory->topa);
	kmemleak_ignore(memory->tables);
	kmemleak_ignore(memory->regions);
}

int ptkit_memory_clear(struct pt_memory *memory)
{
	u32 i;

	for (i = 0; memory->written && i < memory->region_count; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		memset(region_memory(&memory->regions[i]), 0, memory->regions[i].bytes);
		cond_resched();
	}
	memory->written = true;
	return 0;
}

int ptkit_memory_copy(const struct pt_memory *memory, u64 offset, u64 bytes, void __user *to)
{
	u64 begin = 0;
	u32 i;

	for (i = 0; i < memory->region_count && bytes; i++) {
		const struct pt_region *region = &memory->regions[i];

		if (offset < begin + region->bytes) {
			u64 inside = offset - begin;
			u64 part = min(bytes, region->bytes - inside);

			if (copy_to_user(to, region_memory(region) + inside, part))
				return -EFAULT;
			to += part;
			offset += part;
			bytes -= part;
		}
		begin += region->bytes;
	}
	return 0;
}

int ptkit_memory_map(const struct pt_memory *memory, struct vm_area_struct *vma)
{
	unsigned long address = vma->vm_start;
	u32 i;

	for (i = 0; i < memory->region_count && address < vma->vm_end; i++) {
		const struct pt_region *region = &memory->regions[i];
		unsigned long part = min_t(u64, region->bytes, vma->vm_end - address);
		int error = remap_pfn_range(vma, address, PHYS_PFN(region->base), part,
					    vma->vm_page_prot);

		if (error)
			return error;
		address += part;
	}
	return 0;
}
