/* The format of a record, and functions shared by the files of this library.
 *
 * A record is a file of fixed size, created by its reader, which every process
 * of a run maps and appends to. Its content survives however a process ends.
 * `watch/entries.rs` reads it and must be changed together with this file.
 *
 *   head, 40 bytes
 *   paths that may be written, absolute and without links, each ended by a
 *   zero
 *   zeros up to a multiple of 8
 *   what compilers see, in the form that `visible.c` describes
 *   zeros up to a multiple of 8
 *   entries, one after the other, each with its own length; a length of zero
 *   is an entry that was begun and not finished
 *
 * Numbers are in the machine's own byte order.
 */
#ifndef GFXPACK_RECORD_H
#define GFXPACK_RECORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Room for a path with the directory that it is relative to. */
#define MAX_TEXT ((size_t)PATH_MAX * 2)

#define PUBLIC __attribute__((visibility("default")))

#define RECORD_MAGIC 0x68637461772d7867ull /* "gx-watch" */

/* Options of a record. */
enum wish {
    WISH_ALL = 1,    /* file accesses are recorded */
    WISH_BOUNDS = 2, /* only paths of a list, and below them, may be written */
    /* Landlock confines compilers, assemblers and linkers to these paths */
    WISH_LANDLOCK = 4,
    WISH_VISIBLE = 8, /* compilers, assemblers and linkers see only what a list names */
};

/* Why accesses may be missing in a record. */
enum lack {
    LACK_ROOM = 1,    /* it is full */
    LACK_UNTOLD = 2,  /* an operation that entries can't represent */
    LACK_NAME = 4,    /* a path or a command line could not be recorded */
    LACK_HEAP = 8,    /* a compiler also used another heap than this library's */
};

struct head {
    uint64_t magic;
    /* The size of the file in bytes. */
    uint64_t limit;
    /* Used bytes, including the head. If they exceed the limit, the record is full. */
    _Atomic uint64_t used;
    _Atomic uint32_t lacks;
    uint32_t wishes;
    /* The length of the list of writable paths. */
    uint32_t writable;
    /* The length of the list of what compilers see. */
    uint32_t visible;
};

enum kind {
    /* A process. First: its program's file; second: its arguments, each ended by a zero;
     * argument: whether it is a compiler, an assembler or a linker. */
    KIND_PROGRAM = 1,
    /* A forked process. Argument: the parent's number; first: the working directory. */
    KIND_FORK,
    /* A new working directory. */
    KIND_DIRECTORY,
    /* A loaded library. */
    KIND_LIBRARY,
    /* A process ended by itself. */
    KIND_END,
    /* A process executes a program; followed by its KIND_PROGRAM, or by KIND_STAYED. Argument:
     * the parent's number if the process was made by vfork, else its own. */
    KIND_EXEC,
    KIND_STAYED,
    /* A process started a program. Argument: the new process's number. */
    KIND_SPAWN,
    /* An operation that can't be represented. First: the function's name. */
    KIND_UNTOLD,
    /* A shell that the C library started; its number is not known. First: its file; second: its
     * command line. */
    KIND_SHELL,

    /* Lookups of a path, in the same order as in `entries.rs`. */
    KIND_OPEN = 32, /* argument: flags; second: the path of its descriptor */
    KIND_STAT,
    KIND_LSTAT,
    KIND_ACCESS,   /* argument: mode */
    KIND_READLINK, /* second: the target */
    KIND_REALPATH, /* second: the path without links */
    KIND_LIST,
    KIND_STATFS,

    /* A change of a path: it is made, removed or renamed, or its mode, owner, times or length. */
    KIND_CHANGE = 64,
};

struct entry {
    _Atomic uint32_t length;
    uint8_t kind;
    /* Whether `mode` and the fields from `device` on describe the file. */
    uint8_t has_file;
    uint16_t error;
    uint32_t pid;
    uint32_t argument;
    uint32_t mode;
    uint32_t first, second;
    uint32_t unused;
    uint64_t device, inode, size;
    int64_t modified, changed;
};

/* The content of an entry. */
struct event {
    uint8_t kind;
    int error;
    uint32_t argument;
    /* The process, if it may not be the one that announced itself last. */
    uint32_t pid;
    /* The directory that a relative path starts at. */
    int dir;
    const char *first, *second;
    /* The length of the second; 0 if it ends with a zero. */
    size_t second_length;
    /* A descriptor of the file to describe, or -1. */
    int file;
    /* The state of the file, if known otherwise. */
    const struct stat *stat;
};

/* Given fields override the defaults. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define EVENT(...) (struct event){.dir = AT_FDCWD, .file = -1, __VA_ARGS__}

/* Makes a forked process allocate no memory next to its parent's. Pages that both write to would
 * be copied, and addresses would depend on what the parent did before. */
void gfxpack_heap_apart(void);
/* Whether a block came from the C library because there was no room, as under a limit of
 * addresses or data. The compiler's output may then differ from run to run. */
int gfxpack_heap_was_short(void);
/* Called before the first job is forked. Returns whether the program is linked with LLVM's
 * shared library. */
int gfxpack_start_llvm(void);

/* Starts recording into a file, for a forked process with the given arguments. With NULL, the
 * environment decides. */
void gfxpack_watch(const char *path, int argc, char **argv);

/* Whether this process's file accesses are recorded. An entry is written before the program gets the
 * result. */
int tells(void);
/* The same for operations that no entry can represent, which are also recorded of compilers. */
int tells_untold(void);
/* The same for programs that it starts. */
int tells_starts(void);
/* The head, if writing is restricted to its list; else NULL. */
const struct head *bounds(void);
/* What a call writes to. */
enum reach {
    REACH_FILE, /* what the path leads to */
    REACH_NAME, /* the name itself, be it a link's */
};
/* Whether a call that writes must be refused. If so, it is recorded and errno is set. */
int refused(const struct event *event, enum reach reach);
/* Whether a compiler must not read a file, which has no end: a device or a named pipe. If so, errno
 * is set. */
int is_endless(const struct event *event);
/* Confines this process, and everything that it starts, to the head's lists by Landlock. */
void restrict_by_kernel(const struct head *head);
/* Adds a path to Landlock's rules. */
void allow(int rules, const char *path, uint64_t allowed);
/* Source: Linux, include/uapi/linux/landlock.h. */
#define MAY_READ_FILE (1ull << 2)
#define MAY_READ_DIR (1ull << 3)

/* The head, if this process sees only what its list names; else NULL. */
const struct head *sees_list(void);
/* What may be done with a path, each with what is before it. */
enum sight {
    SIGHT_NONE,
    SIGHT_ABOVE, /* asked for its state, opened with O_PATH: a directory above what is visible */
    SIGHT_NAME,  /* read, if it is a file */
    SIGHT_ALL,   /* listed, if it is a directory */
};
enum sight see(int dir, const char *path);
/* Whether a path is to be less visible than that. If so, errno is set. */
int hidden(int dir, const char *path, enum sight least);
/* Adds all that is visible to Landlock's rules. */
void allow_visible(const struct head *head, int rules);
/* Whether this process runs a compiler, an assembler or a linker. */
int is_compiler(void);
/* Whether this process was forked for one job, and may start no program. */
int is_job(void);
/* The path of a descriptor's file. Returns its length, or 0 if not known. */
size_t path_of(int descriptor, char *path, size_t size);
/* This process's number; after vfork, that of the parent. */
uint32_t self(void);
/* Writes an entry; preserves errno. */
void put(const struct event *event);
void lack(enum lack lack);

/* The system's function, bypassing those of this library. */
void *next_of(const char *name);
#define NEXT(name)                                                                                 \
    ({                                                                                             \
        static _Atomic(void *) found;                                                              \
        void *at = atomic_load_explicit(&found, memory_order_relaxed);                             \
        if (at == NULL) {                                                                          \
            at = next_of(#name);                                                                   \
            atomic_store_explicit(&found, at, memory_order_relaxed);                               \
        }                                                                                          \
        (__typeof__(&name))at;                                                                     \
    })

/* The system call, bypassing this library's `syscall`. */
long raw(long number, long a, long b, long c, long d, long e, long f);
#define RAW(number, a, b, c, d, e) raw(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#endif
