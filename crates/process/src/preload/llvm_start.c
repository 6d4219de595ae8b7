/* Does the first steps of LLVM's programs once for all jobs of a fork server:
 * registering the targets, and resetting all options to their defaults. Both
 * write to hundreds of pages, each of which would be copied for a job, and run
 * code that the job needs for nothing else.
 *
 * Registering a target twice has the same effect as once, and options that were
 * never set have their defaults, so a job may find both done. The functions here,
 * which programs find before LLVM's, call LLVM's until a fork server has started,
 * and then do nothing. The second and all later calls that reset options call
 * LLVM's again. A target that is not in the list is registered by every job.
 *
 * Source: llvm-project, llvm/include/llvm/Support/TargetSelect.h;
 * llvm/include/llvm/MC/TargetRegistry.h, "safe to call this function multiple
 * times"; llvm/include/llvm/Support/CommandLine.h, ResetAllOptionOccurrences,
 * with its callers in clang/tools/driver/driver.cpp and lld/ELF/Driver.cpp.
 */
#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>

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
/* Whether no option was set since they were reset. */
static int at_defaults;

/* Calls LLVM's function. Returns whether there is one. */
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
        /* Registering targets adds options. */
        call_next(RESET_OPTIONS_NAME);
    }
    return registered;
}
