// What the simulator must know of a kernel to call it: its parameters' types,
// found by the compiler, so that a test that passes another type is told so.
#pragma once

#include <stddef.h>

#include <utility>

#include "hip/hip_runtime.h"

namespace simulator {

struct Parameter {
    const char* type;   // of the scalar, or of what is pointed to; null for a structure
    size_t size;        // of that type
    size_t alignment;   // of the parameter itself
    bool pointer;
    bool writable;      // a pointer to non-const
};

struct Kernel {
    const char* name;
    const Parameter* parameters;
    size_t count;
    void (*call)(void* const* values);
};

template <class T> constexpr const char* type_name = nullptr;
template <> inline constexpr const char* type_name<float> = "f32";
template <> inline constexpr const char* type_name<_Float16> = "f16";
template <> inline constexpr const char* type_name<int> = "i32";
template <> inline constexpr const char* type_name<long long> = "i64";
template <> inline constexpr const char* type_name<unsigned char> = "u8";
template <> inline constexpr const char* type_name<unsigned short> = "u16";
template <> inline constexpr const char* type_name<unsigned int> = "u32";
template <> inline constexpr const char* type_name<unsigned long long> = "u64";

template <class T>
struct Described {
    static constexpr Parameter parameter{type_name<T>, sizeof(T), alignof(T), false, false};
};
template <class T>
struct Described<T*> {
    static constexpr Parameter parameter{type_name<T>, sizeof(T), alignof(T*), true, true};
};
template <class T>
struct Described<const T*> {
    static constexpr Parameter parameter{type_name<T>, sizeof(T), alignof(T*), true, false};
};

template <auto Function>
struct Bound;
template <class... Args, void (*Function)(Args...)>
struct Bound<Function> {
    static constexpr Parameter parameters[] = {Described<Args>::parameter...};

    template <size_t... I>
    static void spread(void* const* values, std::index_sequence<I...>) {
        Function(*static_cast<Args*>(values[I])...);
    }
    static void call(void* const* values) { spread(values, std::index_sequence_for<Args...>()); }
    static constexpr Kernel kernel(const char* name) {
        return Kernel{name, parameters, sizeof...(Args), call};
    }
};

struct Grid {
    Index blocks, threads;
    int lanes;       // of a wave
    bool backwards;  // the last thread of a block runs first
};

// Runs a kernel with the values of its parameters.
void launch(const Kernel& kernel, void* const* values, const Grid& grid);

// Carries out the launches on stdin and writes the buffers they leave to
// stdout; the exit status of the process.
int serve(const Kernel* kernels, size_t count);

}  // namespace simulator
