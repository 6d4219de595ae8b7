/* A heap for compilers, with two purposes.
 *
 * The first is that the order of addresses is the same in every run. LLVM keeps
 * instructions in blocks of 4096 bytes and its doubles, and some of its passes
 * visit sets of them in the order of a hash of their addresses. For two
 * instructions of equal weight, the address of the heap then decides which comes
 * first, and so does everything allocated before, a path's length for example.
 * Here every such block, a slab, begins at a multiple of SPAN, whatever was
 * allocated before. Addresses of different runs differ only in bits that the
 * hash of a small set does not use. Larger sets depend on the slab's number,
 * which is the same for the same command. LLVM from release 16 on asks for
 * aligned slabs; all slabs have that alignment.
 *
 * Source: llvm-project, llvm/include/llvm/Support/Allocator.h,
 * BumpPtrAllocatorImpl; llvm/include/llvm/ADT/DenseMapInfo.h, getHashValue of
 * pointers, `(address >> 4) ^ (address >> 9)`.
 *
 * The second is speed. A compiler allocates millions of small blocks within a
 * second or two and then ends. Here blocks of one size lie beside each other,
 * freed ones are found without a search, and they are never merged.
 *
 * Larger blocks, and blocks with a larger alignment, come from the C library.
 */
#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sizes in steps of 16 bytes up to the first limit, then in four steps per doubling up to the
 * second. */
#define FINE ((size_t)1024)
#define COARSE ((size_t)32 << 10)
#define FINE_CLASSES 64
#define SLAB_CLASS (FINE_CLASSES + 5 * 4 + 1)
#define CLASSES (SLAB_CLASS + 9)
/* Slabs have 4 KiB to 1 MiB. */
#define SLAB ((size_t)4096)
#define LARGEST_SLAB (SLAB << (CLASSES - SLAB_CLASS - 1))

#define SPAN ((size_t)64 << 10)
#define ARENA ((size_t)64 << 30)
/* A hash uses 32 bits of an address. */
#define ALIGNMENT ((size_t)4 << 30)
/* This much memory is made accessible at once. */
#define STEP ((size_t)32 << 20)
/* The alignment of every block. */
#define ALIGNED ((size_t)16)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
/* Since glibc 2.32. */
extern char __libc_single_threaded __attribute__((weak));

static atomic_flag busy = ATOMIC_FLAG_INIT;
static char *arena;
static int reserved;
static atomic_int was_short;
/* The halves of the arena: one for blocks that leave most of a span empty, and one for those
 * that fill it, so that neither affects the addresses of the other. */
static struct half {
    char *fresh, *usable, *end;
} sparse, dense;
/* The class of the blocks in each span. */
static unsigned char classes[ARENA / SPAN];
static struct class {
    /* Freed blocks, each with the address of the next one in it. */
    void *returned;
    /* Memory that was never allocated. */
    char *fresh, *end;
    size_t size;
} kinds[CLASSES];

static int alone(void) {
    return &__libc_single_threaded != NULL && __libc_single_threaded;
}

/* Returns whether it locked, which is not necessary with a single thread. */
static int lock(void) {
    if (alone())
        return 0;
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        sched_yield();
    return 1;
}

static void unlock(int locked) {
    if (locked)
        atomic_flag_clear_explicit(&busy, memory_order_release);
}

/* A forked process inherits locks that other threads hold, but not these threads. */
static int forking;

static void before_fork(void) {
    forking = lock();
}

static void after_fork(void) {
    unlock(forking);
}

__attribute__((constructor)) static void mind_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Reserves addresses only. If that fails, all blocks come from the C library. */
static void reserve(void) {
    reserved = 1;
    char *all = mmap(NULL, ARENA + ALIGNMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return;
    arena = (char *)(((uintptr_t)all + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    char *middle = arena + ARENA / 2;
    sparse = (struct half){arena, arena, middle};
    dense = (struct half){middle, middle, arena + ARENA};
    /* With huge pages, a few kilobytes would take a whole page. */
    madvise(arena, ARENA / 2, MADV_NOHUGEPAGE);
    for (unsigned i = 1; i <= FINE_CLASSES; i++)
        kinds[i].size = 16 * (size_t)i;
    for (unsigned i = FINE_CLASSES + 1; i < SLAB_CLASS; i++) {
        size_t doubling = FINE << ((i - FINE_CLASSES - 1) / 4);
        kinds[i].size = doubling + doubling / 4 * ((i - FINE_CLASSES - 1) % 4 + 1);
    }
    for (unsigned i = SLAB_CLASS; i < CLASSES; i++)
        kinds[i].size = SLAB << (i - SLAB_CLASS);
}

/* Consecutive spans for blocks of the class; NULL if there are none. */
static char *spans_for(unsigned class, size_t size, struct half *half) {
    while (half->fresh + size > half->usable && half->usable < half->end) {
        if (mprotect(half->usable, STEP, PROT_READ | PROT_WRITE) != 0)
            break;
        half->usable += STEP;
    }
    if (half->fresh + size > half->usable)
        return NULL;
    char *spans = half->fresh;
    half->fresh += size;
    memset(&classes[(size_t)(spans - arena) / SPAN], (int)class, size / SPAN);
    return spans;
}

static void *fresh_slab(unsigned class) {
    size_t size = (kinds[class].size + SPAN - 1) / SPAN * SPAN;
    return spans_for(class, size, kinds[class].size * 2 >= SPAN ? &dense : &sparse);
}

static void *fresh_block(unsigned class) {
    struct class *kind = &kinds[class];
    if ((size_t)(kind->end - kind->fresh) < kind->size) {
        size_t size = kind->size <= SLAB ? SPAN : 2 * SPAN;
        char *spans = spans_for(class, size, &dense);
        if (spans == NULL)
            return NULL;
        kind->fresh = spans;
        kind->end = spans + size;
    }
    char *block = kind->fresh;
    kind->fresh += kind->size;
    return block;
}

static void *take(unsigned class) {
    int locked = lock();
    struct class *kind = &kinds[class];
    void *block = kind->returned;
    if (block != NULL) {
        kind->returned = *(void **)block;
    } else {
        if (!reserved)
            reserve();
        if (arena != NULL)
            block = class < SLAB_CLASS ? fresh_block(class) : fresh_slab(class);
        if (block == NULL)
            atomic_store_explicit(&was_short, 1, memory_order_relaxed);
    }
    unlock(locked);
    return block;
}

/* The class of blocks of a size; 0 if there is none. */
static unsigned class_of(size_t size) {
    if (size >= SLAB && size <= LARGEST_SLAB && (size & (size - 1)) == 0)
        return SLAB_CLASS + (unsigned)__builtin_ctzl(size / SLAB);
    if (size <= FINE)
        return size == 0 ? 1 : (unsigned)((size + 15) / 16);
    if (size > COARSE)
        return 0;
    unsigned doublings = (unsigned)(__builtin_clzl(FINE) - __builtin_clzl(size - 1));
    size_t doubling = FINE << doublings;
    return FINE_CLASSES + 1 + doublings * 4 + (unsigned)((size - 1 - doubling) / (doubling / 4));
}

/* Addresses below the arena wrap around and are out of range like others. */
static int is_ours(const void *block) {
    return arena != NULL && (uintptr_t)block - (uintptr_t)arena < ARENA;
}

static struct class *kind_of(const void *block) {
    return &kinds[classes[(size_t)((const char *)block - arena) / SPAN]];
}

PUBLIC void *malloc(size_t size) {
    unsigned class = class_of(size);
    void *block = class != 0 ? take(class) : NULL;
    return block != NULL ? block : __libc_malloc(size);
}

PUBLIC void *calloc(size_t count, size_t each) {
    size_t size;
    unsigned class = __builtin_mul_overflow(count, each, &size) ? 0 : class_of(size);
    void *block = class != 0 && class < SLAB_CLASS ? take(class) : NULL;
    return block != NULL ? memset(block, 0, size) : __libc_calloc(count, each);
}

PUBLIC void *memalign(size_t alignment, size_t size) {
    if (alignment <= ALIGNED)
        return malloc(size);
    unsigned class = class_of(size);
    void *block = class >= SLAB_CLASS && alignment <= SPAN ? take(class) : NULL;
    return block != NULL ? block : __libc_memalign(alignment, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

PUBLIC int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int before = errno;
    void *made = memalign(alignment, size);
    errno = before;
    if (made == NULL)
        return ENOMEM;
    *block = made;
    return 0;
}

PUBLIC void free(void *block) {
    if (!is_ours(block)) {
        __libc_free(block);
        return;
    }
    struct class *kind = kind_of(block);
    int locked = lock();
    *(void **)block = kind->returned;
    kind->returned = block;
    unlock(locked);
}

PUBLIC void *realloc(void *block, size_t size) {
    if (block == NULL)
        return malloc(size);
    if (!is_ours(block))
        return __libc_realloc(block, size);
    size_t has = kind_of(block)->size;
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

void gfxpack_heap_apart(void) {
    if (arena == NULL)
        return;
    for (unsigned i = 0; i < CLASSES; i++) {
        kinds[i].returned = NULL;
        kinds[i].fresh = kinds[i].end = NULL;
    }
}

int gfxpack_heap_was_short(void) {
    return atomic_load_explicit(&was_short, memory_order_relaxed);
}

PUBLIC size_t malloc_usable_size(void *block) {
    if (is_ours(block))
        return kind_of(block)->size;
    size_t (*next)(void *) = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next != NULL ? next(block) : 0;
}
