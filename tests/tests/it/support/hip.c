/* Stands in for the HIP runtime library: as much of it as device detection and
 * module loading call, over devices that do not exist. The tests compile it
 * with -D for what it is to be, and for faults that a foreign or broken
 * library might have.
 *
 * The numbers are those of HIP's own headers; with CHECK_LAYOUT, and those
 * headers installed, the compiler holds them against each other.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef RELEASE /* HIP's major release: 5, 6 or 7 */
#define RELEASE 6
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef ARCH
#define ARCH "gfx906:sramecc+:xnack-"
#endif
#ifndef COMPUTE_UNITS
#define COMPUTE_UNITS 60
#endif
#ifndef STRUCT_COMPUTE_UNITS /* what the struct of properties says */
#define STRUCT_COMPUTE_UNITS COMPUTE_UNITS
#endif
#ifndef COUNT_CODE /* what hipGetDeviceCount returns */
#define COUNT_CODE (DEVICES > 0 ? 0 : 100)
#endif
#ifndef PROPERTIES_CODE
#define PROPERTIES_CODE 0
#endif
#ifndef KERNEL /* the kernel that every module has */
#define KERNEL "fill"
#endif

enum { ATTRIBUTE_COMPUTE_UNITS = 63 };
enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NOT_FOUND = 500 };

/* The struct of HIP 5, and the one of 6 and later. */
struct properties5 {
    char name[256];
    char to_count[80];
    int compute_units;
    char to_arch[56];
    char arch[256];
    char rest[140];
};
struct properties6 {
    char name[256];
    char to_count[132];
    int compute_units;
    char to_arch[768];
    char arch[256];
    char rest[56];
};

#ifdef CHECK_LAYOUT
#include <hip/hip_runtime_api.h>
#if HIP_VERSION_MAJOR >= 6
typedef struct properties6 ours;
#else
typedef struct properties5 ours;
#endif
_Static_assert(sizeof(ours) == sizeof(hipDeviceProp_t), "size");
_Static_assert(offsetof(ours, compute_units) == offsetof(hipDeviceProp_t, multiProcessorCount),
               "multiProcessorCount");
_Static_assert(offsetof(ours, arch) == offsetof(hipDeviceProp_t, gcnArchName), "gcnArchName");
_Static_assert((int)ATTRIBUTE_COMPUTE_UNITS == (int)hipDeviceAttributeMultiprocessorCount, "count");
_Static_assert((int)INVALID_DEVICE == (int)hipErrorInvalidDevice, "invalid device");
_Static_assert(100 == (int)hipErrorNoDevice, "no device");
#else

static int live_modules;

static int known(int device)
{
    return device >= 0 && device < DEVICES;
}

int hipGetDeviceCount(int *count)
{
    *count = DEVICES;
    return COUNT_CODE;
}

int hipRuntimeGetVersion(int *version)
{
    /* The modules that are loaded show as the patch level. */
    *version = RELEASE * 10000000 + 3 * 100000 + live_modules;
    return 0;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    if (!known(device))
        return INVALID_DEVICE;
    if (attribute != ATTRIBUTE_COMPUTE_UNITS)
        return INVALID_VALUE;
    *value = COMPUTE_UNITS;
    return 0;
}

static int text(char *to, int size, const char *from)
{
    if (size <= 0)
        return INVALID_VALUE;
    strncpy(to, from, (size_t)size);
    to[size - 1] = '\0';
    return 0;
}

int hipDeviceGetName(char *name, int size, int device)
{
    return known(device) ? text(name, size, "Stand-in") : INVALID_DEVICE;
}

int hipDeviceGetPCIBusId(char *id, int size, int device)
{
    char address[] = "0000:03:00.0";
    if (!known(device))
        return INVALID_DEVICE;
    address[6] = (char)('3' + device);
    return text(id, size, address);
}

/* Fills every byte, so that whatever the reader takes from elsewhere shows. */
#define FILL(properties)                                                        \
    do {                                                                        \
        memset(properties, 0xa5, sizeof *(properties));                         \
        (properties)->compute_units = STRUCT_COMPUTE_UNITS;                     \
        if (sizeof ARCH > 1)                                                    \
            memcpy((properties)->arch, ARCH, sizeof ARCH);                      \
    } while (0)

#ifndef WITHOUT_PROPERTIES
int hipGetDeviceProperties(struct properties5 *properties, int device)
{
    if (!known(device))
        return INVALID_DEVICE;
    FILL(properties);
    return PROPERTIES_CODE;
}

#if RELEASE >= 6
int hipGetDevicePropertiesR0600(struct properties6 *properties, int device)
{
    if (!known(device))
        return INVALID_DEVICE;
    FILL(properties);
    return PROPERTIES_CODE;
}
#endif
#endif

int hipModuleLoadData(void **module, const void *image)
{
    if (memcmp(image, "\177ELF", 4) != 0 && memcmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24) != 0)
        return INVALID_IMAGE;
    live_modules++;
    *module = &live_modules;
    return 0;
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
    if (module != &live_modules || strcmp(name, KERNEL) != 0)
        return NOT_FOUND;
    *function = (void *)(uintptr_t)0x1000;
    return 0;
}

int hipModuleUnload(void *module)
{
    if (module != &live_modules || live_modules == 0)
        return INVALID_VALUE;
    live_modules--;
    return 0;
}
#endif
