/* Finds an installed kernel: find KERNEL_NAME KERNEL_ARGS TARGET */
#include <gfxpack_runtime.h>
#include <stdio.h>

int main(int argc, char **argv) {
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_lookup *lookup = NULL;
    size_t size = 0;
    if (argc != 4) return 2;
    gfxpack_options_new(argv[3], &options);
    gfxpack_cache_open(options, &cache);
    gfxpack_options_free(options);
    if (gfxpack_get(cache, argv[1], argv[2], &lookup) == GFXPACK_STATUS_OK)
        gfxpack_lookup_data(lookup, &size); /* The bytes, for hipModuleLoadData(). */
    printf("%lu bytes\n", (unsigned long)size);
    gfxpack_lookup_free(lookup);
    gfxpack_cache_free(cache);
    return size == 0;
}
