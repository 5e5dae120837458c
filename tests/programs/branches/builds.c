/* Two builds of one program: with -DSECOND, functions have other names, parts and costs. */
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static volatile int sum;

#ifdef SECOND
#define TRIPS 90
#define RENAMED total_of_all
static int copied(int number) __asm__("copied.constprop.0.isra.1");
#define HELPER static inline __attribute__((always_inline))
#else
#define TRIPS 30
#define RENAMED sum_up
static int copied(int number) __asm__("copied");
#define HELPER static APART
#endif

HELPER int helper(int number)
{
    sum += number;
    return number ^ sum;
}

APART static int copied(int number)
{
    sum += number & 3;
#ifdef SECOND
    sum += 2;
#endif
    return helper(number);
}

APART static void slower(int trips)
{
    for (int trip = 0; trip < trips; trip++)
        sum += trip & 1;
}

APART static int RENAMED(int number)
{
    int all = 0;
    for (int at = 0; at < number; at++)
        all += helper(at);
    return all;
}

APART static void same(void)
{
    sum += 5;
}

#ifdef SECOND
APART static void only_second(void)
{
    sum += 7;
}
#else
APART static void only_first(void)
{
    for (int at = 0; at < 100; at++)
        sum -= at;
    same();
}
#endif

int main(void)
{
    for (int number = 0; number < 20; number++) {
        sum += copied(number);
        sum += RENAMED(number);
        same();
    }
    slower(1000 * TRIPS);
#ifdef SECOND
    only_second();
#else
    only_first();
#endif
    return 0;
}
