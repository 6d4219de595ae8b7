// Runs a grid on the host: every thread of a block is a fiber that gives way
// at barriers and lane exchanges; blocks run one after another. Nothing is
// concurrent, so a failure repeats exactly. What would be undefined on a GPU
// ends the process with a message: a barrier that not all threads reach, an
// exchange that not all lanes reach, memory outside of the arguments.
//
// The request on stdin, little-endian, for each launch: the kernel's name;
// grid, block (3 x u32 each), lanes per wave, order of the fibers (1:
// backwards), side of the buffers that meets the guard page (0: end, 1: start),
// number of arguments; then per argument its type as text and its bytes.
// Texts and bytes have their length before them (u64); all else is u32.

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "hip/hip_runtime.h"
#include "launch.hpp"

simulator::Index threadIdx, blockIdx, blockDim, gridDim;
int warpSize;

// The linker's names for the ends of the section; absent without __shared__.
extern "C" char __start_gfxpack_lds[] __attribute__((weak));
extern "C" char __stop_gfxpack_lds[] __attribute__((weak));

namespace simulator {
namespace {

constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t page = 4096;

const char* kernel_name = "";

[[noreturn]] void fail(const std::string& what) {
    fprintf(stderr, "%s: block (%u, %u, %u), thread (%u, %u, %u): %s\n", kernel_name, blockIdx.x,
            blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what.c_str());
    _exit(1);
}

enum class State { runnable, at_barrier, at_exchange, finished };

struct Fiber {
    ucontext_t start;
    jmp_buf context;
    std::vector<char> stack;
    bool started = false;
    State state = State::finished;
    Index index;
    unsigned offered[2];  // one exchange may begin while others still read the last
    unsigned exchanges;
};

std::vector<Fiber> fibers;
Fiber* current;
jmp_buf scheduler;
void (*call_kernel)(void* const*);
std::vector<void*> arguments;

size_t number(const Fiber* fiber) { return fiber - fibers.data(); }

// Back to the scheduler until the fiber's state is runnable again.
void give_way(State state) {
    current->state = state;
    if (_setjmp(current->context) == 0) {
        _longjmp(scheduler, 1);
    }
}

// A fiber serves one thread of every block, and is never left.
void fiber_main() {
    for (;;) {
        call_kernel(arguments.data());
        give_way(State::finished);
    }
}

void resume(Fiber& fiber) {
    current = &fiber;
    threadIdx = fiber.index;
    if (_setjmp(scheduler) != 0) {
        return;
    }
    if (fiber.started) {
        _longjmp(fiber.context, 1);
    }
    fiber.started = true;
    setcontext(&fiber.start);
}

void prepare_fibers(size_t count) {
    if (fibers.size() == count) {
        return;
    }
    fibers = std::vector<Fiber>(count);
    for (Fiber& fiber : fibers) {
        fiber.stack.resize(stack_bytes);
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.data();
        fiber.start.uc_stack.ss_size = stack_bytes;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, fiber_main, 0);
    }
}

size_t count_of(State state, size_t first, size_t last) {
    size_t found = 0;
    for (size_t i = first; i < last; ++i) {
        found += fibers[i].state == state;
    }
    return found;
}

void release(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
        fibers[i].state = State::runnable;
    }
}

// Runs a wave until its lanes are finished or at a barrier. Other waves stand
// still meanwhile: so one that overwrites what they have yet to read is seen.
void run_wave(size_t first, size_t last, bool backwards) {
    do {
        for (size_t i = first; i < last; ++i) {
            Fiber& fiber = fibers[backwards ? first + last - 1 - i : i];
            if (fiber.state == State::runnable) {
                resume(fiber);
            }
        }
        if (count_of(State::at_exchange, first, last) == last - first) {
            release(first, last);
        }
    } while (count_of(State::runnable, first, last) != 0);
}

void run_block(bool backwards) {
    // All ones: NaN as any of the float types, -1 as an integer.
    if (__start_gfxpack_lds != nullptr) {
        memset(__start_gfxpack_lds, 0xff, __stop_gfxpack_lds - __start_gfxpack_lds);
    }
    const size_t all = fibers.size();
    for (size_t i = 0; i < all; ++i) {
        const unsigned n = static_cast<unsigned>(i);
        fibers[i].index = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
        fibers[i].exchanges = 0;
        fibers[i].state = State::runnable;
    }
    const size_t waves = (all + warpSize - 1) / warpSize;
    while (count_of(State::finished, 0, all) != all) {
        for (size_t i = 0; i < waves; ++i) {
            const size_t first = (backwards ? waves - 1 - i : i) * warpSize;
            run_wave(first, first + warpSize < all ? first + warpSize : all, backwards);
        }
        if (count_of(State::at_barrier, 0, all) == all) {
            release(0, all);
        } else if (count_of(State::finished, 0, all) != all) {
            fail("waits for ever: " + std::to_string(count_of(State::at_barrier, 0, all)) +
                 " threads at a barrier, " + std::to_string(count_of(State::at_exchange, 0, all)) +
                 " at a lane exchange, " + std::to_string(count_of(State::finished, 0, all)) +
                 " finished");
        }
    }
}

// Blocks one after another, with what `arguments`, the grid and the block are.
void run_grid(void (*call)(void* const*), bool backwards) {
    call_kernel = call;
    prepare_fibers(static_cast<size_t>(blockDim.x) * blockDim.y * blockDim.z);
    for (unsigned z = 0; z < gridDim.z; ++z) {
        for (unsigned y = 0; y < gridDim.y; ++y) {
            for (unsigned x = 0; x < gridDim.x; ++x) {
                blockIdx = {x, y, z};
                run_block(backwards);
            }
        }
    }
}

// One argument. Buffers lie against a page that can't be touched, and can't be
// written where the kernel's parameter is const.
struct Argument {
    std::vector<char> value;  // of a scalar or a structure
    char* pointer = nullptr;
    size_t size = 0;
    char* mapping = nullptr;
    size_t mapped = 0;

    void map(const std::vector<char>& bytes, bool at_start, bool writable) {
        size = bytes.size();
        const size_t inner = (size + page - 1) / page * page;
        mapped = inner + 2 * page;
        void* got = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (got == MAP_FAILED) {
            fail("no memory for a buffer");
        }
        mapping = static_cast<char*>(got);
        char* const inside = mapping + page;
        // What is beside the buffer within its pages is NaN and -1 too.
        memset(inside, 0xff, inner);
        pointer = at_start ? inside : inside + inner - size;
        memcpy(pointer, bytes.data(), size);
        mprotect(mapping, page, PROT_NONE);
        mprotect(inside + inner, page, PROT_NONE);
        if (!writable && inner != 0) {
            mprotect(inside, inner, PROT_READ);
        }
    }
};

std::vector<Argument> buffers;

void on_signal(int signal, siginfo_t* info, void*) {
    if (signal != SIGSEGV) {
        fail("undefined behaviour (an index outside its array, an overflow, a shift)");
    }
    const char* at = static_cast<const char*>(info->si_addr);
    for (size_t i = 0; i < buffers.size(); ++i) {
        const Argument& buffer = buffers[i];
        if (buffer.mapping != nullptr && at >= buffer.mapping &&
            at < buffer.mapping + buffer.mapped) {
            fail("touches byte " + std::to_string(at - buffer.pointer) + " of argument " +
                 std::to_string(i) + ", which has " + std::to_string(buffer.size) +
                 " (inside: a write to const)");
        }
    }
    fail("touches memory that is no argument's");
}

void catch_signals() {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    for (int signal : {SIGSEGV, SIGILL, SIGTRAP, SIGFPE, SIGBUS}) {
        sigaction(signal, &action, nullptr);
    }
}

bool read_exactly(void* to, size_t size) { return fread(to, 1, size, stdin) == size; }

template <class T>
T read_number() {
    T value;
    if (!read_exactly(&value, sizeof value)) {
        fail("the request is cut short");
    }
    return value;
}

std::vector<char> read_bytes() {
    std::vector<char> bytes(read_number<uint64_t>());
    if (!read_exactly(bytes.data(), bytes.size())) {
        fail("the request is cut short");
    }
    return bytes;
}

Index read_index() {
    const unsigned x = read_number<uint32_t>();
    const unsigned y = read_number<uint32_t>();
    const unsigned z = read_number<uint32_t>();
    return {x, y, z};
}

// The type as requests spell it: f32, in:f32, out:f32, bytes64, in:bytes2.
std::string spelling(const Parameter& parameter) {
    const std::string direction = parameter.writable ? "out:" : "in:";
    const std::string type =
        parameter.type != nullptr ? parameter.type : "bytes" + std::to_string(parameter.size);
    return parameter.pointer ? direction + type : type;
}

void launch(const Kernel& kernel) {
    gridDim = read_index();
    blockDim = read_index();
    warpSize = static_cast<int>(read_number<uint32_t>());
    const bool backwards = read_number<uint32_t>() != 0;
    const bool at_start = read_number<uint32_t>() != 0;
    const size_t count = read_number<uint32_t>();
    if (count != kernel.count) {
        fail("takes " + std::to_string(kernel.count) + " arguments, not " + std::to_string(count));
    }
    buffers = std::vector<Argument>(count);
    arguments.clear();
    for (size_t i = 0; i < count; ++i) {
        const Parameter& parameter = kernel.parameters[i];
        const std::vector<char> type = read_bytes();
        std::vector<char> bytes = read_bytes();
        const std::string given(type.begin(), type.end());
        const bool fits = parameter.pointer ? bytes.size() % parameter.size == 0
                                            : bytes.size() == parameter.size;
        if (given != spelling(parameter) || !fits) {
            fail("argument " + std::to_string(i) + " is " + spelling(parameter) + ", not " + given +
                 " of " + std::to_string(bytes.size()) + " bytes");
        }
        if (parameter.pointer) {
            buffers[i].map(bytes, at_start, parameter.writable);
            arguments.push_back(&buffers[i].pointer);
        } else {
            buffers[i].value = std::move(bytes);
            arguments.push_back(buffers[i].value.data());
        }
    }
    run_grid(kernel.call, backwards);
    for (size_t i = 0; i < count; ++i) {
        if (kernel.parameters[i].pointer && kernel.parameters[i].writable &&
            fwrite(buffers[i].pointer, 1, buffers[i].size, stdout) != buffers[i].size) {
            fail("the results can't be written");
        }
        if (buffers[i].mapping != nullptr) {
            munmap(buffers[i].mapping, buffers[i].mapped);
        }
    }
}

}  // namespace

void block_barrier() { give_way(State::at_barrier); }

int lane() { return static_cast<int>(number(current)) % warpSize; }

unsigned exchange(unsigned value, int source) {
    Fiber& fiber = *current;
    const unsigned turn = fiber.exchanges++ % 2;
    const size_t from = number(&fiber) / warpSize * warpSize + source;
    if (source < 0 || source >= warpSize || from >= fibers.size()) {
        fail("reads lane " + std::to_string(source) + ", which the wave has not");
    }
    fiber.offered[turn] = value;
    give_way(State::at_exchange);
    return fibers[from].offered[turn];
}

void launch(const Kernel& kernel, void* const* values, const Grid& grid) {
    kernel_name = kernel.name;
    arguments.assign(values, values + kernel.count);
    gridDim = grid.blocks;
    blockDim = grid.threads;
    warpSize = grid.lanes;
    run_grid(kernel.call, grid.backwards);
}

int serve(const Kernel* kernels, size_t count) {
    catch_signals();
    uint64_t length;
    while (read_exactly(&length, sizeof length)) {
        std::string name(length, '\0');
        if (!read_exactly(name.data(), length)) {
            fail("the request is cut short");
        }
        const Kernel* found = nullptr;
        for (size_t i = 0; i < count; ++i) {
            if (name == kernels[i].name) {
                found = &kernels[i];
            }
        }
        if (found == nullptr) {
            fail("no kernel is called " + name);
        }
        kernel_name = found->name;
        launch(*found);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace simulator
