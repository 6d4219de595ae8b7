/*
 * Eight threads want the same kernels at the same time: each is compiled once, everybody gets its
 * bytes, and each thread has its own last error.
 *
 *   threads OBJECT     OBJECT holds what the compiler gives, but for its last byte
 */
#include <gfxpack_runtime.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, KERNELS = 40 };

static gfxpack_cache *cache;
static uint8_t object[4096];
static size_t object_size;
static atomic_int compiled_times[KERNELS];
static atomic_int wrong;

static int32_t compile(void *user_data, const char *name, const char *args,
                       gfxpack_compiled *compiled) {
    uint8_t mine[sizeof object];
    int number = *(int *)user_data;
    (void)name;
    (void)args;
    atomic_fetch_add(&compiled_times[number], 1);
    memcpy(mine, object, object_size);
    mine[object_size - 1] = (uint8_t)number;
    gfxpack_compiled_set(compiled, mine, object_size);
    return 0;
}

static int32_t fails(void *user_data, const char *name, const char *args,
                     gfxpack_compiled *compiled) {
    (void)name;
    (void)args;
    gfxpack_compiled_fail(compiled, user_data);
    return 1;
}

static void *work(void *data) {
    int thread = (int)(intptr_t)data, step;
    char words[64], said[128];
    gfxpack_lookup *lookup = NULL;
    /* Of its own, which the others' failures must not touch. */
    snprintf(words, sizeof words, "thread %d", thread);
    snprintf(said, sizeof said, "failed to compile `f%d.o`: thread %d", thread, thread);
    {
        char name[32];
        snprintf(name, sizeof name, "f%d.o", thread);
        if (gfxpack_get_or_compile(cache, name, "x", fails, words, &lookup) !=
            GFXPACK_STATUS_COMPILER_FAILED) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    for (step = 0; step < KERNELS; step++) {
        int number = (step + thread * 3) % KERNELS;
        char args[64];
        size_t size = 0;
        const uint8_t *bytes;
        snprintf(args, sizeof args, " -DN=%d -mcpu=gfx906", number);
        if (gfxpack_get_or_compile(cache, "conv.cl.o", args, compile, &number, &lookup) !=
            GFXPACK_STATUS_OK) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        bytes = gfxpack_lookup_data(lookup, &size);
        if (size != object_size || memcmp(bytes, object, size - 1) != 0 ||
            bytes[size - 1] != number || gfxpack_lookup_not_stored(lookup) != NULL) {
            atomic_fetch_add(&wrong, 1);
        }
        gfxpack_lookup_free(lookup);
    }
    if (strcmp(gfxpack_last_error(), said) != 0) {
        atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    gfxpack_options *options = NULL;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    int index;
    if (file == NULL) {
        return 3;
    }
    object_size = fread(object, 1, sizeof object, file);
    fclose(file);
    gfxpack_options_new("gfx906@60", &options);
    if (gfxpack_cache_open(options, &cache) != GFXPACK_STATUS_OK) {
        return 4;
    }
    gfxpack_options_free(options);
    for (index = 0; index < THREADS; index++) {
        pthread_create(&threads[index], NULL, work, (void *)(intptr_t)index);
    }
    for (index = 0; index < THREADS; index++) {
        pthread_join(threads[index], NULL);
    }
    gfxpack_cache_free(cache);
    for (index = 0; index < KERNELS; index++) {
        if (compiled_times[index] != 1) {
            printf("kernel %d was compiled %d times\n", index, compiled_times[index]);
            return 1;
        }
    }
    printf("wrong: %d\n", wrong);
    return wrong != 0;
}
