// Has the stock librocfft carry out plans, on the CPU: its generated sources
// are compiled for the host and run by the simulator, its device memory is the
// host's. What is not here comes from the stand-ins, which are preloaded.
//
// transform LIBRARY COMPILER OPTIONS DIRECTORY STUB... < CASES
//
// Each line of the cases: placement, transform and precision as in rocfft.h,
// batch, bytes of the result, how many lengths, and these, the fastest first;
// and if the plan has a layout, for input and output the array's type, two
// offsets, the distance and the strides. Case N's input is DIRECTORY/N.in; its
// result becomes DIRECTORY/N.out. Names of kernels that were launched go to
// standard output.

#include <atomic>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "launch.hpp"

// Work-group memory whose size the launch decides: as much as a GPU has.
__attribute__((section("gfxpack_lds"), aligned(16))) unsigned char lds_uchar[65536];

namespace {

std::string compiler, directory;

[[noreturn]] void fail(const std::string& what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

// A buffer ends where memory ends that can be touched.
struct Mapping {
    char* start;
    size_t bytes;
};
std::map<void*, Mapping> mappings;

void* allocate(size_t bytes) {
    constexpr size_t page = 4096;
    const size_t inner = (bytes + page - 1) / page * page;
    void* const got = mmap(nullptr, inner + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        fail("no memory for a buffer");
    }
    char* const start = static_cast<char*>(got);
    memset(start, 0xff, inner);
    mprotect(start + inner, page, PROT_NONE);
    // Aligned as the largest number is.
    char* const buffer = start + (inner - bytes) / 16 * 16;
    mappings[buffer] = {start, inner + page};
    return buffer;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

// A source with its kernel compiled for the host.
const simulator::Kernel* build(const std::string& source, const std::string& name) {
    // rocFFT compiles the kernels of a plan in several threads.
    static std::atomic<int> number = 0;
    const std::string stem = directory + "/kernel" + std::to_string(number++);
    std::string text = replaced(source, "extern __shared__", "extern");
    text = replaced(text, "__shared__ ", "gfxpack_static_shared ");
    std::ofstream(stem + ".cpp")
        << "#include \"hip/hip_runtime.h\"\n" << text << "\n#include \"launch.hpp\"\n"
        << "extern \"C\" const simulator::Kernel gfxpack_kernel =\n    simulator::Bound<" << name
        << ">::kernel(\"" << name << "\");\n";
    const std::string command = compiler + " -o " + stem + ".so " + stem + ".cpp";
    if (system(command.c_str()) != 0) {
        fail("not compiled for the host: " + name);
    }
    void* const library = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        fail(dlerror());
    }
    return static_cast<const simulator::Kernel*>(dlsym(library, "gfxpack_kernel"));
}

}  // namespace

// hipRTC's object is the source itself.
extern "C" {

int hiprtcCreateProgram(std::string** program, const char* source, const char*, int,
                        const char* const*, const char* const*) {
    *program = new std::string(source);
    return 0;
}
int hiprtcCompileProgram(std::string*, int, const char* const*) { return 0; }
int hiprtcGetCodeSize(std::string* program, size_t* size) {
    *size = program->size() + 1;
    return 0;
}
int hiprtcGetCode(std::string* program, char* code) {
    memcpy(code, program->c_str(), program->size() + 1);
    return 0;
}
int hiprtcDestroyProgram(std::string** program) {
    delete *program;
    return 0;
}

int hipModuleLoadData(std::string** module, const char* image) {
    *module = new std::string(image);
    return 0;
}
int hipModuleUnload(std::string* module) {
    delete module;
    return 0;
}
int hipModuleGetFunction(const simulator::Kernel** function, std::string* module,
                         const char* name) {
    static std::map<std::string, const simulator::Kernel*> built;
    const simulator::Kernel*& kernel = built[name];
    if (kernel == nullptr) {
        kernel = build(*module, name);
    }
    *function = kernel;
    return 0;
}

// Parameters lie in a buffer, each at a multiple of its alignment.
int hipModuleLaunchKernel(const simulator::Kernel* kernel, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void*, void** parameters, void** extra) {
    constexpr uintptr_t buffer_pointer = 1;
    if (parameters != nullptr || reinterpret_cast<uintptr_t>(extra[0]) != buffer_pointer ||
        shared_bytes > sizeof lds_uchar) {
        fail("a launch of another kind");
    }
    char* const buffer = static_cast<char*>(extra[1]);
    std::vector<void*> values;
    size_t at = 0;
    for (size_t i = 0; i < kernel->count; ++i) {
        const simulator::Parameter& parameter = kernel->parameters[i];
        at = (at + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        values.push_back(buffer + at);
        at += parameter.pointer ? sizeof(void*) : parameter.size;
    }
    puts(kernel->name);
    simulator::launch(*kernel, values.data(),
                      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, 64, false});
    // What lies behind the memory that was asked for is as it was.
    for (size_t i = shared_bytes; i < sizeof lds_uchar; ++i) {
        if (lds_uchar[i] != 0xff) {
            fail(std::string(kernel->name) + ": writes byte " + std::to_string(i) + " of " +
                 std::to_string(shared_bytes) + " of work-group memory");
        }
    }
    return 0;
}

int hipMalloc(void** address, size_t bytes) {
    *address = allocate(bytes);
    return 0;
}
int hipMallocManaged(void** address, size_t bytes, unsigned) { return hipMalloc(address, bytes); }
int hipFree(void* address) {
    const auto found = mappings.find(address);
    if (found != mappings.end()) {
        munmap(found->second.start, found->second.bytes);
        mappings.erase(found);
    }
    return 0;
}
int hipMemcpy(void* to, const void* from, size_t bytes, int) {
    memcpy(to, from, bytes);
    return 0;
}
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int, void*) {
    memcpy(to, from, bytes);
    return 0;
}

}  // extern "C"

namespace {

// Source: rocFFT, `rocfft.h`.
struct RocFft {
    int (*setup)();
    int (*create)(void**, int, int, int, size_t, const size_t*, size_t, const void*);
    int (*destroy)(void*);
    int (*describe)(void**);
    int (*set_layout)(void*, int, int, const size_t*, const size_t*, size_t, const size_t*, size_t,
                      size_t, const size_t*, size_t);
    int (*work_buffer_size)(const void*, size_t*);
    int (*create_info)(void**);
    int (*destroy_info)(void*);
    int (*set_work_buffer)(void*, void*, size_t);
    int (*execute)(const void*, void**, void**, void*);
};

template <class F>
void find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr) {
        fail(std::string("the library has no ") + name);
    }
}

void check(int status, const char* what) {
    if (status != 0) {
        fail(std::string(what) + " failed with " + std::to_string(status));
    }
}

void* load(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        fail(dlerror());
    }
    return library;
}

struct Array {
    int type;
    std::vector<size_t> offsets, strides;
    size_t distance;

    bool read(std::istream& words, size_t dimensions) {
        offsets.resize(2);
        strides.resize(dimensions);
        words >> type >> offsets[0] >> offsets[1] >> distance;
        for (size_t& stride : strides) {
            words >> stride;
        }
        return static_cast<bool>(words);
    }
};

void transform(const RocFft& api, const std::string& line, size_t number) {
    std::istringstream words(line);
    int placement, type, precision;
    size_t batch, result_bytes, dimensions;
    words >> placement >> type >> precision >> batch >> result_bytes >> dimensions;
    std::vector<size_t> lengths(dimensions);
    for (size_t& length : lengths) {
        words >> length;
    }
    Array input, output;
    void* description = nullptr;
    if (input.read(words, dimensions) && output.read(words, dimensions)) {
        check(api.describe(&description), "rocfft_plan_description_create");
        check(api.set_layout(description, input.type, output.type, input.offsets.data(),
                             output.offsets.data(), dimensions, input.strides.data(),
                             input.distance, dimensions, output.strides.data(), output.distance),
              "rocfft_plan_description_set_data_layout");
    }
    const std::string stem = directory + "/" + std::to_string(number);
    std::ifstream file(stem + ".in", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});

    void *plan = nullptr, *info = nullptr, *work = nullptr;
    check(api.create(&plan, placement, type, precision, lengths.size(), lengths.data(), batch,
                     description),
          "rocfft_plan_create");
    size_t work_bytes = 0;
    check(api.work_buffer_size(plan, &work_bytes), "rocfft_plan_get_work_buffer_size");
    check(api.create_info(&info), "rocfft_execution_info_create");
    if (work_bytes != 0) {
        work = allocate(work_bytes);
        check(api.set_work_buffer(info, work, work_bytes),
              "rocfft_execution_info_set_work_buffer");
    }
    void* in = allocate(bytes.size());
    memcpy(in, bytes.data(), bytes.size());
    if (placement == 0 && result_bytes > bytes.size()) {
        fail("a result that is larger than its buffer");
    }
    void* out = placement == 0 ? in : allocate(result_bytes);
    check(api.execute(plan, &in, placement == 0 ? nullptr : &out, info), "rocfft_execute");
    std::ofstream(stem + ".out", std::ios::binary)
        .write(static_cast<char*>(out), static_cast<std::streamsize>(result_bytes));
    for (void* buffer : {in, out, work}) {
        hipFree(buffer);
    }
    api.destroy_info(info);
    api.destroy(plan);
}

}  // namespace

int main(int count, char** words) {
    // Compilers that are started run without the stand-ins.
    unsetenv("LD_PRELOAD");
    compiler = std::string(words[2]) + " " + words[3];
    directory = words[4];
    for (int i = 5; i < count; ++i) {
        load(words[i]);
    }
    void* const library = load(words[1]);
    RocFft api;
    find(library, "rocfft_setup", api.setup);
    find(library, "rocfft_plan_create", api.create);
    find(library, "rocfft_plan_destroy", api.destroy);
    find(library, "rocfft_plan_description_create", api.describe);
    find(library, "rocfft_plan_description_set_data_layout", api.set_layout);
    find(library, "rocfft_plan_get_work_buffer_size", api.work_buffer_size);
    find(library, "rocfft_execution_info_create", api.create_info);
    find(library, "rocfft_execution_info_destroy", api.destroy_info);
    find(library, "rocfft_execution_info_set_work_buffer", api.set_work_buffer);
    find(library, "rocfft_execute", api.execute);
    check(api.setup(), "rocfft_setup");
    size_t number = 0;
    for (std::string line; std::getline(std::cin, line); ++number) {
        transform(api, line, number);
    }
    // The library's own end asks the driver for more than is here.
    fflush(stdout);
    _Exit(0);
}
