// What the header forbids: an exception out of a compiler. The process ends; it does not go on
// with locks held and half a kernel.
#include <gfxpack_runtime.h>

#include <cstdio>
#include <stdexcept>

static int32_t throws(void *, const char *, const char *, gfxpack_compiled *) {
    throw std::runtime_error("out of a compiler");
}

int main() {
    gfxpack_options *options = nullptr;
    gfxpack_cache *cache = nullptr;
    gfxpack_lookup *lookup = nullptr;
    gfxpack_options_new("gfx906@60", &options);
    gfxpack_options_set_places(options, nullptr, nullptr);
    gfxpack_cache_open(options, &cache);
    std::puts("about to throw");
    std::fflush(stdout);
    try {
        gfxpack_get_or_compile(cache, "a.o", "b", throws, nullptr, &lookup);
    } catch (...) {
        std::puts("it came through");
    }
    std::puts("went on");
    return 0;
}
