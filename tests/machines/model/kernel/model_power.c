// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Sleep, and what is traced when another kernel may get the machine. */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/reboot.h>

#include "machine/compat.h"
#include "model.h"

/* Registered before the driver's: called after it at suspend, before it at resume. */
static int suspend(PTKIT_SYSCORE_ARGUMENT)
{
	return 0;
}

static void resume(PTKIT_SYSCORE_ARGUMENT)
{
	model_reset();
}

static struct ptkit_syscore operations = {
	.ops.suspend = suspend,
	.ops.resume = resume,
};

static int set_sleep(const char *text, const struct kernel_param *parameter)
{
	if (*text == '1')
		ptkit_syscore_register(&operations);
	else
		ptkit_syscore_unregister(&operations);
	return 0;
}

static const struct kernel_param_ops sleep_ops = { .set = set_sleep };
module_param_cb(model_sleep, &sleep_ops, NULL, 0200);
MODULE_PARM_DESC(model_sleep,
		 "1, at load: processors lose registers in sleep; 0, before unload: no longer");

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
