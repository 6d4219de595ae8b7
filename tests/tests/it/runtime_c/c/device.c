/*
 * Looks a kernel up for each GPU that the HIP runtime library in the loader's path shows, with
 * warnings on standard error.
 *
 *   device NAME ARGS
 */
#include <gfxpack_runtime.h>

#include <stdio.h>

static int look_up(const char *target, const char *name, const char *args) {
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_lookup *lookup = NULL;
    int times;
    if (gfxpack_options_new(target, &options) != GFXPACK_STATUS_OK ||
        gfxpack_cache_open(options, &cache) != GFXPACK_STATUS_OK) {
        printf("%s\n", gfxpack_last_error());
        return 1;
    }
    gfxpack_options_free(options);
    for (times = 0; times < 2; times++) {
        gfxpack_status status = gfxpack_get(cache, name, args, &lookup);
        printf("%s status=%d layer=%d\n", target, (int)status, (int)gfxpack_lookup_layer(lookup));
        gfxpack_lookup_free(lookup);
    }
    gfxpack_cache_free(cache);
    return 0;
}

int main(int argc, char **argv) {
    gfxpack_devices *devices = NULL;
    size_t index, count;
    int failed = 0;
    if (argc != 3 || gfxpack_detect("/nonexistent", NULL, &devices) != GFXPACK_STATUS_OK) {
        return 3;
    }
    count = gfxpack_devices_count(devices);
    printf("devices=%zu\n", count);
    for (index = 0; index < count; index++) {
        const gfxpack_device *device = gfxpack_devices_get(devices, index);
        failed |= look_up(gfxpack_device_target(device), argv[1], argv[2]);
    }
    for (index = 0; gfxpack_devices_note(devices, index) != NULL; index++) {
        printf("note %s\n", gfxpack_devices_note(devices, index));
    }
    gfxpack_devices_free(devices);
    return failed;
}
