/* Places the blocks in which a compiler lays its instructions out so that
 * what it does with their addresses comes out the same in every run.
 *
 * LLVM keeps instructions in blocks of 4096 bytes and its doubles, and some
 * of its passes go through sets of them in the order of a hash of their
 * addresses: with two instructions of equal weight, where the heap lies then
 * decides which comes first, and so does whatever lengthened it before, a
 * path's length for one. Here every such block begins at a multiple of
 * SPAN, whatever was allocated before, and addresses differ between runs and
 * ways of running in bits alone that no small set's hash looks at. Larger
 * sets see the block's number, which repeats with the command.
 *
 * Source: llvm-project, llvm/include/llvm/Support/Allocator.h,
 * BumpPtrAllocatorImpl; llvm/include/llvm/ADT/DenseMapInfo.h, getHashValue of
 * pointers, `(address >> 4) ^ (address >> 9)`.
 *
 * All other blocks are the C library's own affair.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__GLIBC__) && UINTPTR_MAX > 0xffffffffu

#define SMALLEST ((size_t)4096)
#define KINDS 9 /* 4 KiB to 1 MiB */
/* The first kind that fills half a span or more, and so is worth huge pages. */
#define DENSE 3
#define SPAN ((size_t)64 << 10)
#define ARENA ((size_t)64 << 30)
/* A hash looks at 32 bits. */
#define ALIGNMENT ((size_t)4 << 30)
/* So much is made usable at once. */
#define STEP ((size_t)32 << 20)
#define PUBLIC __attribute__((visibility("default")))

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);

static atomic_flag busy = ATOMIC_FLAG_INIT;
static char *arena;
/* Its halves: one for blocks that leave most of their spans empty, one for
 * those that fill them. */
static struct half {
    char *fresh, *usable, *end;
} halves[2];
static int reserved;
static void *returned[KINDS];
/* By span: what kind of block begins there. */
static unsigned char kinds[ARENA / SPAN];

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        ;
}

static void unlock(void) {
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

/* Whether the C library was asked for huge pages. */
static int large_steps(void) {
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables != NULL && strstr(tunables, "malloc.hugetlb=1") != NULL;
}

/* Addresses alone; without them, there are no blocks of ours. */
static void reserve(void) {
    reserved = 1;
    char *all = mmap(NULL, ARENA + ALIGNMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return;
    uintptr_t start = ((uintptr_t)all + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    arena = (char *)start;
    for (int i = 0; i < 2; i++) {
        char *begin = arena + (size_t)i * (ARENA / 2);
        halves[i] = (struct half){begin, begin, begin + ARENA / 2};
    }
    if (large_steps())
        madvise(arena + ARENA / 2, ARENA / 2, MADV_HUGEPAGE);
}

static void *take(unsigned kind) {
    lock();
    if (!reserved)
        reserve();
    char *block = returned[kind];
    if (block != NULL) {
        memcpy(&returned[kind], block, sizeof block);
    } else if (arena != NULL) {
        struct half *half = &halves[kind >= DENSE];
        size_t size = ((SMALLEST << kind) + SPAN - 1) / SPAN * SPAN;
        while (half->fresh + size > half->usable && half->usable < half->end) {
            if (mprotect(half->usable, STEP, PROT_READ | PROT_WRITE) != 0)
                break;
            half->usable += STEP;
        }
        if (half->fresh + size <= half->usable) {
            block = half->fresh;
            half->fresh += size;
            kinds[(size_t)(block - arena) / SPAN] = (unsigned char)kind;
        }
    }
    unlock();
    return block;
}

/* Addresses below the arena wrap around and are as far off as others. */
static int is_ours(const void *block) {
    return arena != NULL && (uintptr_t)block - (uintptr_t)arena < ARENA;
}

static unsigned kind_of(const void *block) {
    return kinds[(size_t)((const char *)block - arena) / SPAN];
}

PUBLIC void *malloc(size_t size) {
    if (size >= SMALLEST && size < SMALLEST << KINDS && (size & (size - 1)) == 0) {
        void *block = take((unsigned)__builtin_ctzl(size / SMALLEST));
        if (block != NULL)
            return block;
    }
    return __libc_malloc(size);
}

PUBLIC void free(void *block) {
    if (!is_ours(block)) {
        __libc_free(block);
        return;
    }
    unsigned kind = kind_of(block);
    lock();
    memcpy(block, &returned[kind], sizeof block);
    returned[kind] = block;
    unlock();
}

PUBLIC void *realloc(void *block, size_t size) {
    if (!is_ours(block))
        return __libc_realloc(block, size);
    size_t has = SMALLEST << kind_of(block);
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (size <= has)
        return block;
    void *larger = malloc(size);
    if (larger != NULL) {
        memcpy(larger, block, has);
        free(block);
    }
    return larger;
}

PUBLIC size_t malloc_usable_size(void *block) {
    if (is_ours(block))
        return SMALLEST << kind_of(block);
    size_t (*next)(void *) = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next != NULL ? next(block) : 0;
}

#endif
