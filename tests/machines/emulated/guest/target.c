// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A module whose work is traced by address range: `echo N > /sys/module/target/parameters/work`.
 *
 * It calls functions of the kernel, which lie outside of the range: tracing ends and begins there.
 * `echo N > /sys/module/target/parameters/branches` makes N calls through pointers, by retpolines that are
 * part of the function.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

noinline int target_work(const char* text);
noinline int target_first(int number);
noinline int target_second(int number);
noinline int target_branch(int count);

static unsigned int sum;

noinline int target_work(const char* text) {
  unsigned int count;
  unsigned int i;
  int error = kstrtouint(text, 10, &count);

  if (error) return error;
  for (i = 0; i < count; i++) {
    if (i % 3 == 0)
      WRITE_ONCE(sum, sum + i);
    else if (i & 1)
      WRITE_ONCE(sum, sum ^ i);
  }
  if (sum > 1000) pr_info("%u\n", sum);
  return 0;
}

static int set_work(const char* text, const struct kernel_param* parameter) { return target_work(text); }

static const struct kernel_param_ops work_ops = {.set = set_work};
module_param_cb(work, &work_ops, NULL, 0200);

noinline int target_first(int number) { return number + 1; }
noinline int target_second(int number) { return number * 3; }

static int (*volatile targets[])(int) = {target_first, target_second};

__attribute__((indirect_branch("thunk-inline"))) noinline int target_branch(int count) {
  int total = 0;
  int i;

  for (i = 0; i < count; i++) total += targets[i & 1](i);
  return total;
}

static int set_branches(const char* text, const struct kernel_param* parameter) {
  unsigned int count;
  int error = kstrtouint(text, 10, &count);

  if (!error) WRITE_ONCE(sum, target_branch(count));
  return error;
}

static const struct kernel_param_ops branch_ops = {.set = set_branches};
module_param_cb(branches, &branch_ops, NULL, 0200);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Work to trace in tests of ptkit");
