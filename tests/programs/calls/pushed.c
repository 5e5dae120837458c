/* Returns to addresses that the code has pushed, in the first function of a program: into the same function;
   to a chain of gadgets, of which one stands behind a call; to a function. Build with -nostdlib -static. */
__asm__(
    ".globl _start\n.text\n"
    ".type _start, @function\n_start:\n  lea 1f(%rip), %rax\n  push %rax\n  ret\n  nop\n"
    "1: call f\n  lea last(%rip), %rax\n  push %rax\n  lea 8f(%rip), %rax\n  push %rax\n"
    "  lea 7f(%rip), %rax\n  push %rax\n  ret\n.size _start, .-_start\n"
    ".type f, @function\nf:\n  mov $1, %eax\n  ret\n.size f, .-f\n"
    ".type g1, @function\ng1:\n  call f\n7:  xor %edi, %edi\n  ret\n.size g1, .-g1\n"
    ".type g2, @function\ng2:\n  nop\n8:  nop\n  ret\n.size g2, .-g2\n"
    ".type last, @function\nlast:\n  call f\n  mov $60, %eax\n  syscall\n.size last, .-last\n");
