/*
 * What the tests have a C program do, one step after another, each told on standard output.
 *
 *   --callback   warnings come to a function; --silent: to nobody; --user-first
 *   get NAME ARGS
 *   compile NAME ARGS FILE         FILE holds what the compiler gives
 *   fail NAME ARGS CODE TEXT       the compiler returns CODE; TEXT "-" is none
 *   detect SYSFS HIP_LIBRARY       "-" is null
 *   files                          that the cache asks
 */
#include <gfxpack_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_dash(const char *text) { return text != NULL ? text : "-"; }

static void show(const char *step, gfxpack_status status, gfxpack_lookup *lookup) {
    size_t size = 1, index;
    const uint8_t *data = gfxpack_lookup_data(lookup, &size);
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (index = 0; data != NULL && index < size; index++) {
        hash = (hash ^ data[index]) * 0x100000001b3u;
    }
    printf("%s status=%d layer=%d size=%zu hash=%016llx file=%s not-stored=%s\n", step, (int)status,
           (int)gfxpack_lookup_layer(lookup), size, (unsigned long long)hash,
           or_dash(gfxpack_lookup_file(lookup)), or_dash(gfxpack_lookup_not_stored(lookup)));
    for (index = 0; index < gfxpack_lookup_miss_count(lookup); index++) {
        const gfxpack_miss *miss = gfxpack_lookup_miss(lookup, index);
        printf("miss layer=%d reason=%d file=%s\n", (int)gfxpack_miss_layer(miss),
               (int)gfxpack_miss_reason(miss), gfxpack_miss_file(miss));
        /* The same pointer again, and words for everything. */
        if (gfxpack_miss_file(miss) != gfxpack_miss_file(miss) ||
            strlen(gfxpack_miss_text(miss)) == 0 || strlen(gfxpack_miss_hint(miss)) == 0) {
            printf("bad miss\n");
        }
    }
    if (status < 0) {
        printf("error %s\nhint %s\n", gfxpack_last_error(), gfxpack_last_error_hint());
    }
    fflush(stdout);
    gfxpack_lookup_free(lookup);
}

static void warned(void *user_data, gfxpack_warning_class kind, const char *file,
                   const char *text) {
    printf("warning %s kind=%d file=%s\n%s\n", (const char *)user_data, (int)kind, file, text);
    fflush(stdout);
}

static int32_t from_file(void *user_data, const char *name, const char *args,
                         gfxpack_compiled *compiled) {
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(user_data, "rb");
    size_t size;
    if (file == NULL || strlen(name) == 0 || strlen(args) == 0) {
        return 9;
    }
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    gfxpack_compiled_set(compiled, (const uint8_t *)"first", 5);
    gfxpack_compiled_set(compiled, bytes, size);
    memset(bytes, 0, sizeof bytes); /* It was copied. */
    return 0;
}

struct failure {
    int code;
    const char *text;
};

static int32_t failing(void *user_data, const char *name, const char *args,
                       gfxpack_compiled *compiled) {
    const struct failure *failure = user_data;
    (void)name;
    (void)args;
    if (strcmp(failure->text, "-") != 0) {
        gfxpack_compiled_fail(compiled, failure->text);
    }
    return failure->code;
}

static void detect(const char *sysfs, const char *hip) {
    gfxpack_devices *devices = NULL;
    size_t index;
    gfxpack_status status = gfxpack_detect(strcmp(sysfs, "-") == 0 ? NULL : sysfs,
                                           strcmp(hip, "-") == 0 ? NULL : hip, &devices);
    printf("detect status=%d count=%zu hip=%s\n", (int)status, gfxpack_devices_count(devices),
           or_dash(gfxpack_devices_hip(devices)));
    for (index = 0; index < gfxpack_devices_count(devices); index++) {
        const gfxpack_device *device = gfxpack_devices_get(devices, index);
        printf("device %s units=%u source=%d name=%s pci=%s\n", gfxpack_device_target(device),
               (unsigned)gfxpack_device_compute_units(device), (int)gfxpack_device_source(device),
               or_dash(gfxpack_device_name(device)), or_dash(gfxpack_device_pci(device)));
    }
    for (index = 0; gfxpack_devices_note(devices, index) != NULL; index++) {
        printf("note %s\n", gfxpack_devices_note(devices, index));
    }
    gfxpack_devices_free(devices);
}

int main(int argc, char **argv) {
    static char user_data[] = "mine";
    gfxpack_options *options = NULL;
    gfxpack_cache *cache = NULL;
    gfxpack_lookup *lookup = NULL;
    gfxpack_status status;
    int at = 1;
    if (gfxpack_options_new("gfx906@60", &options) != GFXPACK_STATUS_OK) {
        return 3;
    }
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--callback") == 0) {
            gfxpack_options_set_warning_callback(options, warned, user_data);
        } else if (strcmp(argv[at], "--silent") == 0) {
            gfxpack_options_set_flag(options, GFXPACK_FLAG_WARN, false);
        } else if (strcmp(argv[at], "--user-first") == 0) {
            gfxpack_options_set_order(options, GFXPACK_ORDER_USER_FIRST);
        } else {
            return 3;
        }
    }
    status = gfxpack_cache_open(options, &cache);
    gfxpack_options_free(options);
    if (status != GFXPACK_STATUS_OK || cache == NULL) {
        return 4;
    }
    while (at < argc) {
        const char *step = argv[at];
        if (strcmp(step, "get") == 0 && at + 2 < argc) {
            status = gfxpack_get(cache, argv[at + 1], argv[at + 2], &lookup);
            at += 3;
        } else if (strcmp(step, "compile") == 0 && at + 3 < argc) {
            status = gfxpack_get_or_compile(cache, argv[at + 1], argv[at + 2], from_file,
                                            argv[at + 3], &lookup);
            at += 4;
        } else if (strcmp(step, "fail") == 0 && at + 4 < argc) {
            struct failure failure = {atoi(argv[at + 3]), argv[at + 4]};
            status = gfxpack_get_or_compile(cache, argv[at + 1], argv[at + 2], failing, &failure,
                                            &lookup);
            at += 5;
        } else if (strcmp(step, "files") == 0) {
            size_t index;
            for (index = 0; index < gfxpack_cache_file_count(cache); index++) {
                printf("file layer=%d %s\n", (int)gfxpack_cache_file_layer(cache, index),
                       gfxpack_cache_file(cache, index));
            }
            at += 1;
            continue;
        } else if (strcmp(step, "detect") == 0 && at + 2 < argc) {
            detect(argv[at + 1], argv[at + 2]);
            at += 3;
            continue;
        } else {
            return 3;
        }
        show(step, status, lookup);
    }
    gfxpack_cache_free(cache);
    return 0;
}
