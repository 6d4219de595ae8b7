/*
 * A process that forks: the child goes on with the cache that it inherited and frees it, and the
 * parent's goes on as if nothing had happened.
 *
 *   fork NAME ARGS OBJECT MORE_ARGS
 */
#define _POSIX_C_SOURCE 200809L
#include <gfxpack_runtime.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int32_t from_file(void *user_data, const char *name, const char *args,
                         gfxpack_compiled *compiled) {
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(user_data, "rb");
    (void)name;
    (void)args;
    if (file == NULL) {
        return 1;
    }
    gfxpack_compiled_set(compiled, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    return 0;
}

static gfxpack_cache *open_cache(void) {
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_options_new("gfx906@60", &options);
    gfxpack_cache_open(options, &cache);
    gfxpack_options_free(options);
    return cache;
}

static int layer(gfxpack_cache *cache, char **key, char *object) {
    gfxpack_lookup *lookup = NULL;
    int found;
    gfxpack_get_or_compile(cache, key[0], key[1], from_file, object, &lookup);
    found = gfxpack_lookup_not_stored(lookup) != NULL ? -1 : (int)gfxpack_lookup_layer(lookup);
    gfxpack_lookup_free(lookup);
    return found;
}

int main(int argc, char **argv) {
    gfxpack_cache *cache = open_cache();
    char *more[2];
    int status = 0;
    pid_t child;
    if (argc != 5) {
        return 3;
    }
    more[0] = argv[1];
    more[1] = argv[4];
    printf("%d", layer(cache, argv + 1, argv[3]));
    /* From the user's kdb, by a connection that is kept. */
    printf(" %d", layer(cache, argv + 1, argv[3]));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        printf(" %d %d", layer(cache, argv + 1, argv[3]), layer(cache, more, argv[3]));
        fflush(stdout);
        gfxpack_cache_free(cache);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        return 4;
    }
    printf(" %d %d\n", layer(cache, argv + 1, argv[3]), layer(cache, more, argv[3]));
    gfxpack_cache_free(cache);
    return 0;
}
