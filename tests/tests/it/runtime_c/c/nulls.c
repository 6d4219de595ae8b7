/* Null and nonsense everywhere: a status or an empty answer, and the process lives. */
#include <gfxpack_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(what)                                                    \
    do {                                                              \
        if (!(what)) {                                                \
            printf("line %d does not hold: %s\n", __LINE__, #what);   \
            exit(1);                                                  \
        }                                                             \
    } while (0)
#define NULL_POINTER(what, name)                                                        \
    do {                                                                                \
        MUST((what) == GFXPACK_STATUS_NULL_POINTER);                                    \
        MUST(strcmp(gfxpack_last_error(),                                               \
                    "failed to use `" name "`: it is a null pointer") == 0);            \
        MUST(strlen(gfxpack_last_error_hint()) > 0);                                    \
    } while (0)

/* Gives nothing; with user data, a code object of no bytes. */
static int32_t compile(void *user_data, const char *name, const char *args,
                       gfxpack_compiled *compiled) {
    (void)name;
    (void)args;
    if (user_data != NULL) gfxpack_compiled_set(compiled, user_data, 0);
    gfxpack_compiled_set(compiled, NULL, 5);
    gfxpack_compiled_set(compiled, (const uint8_t *)"x", SIZE_MAX);
    gfxpack_compiled_set(NULL, (const uint8_t *)"x", 1);
    gfxpack_compiled_fail(NULL, "x");
    gfxpack_compiled_fail(compiled, NULL);
    return 0;
}

int main(void) {
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_lookup *lookup = NULL;
    gfxpack_devices *devices = NULL;
    size_t size = 7;

    MUST(gfxpack_last_error() == NULL && gfxpack_last_error_hint() == NULL);
    gfxpack_options_free(NULL);
    gfxpack_cache_free(NULL);
    gfxpack_lookup_free(NULL);
    gfxpack_devices_free(NULL);

    MUST(gfxpack_lookup_data(NULL, NULL) == NULL);
    MUST(gfxpack_lookup_data(NULL, &size) == NULL && size == 0);
    MUST(gfxpack_lookup_layer(NULL) == GFXPACK_LAYER_NONE);
    MUST(gfxpack_lookup_file(NULL) == NULL && gfxpack_lookup_not_stored(NULL) == NULL);
    MUST(gfxpack_lookup_miss_count(NULL) == 0 && gfxpack_lookup_miss(NULL, 0) == NULL);
    MUST(gfxpack_miss_layer(NULL) == GFXPACK_LAYER_NONE);
    MUST(gfxpack_miss_reason(NULL) == GFXPACK_REASON_OTHER);
    MUST(gfxpack_miss_file(NULL) == NULL && gfxpack_miss_text(NULL) == NULL);
    MUST(gfxpack_miss_hint(NULL) == NULL);
    MUST(gfxpack_devices_count(NULL) == 0 && gfxpack_devices_get(NULL, 0) == NULL);
    MUST(gfxpack_devices_hip(NULL) == NULL && gfxpack_devices_note(NULL, 0) == NULL);
    MUST(gfxpack_device_target(NULL) == NULL && gfxpack_device_compute_units(NULL) == 0);
    MUST(gfxpack_device_source(NULL) == GFXPACK_SOURCE_UNKNOWN);
    MUST(gfxpack_device_name(NULL) == NULL && gfxpack_device_pci(NULL) == NULL);

    NULL_POINTER(gfxpack_options_new("gfx906@60", NULL), "out");
    NULL_POINTER(gfxpack_options_new(NULL, &options), "target");
    MUST(options == NULL);
    MUST(gfxpack_options_new("voodoo5", &options) == GFXPACK_STATUS_INVALID_TARGET);
    MUST(options == NULL && strstr(gfxpack_last_error(), "voodoo5") != NULL);
    MUST(gfxpack_options_new("gfx\xff", &options) == GFXPACK_STATUS_INVALID_ARGUMENT);
    NULL_POINTER(gfxpack_options_set_order(NULL, 0), "options");
    NULL_POINTER(gfxpack_options_set_path(NULL, 0, "x"), "options");
    NULL_POINTER(gfxpack_options_set_places(NULL, "x", "y"), "options");
    NULL_POINTER(gfxpack_options_set_flag(NULL, 0, true), "options");
    NULL_POINTER(gfxpack_options_set_limit(NULL, 0, 1), "options");
    NULL_POINTER(gfxpack_options_set_log_level(NULL, 1), "options");
    NULL_POINTER(gfxpack_options_set_warning_callback(NULL, NULL, NULL), "options");
    NULL_POINTER(gfxpack_cache_open(NULL, &cache), "options");
    NULL_POINTER(gfxpack_detect(NULL, "", NULL), "out");

    MUST(gfxpack_options_new("gfx906@60", &options) == GFXPACK_STATUS_OK);
    MUST(gfxpack_options_set_order(options, 99) == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(strcmp(gfxpack_last_error(),
                "failed to understand `order`: 99 is not one of its values") == 0);
    MUST(gfxpack_options_set_path(options, -1, NULL) == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(gfxpack_options_set_path(options, GFXPACK_PATH_VERSION, "\xff") ==
         GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(gfxpack_options_set_flag(options, -2147483647 - 1, true) ==
         GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(gfxpack_options_set_limit(options, 5, 1) == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(gfxpack_options_set_limit(options, GFXPACK_LIMIT_COMPILE_WAIT_MS, UINT64_MAX) ==
         GFXPACK_STATUS_OK);
    MUST(gfxpack_options_set_flag(options, GFXPACK_FLAG_WARN, false) == GFXPACK_STATUS_OK);
    MUST(gfxpack_options_set_places(options, "db", NULL) == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(gfxpack_options_set_places(options, NULL, "") == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(strcmp(gfxpack_last_error(), "failed to use `user_dir`: it is not absolute") == 0);
    /* No directories at all: in memory. */
    MUST(gfxpack_options_set_places(options, NULL, NULL) == GFXPACK_STATUS_OK);
    NULL_POINTER(gfxpack_cache_open(options, NULL), "out");
    MUST(gfxpack_cache_open(options, &cache) == GFXPACK_STATUS_OK && cache != NULL);
    gfxpack_options_free(options);
    MUST(gfxpack_cache_file_count(cache) == 0 && gfxpack_cache_file(cache, 0) == NULL);
    MUST(gfxpack_cache_file_layer(cache, 0) == GFXPACK_LAYER_NONE);
    MUST(gfxpack_cache_file_count(NULL) == 0 && gfxpack_cache_file(NULL, 0) == NULL);
    MUST(gfxpack_cache_file_layer(NULL, 0) == GFXPACK_LAYER_NONE);

    NULL_POINTER(gfxpack_get(NULL, "a.o", "b", &lookup), "cache");
    NULL_POINTER(gfxpack_get(cache, NULL, "b", &lookup), "kernel_name");
    NULL_POINTER(gfxpack_get(cache, "a.o", NULL, &lookup), "kernel_args");
    NULL_POINTER(gfxpack_get(cache, "a.o", "b", NULL), "out");
    NULL_POINTER(gfxpack_get_or_compile(NULL, "a.o", "b", compile, NULL, &lookup), "cache");
    NULL_POINTER(gfxpack_get_or_compile(cache, "a.o", "b", NULL, NULL, &lookup), "compile");
    NULL_POINTER(gfxpack_get_or_compile(cache, "a.o", "b", compile, NULL, NULL), "out");
    MUST(gfxpack_get(cache, "\xff", "b", &lookup) == GFXPACK_STATUS_INVALID_ARGUMENT);
    MUST(lookup == NULL);

    lookup = (gfxpack_lookup *)&size;
    MUST(gfxpack_get_or_compile(cache, "a.o", "b", compile, NULL, &lookup) ==
         GFXPACK_STATUS_COMPILER_FAILED);
    MUST(lookup == NULL);
    MUST(strcmp(gfxpack_last_error(),
                "failed to compile `a.o`: the compiler gave no code object") == 0);
    MUST(gfxpack_get_or_compile(cache, "a.o", "b", compile, &size, &lookup) ==
         GFXPACK_STATUS_COMPILER_FAILED);
    MUST(lookup == NULL);
    MUST(strcmp(gfxpack_last_error(),
                "failed to compile `a.o`: the compiler gave no code object") == 0);
    MUST(gfxpack_get(cache, "a.o", "b", &lookup) == GFXPACK_STATUS_MISS && lookup != NULL);
    MUST(gfxpack_lookup_data(lookup, &size) == NULL && size == 0);
    MUST(gfxpack_lookup_miss(lookup, gfxpack_lookup_miss_count(lookup)) == NULL);
    MUST(gfxpack_lookup_miss(lookup, SIZE_MAX) == NULL);
    /* A lookup outlives its cache. */
    gfxpack_cache_free(cache);
    MUST(gfxpack_lookup_layer(lookup) == GFXPACK_LAYER_NONE);
    gfxpack_lookup_free(lookup);

    MUST(gfxpack_detect("/nonexistent", "", &devices) == GFXPACK_STATUS_OK);
    MUST(gfxpack_devices_get(devices, gfxpack_devices_count(devices)) == NULL);
    MUST(gfxpack_devices_note(devices, SIZE_MAX) == NULL);
    gfxpack_devices_free(devices);
    return 0;
}
