/* Writes what a process is, and its file accesses, into a record.
 *
 * Any number of threads, processes and signal handlers append to a record with
 * atomic operations alone: there is no lock to wait for, and nothing to flush.
 * An entry is complete once its length is written.
 */
#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/stat.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes no longer command lines. */
#define MAX_ARGUMENTS ((size_t)2 << 20)

/* If this is NULL, nothing is written. */
static struct head *record;
static enum { UNDECIDED, OFF, ON } state;
static int is_compiling;
static pid_t own_pid;
static int job;
/* The total number of loaded libraries at the last time that they were recorded. */
static unsigned long long libraries;

void *next_of(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

extern long syscall(long, ...);

long raw(long number, long a, long b, long c, long d, long e, long f) {
    return NEXT(syscall)(number, a, b, c, d, e, f);
}

void lack(enum lack lack) {
    if (record != NULL)
        atomic_fetch_or(&record->lacks, (uint32_t)lack);
}

/* Room for an entry with this much text; NULL if there is none. */
static struct entry *room(size_t text) {
    size_t length = (sizeof(struct entry) + text + 7) / 8 * 8;
    uint64_t at = atomic_fetch_add(&record->used, length);
    if (length > record->limit || at > record->limit - length) {
        lack(LACK_ROOM);
        return NULL;
    }
    return (struct entry *)((char *)record + at);
}

static void finish(struct entry *entry) {
    uint32_t length = (uint32_t)((sizeof *entry + entry->first + entry->second + 7) / 8 * 8);
    atomic_store_explicit(&entry->length, length, memory_order_release);
}

size_t path_of(int descriptor, char *path, size_t size) {
    char link[32] = "/proc/self/fd/";
    size_t at = strlen(link);
    char digits[16];
    size_t count = 0;
    unsigned number = (unsigned)descriptor;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        link[at++] = digits[--count];
    link[at] = 0;
    long length = RAW(SYS_readlinkat, AT_FDCWD, link, path, size, 0);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* A path as given, preceded by the directory that it is relative to. */
static const char *place(int dir, const char *path, char *space, size_t size) {
    if (path == NULL || path[0] == '/' || dir == AT_FDCWD)
        return path;
    size_t length = path_of(dir, space, size);
    size_t rest = strlen(path);
    if (length == 0 || length + 1 + rest >= size) {
        lack(LACK_NAME);
        return path;
    }
    if (rest > 0) {
        space[length++] = '/';
        memcpy(space + length, path, rest);
    }
    space[length + rest] = 0;
    return space;
}

static int64_t nanoseconds(int64_t seconds, int64_t more) {
    return seconds * 1000000000 + more;
}

static void put_file(struct entry *entry, const struct event *event) {
    if (event->stat != NULL) {
        const struct stat *file = event->stat;
        entry->has_file = 1;
        entry->mode = (uint32_t)file->st_mode;
        entry->device = file->st_dev;
        entry->inode = file->st_ino;
        entry->size = (uint64_t)file->st_size;
        entry->modified = nanoseconds(file->st_mtim.tv_sec, file->st_mtim.tv_nsec);
        entry->changed = nanoseconds(file->st_ctim.tv_sec, file->st_ctim.tv_nsec);
    } else if (event->file >= 0) {
        struct stat file;
        if (RAW(SYS_newfstatat, event->file, "", &file, AT_EMPTY_PATH, 0) == 0) {
            struct event known = {.stat = &file};
            put_file(entry, &known);
        } else {
            lack(LACK_UNTOLD);
        }
    }
}

void put(const struct event *event) {
    int before = errno;
    char spaces[2][MAX_TEXT];
    /* The system refuses longer paths, whatever exists there. */
    if (event->error == ENAMETOOLONG && event->kind != KIND_REALPATH && event->first != NULL &&
        strlen(event->first) >= PATH_MAX)
        return;
    const char *first = place(event->dir, event->first, spaces[0], sizeof spaces[0]);
    const char *second = event->second;
    size_t first_length = first != NULL ? strlen(first) : 0, second_length = event->second_length;
    if (second_length == 0 && second != NULL)
        second_length = strlen(second);
    if (second == NULL && event->file >= 0 && event->kind == KIND_OPEN) {
        second_length = path_of(event->file, spaces[1], sizeof spaces[1]);
        second = spaces[1];
        if (second_length == 0)
            lack(LACK_NAME);
    }
    /* An entry has no room for longer paths. */
    if (first_length > UINT16_MAX || (second_length > UINT16_MAX && event->kind != KIND_PROGRAM)) {
        lack(LACK_NAME);
        first_length = second_length = 0;
    }
    struct entry *entry = room(first_length + second_length);
    if (entry != NULL) {
        entry->kind = event->kind;
        entry->error = (uint16_t)event->error;
        entry->pid = event->pid != 0 ? event->pid : (uint32_t)own_pid;
        entry->argument = event->argument;
        entry->first = (uint32_t)first_length;
        entry->second = (uint32_t)second_length;
        put_file(entry, event);
        char *text = (char *)(entry + 1);
        if (first_length > 0)
            memcpy(text, first, first_length);
        if (second_length > 0)
            memcpy(text + first_length, second, second_length);
        finish(entry);
    }
    errno = before;
}

static void put_directory(uint8_t kind, uint32_t argument) {
    char path[MAX_TEXT];
    long length = RAW(SYS_getcwd, path, sizeof path, 0, 0, 0);
    if (length <= 0 || path[0] != '/') {
        lack(LACK_NAME);
        return;
    }
    put(&EVENT(.kind = kind, .argument = argument, .first = path));
}

/* The beginning of this library, defined by the linker. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static int put_library(struct dl_phdr_info *library, size_t size, void *count) {
    (void)size;
    *(unsigned long long *)count = library->dlpi_adds;
    int is_own = library->dlpi_addr == (ElfW(Addr))&__ehdr_start;
    /* The program itself has no name; the vDSO is no file. */
    if (library->dlpi_name != NULL && library->dlpi_name[0] == '/' && !is_own)
        put(&EVENT(.kind = KIND_LIBRARY, .first = library->dlpi_name));
    return 0;
}

static int count_libraries(struct dl_phdr_info *library, size_t size, void *count) {
    (void)size;
    *(unsigned long long *)count = library->dlpi_adds;
    return 1;
}

/* Whether a program is a compiler, an assembler or a linker, by its arguments: they name it, or
 * are in a file. */
static int compiles(const char *arguments, size_t length) {
    const char *end = arguments + length;
    const char *zero = memchr(arguments, 0, length);
    const char *second = zero != NULL && zero + 1 < end ? zero + 1 : "";
    if (strcmp(second, "-cc1") == 0 || strcmp(second, "-cc1as") == 0 || second[0] == '@')
        return 1;
    const char *slash = zero != NULL ? strrchr(arguments, '/') : NULL;
    return zero != NULL && strstr(slash != NULL ? slash : arguments, "lld") != NULL;
}

/* Records the program, its directory and its loaded libraries. After that, no file is opened for
 * the record. */
static void announce(const char *arguments, size_t length) {
    char program[MAX_TEXT];
    long named = RAW(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1, 0);
    if (named <= 0) {
        lack(LACK_NAME);
        named = 0;
    }
    program[named] = 0;
    is_compiling = compiles(arguments, length);
    put(&EVENT(.kind = KIND_PROGRAM, .argument = (uint32_t)is_compiling, .first = program, .second = arguments,
               .second_length = length));
    put_directory(KIND_DIRECTORY, 0);
    dl_iterate_phdr(put_library, &libraries);
    if (is_compiling && (record->wishes & WISH_LANDLOCK) != 0)
        restrict_by_kernel(record);
}

static int map(const char *path) {
    int file = (int)RAW(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0, 0);
    if (file < 0)
        return 0;
    struct head head;
    struct head *mapped = MAP_FAILED;
    if (pread(file, &head, sizeof head, 0) == sizeof head && head.magic == RECORD_MAGIC &&
        head.limit >= sizeof head &&
        (uint64_t)head.writable + head.visible <= head.limit - sizeof head)
        mapped = mmap(NULL, head.limit, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return 0;
    record = mapped;
    own_pid = (pid_t)RAW(SYS_getpid, 0, 0, 0, 0, 0);
    return 1;
}

/* Reads this process's arguments from the kernel. */
static void announce_by_kernel(void) {
    char *arguments = mmap(NULL, MAX_ARGUMENTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = (int)RAW(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0, 0);
    size_t length = 0;
    ssize_t count = -1;
    if (arguments != MAP_FAILED && file >= 0)
        while (length < MAX_ARGUMENTS && (count = read(file, arguments + length, MAX_ARGUMENTS - length)) > 0)
            length += (size_t)count;
    if (count != 0 || length == 0 || arguments[length - 1] != 0)
        lack(LACK_NAME);
    if (length > 0 && arguments[length - 1] == 0)
        announce(arguments, length);
    if (file >= 0)
        close(file);
    if (arguments != MAP_FAILED)
        munmap(arguments, MAX_ARGUMENTS);
}

static void begin(void) {
    state = OFF;
    const char *path = getenv("GFXPACK_RECORD");
    int before = errno;
    if (path != NULL && map(path)) {
        announce_by_kernel();
        state = ON;
    }
    errno = before;
}

PUBLIC void gfxpack_watch(const char *path, int argc, char **argv) {
    state = OFF;
    record = NULL;
    if (!map(path))
        return;
    size_t length = 0;
    for (int i = 0; i < argc; i++)
        length += strlen(argv[i]) + 1;
    /* Not a block of the heap, which would change the order of its blocks. */
    char *arguments = mmap(NULL, length + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = arguments;
    if (arguments == MAP_FAILED)
        return;
    for (int i = 0; i < argc; i++)
        at = stpcpy(at, argv[i]) + 1;
    announce(arguments, length);
    munmap(arguments, length + 1);
    job = 1;
    state = ON;
}

int tells_starts(void) {
    if (__builtin_expect(state == UNDECIDED, 0))
        begin();
    return state == ON;
}

int tells(void) {
    return tells_starts() && (record->wishes & WISH_ALL) != 0;
}

int tells_untold(void) {
    return tells() || (tells_starts() && is_compiling);
}

const struct head *bounds(void) {
    return tells_starts() && (record->wishes & WISH_BOUNDS) != 0 ? record : NULL;
}

const struct head *sees_list(void) {
    return tells_starts() && is_compiling && (record->wishes & WISH_VISIBLE) != 0 ? record : NULL;
}

int is_compiler(void) {
    return is_compiling;
}

int is_job(void) {
    return state == ON && job;
}

uint32_t self(void) {
    return (uint32_t)own_pid;
}

/* A forked process uses its own number. */
static void after_fork(void) {
    if (state != ON)
        return;
    uint32_t parent = (uint32_t)own_pid;
    own_pid = (pid_t)RAW(SYS_getpid, 0, 0, 0, 0, 0);
    put_directory(KIND_FORK, parent);
}

__attribute__((constructor)) static void start(void) {
    pthread_atfork(NULL, NULL, after_fork);
    if (state == UNDECIDED)
        begin();
}

/* Records libraries that were loaded since the last time. */
static void put_new_libraries(void) {
    unsigned long long now = libraries;
    dl_iterate_phdr(count_libraries, &now);
    if (now != libraries)
        dl_iterate_phdr(put_library, &libraries);
}

/* A library that is unloaded would not be recorded at the end. */
PUBLIC int dlclose(void *library) {
    if (tells_starts())
        put_new_libraries();
    return NEXT(dlclose)(library);
}

static void end(void) {
    if (state != ON)
        return;
    put_new_libraries();
    if (is_compiling && gfxpack_heap_was_short())
        lack(LACK_HEAP);
    /* After vfork, this is not the end of the parent. */
    put(&EVENT(.kind = KIND_END, .pid = (uint32_t)RAW(SYS_getpid, 0, 0, 0, 0, 0)));
}

/* `exit` calls the system's `_exit`, so its end is recorded here. */
__attribute__((destructor)) static void end_by_return(void) {
    end();
}

PUBLIC void _exit(int status) {
    end();
    for (;;)
        RAW(SYS_exit_group, status, 0, 0, 0, 0);
}

PUBLIC void _Exit(int status) {
    _exit(status);
}

PUBLIC int chdir(const char *path) {
    if (hidden(AT_FDCWD, path, SIGHT_ABOVE))
        return -1;
    int asks = tells();
    int on = asks || tells_starts();
    int done = (int)RAW(SYS_chdir, path, 0, 0, 0, 0);
    if (on) {
        int before = errno;
        /* Whether the directory exists; the path is relative to the previous directory. */
        if (asks)
            put(&EVENT(.kind = KIND_ACCESS, .error = done < 0 ? before : 0, .first = path));
        put_directory(KIND_DIRECTORY, 0);
        errno = before;
    }
    return done;
}

PUBLIC int fchdir(int dir) {
    int on = tells_starts();
    int done = (int)RAW(SYS_fchdir, dir, 0, 0, 0, 0);
    if (on) {
        int before = errno;
        put_directory(KIND_DIRECTORY, 0);
        errno = before;
    }
    return done;
}
