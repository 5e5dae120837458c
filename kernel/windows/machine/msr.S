/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Accesses of registers that may fault. The compiler has no __try for C; so the handler of Microsoft's C gets
 * its table from here: it resumes at the label of the fault.
 */
	.text

/* int ptkit_read_msr(uint32_t msr, uint64_t *value): ECX, RDX */
	.globl	ptkit_read_msr
	.def	ptkit_read_msr; .scl 2; .type 32; .endef
	.seh_proc ptkit_read_msr
ptkit_read_msr:
	.seh_endprologue
	.seh_handler __C_specific_handler, @except
	.seh_handlerdata
	.long	1
	.rva	read_begin
	.rva	read_end
	.long	1			/* EXCEPTION_EXECUTE_HANDLER */
	.rva	read_fault
	.text
	movq	%rdx, %r8
read_begin:
	rdmsr
read_end:
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, (%r8)
	xorl	%eax, %eax
	ret
read_fault:
	movl	$-1, %eax
	ret
	.seh_endproc

/* int ptkit_write_msr(uint32_t msr, uint64_t value): ECX, RDX */
	.globl	ptkit_write_msr
	.def	ptkit_write_msr; .scl 2; .type 32; .endef
	.seh_proc ptkit_write_msr
ptkit_write_msr:
	.seh_endprologue
	.seh_handler __C_specific_handler, @except
	.seh_handlerdata
	.long	1
	.rva	write_begin
	.rva	write_end
	.long	1			/* EXCEPTION_EXECUTE_HANDLER */
	.rva	write_fault
	.text
	movq	%rdx, %rax
	shrq	$32, %rdx
write_begin:
	wrmsr
write_end:
	xorl	%eax, %eax
	ret
write_fault:
	movl	$-1, %eax
	ret
	.seh_endproc
