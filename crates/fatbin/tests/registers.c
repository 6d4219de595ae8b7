/* Registers two bundles of device code as clang's output does, and prints every entry of each with
   a sum of its bytes. Values around the bundles, and pointers to them, show that nothing moved. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Without RDC, nobody else sees the bundles. */
#ifdef RDC
#define VISIBLE "default"
__asm__(".globl first, second\n");
#else
#define VISIBLE "hidden"
#endif

__asm__(".section .hip_fatbin,\"a\",@progbits\n"
        ".p2align 12\n"
        "first:\n.incbin \"" FIRST "\"\n"
        ".p2align 12\n"
        "second:\n.incbin \"" SECOND "\"\n"
        ".text\n");
extern const unsigned char first[] __attribute__((visibility(VISIBLE)));
extern const unsigned char second[] __attribute__((visibility(VISIBLE)));

struct wrapper { uint32_t magic, version; const unsigned char *bundle; void *reserved; };
__attribute__((section(".hipFatBinSegment"), used))
struct wrapper wrappers[] = { { 0x48495046, 1, second, 0 }, { 0x48495046, 1, first, 0 } };

int written = 7, *const pointer = &written;
int zeroed[5000];

static uint64_t number(const unsigned char *at) { uint64_t it; memcpy(&it, at, 8); return it; }

int show(void) {
    for (int index = 0; index < 2; index++) {
        const unsigned char *bundle = wrappers[index].bundle, *at = bundle + 32;
        if (!memcmp(bundle, "CCOB", 4)) {
            printf("%d compressed\n", index);
            continue;
        }
        for (uint64_t left = number(bundle + 24); left; left--) {
            uint64_t offset = number(at), size = number(at + 8), name = number(at + 16), sum = 0;
            for (uint64_t byte = 0; byte < size; byte++) sum = sum * 31 + bundle[offset + byte];
            printf("%d %.*s %llu %llx\n", index, (int)name, at + 24, (unsigned long long)size,
                   (unsigned long long)sum);
            at += 24 + name;
        }
    }
    for (int index = 0; index < 5000; index++) written += zeroed[index];
    return *pointer != 7;
}

#ifndef LIBRARY
int main(void) { return show(); }
#endif
