/* Multiplies matrices with a library of ROCm, over a HIP that has one GPU and computes nothing, and
   prints the code that the library loads and the kernels that it launches, with their arguments.
   Usage: LIBRARY rocblas|hipblaslt GPU

   Source: HIP 6, hip_runtime_api.h; rocBLAS, rocblas-functions.h; hipBLASLt, hipblaslt.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct { uint32_t x, y, z; } dim3;

static const char *gpu;
static struct { const void *host; const char *name; } kernels[1 << 20];
static int count;
static struct { dim3 grid, block; size_t shared; void *stream; } next;

static uint64_t hash(const void *from, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t at = 0; at < size; at++)
        hash = (hash ^ ((const unsigned char *)from)[at]) * 1099511628211u;
    return hash;
}

/* What succeeds without doing anything. */
#define DONE(name) int name(void) { return 0; }
DONE(__hipUnregisterFatBinary) DONE(hipDeviceSynchronize) DONE(hipEventRecord) DONE(hipFree)
DONE(hipFreeAsync) DONE(hipGetLastError) DONE(hipMemPoolTrimTo) DONE(hipMemcpy2D) DONE(hipMemcpy2DAsync)
DONE(hipMemcpyAsync) DONE(hipMemset) DONE(hipMemsetAsync) DONE(hipModuleUnload)
DONE(hipPeekAtLastError) DONE(hipSetDevice) DONE(hipStreamQuery) DONE(hipStreamSynchronize)
DONE(hipMemcpy) DONE(roctxRangePop) DONE(roctxRangePushA)
/* What gives a number. */
#define GIVE(name, value) int name(int *to) { *to = value; return 0; }
GIVE(hipGetDevice, 0) GIVE(hipGetDeviceCount, 1) GIVE(hipRuntimeGetVersion, 60400000)
GIVE(hipDeviceGetAttribute, 0)
GIVE(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, 1)
/* What fails: all memory is the host's, and there are no pools. */
int hipPointerGetAttributes(void) { return 1; }
int hipDeviceGetDefaultMemPool(void) { return 801; }
const char *hipGetErrorName(int error) { return error ? "error" : "success"; }
const char *hipGetErrorString(int error) { return hipGetErrorName(error); }

int hipStreamIsCapturing(void *stream, int *to) {
    (void)stream;
    *to = 0;
    return 0;
}

int hipGetDevicePropertiesR0600(unsigned char *properties, int device) {
    (void)device;
    memset(properties, 0, 1472);
    *(size_t *)(properties + 288) = (size_t)16 << 30;  /* totalGlobalMem */
    *(size_t *)(properties + 296) = 64 << 10;          /* sharedMemPerBlock */
    *(int *)(properties + 308) = strncmp(gpu, "gfx9", 4) ? 32 : 64; /* warpSize */
    *(int *)(properties + 320) = 1024;                 /* maxThreadsPerBlock */
    *(int *)(properties + 388) = 48;                   /* multiProcessorCount */
    strcpy((char *)properties + 1160, gpu);            /* gcnArchName */
    return 0;
}

/* Addresses are the same in each run. */
int hipMalloc(void **to, size_t size) {
    static uintptr_t free = 0x100000000000;
    *to = mmap((void *)free, size + 1, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    free += (size / 4096 + 2) * 4096;
    return *to == MAP_FAILED;
}
int hipMallocAsync(void **to, size_t size) { return hipMalloc(to, size); }
int hipHostMalloc(void **to, size_t size) { return hipMalloc(to, size); }

int hipModuleLoad(void **module, const char *path) {
    static unsigned char bytes[64 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) return 301;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    printf("load %s %zu %016llx\n", strrchr(path, '/'), size, (unsigned long long)hash(bytes, size));
    *module = module;
    return 0;
}

/* A whole ELF file: its section headers come last. */
int hipModuleLoadData(void **module, const unsigned char *image) {
    if (memcmp(image, "\177ELF", 4)) return 200;
    size_t size = *(uint16_t *)(image + 0x3a) * *(uint16_t *)(image + 0x3c);
    size += *(uint64_t *)(image + 0x28);
    printf("load %zu %016llx\n", size, (unsigned long long)hash(image, size));
    *module = module;
    return 0;
}

int hipModuleGetFunction(const char **function, void *module, const char *name) {
    (void)module;
    *function = strdup(name);
    return 0;
}

int hipExtModuleLaunchKernel(const char *name, uint32_t x, uint32_t y, uint32_t z, uint32_t a,
                             uint32_t b, uint32_t c, size_t shared, void *stream, void **arguments,
                             void **extra) {
    (void)stream, (void)arguments;
    size_t size = *(size_t *)extra[3];
    printf("launch %s %u,%u,%u %u,%u,%u %zu: %zu %016llx\n", name, x, y, z, a, b, c, shared, size,
           (unsigned long long)hash(extra[1], size));
    return 0;
}

void *__hipRegisterFatBinary(void *data) { return data; }

void __hipRegisterFunction(void **modules, const void *host, const char *name) {
    (void)modules;
    kernels[count].host = host;
    kernels[count++].name = name;
}

int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    next.grid = grid, next.block = block, next.shared = shared, next.stream = stream;
    return 0;
}

int __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream) {
    *grid = next.grid, *block = next.block, *shared = next.shared, *stream = next.stream;
    return 0;
}

int hipLaunchKernel(const void *host, dim3 grid, dim3 block) {
    int at = 0;
    while (at < count && kernels[at].host != host) at++;
    printf("launch %s %u,%u,%u %u,%u,%u\n", at < count ? kernels[at].name : "unknown", grid.x,
           grid.y, grid.z, block.x, block.y, block.z);
    return 0;
}

#define CALL(name, ...) check(#name, ((int (*)())dlsym(library, #name))(__VA_ARGS__))

#define GEMM(name)                                                                         \
    CALL(name, handle, NONE, NONE, size, size, size, alpha, a, size, b, size, beta, c, size)

static void check(const char *name, int status) {
    if (!status) return;
    printf("%s gives %d\n", name, status);
    exit(1);
}

int main(int argc, char **argv) {
    (void)argc;
    gpu = argv[3];
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    enum { SIZE = 1024 };
    void *handle, *a, *b, *c;
    double two = 2;
    /* Not zero in any type, and zero. */
    uint64_t alpha[2] = { 0x3c003c003c003c00 }, beta[2] = { 0 };
    hipMalloc(&a, SIZE * SIZE * 8);
    hipMalloc(&b, SIZE * SIZE * 8);
    hipMalloc(&c, SIZE * SIZE * 8);
    if (!strcmp(argv[2], "rocblas")) {
        enum { NONE = 111 };
        CALL(rocblas_create_handle, &handle);
        for (int size = 32; size <= SIZE; size *= 2) {
            GEMM(rocblas_hgemm);
            GEMM(rocblas_sgemm);
            GEMM(rocblas_zgemm);
        }
        CALL(rocblas_dscal, handle, SIZE, &two, a, 1);
        return 0;
    }
    enum { FLOAT = 0, COMPUTE_FLOAT = 2 };
    void *product, *layout, *preference;
    uint64_t results[32] = { 0 };
    int found = 0;
    CALL(hipblasLtCreate, &handle);
    CALL(hipblasLtMatmulDescCreate, &product, COMPUTE_FLOAT, FLOAT);
    CALL(hipblasLtMatmulPreferenceCreate, &preference);
    CALL(hipblasLtMatrixLayoutCreate, &layout, FLOAT, (uint64_t)SIZE, (uint64_t)SIZE, (int64_t)SIZE);
    CALL(hipblasLtMatmulAlgoGetHeuristic, handle, product, layout, layout, layout, layout,
         preference, 1, results, &found);
    printf("found %d\n", found);
    CALL(hipblasLtMatmul, handle, product, alpha, a, layout, b, layout, beta, c, layout, c, layout,
         results, (void *)0, (size_t)0, (void *)0);
    return 0;
}
