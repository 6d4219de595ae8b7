/* A program's code in huge pages, for a program that forks thousands of times:
 * of code that lies in a file, every process maps the pages that it runs
 * through for itself and gives them back at its end, some microseconds for
 * every sixteen of them. Huge pages of the program's own are handed down whole.
 *
 * That takes as much memory as the code, once, and the time to copy it, which
 * some hundred small jobs make up for.
 */
#define _GNU_SOURCE
#include <stddef.h>

/* Before the first job is forked, and with no other thread there; gives the
 * bytes of memory that it takes, which all jobs share. */
size_t gfxpack_code_in_huge_pages(void);

#ifdef __linux__

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uintptr_t)2 << 20)
/* Nothing smaller is worth it. */
#define SMALLEST (8 * HUGE_PAGE)
#define MOST 16

struct range {
    uintptr_t start, end;
};

/* The number at *text in base 10 or 16, which it passes. sscanf and strtoul
 * would tie this to a newer C library than other programs have. */
static uintptr_t number(const char **text, unsigned base) {
    uintptr_t value = 0;
    for (;; ++*text) {
        char c = **text;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

/* Reads the addresses that a line of maps or smaps begins with; whether it is
 * such a line. */
static int read_range(const char **line, struct range *range) {
    range->start = number(line, 16);
    if (*(*line)++ != '-')
        return 0;
    range->end = number(line, 16);
    return *(*line)++ == ' ';
}

/* The mappings of /proc/self/maps that are large, from files, and code; how
 * many there are. */
static int find_code(struct range found[MOST]) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return 0;
    int count = 0;
    char line[512];
    while (count < MOST && fgets(line, sizeof line, maps) != NULL) {
        struct range range;
        const char *rest = line;
        if (!read_range(&rest, &range) || strncmp(rest, "r-xp ", 5) != 0 || strchr(rest, '/') == NULL)
            continue;
        struct range inside = {
            (range.start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, range.end / HUGE_PAGE * HUGE_PAGE};
        if (inside.start < inside.end && inside.end - inside.start >= SMALLEST)
            found[count++] = inside;
    }
    fclose(maps);
    return count;
}

/* Whether nearly all of a range came to lie in huge pages: a fork copies every
 * entry of a small one. */
static int is_huge(struct range range) {
    static const char name[] = "AnonHugePages:";
    FILE *maps = fopen("/proc/self/smaps", "re");
    if (maps == NULL)
        return 0;
    uintptr_t huge = 0;
    int inside = 0;
    char line[512];
    while (fgets(line, sizeof line, maps) != NULL) {
        struct range mapped;
        const char *rest = line;
        if (read_range(&rest, &mapped)) {
            inside = mapped.start <= range.start && range.end <= mapped.end;
        } else if (inside && strncmp(line, name, sizeof name - 1) == 0) {
            rest = line + sizeof name - 1;
            rest += strspn(rest, " ");
            huge = number(&rest, 10) << 10;
        }
    }
    fclose(maps);
    return huge >= (range.end - range.start) / 10 * 9;
}

/* Gives how many bytes it moved. */
static size_t move(struct range code) {
    size_t size = code.end - code.start;
    char *room = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 0;
    char *copy = (char *)(((uintptr_t)room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    struct range copied = {(uintptr_t)copy, (uintptr_t)copy + size};
    size_t moved = 0;
    if (madvise(copy, size, MADV_HUGEPAGE) == 0) {
        memcpy(copy, (const void *)code.start, size);
        __builtin___clear_cache(copy, copy + size);
        /* Nothing of it runs meanwhile. */
        if (is_huge(copied) && mprotect(copy, size, PROT_READ | PROT_EXEC) == 0
            && mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)code.start) != MAP_FAILED)
            moved = size;
    }
    /* Whatever is left of it, before, behind, or all. */
    munmap(room, size + HUGE_PAGE);
    return moved;
}

size_t gfxpack_code_in_huge_pages(void) {
    struct range found[MOST];
    int count = find_code(found);
    size_t moved = 0;
    for (int i = 0; i < count; i++)
        moved += move(found[i]);
    return moved;
}

#else

size_t gfxpack_code_in_huge_pages(void) {
    return 0;
}

#endif
