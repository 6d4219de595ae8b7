/*
 * Preloaded into a test: reads and locks of users' kdbs fail, as on a disk or network that has
 * trouble for a while.
 *
 * GFXPACK_TEST_FAULTS names a file. While it is there, so many in a hundred calls fail as it has
 * bytes. GFXPACK_TEST_ERRNO is the error of locks, and has reads go well; without it reads fail
 * with EIO.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local uint64_t word = 0x9e3779b97f4a7c15;

static int fails(int descriptor) {
    const char *control = getenv("GFXPACK_TEST_FAULTS");
    char link[64], path[4096];
    struct stat metadata;
    ssize_t length;
    if (control == NULL || stat(control, &metadata) != 0) {
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    if (length <= 0) {
        return 0;
    }
    path[length] = 0;
    if (strstr(path, ".ukdb") == NULL) {
        return 0;
    }
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return (off_t)(word % 100) < metadata.st_size;
}

static int read_fails(int descriptor) {
    int saved = errno;
    int failed = getenv("GFXPACK_TEST_ERRNO") == NULL && fails(descriptor);
    errno = failed ? EIO : saved;
    return failed;
}

ssize_t read(int descriptor, void *buffer, size_t size) {
    return read_fails(descriptor) ? -1 : syscall(SYS_read, descriptor, buffer, size);
}

ssize_t pread(int descriptor, void *buffer, size_t size, off_t at) {
    return read_fails(descriptor) ? -1 : syscall(SYS_pread64, descriptor, buffer, size, at);
}

ssize_t pread64(int descriptor, void *buffer, size_t size, off64_t at) {
    return read_fails(descriptor) ? -1 : syscall(SYS_pread64, descriptor, buffer, size, at);
}

static int control(int descriptor, int command, void *argument) {
    const char *error = getenv("GFXPACK_TEST_ERRNO");
    if (error != NULL && (command == F_SETLK || command == F_SETLKW) && fails(descriptor)) {
        errno = atoi(error);
        return -1;
    }
    return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    void *argument;
    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
    va_list arguments;
    void *argument;
    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(descriptor, command, argument);
}
