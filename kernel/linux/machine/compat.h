/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Differences between kernels, 6.1 and newer. */
#ifndef PTKIT_LINUX_COMPAT_H
#define PTKIT_LINUX_COMPAT_H

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/syscore_ops.h>
#include <linux/version.h>

/* Forbids to make a mapping writable later, to expand it and to dump it. */
static inline void ptkit_vm_read_only(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
#else
	vma->vm_flags |= VM_DONTEXPAND | VM_DONTDUMP;
	vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

/* MSRs of 64 bits; <asm/msr.h> is included before use. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define ptkit_rdmsr_safe rdmsrq_safe
#define ptkit_wrmsr_safe wrmsrq_safe
#else
#define ptkit_rdmsr_safe rdmsrl_safe
#define ptkit_wrmsr_safe wrmsrl_safe
#endif

/* Arguments of the tracepoint sched_process_exit. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define PTKIT_EXIT_ARGUMENTS void *data, struct task_struct *task, bool group_dead
#else
#define PTKIT_EXIT_ARGUMENTS void *data, struct task_struct *task
#endif

/* The largest order of pages that alloc_pages() takes. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#define PTKIT_LARGEST_ORDER MAX_PAGE_ORDER
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#define PTKIT_LARGEST_ORDER MAX_ORDER
#else
#define PTKIT_LARGEST_ORDER (MAX_ORDER - 1)
#endif

/* The code of a module without its __init code, which the kernel frees. */
static inline unsigned long ptkit_module_text(const struct module *module, u64 *bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	*bytes = module->mem[MOD_TEXT].size;
	return (unsigned long)module->mem[MOD_TEXT].base;
#else
	*bytes = module->core_layout.text_size;
	return (unsigned long)module->core_layout.base;
#endif
}

/* Operations of suspend. In newer kernels, and in Debian's 6.12, they take an argument; see Kbuild.
 */
struct ptkit_syscore {
	struct syscore_ops ops;
#ifdef PTKIT_SYSCORE_HAS_DATA
	struct syscore entry;
#endif
};

#ifdef PTKIT_SYSCORE_HAS_DATA
#define PTKIT_SYSCORE_ARGUMENT void *data
#else
#define PTKIT_SYSCORE_ARGUMENT void
#endif

static inline void ptkit_syscore_register(struct ptkit_syscore *syscore)
{
#ifdef PTKIT_SYSCORE_HAS_DATA
	syscore->entry.ops = &syscore->ops;
	register_syscore(&syscore->entry);
#else
	register_syscore_ops(&syscore->ops);
#endif
}

static inline void ptkit_syscore_unregister(struct ptkit_syscore *syscore)
{
#ifdef PTKIT_SYSCORE_HAS_DATA
	unregister_syscore(&syscore->entry);
#else
	unregister_syscore_ops(&syscore->ops);
#endif
}

#endif /* PTKIT_LINUX_COMPAT_H */
