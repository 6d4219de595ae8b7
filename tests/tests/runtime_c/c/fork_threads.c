/*
 * A process that forks while its other threads look kernels up: every child finds them too, by the
 * cache that it inherited.
 *
 *   fork_threads NAME INSTALLED_ARGS USERS_ARGS
 */
#define _POSIX_C_SOURCE 200809L
#include <gfxpack_runtime.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, FORKS = 30, PATIENCE = 120 };

static gfxpack_cache *cache;
static char **key;
static atomic_int done;

/* How many of the two kernels are found where they are. */
static int find(void) {
    int found = 0, number;
    for (number = 0; number < 2; number++) {
        gfxpack_lookup *lookup = NULL;
        gfxpack_layer expected = number == 0 ? GFXPACK_LAYER_SYSTEM : GFXPACK_LAYER_USER;
        gfxpack_get(cache, key[0], key[1 + number], &lookup);
        found += gfxpack_lookup_layer(lookup) == expected;
        gfxpack_lookup_free(lookup);
    }
    return found;
}

static void *work(void *unused) {
    (void)unused;
    while (!atomic_load(&done)) {
        find();
    }
    return NULL;
}

int main(int argc, char **argv) {
    gfxpack_options *options = NULL;
    pthread_t threads[THREADS];
    int index, found = 0;
    if (argc != 4) {
        return 3;
    }
    key = argv + 1;
    gfxpack_options_new("gfx906@60", &options);
    if (gfxpack_cache_open(options, &cache) != GFXPACK_STATUS_OK) {
        return 4;
    }
    gfxpack_options_free(options);
    for (index = 0; index < THREADS; index++) {
        pthread_create(&threads[index], NULL, work, NULL);
    }
    for (index = 0; index < FORKS; index++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(PATIENCE);
            index = find();
            gfxpack_cache_free(cache);
            _exit(index);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
            fprintf(stderr, "child %d: %#x\n", index, (unsigned)status);
        } else {
            found += WEXITSTATUS(status);
        }
    }
    atomic_store(&done, 1);
    for (index = 0; index < THREADS; index++) {
        pthread_join(threads[index], NULL);
    }
    gfxpack_cache_free(cache);
    printf("found: %d\n", found);
    return 0;
}
