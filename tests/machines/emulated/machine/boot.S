/*
 * Boot sector: goes to protected mode and to the kernel, which Bochs has put into memory together with what
 * the Xen/PVH boot protocol wants (boot_image.py writes it). PVH_ENTRY and PVH_INFO are physical addresses.
 */
	.code16
	.globl _start
_start:
	cli
	inb $0x92, %al			/* A20 */
	orb $2, %al
	outb %al, $0x92
	xorw %ax, %ax
	movw %ax, %ds
	lgdtl table
	movl %cr0, %eax
	orb $1, %al
	movl %eax, %cr0
	ljmpl $8, $flat

	.code32
flat:
	movw $16, %ax
	movw %ax, %ds
	movw %ax, %es
	movw %ax, %ss
	movl $PVH_INFO, %ebx
	movl $PVH_ENTRY, %eax
	jmp *%eax

	.balign 8
descriptors:
	.quad 0
	.quad 0x00cf9b000000ffff	/* code, 4 GiB from 0 */
	.quad 0x00cf93000000ffff	/* data */
table:
	.word table - descriptors - 1
	.long descriptors

	.org 510
	.word 0xaa55
