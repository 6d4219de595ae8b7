/* The C library's functions that look up or change paths, in all their forms.
 * Each writes an entry into the record.
 *
 * A function that is one system call is implemented here by that call, which is
 * the same with every version of the C library.
 */
#define _GNU_SOURCE
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

/* Functions that headers do not declare. */
int __open(const char *, int, ...);
int __open64(const char *, int, ...);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
int __xstat(int, const char *, struct stat *);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat(int, const char *, struct stat *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __fxstatat64(int, int, const char *, struct stat64 *, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);
int __xmknod(int, const char *, mode_t, dev_t *);
int __xmknodat(int, int, const char *, mode_t, dev_t *);
extern void __chk_fail(void) __attribute__((noreturn));

/* The body of a function: unless it is refused, a call, recorded as one entry. */
#define RECORDED(type, failure, refuses, enters, call, ...)                                        \
    if (refuses)                                                                                   \
        return failure;                                                                            \
    int on = enters;                                                                               \
    type result = (type)(call);                                                                    \
    if (on)                                                                                        \
        put(&EVENT(.error = result == failure ? errno : 0, __VA_ARGS__));                          \
    return result;

/* The same for a path that may not be visible. */
#define SEEING(type, failure, dir, least, call, ...)                                               \
    RECORDED(type, failure, hidden(dir, path, least), names(path) && tells(), call, __VA_ARGS__)

/* The same for a system call that writes. */
#define WRITE(type, reach, number, a, b, c, d, e, ...)                                             \
    RECORDED(type, -1, refused(&EVENT(__VA_ARGS__), reach), tells(), RAW(number, a, b, c, d, e), __VA_ARGS__)

/* Whether a path is given. Headers declare that it is never NULL. */
static int names(const char *volatile path) {
    return path != NULL;
}

/* Opening. */

/* Whether a file that is opened with these flags may be written or made. */
static int writes(uint32_t flags) {
    return (flags & O_PATH) == 0 && (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
}

static int open_refused(int dir, const char *path, uint32_t flags) {
    if (!writes(flags) && hidden(dir, path, (flags & O_PATH) != 0 ? SIGHT_ABOVE : SIGHT_NAME))
        return 1;
    int by_name = (flags & O_NOFOLLOW) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    struct event event = EVENT(.kind = KIND_OPEN, .argument = flags, .dir = dir, .first = path);
    return writes(flags) ? refused(&event, by_name ? REACH_NAME : REACH_FILE)
                         : (flags & O_PATH) == 0 && is_endless(&event);
}

static int look_at(int dir, const char *path, struct stat *file, int flags) {
    return (int)RAW(SYS_newfstatat, dir, path, file, flags, 0);
}

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    enum sight sight = writes((uint32_t)flags) ? SIGHT_ALL : see(dir, path);
    struct stat is;
    /* A directory of which not everything is visible can't be listed. */
    if (sight == SIGHT_ABOVE ||
        (sight == SIGHT_NAME && look_at(dir, path, &is, 0) == 0 && S_ISDIR(is.st_mode)))
        flags |= O_PATH;
    RECORDED(int, -1, open_refused(dir, path, (uint32_t)flags), tells(), RAW(SYS_openat, dir, path, flags, mode, 0),
             .kind = KIND_OPEN, .argument = (uint32_t)flags, .dir = dir, .first = path, .file = result)
}

#define OPEN_AT(dir)                                                                               \
    mode_t mode = 0;                                                                               \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }                                                                                              \
    return open_at(dir, path, flags, mode);

PUBLIC int open(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD) }
PUBLIC int open64(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD) }
PUBLIC int __open(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD) }
PUBLIC int __open64(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD) }
PUBLIC int openat(int dir, const char *path, int flags, ...) { OPEN_AT(dir) }
PUBLIC int openat64(int dir, const char *path, int flags, ...) { OPEN_AT(dir) }
PUBLIC int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
PUBLIC int __open64_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
PUBLIC int __openat_2(int dir, const char *path, int flags) { return open_at(dir, path, flags, 0); }
PUBLIC int __openat64_2(int dir, const char *path, int flags) { return open_at(dir, path, flags, 0); }

PUBLIC int creat(const char *path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

PUBLIC int creat64(const char *path, mode_t mode) {
    return creat(path, mode);
}

/* The flags of `open` for a stream's mode. */
static uint32_t flags_of(const char *mode) {
    uint32_t flags = mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;
    return flags | (strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY);
}

#define OPENED(call)                                                                               \
    RECORDED(FILE *, NULL, open_refused(AT_FDCWD, path, flags_of(mode)), tells(), call, .kind = KIND_OPEN,\
             .argument = flags_of(mode), .first = path, .file = result == NULL ? -1 : fileno(result))
#define STREAM(name)                                                                               \
    PUBLIC FILE *name(const char *path, const char *mode) { OPENED(NEXT(name)(path, mode)) }
#define STREAM_AGAIN(name)                                                                         \
    PUBLIC FILE *name(const char *path, const char *mode, FILE *old) {                             \
        if (path != NULL) {                                                                        \
            OPENED(NEXT(name)(path, mode, old))                                                    \
        }                                                                                          \
        if (tells())                                                                               \
            lack(LACK_UNTOLD);                                                                     \
        return NEXT(name)(path, mode, old);                                                        \
    }
STREAM(fopen)
STREAM(fopen64)
STREAM(setmntent)
STREAM_AGAIN(freopen)
STREAM_AGAIN(freopen64)

/* A function that chooses the file's name. */
#define TEMPORARY(name, parameters, arguments)                                                     \
    PUBLIC int name parameters {                                                                   \
        RECORDED(int, -1, open_refused(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL), tells(),        \
                 NEXT(name) arguments, .kind = KIND_OPEN, .first = path, .file = result,           \
                 .argument = O_RDWR | O_CREAT | O_EXCL)                                            \
    }
TEMPORARY(mkstemp, (char *path), (path))
TEMPORARY(mkstemp64, (char *path), (path))
TEMPORARY(mkostemp, (char *path, int flags), (path, flags))
TEMPORARY(mkostemp64, (char *path, int flags), (path, flags))
TEMPORARY(mkstemps, (char *path, int suffix), (path, suffix))
TEMPORARY(mkstemps64, (char *path, int suffix), (path, suffix))
TEMPORARY(mkostemps, (char *path, int suffix, int flags), (path, suffix, flags))
TEMPORARY(mkostemps64, (char *path, int suffix, int flags), (path, suffix, flags))

PUBLIC char *mkdtemp(char *path) {
    RECORDED(char *, NULL, refused(&EVENT(.kind = KIND_CHANGE, .first = path), REACH_NAME), tells(),
             NEXT(mkdtemp)(path), .kind = KIND_CHANGE, .first = path)
}

/* Looking. */

/* With this flag, the path may be that of the descriptor. */
#define NAMES(path, flags) (names(path) && (path[0] != 0 || ((flags) & AT_EMPTY_PATH) == 0))

static int stat_at(int dir, const char *path, struct stat *file, int flags) {
    RECORDED(int, -1, hidden(dir, path, SIGHT_ABOVE), NAMES(path, flags) && tells(), look_at(dir, path, file, flags),
             .kind = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? KIND_LSTAT : KIND_STAT, .dir = dir, .first = path,
             .stat = result == 0 ? file : NULL)
}

#define STATS(suffix)                                                                              \
    PUBLIC int stat##suffix(const char *path, struct stat##suffix *file) {                         \
        return stat_at(AT_FDCWD, path, (struct stat *)file, 0);                                    \
    }                                                                                              \
    PUBLIC int lstat##suffix(const char *path, struct stat##suffix *file) {                        \
        return stat_at(AT_FDCWD, path, (struct stat *)file, AT_SYMLINK_NOFOLLOW);                  \
    }                                                                                              \
    PUBLIC int fstatat##suffix(int dir, const char *path, struct stat##suffix *file, int flags) {  \
        return stat_at(dir, path, (struct stat *)file, flags);                                     \
    }                                                                                              \
    PUBLIC int __xstat##suffix(int version, const char *path, struct stat##suffix *file) {         \
        (void)version;                                                                             \
        return stat_at(AT_FDCWD, path, (struct stat *)file, 0);                                    \
    }                                                                                              \
    PUBLIC int __lxstat##suffix(int version, const char *path, struct stat##suffix *file) {        \
        (void)version;                                                                             \
        return stat_at(AT_FDCWD, path, (struct stat *)file, AT_SYMLINK_NOFOLLOW);                  \
    }                                                                                              \
    PUBLIC int __fxstatat##suffix(int version, int dir, const char *path,                          \
                                  struct stat##suffix *file, int flags) {                          \
        (void)version;                                                                             \
        return stat_at(dir, path, (struct stat *)file, flags);                                     \
    }
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one form");
STATS()
STATS(64)

#ifdef SYS_statx
PUBLIC int statx(int dir, const char *restrict path, int flags, unsigned mask,
                 struct statx *restrict file) {
    RECORDED(int, -1, hidden(dir, path, SIGHT_ABOVE), NAMES(path, flags) && tells(),
             RAW(SYS_statx, dir, path, flags, mask, file), .dir = dir, .first = path,
             .kind = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? KIND_LSTAT : KIND_STAT)
}
#endif

PUBLIC int access(const char *path, int mode) {
    SEEING(int, -1, AT_FDCWD, SIGHT_ABOVE, RAW(SYS_faccessat, AT_FDCWD, path, mode, 0, 0), .kind = KIND_ACCESS,
           .first = path, .argument = (uint32_t)mode)
}

/* A function that makes several system calls. */
#define ACCESS(name, parameters, arguments, dir_)                                                  \
    PUBLIC int name parameters {                                                                   \
        SEEING(int, -1, dir_, SIGHT_ABOVE, NEXT(name) arguments, .kind = KIND_ACCESS, .dir = dir_, \
               .first = path, .argument = (uint32_t)mode)                                          \
    }
ACCESS(eaccess, (const char *path, int mode), (path, mode), AT_FDCWD)
ACCESS(euidaccess, (const char *path, int mode), (path, mode), AT_FDCWD)
ACCESS(faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags), dir)

static ssize_t readlink_at(int dir, const char *path, char *text, size_t size) {
    SEEING(ssize_t, -1, dir, SIGHT_ABOVE, RAW(SYS_readlinkat, dir, path, text, size, 0), .kind = KIND_READLINK,
           .dir = dir, .first = path, .second = result > 0 ? text : NULL,
           .second_length = result > 0 ? (size_t)result : 0)
}

PUBLIC ssize_t readlink(const char *path, char *text, size_t size) {
    return readlink_at(AT_FDCWD, path, text, size);
}

PUBLIC ssize_t readlinkat(int dir, const char *path, char *text, size_t size) {
    return readlink_at(dir, path, text, size);
}

PUBLIC ssize_t __readlink_chk(const char *path, char *text, size_t size, size_t room) {
    if (size > room)
        __chk_fail();
    return readlink_at(AT_FDCWD, path, text, size);
}

PUBLIC ssize_t __readlinkat_chk(int dir, const char *path, char *text, size_t size, size_t room) {
    if (size > room)
        __chk_fail();
    return readlink_at(dir, path, text, size);
}

#define REAL(call)                                                                                 \
    SEEING(char *, NULL, AT_FDCWD, SIGHT_ABOVE, call, .kind = KIND_REALPATH, .first = path, .second = result)

PUBLIC char *realpath(const char *restrict path, char *restrict real) {
    REAL(NEXT(realpath)(path, real))
}

PUBLIC char *__realpath_chk(const char *path, char *real, size_t room) {
    REAL(NEXT(__realpath_chk)(path, real, room))
}

PUBLIC char *canonicalize_file_name(const char *path) {
    return realpath(path, NULL);
}

PUBLIC DIR *opendir(const char *path) {
    SEEING(DIR *, NULL, AT_FDCWD, SIGHT_ALL, NEXT(opendir)(path), .kind = KIND_LIST, .first = path,
           .file = result == NULL ? -1 : dirfd(result))
}

PUBLIC DIR *fdopendir(int file) {
    RECORDED(DIR *, NULL, 0, tells(), NEXT(fdopendir)(file), .kind = KIND_LIST, .dir = file, .first = "",
             .file = result == NULL ? -1 : file)
}

#define FILE_SYSTEM(name, type)                                                                    \
    PUBLIC int name(const char *restrict path, struct type *restrict out) {                        \
        SEEING(int, -1, AT_FDCWD, SIGHT_ABOVE, NEXT(name)(path, out), .kind = KIND_STATFS, .first = path)\
    }
FILE_SYSTEM(statfs, statfs)
FILE_SYSTEM(statfs64, statfs64)
FILE_SYSTEM(statvfs, statvfs)
FILE_SYSTEM(statvfs64, statvfs64)

/* Changing. */

static int unlink_at(int dir, const char *path, int flags) {
    WRITE(int, REACH_NAME, SYS_unlinkat, dir, path, flags, 0, 0, .kind = KIND_CHANGE, .dir = dir, .first = path)
}

PUBLIC int unlink(const char *path) { return unlink_at(AT_FDCWD, path, 0); }
PUBLIC int rmdir(const char *path) { return unlink_at(AT_FDCWD, path, AT_REMOVEDIR); }
PUBLIC int unlinkat(int dir, const char *path, int flags) { return unlink_at(dir, path, flags); }

PUBLIC int remove(const char *path) {
    RECORDED(int, -1, refused(&EVENT(.kind = KIND_CHANGE, .first = path), REACH_NAME), tells(), NEXT(remove)(path),
             .kind = KIND_CHANGE, .first = path)
}

/* A call that concerns two names. Writing to a file by one name changes it under all names. */
static int change_both(long number, int from, const char *old, int to, const char *new, unsigned flags) {
    if (refused(&EVENT(.kind = KIND_CHANGE, .dir = from, .first = old), REACH_NAME) ||
        refused(&EVENT(.kind = KIND_CHANGE, .dir = to, .first = new), REACH_NAME))
        return -1;
    int on = tells();
    int result = (int)RAW(number, from, old, to, new, flags);
    if (on) {
        int error = result < 0 ? errno : 0;
        put(&EVENT(.kind = KIND_CHANGE, .error = error, .dir = from, .first = old));
        put(&EVENT(.kind = KIND_CHANGE, .error = error, .dir = to, .first = new));
    }
    return result;
}

PUBLIC int renameat(int from, const char *old, int to, const char *new) {
    return change_both(SYS_renameat2, from, old, to, new, 0);
}

PUBLIC int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return change_both(SYS_renameat2, from, old, to, new, flags);
}

PUBLIC int rename(const char *old, const char *new) {
    return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

PUBLIC int linkat(int from, const char *old, int to, const char *new, int flags) {
    return change_both(SYS_linkat, from, old, to, new, (unsigned)flags);
}

PUBLIC int link(const char *old, const char *new) {
    return linkat(AT_FDCWD, old, AT_FDCWD, new, 0);
}

PUBLIC int symlinkat(const char *text, int dir, const char *path) {
    WRITE(int, REACH_NAME, SYS_symlinkat, text, dir, path, 0, 0, .kind = KIND_CHANGE, .dir = dir, .first = path)
}

PUBLIC int symlink(const char *text, const char *path) {
    return symlinkat(text, AT_FDCWD, path);
}

PUBLIC int mkdirat(int dir, const char *path, mode_t mode) {
    WRITE(int, REACH_NAME, SYS_mkdirat, dir, path, mode, 0, 0, .kind = KIND_CHANGE, .dir = dir, .first = path)
}

PUBLIC int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

PUBLIC int mknodat(int dir, const char *path, mode_t mode, dev_t device) {
    WRITE(int, REACH_NAME, SYS_mknodat, dir, path, mode, device, 0, .kind = KIND_CHANGE, .dir = dir, .first = path)
}

PUBLIC int mknod(const char *path, mode_t mode, dev_t device) {
    return mknodat(AT_FDCWD, path, mode, device);
}

PUBLIC int __xmknod(int version, const char *path, mode_t mode, dev_t *device) {
    (void)version;
    return mknodat(AT_FDCWD, path, mode, *device);
}

PUBLIC int __xmknodat(int version, int dir, const char *path, mode_t mode, dev_t *device) {
    (void)version;
    return mknodat(dir, path, mode, *device);
}

PUBLIC int mkfifo(const char *path, mode_t mode) {
    return mknodat(AT_FDCWD, path, mode | S_IFIFO, 0);
}

PUBLIC int mkfifoat(int dir, const char *path, mode_t mode) {
    return mknodat(dir, path, mode | S_IFIFO, 0);
}

/* The system's function, recorded as a change of the path, or of a descriptor's file. */
#define CHANGE(name, parameters, arguments, dir_, reach)                                           \
    PUBLIC int name parameters {                                                                   \
        const char *named = names(path) ? path : "";                                               \
        RECORDED(int, -1, refused(&EVENT(.kind = KIND_CHANGE, .dir = dir_, .first = named), reach), tells(),\
                 NEXT(name) arguments, .kind = KIND_CHANGE, .dir = dir_, .first = named)           \
    }
#define REACH(flags) (((flags) & AT_SYMLINK_NOFOLLOW) != 0 ? REACH_NAME : REACH_FILE)
CHANGE(chmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, REACH_FILE)
CHANGE(lchmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, REACH_NAME)
CHANGE(fchmodat, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags), dir,
       REACH(flags))
CHANGE(chown, (const char *path, uid_t user, gid_t group), (path, user, group), AT_FDCWD, REACH_FILE)
CHANGE(lchown, (const char *path, uid_t user, gid_t group), (path, user, group), AT_FDCWD, REACH_NAME)
CHANGE(fchownat, (int dir, const char *path, uid_t user, gid_t group, int flags),
       (dir, path, user, group, flags), dir, REACH(flags))
CHANGE(truncate, (const char *path, off_t length), (path, length), AT_FDCWD, REACH_FILE)
CHANGE(truncate64, (const char *path, off64_t length), (path, length), AT_FDCWD, REACH_FILE)
CHANGE(utime, (const char *path, const struct utimbuf *times), (path, times), AT_FDCWD, REACH_FILE)
CHANGE(utimes, (const char *path, const struct timeval times[2]), (path, times), AT_FDCWD, REACH_FILE)
CHANGE(lutimes, (const char *path, const struct timeval times[2]), (path, times), AT_FDCWD, REACH_NAME)
CHANGE(futimesat, (int dir, const char *path, const struct timeval times[2]), (dir, path, times), dir,
       REACH_FILE)
CHANGE(utimensat, (int dir, const char *path, const struct timespec times[2], int flags),
       (dir, path, times, flags), dir, REACH(flags))
CHANGE(setxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
       (path, name, value, size, flags), AT_FDCWD, REACH_FILE)
CHANGE(lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
       (path, name, value, size, flags), AT_FDCWD, REACH_NAME)
CHANGE(removexattr, (const char *path, const char *name), (path, name), AT_FDCWD, REACH_FILE)
CHANGE(lremovexattr, (const char *path, const char *name), (path, name), AT_FDCWD, REACH_NAME)

/* The same for an open file, which need not be open for writing. The entry of its opening is
 * enough. */
#define CHANGE_OPEN(name, parameters, arguments)                                                   \
    PUBLIC int name parameters {                                                                   \
        if (refused(&EVENT(.kind = KIND_CHANGE, .dir = file, .first = ""), REACH_FILE))            \
            return -1;                                                                             \
        return NEXT(name) arguments;                                                               \
    }
CHANGE_OPEN(fchmod, (int file, mode_t mode), (file, mode))
CHANGE_OPEN(fchown, (int file, uid_t user, gid_t group), (file, user, group))
CHANGE_OPEN(futimens, (int file, const struct timespec times[2]), (file, times))
CHANGE_OPEN(futimes, (int file, const struct timeval times[2]), (file, times))
CHANGE_OPEN(fsetxattr, (int file, const char *name, const void *value, size_t size, int flags),
            (file, name, value, size, flags))
CHANGE_OPEN(fremovexattr, (int file, const char *name), (file, name))

/* A socket's name is a file. */
PUBLIC int bind(int socket, const struct sockaddr *address, socklen_t length) {
    const struct sockaddr_un *local = (const struct sockaddr_un *)address;
    size_t before = offsetof(struct sockaddr_un, sun_path);
    char name[sizeof local->sun_path + 1] = "";
    if (length > before && length <= sizeof *local && address->sa_family == AF_UNIX)
        memcpy(name, local->sun_path, length - before);
    if (name[0] == 0)
        return NEXT(bind)(socket, address, length);
    WRITE(int, REACH_NAME, SYS_bind, socket, address, length, 0, 0, .kind = KIND_CHANGE, .first = name)
}
