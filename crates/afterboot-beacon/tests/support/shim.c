/* Put before the C library by LD_PRELOAD: a call hangs while the file `hang.<call>` is there, and fails while
 * `fail.<call>` is. Of calls on files only those under SHIM_UNDER, so that nothing else of the process notices. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int shut(const char *how, const char *call) {
    const char *gates = getenv("SHIM_GATES");
    char path[4096];
    if (!gates)
        return 0;
    snprintf(path, sizeof path, "%s/%s.%s", gates, how, call);
    return access(path, F_OK) == 0;
}

static void pass(const char *call) {
    struct timespec pause = {0, 2000000};
    while (shut("hang", call))
        nanosleep(&pause, NULL);
}

static int ours(const char *path) {
    const char *under = getenv("SHIM_UNDER");
    return under && path && strncmp(path, under, strlen(under)) == 0;
}

static int ours_by_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return ours(path);
}

/* 0: go on. -1: it failed, and errno says so. */
static int by_path(const char *call, const char *path, int error) {
    int saved = errno;
    if (shut("hang", call) && ours(path))
        pass(call);
    if (shut("fail", call) && ours(path)) {
        errno = error;
        return -1;
    }
    errno = saved;
    return 0;
}

static int by_fd(const char *call, int fd, int error) {
    int saved = errno;
    if (shut("hang", call) && ours_by_fd(fd))
        pass(call);
    if (shut("fail", call) && ours_by_fd(fd)) {
        errno = error;
        return -1;
    }
    errno = saved;
    return 0;
}

#define REAL(name, ...)                                                                                      \
    static __typeof__(name) *real;                                                                           \
    if (!real)                                                                                               \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                                  \
    return real(__VA_ARGS__)

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...) {                                                             \
        va_list args;                                                                                        \
        va_start(args, flags);                                                                               \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(args, mode_t) : 0;                            \
        va_end(args);                                                                                        \
        if (by_path("open", path, EIO))                                                                      \
            return -1;                                                                                       \
        REAL(name, path, flags, mode);                                                                       \
    }

OPEN(open)
OPEN(open64)

int flock(int fd, int operation) {
    if (by_fd("flock", fd, ENOLCK))
        return -1;
    REAL(flock, fd, operation);
}

int unlink(const char *path) {
    if (by_path("unlink", path, EIO))
        return -1;
    REAL(unlink, path);
}

int close(int fd) {
    if (by_fd("close", fd, EIO))
        return -1;
    REAL(close, fd);
}

int fdatasync(int fd) {
    if (by_fd("fsync", fd, EIO))
        return -1;
    REAL(fdatasync, fd);
}

int fsync(int fd) {
    if (by_fd("fsync", fd, EIO))
        return -1;
    REAL(fsync, fd);
}

ssize_t write(int fd, const void *from, size_t length) {
    if (by_fd("write", fd, ENOSPC))
        return -1;
    REAL(write, fd, from, length);
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t at) {
    if (by_fd("write", fd, ENOSPC))
        return -1;
    REAL(pwrite, fd, from, length, at);
}

ssize_t pwrite64(int fd, const void *from, size_t length, off64_t at) {
    if (by_fd("write", fd, ENOSPC))
        return -1;
    REAL(pwrite64, fd, from, length, at);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    pass("getaddrinfo");
    REAL(getaddrinfo, node, service, hints, found);
}

/* While `fail.pthread_create` is there, so many threads as it says are made, and no more. */
static int refused(void) {
    static int made;
    char path[4096];
    const char *gates = getenv("SHIM_GATES");
    snprintf(path, sizeof path, "%s/fail.pthread_create", gates ? gates : "");
    FILE *file = gates ? fopen(path, "r") : NULL;
    if (!file) {
        __atomic_store_n(&made, 0, __ATOMIC_SEQ_CST);
        return 0;
    }
    int allowed = 0;
    if (fscanf(file, "%d", &allowed) != 1)
        allowed = 0;
    fclose(file);
    return __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST) > allowed;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument) {
    if (refused())
        return EAGAIN;
    REAL(pthread_create, thread, attributes, begin, argument);
}
