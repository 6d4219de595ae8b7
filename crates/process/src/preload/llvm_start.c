/* What LLVM's programs do first in every process, done once for all jobs of a
 * fork server: registering the targets, and taking all options back to their
 * defaults. Both write to hundreds of pages, each of which a job would have
 * copied, and run through code that it needs for nothing else.
 *
 * Registering a target twice is registering it once, and options that nothing
 * has set are at their defaults: a job may find either done. So the functions
 * here, which programs find before LLVM's, call those until a fork server has
 * started, and then do nothing; the second and all later calls that take
 * options back are LLVM's again. A target that is not in the list is
 * registered by every job.
 *
 * Source: llvm-project, llvm/include/llvm/Support/TargetSelect.h;
 * llvm/include/llvm/MC/TargetRegistry.h, "safe to call this function multiple
 * times"; llvm/include/llvm/Support/CommandLine.h, ResetAllOptionOccurrences,
 * with its callers in clang/tools/driver/driver.cpp and lld/ELF/Driver.cpp.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

/* Before the first job is forked; gives whether the program is linked with
 * LLVM's shared library. */
int gfxpack_start_llvm(void);

#define PUBLIC __attribute__((visibility("default")))

/* In the order of LLVM's own lists. */
#define OF_TARGETS(DO, part)                                                                                          \
    DO(AArch64, part) DO(AMDGPU, part) DO(ARM, part) DO(AVR, part) DO(BPF, part) DO(Hexagon, part) DO(Lanai, part)    \
    DO(LoongArch, part) DO(Mips, part) DO(MSP430, part) DO(NVPTX, part) DO(PowerPC, part) DO(RISCV, part)             \
    DO(Sparc, part) DO(SPIRV, part) DO(SystemZ, part) DO(VE, part) DO(WebAssembly, part) DO(X86, part)                \
    DO(XCore, part) DO(ARC, part) DO(CSKY, part) DO(DirectX, part) DO(M68k, part) DO(Xtensa, part)
#define ALL(DO)                                                                                                       \
    OF_TARGETS(DO, TargetInfo)                                                                                        \
    OF_TARGETS(DO, Target) OF_TARGETS(DO, TargetMC) OF_TARGETS(DO, AsmPrinter) OF_TARGETS(DO, AsmParser)

typedef void function(void);

static int registered;
/* Whether nothing was set since options were taken back. */
static int at_defaults;

/* Whether there is one. */
static int call_next(const char *name) {
    function *next = (function *)dlsym(RTLD_NEXT, name);
    if (next != NULL)
        next();
    return next != NULL;
}

#define DEFINE(target, part)                                                                                          \
    PUBLIC void LLVMInitialize##target##part(void) {                                                                  \
        if (!registered)                                                                                              \
            call_next("LLVMInitialize" #target #part);                                                                \
    }
#define CALL(target, part) LLVMInitialize##target##part();

ALL(DEFINE)

#define RESET_OPTIONS _ZN4llvm2cl25ResetAllOptionOccurrencesEv
#define RESET_OPTIONS_NAME "_ZN4llvm2cl25ResetAllOptionOccurrencesEv"

/* llvm::cl::ResetAllOptionOccurrences() */
PUBLIC void RESET_OPTIONS(void) {
    if (!at_defaults)
        call_next(RESET_OPTIONS_NAME);
    at_defaults = 0;
}

int gfxpack_start_llvm(void) {
    at_defaults = call_next(RESET_OPTIONS_NAME);
    if (at_defaults) {
        ALL(CALL)
        registered = 1;
        /* Registering adds options. */
        call_next(RESET_OPTIONS_NAME);
    }
    return registered;
}
