/* Starting programs, and operations that no entry can represent. */
#define _GNU_SOURCE
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static void untold(const char *name) {
    int before = errno;
    lack(LACK_UNTOLD);
    put(&EVENT(.kind = KIND_UNTOLD, .first = name));
    errno = before;
}

/* A forked job may not start programs, since these would not have its record. What sees only what
 * a list names may not either, since these might see more. */
static int start_refused(const char *name) {
    if (!is_job() && sees_list() == NULL)
        return 0;
    if (tells_starts())
        untold(name);
    errno = EPERM;
    return 1;
}

struct start {
    int dir, flags;
    const char *path;
    char *const *arguments, *const *environment;
};

/* Executes a program in this process. Returns if that fails. After vfork, the parent's record is
 * used. */
static int turn_into(const struct start *start) {
    if (start_refused("execve"))
        return -1;
    int on = tells_starts();
    uint32_t pid = on ? (uint32_t)RAW(SYS_getpid, 0, 0, 0, 0, 0) : 0;
    if (on) {
        put(&EVENT(.kind = KIND_EXEC, .pid = pid, .argument = self(), .dir = start->dir,
                   .first = start->path));
        /* A successful call does not return. */
    }
    long result = start->dir == AT_FDCWD && start->flags == 0
        ? RAW(SYS_execve, start->path, start->arguments, start->environment, 0, 0)
        : RAW(SYS_execveat, start->dir, start->path, start->arguments, start->environment,
              start->flags);
    if (on)
        put(&EVENT(.kind = KIND_STAYED, .pid = pid, .error = errno));
    return (int)result;
}

#define TURN(path_, ...)                                                                           \
    return turn_into(&(struct start){.dir = AT_FDCWD, .path = path_, __VA_ARGS__});

PUBLIC int execve(const char *path, char *const arguments[], char *const environment[]) {
    TURN(path, .arguments = arguments, .environment = environment)
}

PUBLIC int execv(const char *path, char *const arguments[]) {
    return execve(path, arguments, environ);
}

PUBLIC int fexecve(int file, char *const arguments[], char *const environment[]) {
    TURN("", .dir = file, .flags = AT_EMPTY_PATH, .arguments = arguments, .environment = environment)
}

PUBLIC int execveat(int dir, const char *path, char *const arguments[], char *const environment[],
                    int flags) {
    TURN(path, .dir = dir, .flags = flags, .arguments = arguments, .environment = environment)
}

/* Tries to start a program's file; returns 0 or the error. */
typedef int try(const char *path, void *with);

/* Tries the files that a name may mean, in the order of PATH, so that each is
 * recorded. Returns the result of the last one.
 *
 * Source: glibc, posix/execvpe.c. */
static int search(const char *name, try *try, void *with) {
    size_t length = strlen(name);
    if (length == 0)
        return ENOENT;
    if (strchr(name, '/') != NULL)
        return try(name, with);
    if (length > NAME_MAX)
        return ENAMETOOLONG;
    const char *path = getenv("PATH");
    if (path == NULL)
        path = "/bin:/usr/bin";
    int denied = 0, error = ENOENT;
    for (const char *end;; path = end + 1) {
        end = strchrnul(path, ':');
        size_t before = (size_t)(end - path);
        char file[PATH_MAX + NAME_MAX + 2];
        if (before < PATH_MAX) {
            char *at = mempcpy(file, path, before);
            if (before > 0)
                *at++ = '/';
            memcpy(at, name, length + 1);
            error = try(file, with);
            switch (error) {
            case EACCES:
                denied = 1;
                break;
            case ENOENT:
            case ENOTDIR:
            case ENODEV:
            case ESTALE:
            case ETIMEDOUT:
                break;
            default:
                return error;
            }
        }
        if (*end == 0)
            return denied ? EACCES : error;
    }
}

static int try_turn(const char *path, void *with) {
    const struct start *start = with;
    execve(path, start->arguments, start->environment);
    if (errno != ENOEXEC)
        return errno;
    /* A script without an interpreter line. */
    size_t count = 0;
    while (start->arguments[count] != NULL)
        count++;
    char *arguments[count + 3];
    arguments[0] = "/bin/sh";
    arguments[1] = (char *)path;
    arguments[2] = NULL;
    for (size_t i = 1; i <= count; i++)
        arguments[i + 1] = start->arguments[i];
    execve(arguments[0], arguments, start->environment);
    return errno;
}

PUBLIC int execvpe(const char *name, char *const arguments[], char *const environment[]) {
    struct start start = {.arguments = arguments, .environment = environment};
    errno = search(name, try_turn, &start);
    return -1;
}

PUBLIC int execvp(const char *name, char *const arguments[]) {
    return execvpe(name, arguments, environ);
}

/* Functions with the arguments one by one. */
#define LISTED(name, call, ...)                                                                    \
    PUBLIC int name(const char *path, const char *argument, ...) {                                 \
        va_list rest;                                                                              \
        size_t count = 1;                                                                          \
        va_start(rest, argument);                                                                  \
        while (va_arg(rest, char *) != NULL)                                                       \
            count++;                                                                               \
        va_end(rest);                                                                              \
        char *arguments[count + 1];                                                                \
        arguments[0] = (char *)argument;                                                           \
        va_start(rest, argument);                                                                  \
        for (size_t i = 1; i <= count; i++)                                                        \
            arguments[i] = va_arg(rest, char *);                                                   \
        char *const *environment = environ;                                                        \
        __VA_ARGS__;                                                                               \
        va_end(rest);                                                                              \
        return call(path, arguments, environment);                                                 \
    }
LISTED(execl, execve)
LISTED(execlp, execvpe)
LISTED(execle, execve, environment = va_arg(rest, char *const *))

PUBLIC int posix_spawn(pid_t *restrict pid, const char *restrict path,
                       const posix_spawn_file_actions_t *restrict actions,
                       const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                       char *const environment[restrict]) {
    if (start_refused("posix_spawn"))
        return errno;
    int on = tells_starts();
    pid_t child = 0;
    int error = NEXT(posix_spawn)(&child, path, actions, attributes, arguments, environment);
    if (pid != NULL && error == 0)
        *pid = child;
    if (on)
        put(&EVENT(.kind = KIND_SPAWN, .error = error, .argument = (uint32_t)child, .first = path));
    return error;
}

/* Files that the child opens are not recorded. */
PUBLIC int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions, int file,
                                            const char *restrict path, int flags, mode_t mode) {
    int writes = (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
    if (writes && refused(&EVENT(.kind = KIND_OPEN, .argument = (uint32_t)flags, .first = path), REACH_FILE))
        return errno;
    if (strcmp(path, "/dev/null") != 0 && tells_untold())
        untold("posix_spawn_file_actions_addopen");
    return NEXT(posix_spawn_file_actions_addopen)(actions, file, path, flags, mode);
}

struct spawn {
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    char *const *arguments, *const *environment;
};

static int try_spawn(const char *path, void *with) {
    const struct spawn *spawn = with;
    return posix_spawn(spawn->pid, path, spawn->actions, spawn->attributes, spawn->arguments,
                       spawn->environment);
}

PUBLIC int posix_spawnp(pid_t *restrict pid, const char *restrict name,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes,
                        char *const arguments[restrict], char *const environment[restrict]) {
    struct spawn spawn = {pid, actions, attributes, arguments, environment};
    return search(name, try_spawn, &spawn);
}

static void put_shell(int error, const char *line) {
    size_t length = strlen(line);
    put(&EVENT(.kind = KIND_SHELL, .error = error, .first = "/bin/sh",
               .second = length > 0 ? line : NULL, .second_length = length));
}

PUBLIC int system(const char *line) {
    if (start_refused("system"))
        return -1;
    int on = tells_starts();
    int status = NEXT(system)(line);
    if (on) {
        /* Without a command line, the function tests whether there is a shell by starting it. */
        put_shell(status == -1 ? errno : 0, line != NULL ? line : "exit 0");
    }
    return status;
}

PUBLIC FILE *popen(const char *line, const char *mode) {
    if (start_refused("popen"))
        return NULL;
    int on = tells_starts();
    FILE *stream = NEXT(popen)(line, mode);
    if (on)
        put_shell(stream == NULL ? errno : 0, line);
    return stream;
}

/* Functions that are left to the system, and make the record incomplete. */

#define UNTOLD(type, name, enters, parameters, arguments)                                          \
    PUBLIC type name parameters {                                                                  \
        if (enters())                                                                              \
            untold(#name);                                                                         \
        return NEXT(name) arguments;                                                               \
    }
UNTOLD(int, ftw, tells_untold, (const char *path, __ftw_func_t visit, int depth), (path, visit, depth))
UNTOLD(int, ftw64, tells_untold, (const char *path, __ftw64_func_t visit, int depth), (path, visit, depth))
UNTOLD(int, nftw, tells_untold, (const char *path, __nftw_func_t visit, int depth, int flags),
       (path, visit, depth, flags))
UNTOLD(int, nftw64, tells_untold, (const char *path, __nftw64_func_t visit, int depth, int flags),
       (path, visit, depth, flags))
typedef int choose(const struct dirent *);
typedef int choose64(const struct dirent64 *);
typedef int order(const struct dirent **, const struct dirent **);
typedef int order64(const struct dirent64 **, const struct dirent64 **);
UNTOLD(int, scandir, tells_untold, (const char *path, struct dirent ***list, choose *choose, order *order),
       (path, list, choose, order))
UNTOLD(int, scandir64, tells_untold,
       (const char *path, struct dirent64 ***list, choose64 *choose, order64 *order),
       (path, list, choose, order))
UNTOLD(int, scandirat, tells_untold,
       (int dir, const char *path, struct dirent ***list, choose *choose, order *order),
       (dir, path, list, choose, order))
UNTOLD(int, scandirat64, tells_untold,
       (int dir, const char *path, struct dirent64 ***list, choose64 *choose, order64 *order),
       (dir, path, list, choose, order))
UNTOLD(int, glob, tells_untold,
       (const char *restrict text, int flags, int (*failed)(const char *, int), glob_t *restrict found),
       (text, flags, failed, found))
UNTOLD(int, glob64, tells_untold,
       (const char *restrict text, int flags, int (*failed)(const char *, int), glob64_t *restrict found),
       (text, flags, failed, found))
UNTOLD(FILE *, tmpfile, tells_untold, (void), ())
UNTOLD(FILE *, tmpfile64, tells_untold, (void), ())
UNTOLD(int, chroot, tells_starts, (const char *path), (path))
UNTOLD(int, connect, tells_untold, (int socket, const struct sockaddr *address, socklen_t length),
       (socket, address, length))
int shm_open(const char *, int, mode_t);
int shm_unlink(const char *);
int inotify_add_watch(int, const char *, uint32_t);
int open_by_handle_at(int, struct file_handle *, int);
UNTOLD(int, shm_open, tells_untold, (const char *name, int flags, mode_t mode), (name, flags, mode))
UNTOLD(int, shm_unlink, tells_untold, (const char *name), (name))
UNTOLD(int, inotify_add_watch, tells_untold, (int file, const char *path, uint32_t mask), (file, path, mask))
UNTOLD(int, open_by_handle_at, tells_untold, (int file, struct file_handle *handle, int flags),
       (file, handle, flags))

#ifdef SYS_openat2
struct open_how;
/* Not every C library has it. */
PUBLIC int openat2(int dir, const char *path, const struct open_how *how, size_t size) {
    if (tells_untold())
        untold("openat2");
    return (int)RAW(SYS_openat2, dir, path, how, size, 0);
}
#endif

/* System calls that bypass the C library's functions. Those that start programs are always
 * unrepresentable; if accesses are recorded, so are all others that may concern files. */
static int starts(long number) {
    switch (number) {
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork:
#endif
#ifdef SYS_clone3
    case SYS_clone3:
#endif
    case SYS_clone:
    case SYS_execve:
    case SYS_execveat:
        return 1;
    default:
        return 0;
    }
}

static int is_harmless(long number) {
    switch (number) {
    case SYS_futex:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getrandom:
    case SYS_membarrier:
    case SYS_sched_getaffinity:
    case SYS_sched_setaffinity:
        return 1;
    default:
        return 0;
    }
}

PUBLIC long syscall(long number, ...) {
    va_list rest;
    long args[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(rest, long);
    va_end(rest);
    if (starts(number) && start_refused("syscall"))
        return -1;
    if (starts(number) ? tells_starts() : !is_harmless(number) && tells_untold())
        untold("syscall");
    return raw(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
