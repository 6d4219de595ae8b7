/* Confines a run to writable paths. A call that would write elsewhere fails before
 * it happens, and is recorded. Landlock, if the kernel has it, also stops calls
 * that bypass the functions of this library.
 *
 * The kernel resolves links and `..` in a path: it is opened with O_PATH, and the
 * path of the descriptor is read.
 */
#define _GNU_SOURCE
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum found {
    NOTHING,   /* the call fails by itself */
    SOMEWHERE,
    UNKNOWN,
};

/* The path without links. */
static enum found follow(int dir, const char *path, int flags, char place[MAX_TEXT]) {
    int file = (int)RAW(SYS_openat, dir, path, O_PATH | O_CLOEXEC | flags, 0, 0);
    if (file < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? UNKNOWN : NOTHING;
    size_t length = path_of(file, place, MAX_TEXT);
    RAW(SYS_close, file, 0, 0, 0, 0);
    place[length] = 0;
    return length > 0 ? SOMEWHERE : UNKNOWN;
}

/* The path, without links, of a name that need not exist. */
static enum found look_up(int dir, const char *path, char place[MAX_TEXT]) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    const char *slash = memrchr(path, '/', length);
    const char *name = slash != NULL ? slash + 1 : path;
    size_t name_length = (size_t)(path + length - name);
    if (name_length == 0 || (name_length <= 2 && memcmp(name, "..", name_length) == 0))
        return follow(dir, path, 0, place);
    /* The system takes no longer path. */
    char above[PATH_MAX] = ".";
    if (slash != NULL) {
        size_t above_length = slash == path ? 1 : (size_t)(slash - path);
        if (above_length >= sizeof above || name_length > NAME_MAX)
            return NOTHING;
        memcpy(above, path, above_length);
        above[above_length] = 0;
    }
    enum found found = follow(dir, above, O_DIRECTORY, place);
    if (found != SOMEWHERE)
        return found;
    size_t above_length = strlen(place);
    if (above_length + 1 + name_length >= MAX_TEXT)
        return UNKNOWN;
    if (place[above_length - 1] != '/')
        place[above_length++] = '/';
    memcpy(place + above_length, name, name_length);
    place[above_length + name_length] = 0;
    return SOMEWHERE;
}

static enum found find(int dir, const char *path, enum reach reach, char place[MAX_TEXT]) {
    if (path == NULL || path[0] == 0) {
        size_t length = dir != AT_FDCWD ? path_of(dir, place, MAX_TEXT) : 0;
        place[length] = 0;
        return length > 0 ? SOMEWHERE : NOTHING;
    }
    if (reach == REACH_FILE) {
        enum found found = follow(dir, path, 0, place);
        if (found != NOTHING)
            return found;
        /* A file that is created by a link to a missing path is elsewhere. */
        if (follow(dir, path, O_NOFOLLOW, place) != NOTHING)
            return UNKNOWN;
    }
    return look_up(dir, path, place);
}

/* Whether a path without links is in a list or lies below one of its paths. */
static int is_below(const char *place, const char *list, size_t size) {
    for (const char *end = list + size; list < end; list += strlen(list) + 1) {
        size_t length = strlen(list);
        if (strncmp(place, list, length) == 0 &&
            (place[length] == 0 || place[length] == '/' || list[length - 1] == '/'))
            return 1;
    }
    return 0;
}

static int may_write(const struct head *head, const struct event *event, enum reach reach) {
    char place[MAX_TEXT];
    switch (find(event->dir, event->first, reach, place)) {
    case NOTHING:
        return 1;
    case UNKNOWN:
        return 0;
    case SOMEWHERE:
        break;
    }
    /* A pipe or the like, which the process has opened. */
    if (place[0] != '/')
        return 1;
    return is_below(place, (const char *)(head + 1), head->writable) ||
           (event->kind == KIND_OPEN && strcmp(place, "/dev/null") == 0);
}

int refused(const struct event *event, enum reach reach) {
    const struct head *head = bounds();
    if (head == NULL)
        return 0;
    int before = errno;
    int may = may_write(head, event, reach);
    errno = before;
    if (may)
        return 0;
    struct event refusal = *event;
    refusal.error = EACCES;
    if (refusal.first == NULL)
        refusal.first = "";
    if (tells_starts())
        put(&refusal);
    errno = EACCES;
    return 1;
}

int is_endless(const struct event *event) {
    struct stat is;
    if (bounds() == NULL || !is_compiler())
        return 0;
    int before = errno;
    int known = RAW(SYS_newfstatat, event->dir, event->first, &is, 0, 0) == 0;
    errno = before;
    int is_device = known && (S_ISCHR(is.st_mode) || S_ISBLK(is.st_mode));
    if (!(is_device && is.st_rdev != makedev(1, 3)) && !(known && S_ISFIFO(is.st_mode)))
        return 0;
    /* What the process has opened already, or was given. */
    if (strncmp(event->first, "/dev/fd/", 8) == 0 || strncmp(event->first, "/proc/", 6) == 0)
        return 0;
    struct event refusal = *event;
    refusal.error = EACCES;
    if (tells())
        put(&refusal);
    errno = EACCES;
    return 1;
}

/* Landlock, as its first version has it; later ones have more rights.
 *
 * Source: Linux, include/uapi/linux/landlock.h and
 * Documentation/userspace-api/landlock.rst. The numbers of the calls are those
 * of every machine but alpha. */
#define LANDLOCK_CREATE_RULESET 444
#define LANDLOCK_ADD_RULE 445
#define LANDLOCK_RESTRICT_SELF 446
#define RIGHT(number) (1ull << (number))

enum {
    CREATE_RULESET_VERSION = 1,
    RULE_PATH_BENEATH = 1,
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static const uint64_t WRITE_FILE = RIGHT(1), REFER = RIGHT(13), TRUNCATE = RIGHT(14);
/* From removing a directory to making a symbolic link. */
static const uint64_t CHANGE_DIRS = RIGHT(13) - RIGHT(4);

void allow(int rules, const char *path, uint64_t allowed) {
    struct path_beneath rule = {allowed, (int)RAW(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0, 0)};
    struct stat is;
    if (rule.parent < 0)
        return;
    /* All below a directory would have a file's right. */
    if (allowed == MAY_READ_FILE &&
        (RAW(SYS_newfstatat, rule.parent, "", &is, AT_EMPTY_PATH, 0) != 0 || S_ISDIR(is.st_mode)))
        rule.allowed = 0;
    /* A file can't have some of the rights; the kernel refuses them. */
    if (rule.allowed != 0 && RAW(LANDLOCK_ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0, 0) != 0) {
        rule.allowed &= WRITE_FILE | TRUNCATE | MAY_READ_FILE;
        RAW(LANDLOCK_ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0, 0);
    }
    RAW(SYS_close, rule.parent, 0, 0, 0, 0);
}

void restrict_by_kernel(const struct head *head) {
    int before = errno;
    long version = RAW(LANDLOCK_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION, 0, 0);
    uint64_t handled = 0;
    if ((head->wishes & WISH_BOUNDS) != 0)
        handled = WRITE_FILE | CHANGE_DIRS | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
    if ((head->wishes & WISH_VISIBLE) != 0)
        handled |= MAY_READ_FILE | MAY_READ_DIR;
    int rules = version < 1 || handled == 0
                    ? -1
                    : (int)RAW(LANDLOCK_CREATE_RULESET, &handled, sizeof handled, 0, 0, 0);
    if (rules >= 0) {
        const char *path = (const char *)(head + 1), *end = path + head->writable;
        for (; path < end; path += strlen(path) + 1)
            allow(rules, path, handled);
        allow(rules, "/dev/null", handled & (WRITE_FILE | TRUNCATE));
        if ((head->wishes & WISH_VISIBLE) != 0)
            allow_visible(head, rules);
        /* If there are too many layers, the layer of the parent process still applies. */
        if (RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
            RAW(LANDLOCK_RESTRICT_SELF, rules, 0, 0, 0, 0);
        RAW(SYS_close, rules, 0, 0, 0, 0);
    }
    errno = before;
}
