/* Loads a library with the HIP runtime that is there, and prints, for each registration of device
   code and each target given, the size and a hash of the code object that comgr finds for it, as
   HIP asks. Usage: LIBRARY TARGET...

   Source: ROCm/clr 6.2, hip_fatbin.cpp, FatBinaryInfo::ExtractFatBinaryUsingCOMGR. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t handle; } handle;
struct wrapper { uint32_t magic, version; const unsigned char *bundle; void *reserved; };
struct object { const char *isa; size_t size; uint64_t offset; };
enum { FATBIN = 16, OBJ_BUNDLE = 20, EXECUTABLE = 8, HIP = 3, UNBUNDLE = 15 };

static const struct wrapper *wrappers[1 << 16];
static int count;
static void *comgr;

void **__hipRegisterFatBinary(const void *data) {
    wrappers[count++] = data;
    void **(*next)(const void *) = dlsym(RTLD_NEXT, "__hipRegisterFatBinary");
    return next(data);
}

static void print(int index, const char *target, const unsigned char *code, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t at = 0; at < size; at++) hash = (hash ^ code[at]) * 1099511628211u;
    printf("%d %s %zu %016llx\n", index, target, size, (unsigned long long)hash);
}

#define CALL(name, ...) ((int (*)())dlsym(comgr, "amd_comgr_" #name))(__VA_ARGS__)

static void plain(int index, const char *target, const unsigned char *bundle) {
    char isa[128];
    snprintf(isa, sizeof isa, "amdgcn-amd-amdhsa--%s", target);
    struct object object = { isa, 0, 0 };
    handle data;
    CALL(create_data, FATBIN, &data);
    CALL(set_data, data, (size_t)4096, bundle);
    int status = CALL(lookup_code_object, data, &object, (size_t)1);
    CALL(release_data, data);
    if (status || !object.size) printf("%d %s none\n", index, target);
    else print(index, target, bundle + object.offset, object.size);
}

/* Only comgr reads the compressed form. */
static void compressed(int index, const char *target, const unsigned char *bundle) {
    uint32_t size;
    memcpy(&size, bundle + 8, sizeof size);
    char id[128];
    snprintf(id, sizeof id, "hipv4-amdgcn-amd-amdhsa--%s", target);
    const char *ids[] = { id };
    handle data, input, output, info, code;
    size_t length = 0;
    CALL(create_data, OBJ_BUNDLE, &data);
    CALL(set_data, data, (size_t)size, bundle);
    CALL(set_data_name, data, "bundle");
    CALL(create_data_set, &input);
    CALL(create_data_set, &output);
    CALL(data_set_add, input, data);
    CALL(create_action_info, &info);
    CALL(action_info_set_language, info, HIP);
    CALL(action_info_set_bundle_entry_ids, info, ids, (size_t)1);
    int status = CALL(do_action, UNBUNDLE, info, input, output);
    if (!status) status = CALL(action_data_get_data, output, EXECUTABLE, (size_t)0, &code);
    if (!status) CALL(get_data, code, &length, (char *)0);
    if (!length) {
        printf("%d %s none\n", index, target);
    } else {
        unsigned char *bytes = malloc(length);
        CALL(get_data, code, &length, bytes);
        print(index, target, bytes, length);
        free(bytes);
    }
}

int main(int argc, char **argv) {
    setenv("AMD_COMGR_CACHE", "0", 1); /* It takes one compressed bundle for another. */
    comgr = dlopen("libamd_comgr.so.3", RTLD_NOW);
    if (!comgr || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int index = 0; index < count; index++)
        for (int at = 2; at < argc; at++)
            (memcmp(wrappers[index]->bundle, "CCOB", 4) ? plain : compressed)(
                index, argv[at], wrappers[index]->bundle);
    return 0;
}
