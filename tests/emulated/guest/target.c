// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A module whose work is traced by address range: `echo N > /sys/module/target/parameters/work`.
 *
 * It calls functions of the kernel, which lie outside of the range: tracing ends and begins there.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

noinline int target_work(const char* text);

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

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Work to trace in tests of ptkit");
