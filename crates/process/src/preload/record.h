/* How a record is written: shared by the files of this library.
 *
 * A record is a file that its reader made, of a fixed size, which every
 * process of a run maps and appends to. What is in it stays in it, however a
 * process ends. `watch/entries.rs` reads it; both are changed together.
 *
 *   head, 64 bytes
 *   paths that may be written, absolute and without links, each ended by a
 *   zero
 *   as many zeros as have entries begin at a multiple of 8
 *   entries, one behind the other, each with its own length; a length of
 *   zero is an entry that somebody began and did not finish
 *
 * Numbers are in the machine's own order.
 */
#ifndef GFXPACK_RECORD_H
#define GFXPACK_RECORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__linux__) && defined(__GLIBC__) && UINTPTR_MAX > 0xffffffffu
#define GFXPACK_WATCHES 1
#else
#define GFXPACK_WATCHES 0
#endif

/* Bytes that hold a path, with what it begins at before it. */
#define MAX_TEXT ((size_t)PATH_MAX * 2)

#define PUBLIC __attribute__((visibility("default")))

#define RECORD_MAGIC 0x68637461772d7867ull /* "gx-watch" */
#define RECORD_VERSION 2u
/* How long a record that nobody made beforehand may become. */
#define RECORD_LIMIT ((uint64_t)16 << 20)

/* What is wanted of a record. */
enum wish {
    WISH_ALL = 1,    /* what drivers and scripts ask of files is told as well */
    WISH_BOUNDS = 2, /* nothing is written but below the paths of a list */
    /* The kernel is asked to hold compilers, assemblers and linkers to that, by
     * Landlock, */
    WISH_LANDLOCK = 4,
    WISH_LANDLOCK_ALL = 8, /* and all others */
    WISH_CUT = 16,         /* what is not used of the file is cut off */
};

/* Why a record does not tell everything. */
enum lack {
    LACK_ROOM = 1,    /* it is full */
    LACK_UNTOLD = 2,  /* something was done that entries have no form for */
    LACK_NAME = 4,    /* a path, or a command line, could not be told */
    LACK_HEAP = 8,    /* a compiler's heap was not this library's alone */
};

struct head {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t lacks;
    /* Bytes of the file. */
    uint64_t limit;
    /* Bytes that are taken, the head's included; beyond the limit, it is full. */
    _Atomic uint64_t used;
    /* Calls that have begun and are not told yet. */
    _Atomic uint32_t pending;
    /* Entries that are whole. */
    _Atomic uint32_t entries;
    uint32_t wishes;
    /* Bytes of the paths that may be written. */
    uint32_t writable;
    uint32_t unused[4];
};

enum kind {
    /* A process: first its program's file, second its arguments, each ended by
     * a zero; argument: its class. */
    KIND_PROGRAM = 1,
    /* A process that another one forked off: argument: the other's number;
     * first the working directory. */
    KIND_FORK,
    /* A directory that relative paths begin at from here on. */
    KIND_DIRECTORY,
    /* A library that is loaded. */
    KIND_LIBRARY,
    /* The end of a process that ended by itself. */
    KIND_END,
    /* A program that a process turns into; followed by its KIND_PROGRAM, or
     * by KIND_STAYED. Argument: the process that it is a copy of, if it was
     * copied by vfork, or its own number. */
    KIND_EXEC,
    KIND_STAYED,
    /* A program that a process started: argument: its number. */
    KIND_SPAWN,
    /* Something that can't be told: first the function's name. */
    KIND_UNTOLD,
    /* A shell that the C library started, whose number it does not tell:
     * first its file; second the line that it was given. */
    KIND_SHELL,

    /* What is asked of a path, in the same order in `entries.rs`. */
    KIND_OPEN = 32, /* argument: flags; second: what its descriptor led to */
    KIND_STAT,
    KIND_LSTAT,
    KIND_ACCESS,   /* argument: mode */
    KIND_READLINK, /* second: what it holds */
    KIND_REALPATH, /* second: what it is */
    KIND_LIST,
    KIND_STATFS,

    /* What is done to a path. */
    KIND_REMOVE = 64,
    KIND_RENAME, /* second: the new name */
    KIND_LINK,   /* first: the new name; second: the old one */
    KIND_MAKE,   /* a directory or a special file */
    KIND_CHANGE, /* its mode, owner, times or length */
    KIND_SYMLINK, /* first: the new name; second: what it holds */
};

enum class {
    CLASS_OTHER = 0,
    CLASS_COMPILER,
    CLASS_ASSEMBLER,
    CLASS_LINKER,
};

struct entry {
    _Atomic uint32_t length;
    uint8_t kind;
    /* Whether `mode` and what follows are those of the file. */
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

/* What an entry says. */
struct event {
    uint8_t kind;
    int error;
    uint32_t argument;
    /* The process, if it is not surely the one that last announced itself. */
    uint32_t pid;
    /* What relative paths begin at. */
    int dir, second_dir;
    const char *first, *second;
    /* Of the second; 0 for all up to a zero. */
    size_t second_length;
    /* A descriptor to say more of, or -1. */
    int file;
    /* What is known of the file otherwise. */
    const struct stat *stat;
};

/* What is given stands for what is usual. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define EVENT(...) (struct event){.dir = AT_FDCWD, .second_dir = AT_FDCWD, .file = -1, __VA_ARGS__}

/* Begins to write what follows into a file; for a process that was forked,
 * whose arguments are given, and NULL to go by the environment. */
void gfxpack_watch(const char *path, int argc, char **argv);

/* Whether what this process asks of files is to be told; it is then to be told
 * before `leave`. */
int enter(void);
/* Likewise for the programs that it starts. */
int enter_start(void);
void leave(void);
/* The head, where only what it lists may be written; else NULL. */
const struct head *bounds(void);
/* What a call that writes is about. */
enum reach {
    REACH_FILE, /* what the path leads to */
    REACH_NAME, /* the name itself, be it a link's */
};
/* Whether a call that writes must not happen; it is told then, and errno set. */
int refused(const struct event *event, enum reach reach);
/* Has the kernel hold this process, and whatever it starts, to the head's
 * lists. */
void restrict_by_kernel(const struct head *head);
/* Whether this process was forked to do one job, and starts no program. */
int is_job(void);
/* Where a descriptor's file lies; its length, 0 where that is not known. */
size_t path_of(int descriptor, char *path, size_t size);
/* This process's number; after vfork, that of the process it is a copy of. */
uint32_t self(void);
/* Writes an entry; keeps errno. */
void put(const struct event *event);
void lack(enum lack lack);

/* The system's own function, past those of this library. */
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

/* The system call, past this library's `syscall`. */
long raw(long number, long a, long b, long c, long d, long e, long f);
#define RAW(number, a, b, c, d, e) raw(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#endif
