// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A module that comes and goes, for the driver to tell of. */
#include <linux/module.h>

noinline int other_module_function(int value)
{
	return value + 1;
}
EXPORT_SYMBOL_GPL(other_module_function);

static int __init other_init(void)
{
	return 0;
}

static void __exit other_exit(void)
{
}

module_init(other_init);
module_exit(other_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Nothing");
