/*
 * Finds a kernel for the first GPU, or for a target that is given:
 *
 *     lookup KERNEL_NAME KERNEL_ARGS [TARGET [COMPILED_FILE]]
 *     lookup conv.cl.o " -DX=1 -mcpu=gfx90a" gfx90a@104 conv.o
 *
 * COMPILED_FILE stands in for a compiler: it is what the kernel was compiled to.
 *
 *     cc lookup.c $(pkg-config --cflags --libs gfxpack-runtime) -o lookup
 */
#include <gfxpack_runtime.h>

#include <stdio.h>
#include <stdlib.h>

/* Where a program would start its compiler. */
static int32_t compile(void *user_data, const char *kernel_name, const char *kernel_args,
                       gfxpack_compiled *compiled) {
    const char *path = user_data;
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    unsigned char *bytes = NULL;
    size_t size = 0, got;
    (void)kernel_args;
    if (file == NULL) {
        gfxpack_compiled_fail(compiled, "there is no compiler in this example");
        return 1;
    }
    do {
        unsigned char *more = realloc(bytes, size + 65536);
        if (more == NULL) {
            free(bytes);
            fclose(file);
            return 2;
        }
        bytes = more;
        got = fread(bytes + size, 1, 65536, file);
        size += got;
    } while (got > 0);
    fclose(file);
    fprintf(stderr, "compiling %s\n", kernel_name);
    gfxpack_compiled_set(compiled, bytes, size); /* It copies. */
    free(bytes);
    return 0;
}

static const char *layer(gfxpack_layer layer) {
    switch (layer) {
    case GFXPACK_LAYER_MEMORY: return "memory";
    case GFXPACK_LAYER_SYSTEM: return "an installed kdb";
    case GFXPACK_LAYER_USER: return "the user's kdb";
    case GFXPACK_LAYER_COMPILED: return "the compiler";
    default: return "nowhere";
    }
}

int main(int argc, char **argv) {
    gfxpack_devices *devices = NULL;
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_lookup *lookup = NULL;
    const char *target;
    gfxpack_status status;
    size_t size, index;

    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s KERNEL_NAME KERNEL_ARGS [TARGET [COMPILED_FILE]]\n", argv[0]);
        return 2;
    }
    if (argc > 3) {
        target = argv[3];
    } else {
        gfxpack_detect(NULL, NULL, &devices);
        target = gfxpack_device_target(gfxpack_devices_get(devices, 0));
        if (target == NULL) {
            fprintf(stderr, "there is no GPU: name a target\n");
            gfxpack_devices_free(devices);
            return 1;
        }
    }

    status = gfxpack_options_new(target, &options);
    if (status == GFXPACK_STATUS_OK) {
        status = gfxpack_cache_open(options, &cache);
    }
    gfxpack_options_free(options);
    if (status == GFXPACK_STATUS_OK) {
        status = gfxpack_get_or_compile(cache, argv[1], argv[2], compile,
                                        argc > 4 ? argv[4] : NULL, &lookup);
    }
    if (status == GFXPACK_STATUS_OK) {
        const void *data = gfxpack_lookup_data(lookup, &size); /* For hipModuleLoadData(). */
        printf("%lu bytes from %s\n", data != NULL ? (unsigned long)size : 0UL,
               layer(gfxpack_lookup_layer(lookup)));
        for (index = 0; index < gfxpack_lookup_miss_count(lookup); index++) {
            const gfxpack_miss *miss = gfxpack_lookup_miss(lookup, index);
            printf("not in %s: %s\n", gfxpack_miss_file(miss), gfxpack_miss_text(miss));
        }
        if (gfxpack_lookup_not_stored(lookup) != NULL) {
            printf("not saved: %s\n", gfxpack_lookup_not_stored(lookup));
        }
    } else {
        fprintf(stderr, "%s\nhint: %s\n", gfxpack_last_error(), gfxpack_last_error_hint());
    }
    gfxpack_lookup_free(lookup);
    gfxpack_cache_free(cache);
    gfxpack_devices_free(devices);
    return status == GFXPACK_STATUS_OK ? 0 : 1;
}
