/* Far transfers within 64-bit code: to a function by a far return, which comes back by a far jump behind it; a
   far call, which a far return ends; a near call that a far jump returns for. Build with -nostdlib -static
   -no-pie: the far pointers have 32 bits. */
__asm__(
    ".globl _start\n.text\n"
    ".type _start, @function\n_start:\n  mov $12, %ebx\n"
    "1: mov %cs, %eax\n  push %rax\n  lea entered(%rip), %rax\n  push %rax\n  lretq\n"
    "9:\n  call called_near\n  lcall *to_called(%rip)\n  dec %ebx\n  jnz 1b\n"
    "  mov $60, %eax\n  xor %edi, %edi\n  syscall\n.size _start, .-_start\n"
    ".type entered, @function\nentered:\n  mov $3, %ecx\n2: call leaf\n  dec %ecx\n  jnz 2b\n"
    "  ljmp *to_back(%rip)\n.size entered, .-entered\n"
    ".type called, @function\ncalled:\n  call leaf\n  lretl\n.size called, .-called\n"
    /* Returns by a far jump to the address that its call has pushed. */
    ".type called_near, @function\ncalled_near:\n  pop %rax\n  mov %eax, to_caller(%rip)\n"
    "  ljmp *to_other(%rip)\n.size called_near, .-called_near\n"
    ".type other, @function\nother:\n  call leaf\n  ljmp *to_caller(%rip)\n.size other, .-other\n"
    ".type leaf, @function\nleaf:\n  add $1, %r12\n  ret\n.size leaf, .-leaf\n"
    ".data\nto_back: .long 9b\n .word 0x33\n .word 0\nto_called: .long called\n .word 0x33\n .word 0\n"
    "to_other: .long other\n .word 0x33\n .word 0\nto_caller: .long 0\n .word 0x33\n .word 0\n");
