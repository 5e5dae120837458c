/* A function that returns to addresses on the stack that no call has put there: to two functions, one of them behind a
   NOP, to a gadget within a third one, and then to its caller. Build with -nostdlib -static. */
__asm__(
    ".globl _start\n.text\n"
    ".type _start, @function\n_start:\n  call victim\n  mov $60, %eax\n  xor %edi, %edi\n  syscall\n"
    ".size _start, .-_start\n"
    ".type victim, @function\nvictim:\n  lea 9f(%rip), %rax\n  push %rax\n  lea second(%rip), %rax\n  push %rax\n"
    "  lea first(%rip), %rax\n  push %rax\n  ret\n.size victim, .-victim\n  nop\n"
    ".type first, @function\nfirst:\n  mov $1, %eax\n  ret\n.size first, .-first\n  nop\n"
    ".type second, @function\nsecond:\n  mov $2, %eax\n  ret\n.size second, .-second\n  nop\n"
    ".type third, @function\nthird:\n  xor %eax, %eax\n  nop\n9:  nop\n  ret\n.size third, .-third\n");
