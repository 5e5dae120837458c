// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What is traced when another kernel may get the machine. */
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/reboot.h>

#include "model.h"

/* Its priority is below that of the driver. */
static int tell_at_shutdown(struct notifier_block *block, unsigned long action, void *data)
{
	pr_emerg("ptkit model: traced at shutdown: %lu\n", model_enabled_units());
	return NOTIFY_DONE;
}

static struct notifier_block shutdown_teller = {
	.notifier_call = tell_at_shutdown,
	.priority = -1,
};

static int set_shutdown(const char *text, const struct kernel_param *parameter)
{
	return register_reboot_notifier(&shutdown_teller);
}

static const struct kernel_param_ops shutdown_ops = { .set = set_shutdown };
module_param_cb(model_shutdown, &shutdown_ops, NULL, 0200);
MODULE_PARM_DESC(model_shutdown, "written: the log gets what is traced at shutdown; never unload then");
