/* Lets compilers, assemblers and linkers see only what a list names. A lookup of
 * any other path fails as if nothing were there, before the system is asked.
 *
 * The text of a name decides, not what it leads to, so that the answer is the
 * same wherever links lead. The list holds every directory above its paths too,
 * so a name is followed part by part until the list ends.
 */
#define _GNU_SOURCE
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

/* The same as in `watch/visible.rs`. */
enum role {
    ROLE_NONE,
    ROLE_NAME,  /* what has this very name */
    ROLE_ABOVE, /* a directory above others */
    ROLE_TOP,   /* likewise, and the kernel allows all below */
    ROLE_OPEN,  /* the directory of open files, by number */
    ROLE_BELOW, /* a directory with all below */
    ROLE_TREE,  /* likewise, and no directory below is a link */
    ROLE_STAGE, /* likewise, and what a few `..` lead to */
};

/* How many `..` a path may have that starts at the stage. */
#define MAX_UPS 24

/* A hash table of offsets from its own beginning, 0 for none, and entries: a byte
 * for the role, the path without a `/` at its end, and a zero. */
struct list {
    uint32_t slots; /* a power of two */
    uint32_t at[];
};

static const struct list *list_of(const struct head *head) {
    return (const struct list *)((const char *)(head + 1) + (head->writable + 7) / 8 * 8);
}

/* The hash is FNV-1a. */
static enum role find(const struct list *list, const char *path, size_t length) {
    uint32_t slot = 2166136261u;
    for (size_t i = 0; i < length; i++)
        slot = (slot ^ (unsigned char)path[i]) * 16777619u;
    for (;; slot++) {
        uint32_t at = list->at[slot & (list->slots - 1)];
        if (at == 0)
            return ROLE_NONE;
        const char *entry = (const char *)list + at;
        if (strncmp(entry + 1, path, length) == 0 && entry[1 + length] == 0)
            return (enum role)entry[0];
    }
}

/* The number of parts `..`. */
static int ups(const char *path) {
    int count = 0;
    while (*path != 0) {
        const char *end = strchrnul(path, '/');
        count += end - path == 2 && path[0] == '.' && path[1] == '.';
        path = *end == 0 ? end : end + 1;
    }
    return count;
}

/* Whether the parts of a path lead to nothing above its beginning. */
static int stays(const char *path) {
    int depth = 0;
    while (*path != 0 && depth >= 0) {
        const char *end = strchrnul(path, '/');
        int is_up = end - path == 2 && path[0] == '.' && path[1] == '.';
        depth += is_up ? -1 : end > path;
        path = *end == 0 ? end : end + 1;
    }
    return depth >= 0;
}

/* For an absolute path without empty parts and `.`; nothing for the root. */
static enum sight judge(const struct list *list, const char *path) {
    for (const char *end = path;; end = strchrnul(end + 1, '/')) {
        enum role role = find(list, path, (size_t)(end - path));
        if (role == ROLE_NONE)
            return SIGHT_NONE;
        if ((role >= ROLE_BELOW && ups(end) == 0) || (role == ROLE_TREE && stays(end)) ||
            (role == ROLE_STAGE && ups(end) <= MAX_UPS))
            return SIGHT_ALL;
        if (role == ROLE_OPEN && *end == '/' && strchr(end + 1, '/') == NULL && ups(end) == 0)
            return SIGHT_NAME;
        if (*end == 0)
            return role == ROLE_NAME ? SIGHT_NAME : SIGHT_ABOVE;
    }
}

enum sight see(int dir, const char *path) {
    const struct head *head = sees_list();
    /* The system refuses longer paths, whatever exists there. */
    if (head == NULL || path == NULL || path[0] == 0 || strnlen(path, PATH_MAX) == PATH_MAX)
        return SIGHT_ALL;
    char text[MAX_TEXT] = "/";
    size_t length = 1;
    int before = errno;
    if (path[0] != '/' && dir != AT_FDCWD)
        length = path_of(dir, text, PATH_MAX);
    else if (path[0] != '/')
        length = RAW(SYS_getcwd, text, PATH_MAX, 0, 0, 0) > 0 ? strlen(text) : 0;
    errno = before;
    if (length == 0 || text[0] != '/')
        return SIGHT_NONE;
    length = length == 1 ? 0 : length;
    while (*path != 0) {
        size_t part = (size_t)(strchrnul(path, '/') - path);
        if (part > 1 || (part == 1 && *path != '.')) {
            text[length++] = '/';
            memcpy(text + length, path, part);
            length += part;
        }
        path += part + (path[part] == '/');
    }
    text[length] = 0;
    return judge(list_of(head), text);
}

int hidden(int dir, const char *path, enum sight least) {
    if (see(dir, path) >= least)
        return 0;
    errno = ENOENT;
    return 1;
}

void allow_visible(const struct head *head, int rules) {
    const struct list *list = list_of(head);
    for (uint32_t i = 0; i < list->slots; i++) {
        const char *entry = (const char *)list + list->at[i];
        enum role role = list->at[i] != 0 ? (enum role)entry[0] : ROLE_NONE;
        if (role == ROLE_NAME)
            allow(rules, entry + 1, MAY_READ_FILE);
        else if (role >= ROLE_BELOW || role == ROLE_TOP)
            allow(rules, entry[1] != 0 ? entry + 1 : "/", MAY_READ_FILE | MAY_READ_DIR);
    }
}

#define ATTRIBUTES(name, parameters, ...)                                                          \
    PUBLIC ssize_t name parameters {                                                               \
        return hidden(AT_FDCWD, path, SIGHT_ABOVE) ? -1 : NEXT(name)(path, __VA_ARGS__);           \
    }
ATTRIBUTES(getxattr, (const char *path, const char *name, void *value, size_t size), name, value, size)
ATTRIBUTES(lgetxattr, (const char *path, const char *name, void *value, size_t size), name, value, size)
ATTRIBUTES(listxattr, (const char *path, char *names, size_t size), names, size)
ATTRIBUTES(llistxattr, (const char *path, char *names, size_t size), names, size)
