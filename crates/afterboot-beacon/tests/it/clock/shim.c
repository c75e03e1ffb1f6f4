/* The wall clock, off by as many seconds as the file named by AFTERBOOT_TEST_CLOCK says. The other clocks stay. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long off(void) {
    char text[32];
    const char *path = getenv("AFTERBOOT_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[bytes > 0 ? bytes : 0] = 0;
    return strtoll(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += off();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec read;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &read)) return -1;
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec read;
    if (clock_gettime(CLOCK_REALTIME, &read)) return -1;
    if (at) *at = read.tv_sec;
    return read.tv_sec;
}
