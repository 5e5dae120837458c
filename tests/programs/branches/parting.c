/* Runs of it part at known lines: by the first argument, and by the length of the second one. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) static void odd(int number)
{
    sum += number * 3;
}

__attribute__((noinline)) static void even(int number)
{
    sum += number / 2;
}

__attribute__((noinline)) static void step(int number)
{
    if (number & 1) /* the number */
        odd(number);
    else
        even(number);
}

__attribute__((noinline)) static int compare(const void *one, const void *other)
{
    int some = *(const int *)one, more = *(const int *)other;
    if (some < more) /* the order */
        return -1;
    return some > more;
}

static void handler(int signal)
{
    if (signal == SIGUSR1) /* the handler */
        sum += 1;
}

static void *counts(void *trips)
{
    for (long trip = 0; trip < (long)trips; trip++) /* the trips */
        step((int)trip);
    return NULL;
}

static void *waits(void *unused)
{
    step(1);
    return unused;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    int planted = strcmp(what, "number") == 0 ? 500 : -1;
    for (int number = 0; number < 1000; number++)
        step(number + (number == planted) + (number == planted - 100));
    if (strcmp(what, "signal") == 0) { /* the signal */
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
    }
    int numbers[] = {4, 2, 3, 1, 5};
    if (strcmp(what, "sort") == 0)
        numbers[2] = 9;
    qsort(numbers, 5, sizeof numbers[0], compare);
    if (strcmp(what, "copy") == 0) /* the copy */
        what = words[2];
    sum += (int)strlen(strdup(what)); /* the length */
    if (strcmp(what, "exit") == 0) /* the exit */
        exit(3);
    pthread_t threads[3];
    int more = strcmp(what, "threads") == 0; /* the threads */
    pthread_create(&threads[0], NULL, counts, (void *)(strcmp(what, "trips") == 0 ? 30L : 20L));
    pthread_create(&threads[1], NULL, waits, NULL);
    if (more)
        pthread_create(&threads[2], NULL, waits, NULL);
    for (int number = 0; number < 2 + more; number++)
        pthread_join(threads[number], NULL);
    return 0;
}
