/*
 * gfxpack: finds precompiled GPU kernels, and keeps what had to be compiled.
 *
 * Link with -lgfxpack_runtime, or ask pkg-config for gfxpack-runtime, or CMake for the package
 * gfxpack-runtime and its target gfxpack::runtime.
 *
 * Every fault of a kernel database (kdb) is a miss with a reason, and one warning: no call here
 * fails because of a file. Texts are UTF-8 and end with NUL; paths may be of any bytes. What a
 * function hands out by an `out` pointer is the caller's, to be ended with the _free() function of
 * its kind; what it returns as a pointer to const is not. A handle must be one that this library
 * handed out, or null.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef GFXPACK_RUNTIME_H
#define GFXPACK_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Version of the header, to be compared with gfxpack_version().
 */
#define GFXPACK_VERSION_MAJOR 0

/**
 * See GFXPACK_VERSION_MAJOR.
 */
#define GFXPACK_VERSION_MINOR 1

/**
 * See GFXPACK_VERSION_MAJOR.
 */
#define GFXPACK_VERSION_PATCH 0

/**
 * What became of a call. Negative for what the caller did wrong or its
 * compiler failed with; gfxpack_last_error() then has it in words.
 *
 * What is wrong with a cache's files never shows here: that is a miss.
 */
enum gfxpack_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It was done; for a lookup: there is a kernel.
     */
    GFXPACK_STATUS_OK = 0,
    /**
     * No file and not the memory holds the kernel. The lookup says why.
     */
    GFXPACK_STATUS_MISS = 1,
    /**
     * A pointer is null where it may not be.
     */
    GFXPACK_STATUS_NULL_POINTER = -1,
    /**
     * A text is not UTF-8, a path not absolute, or a number none of those that
     * are defined.
     */
    GFXPACK_STATUS_INVALID_ARGUMENT = -2,
    /**
     * The target is not spelled as one.
     */
    GFXPACK_STATUS_INVALID_TARGET = -3,
    /**
     * The caller's compiler failed, or gave nothing.
     */
    GFXPACK_STATUS_COMPILER_FAILED = -4,
    /**
     * There is a mistake in this library. It was kept from doing harm.
     */
    GFXPACK_STATUS_INTERNAL = -5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_status gfxpack_status;
#else
typedef int32_t gfxpack_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where the facts about a device come from.
 */
enum gfxpack_source
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * None of the others.
     */
    GFXPACK_SOURCE_UNKNOWN = 0,
    /**
     * MIOPEN_DEVICE_ARCH names it, whatever is built in.
     */
    GFXPACK_SOURCE_ENVIRONMENT = 1,
    /**
     * The HIP runtime library, which is what MIOpen asks.
     */
    GFXPACK_SOURCE_HIP = 2,
    /**
     * The kernel driver's topology below /sys/class/kfd.
     */
    GFXPACK_SOURCE_KFD = 3,
    /**
     * The PCI device ID alone: the compute units are not known.
     */
    GFXPACK_SOURCE_PCI = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_source gfxpack_source;
#else
typedef int32_t gfxpack_source;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a warning is about.
 */
enum gfxpack_warning_class
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * No kdb is installed for the device.
     */
    GFXPACK_WARNING_CLASS_MISSING_SYSTEM_KDB = 0,
    /**
     * A file is less than 512 bytes: most likely a Git LFS pointer.
     */
    GFXPACK_WARNING_CLASS_TOO_SMALL = 1,
    /**
     * A file is no SQLite file, or a damaged one, or holds a damaged kernel.
     */
    GFXPACK_WARNING_CLASS_CORRUPT = 2,
    /**
     * The operating system does not let the file be read.
     */
    GFXPACK_WARNING_CLASS_UNREADABLE = 3,
    /**
     * The file has other tables or columns.
     */
    GFXPACK_WARNING_CLASS_WRONG_SCHEMA = 4,
    /**
     * The file is in WAL mode where that can't be read.
     */
    GFXPACK_WARNING_CLASS_WAL_MODE = 5,
    /**
     * The file holds code for other devices, or no code.
     */
    GFXPACK_WARNING_CLASS_WRONG_TARGET = 6,
    /**
     * Another program keeps the file locked.
     */
    GFXPACK_WARNING_CLASS_BUSY = 7,
    /**
     * The user's cache is not where it should be, or nowhere.
     */
    GFXPACK_WARNING_CLASS_USER_PLACE = 8,
    /**
     * A file or directory belongs to somebody else or others may write to it.
     */
    GFXPACK_WARNING_CLASS_UNTRUSTED = 9,
    /**
     * A compiled kernel could not be saved.
     */
    GFXPACK_WARNING_CLASS_NOT_STORED = 10,
    /**
     * Something else, which the text tells.
     */
    GFXPACK_WARNING_CLASS_OTHER = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_warning_class gfxpack_warning_class;
#else
typedef int32_t gfxpack_warning_class;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where a kernel came from, or could have come from.
 */
enum gfxpack_layer
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Nowhere: the lookup was a miss.
     */
    GFXPACK_LAYER_NONE = 0,
    /**
     * This process's memory.
     */
    GFXPACK_LAYER_MEMORY = 1,
    /**
     * An installed kdb.
     */
    GFXPACK_LAYER_SYSTEM = 2,
    /**
     * The user's kdb.
     */
    GFXPACK_LAYER_USER = 3,
    /**
     * The caller's compiler, just now.
     */
    GFXPACK_LAYER_COMPILED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_layer gfxpack_layer;
#else
typedef int32_t gfxpack_layer;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a kdb gave nothing. The first two are no faults.
 */
enum gfxpack_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is no such file.
     */
    GFXPACK_REASON_NO_FILE = 0,
    /**
     * The file does not hold the key.
     */
    GFXPACK_REASON_NO_KERNEL = 1,
    /**
     * The file as a whole can't be used: too small, damaged, no kdb, or not
     * readable.
     */
    GFXPACK_REASON_UNREADABLE = 2,
    /**
     * Another program keeps the file locked.
     */
    GFXPACK_REASON_BUSY = 3,
    /**
     * The user's file was no kdb and was moved aside.
     */
    GFXPACK_REASON_MOVED_ASIDE = 4,
    /**
     * Somebody else could have written the file.
     */
    GFXPACK_REASON_UNTRUSTED = 5,
    /**
     * The file holds the key, but not a whole kernel.
     */
    GFXPACK_REASON_DAMAGED = 6,
    /**
     * The file holds the key, with bytes that are no code object.
     */
    GFXPACK_REASON_NO_CODE_OBJECT = 7,
    /**
     * The file holds the key, with code for other devices.
     */
    GFXPACK_REASON_OTHER_TARGET = 8,
    /**
     * Something else, which the text tells.
     */
    GFXPACK_REASON_OTHER = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_reason gfxpack_reason;
#else
typedef int32_t gfxpack_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which layer is asked first.
 */
enum gfxpack_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The installed kdb, then the user's, as MIOpen documents it. The
     * default.
     */
    GFXPACK_ORDER_SYSTEM_FIRST = 0,
    /**
     * The user's, then the installed one, as MIOpen's code does it.
     */
    GFXPACK_ORDER_USER_FIRST = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_order gfxpack_order;
#else
typedef int32_t gfxpack_order;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Paths that gfxpack_options_set_path() sets.
 */
enum gfxpack_path
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The directory of installed kdbs, asked unless MIOPEN_SYSTEM_DB_PATH
     * names another. Absolute.
     */
    GFXPACK_PATH_SYSTEM_DIR = 0,
    /**
     * The library that was loaded, absolute: installed kdbs are in
     * ../share/miopen/db from its directory.
     */
    GFXPACK_PATH_LIBRARY = 1,
    /**
     * The user cache's directory as the program was built with; a leading ~
     * is the home directory, empty is no user cache. "~/.cache/miopen/".
     */
    GFXPACK_PATH_BUILD_TIME_CACHE_DIR = 2,
    /**
     * The user cache's sub-directory: MIOpen 3.4.0 has "3.4.0.". The
     * library's own version.
     */
    GFXPACK_PATH_VERSION = 3,
    /**
     * Below which the ROCm prefixes are: "/".
     */
    GFXPACK_PATH_ROOT = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_path gfxpack_path;
#else
typedef int32_t gfxpack_path;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What gfxpack_options_set_flag() turns on and off.
 */
enum gfxpack_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * A code object's gfx target is held against the device before the bytes
     * are handed out or saved. On.
     */
    GFXPACK_FLAG_VERIFY_TARGET = 0,
    /**
     * Hits are kept in memory, so that asking again reads no file. Off.
     */
    GFXPACK_FLAG_KEEP_HITS = 1,
    /**
     * Nothing on disk is made, changed or moved. A user kdb that can't be read
     * so, since a write to it was cut short, is a miss. Off.
     */
    GFXPACK_FLAG_LOOK_ONLY = 2,
    /**
     * Somebody is told of warnings. On.
     */
    GFXPACK_FLAG_WARN = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_flag gfxpack_flag;
#else
typedef int32_t gfxpack_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What gfxpack_options_set_limit() sets.
 */
enum gfxpack_limit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Largest code object handed out or saved, in bytes.
     */
    GFXPACK_LIMIT_MAX_OBJECT_BYTES = 0,
    /**
     * Bytes of one user kdb. What was used longest ago goes first.
     */
    GFXPACK_LIMIT_USER_CACHE_BYTES = 1,
    /**
     * Bytes of code objects kept in memory.
     */
    GFXPACK_LIMIT_MEMORY_BYTES = 2,
    /**
     * How long one call waits, all in all, for a user kdb that another process
     * has locked, in milliseconds. After a wait in vain nobody waits for the
     * file for a minute, unless it turns out free.
     */
    GFXPACK_LIMIT_BUSY_WAIT_MS = 3,
    /**
     * How long to wait for another thread or process that compiles the same
     * key, before compiling it too, in milliseconds.
     */
    GFXPACK_LIMIT_COMPILE_WAIT_MS = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_limit gfxpack_limit;
#else
typedef int32_t gfxpack_limit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Finds kernels, and keeps those that had to be compiled.
 *
 * The caller owns it and ends it with gfxpack_cache_free(). Any number of
 * threads may use it at once; one of them frees it, after the others are done.
 *
 * A process made by fork() goes on with it: it opens the files anew, leaves its
 * parent's alone, and frees the cache or does not. fork() waits up to a second
 * for threads that are reading or writing a file. If one is then still at it,
 * since it waits for another program, or if the process was made in a way that
 * does not call what pthread_atfork() was told, the child may find every kdb
 * unreadable.
 */
typedef struct gfxpack_cache gfxpack_cache;

/**
 * What a compiler puts its result into. It ends with the call of the compiler
 * that it was given to, and belongs to the thread of that call.
 */
typedef struct gfxpack_compiled gfxpack_compiled;

/**
 * One GPU. It belongs to the gfxpack_devices that it came from.
 */
typedef struct gfxpack_device gfxpack_device;

/**
 * The GPUs of this machine, and what stood in the way of finding them.
 *
 * The caller owns it and ends it with gfxpack_devices_free(). Whatever it
 * hands out belongs to it and is good until then. Nothing about it changes:
 * any number of threads may use it.
 */
typedef struct gfxpack_devices gfxpack_devices;

/**
 * What a lookup gave.
 *
 * The caller owns it and ends it with gfxpack_lookup_free(). Whatever it
 * hands out belongs to it and is good until then; it goes on being so when
 * the cache is freed. Nothing about it changes: any number of threads may use
 * it, and one of them, the last one, frees it.
 */
typedef struct gfxpack_lookup gfxpack_lookup;

/**
 * One kdb that was asked in vain.
 *
 * It belongs to the lookup that it came from, and is good as long as that is.
 * Nothing about it changes: any number of threads may use it.
 */
typedef struct gfxpack_miss gfxpack_miss;

/**
 * How a cache is to be opened.
 *
 * The caller owns it and ends it with gfxpack_options_free(), at any time:
 * caches keep what they need. One thread at a time may use it.
 */
typedef struct gfxpack_options gfxpack_options;

/**
 * A function that is told of warnings, each once per cache and file.
 *
 * It is called by whichever thread opens or asks the cache, several at a time
 * if need be, before that call returns. `file` and `text` are the library's
 * and end with the call. `text` is one line, for
 * GFXPACK_WARNING_CLASS_MISSING_SYSTEM_KDB two, without a newline at its end.
 * The function must return: no longjmp() and no C++ exception out of it (an
 * exception ends the process). It may use the cache.
 */
typedef void (*gfxpack_warning_fn)(void *user_data,
                                   gfxpack_warning_class kind,
                                   const char *file,
                                   const char *text);

/**
 * A function that compiles a kernel that no kdb has.
 *
 * It puts the code object into `compiled` with gfxpack_compiled_set() and
 * returns 0, or returns another number, after gfxpack_compiled_fail() where it
 * has words for it. It is called by the thread that asks for the kernel,
 * before that call returns; of several that ask for one key at a time, one is
 * told to compile. `kernel_name` and `kernel_args` are the caller's own. The
 * function must return: no longjmp() and no C++ exception out of it (an
 * exception ends the process). It may use the cache.
 */
typedef int32_t (*gfxpack_compile_fn)(void *user_data,
                                      const char *kernel_name,
                                      const char *kernel_args,
                                      struct gfxpack_compiled *compiled);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is loaded: "0.1.0".
 *
 * The text is static. Any thread may call this.
 */
const char *gfxpack_version(void);

/**
 * What the last call of this thread that failed failed with, in one line.
 *
 * Null where none has. Calls that succeed do not change it. The text belongs
 * to the library and is good until another call of this thread fails, or the
 * thread ends. Any thread may call this; each has its own.
 */
const char *gfxpack_last_error(void);

/**
 * What can be done about gfxpack_last_error(), in one line.
 *
 * Null where that is null. Owned and to be used as that is. Any thread may
 * call this.
 */
const char *gfxpack_last_error_hint(void);

/**
 * Finds the GPUs: the HIP runtime is asked first, then the kernel driver, then
 * the PCI bus; the environment overrides all of them.
 *
 * `sysfs` is where the kernel driver and the PCI bus are looked at, null for
 * "/sys". `hip_library` is the HIP runtime's file, null for the one that is
 * loaded or installed, empty to ask none; loading it runs its code, and it
 * stays loaded. That there is no GPU, or no way to find out, is
 * GFXPACK_STATUS_OK and a count of 0. `out` receives devices that the caller
 * owns, or null. This reads the environment, which no other thread may change
 * meanwhile; any thread may call it.
 */
gfxpack_status gfxpack_detect(const char *sysfs,
                              const char *hip_library,
                              struct gfxpack_devices **out);

/**
 * Ends devices and all that they handed out. Null is fine. Any thread may call
 * this, once no other uses it.
 */
void gfxpack_devices_free(struct gfxpack_devices *devices);

/**
 * How many GPUs there are; 0 for null. Any thread may call this.
 */
size_t gfxpack_devices_count(const struct gfxpack_devices *devices);

/**
 * One of them, counted from 0, in the order of HIP's device numbers where HIP
 * was asked; null past the last one. Owned by `devices`. Any thread may call
 * this.
 */
const struct gfxpack_device *gfxpack_devices_get(const struct gfxpack_devices *devices,
                                                 size_t index);

/**
 * The HIP runtime library that was asked, "libamdhip64.so.6 (6.3.42134)"; null
 * where none was. Owned by `devices`. Any thread may call this.
 */
const char *gfxpack_devices_hip(const struct gfxpack_devices *devices);

/**
 * A sentence about what could not be asked or was overridden, counted from 0;
 * null past the last one. Owned by `devices`. Any thread may call this.
 */
const char *gfxpack_devices_note(const struct gfxpack_devices *devices, size_t index);

/**
 * What gfxpack_options_new() takes: "gfx90a:sramecc+:xnack-@104"; null for
 * null. Owned by the gfxpack_devices. Any thread may call this.
 */
const char *gfxpack_device_target(const struct gfxpack_device *device);

/**
 * Compute units as MIOpen counts them: from gfx10 on, work-group processors of
 * two. 0 where they are not known, and for null. Any thread may call this.
 */
uint32_t gfxpack_device_compute_units(const struct gfxpack_device *device);

/**
 * Where the two above come from; GFXPACK_SOURCE_UNKNOWN for null. Any thread
 * may call this.
 */
gfxpack_source gfxpack_device_source(const struct gfxpack_device *device);

/**
 * What people call it; null where that is not told. Owned by the
 * gfxpack_devices. Any thread may call this.
 */
const char *gfxpack_device_name(const struct gfxpack_device *device);

/**
 * Its place on the PCI bus, "0000:03:00.0"; null where that is not told. Owned
 * by the gfxpack_devices. Any thread may call this.
 */
const char *gfxpack_device_pci(const struct gfxpack_device *device);

/**
 * Makes options for a device, with all else at its default.
 *
 * `target` is spelled "gfx90a@104", "gfx90a:xnack+@104" or, for all numbers of
 * compute units, "gfx90a"; gfxpack_device_target() gives it. `out` receives
 * options that the caller owns, or null. Any thread may call this.
 */
gfxpack_status gfxpack_options_new(const char *target, struct gfxpack_options **out);

/**
 * Ends options. Null is fine. Any thread may call this, for options that no
 * other uses.
 */
void gfxpack_options_free(struct gfxpack_options *options);

/**
 * Sets which layer is asked first: a gfxpack_order. One thread at a time may
 * use the options.
 */
gfxpack_status gfxpack_options_set_order(struct gfxpack_options *options, int32_t order);

/**
 * Sets a path: a gfxpack_path. It is copied. Null gives back the default. One
 * thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_path(struct gfxpack_options *options,
                                        int32_t which,
                                        const char *value);

/**
 * Uses exactly these directories, whatever the environment and
 * gfxpack_options_set_path() say: installed kdbs in `system_dir`, or none
 * where that is null; the user's kdb in `user_dir`, or kernels kept in memory
 * only where that is null. Both are absolute; they are copied. One thread at a
 * time may use the options.
 */
gfxpack_status gfxpack_options_set_places(struct gfxpack_options *options,
                                          const char *system_dir,
                                          const char *user_dir);

/**
 * Turns a gfxpack_flag on or off. One thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_flag(struct gfxpack_options *options, int32_t flag, bool on);

/**
 * Sets a gfxpack_limit. One thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_limit(struct gfxpack_options *options,
                                         int32_t limit,
                                         uint64_t value);

/**
 * Sets the log level, as MIOPEN_LOG_LEVEL does, which it takes the place of:
 * at 1, 2 and 3 nobody is told of warnings. One thread at a time may use the
 * options.
 */
gfxpack_status gfxpack_options_set_log_level(struct gfxpack_options *options, uint8_t level);

/**
 * Has a function told of warnings instead of standard error; null gives them
 * back to standard error.
 *
 * `user_data` is handed to it and may be null. Both must be good as long as a
 * cache that was opened with these options is there; the library frees
 * neither. One thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_warning_callback(struct gfxpack_options *options,
                                                    gfxpack_warning_fn callback,
                                                    void *user_data);

/**
 * Opens a cache.
 *
 * This reads the environment, which no other thread may change meanwhile, and
 * no kdb: what is wrong with a place or file is a warning, and a miss of the
 * lookups that need it. In a program that has more rights than its caller
 * (set-user-ID, set-group-ID, file capabilities) no variable chooses a
 * directory. `options` stay the caller's. `out` receives a cache that the
 * caller owns, or null. Any thread may call this.
 */
gfxpack_status gfxpack_cache_open(const struct gfxpack_options *options,
                                  struct gfxpack_cache **out);

/**
 * Ends a cache. Lookups that it gave stay good. Null is fine. Any thread may
 * call this, once no other uses it.
 */
void gfxpack_cache_free(struct gfxpack_cache *cache);

/**
 * How many files are asked, whether they exist or not; 0 for null. Any thread
 * may call this.
 */
size_t gfxpack_cache_file_count(const struct gfxpack_cache *cache);

/**
 * The path of one of them, in the order in which they are asked, counted from
 * 0; null past the last one. Owned by the cache. Any thread may call this.
 */
const char *gfxpack_cache_file(const struct gfxpack_cache *cache, size_t index);

/**
 * Whether that file is an installed kdb or the user's; GFXPACK_LAYER_NONE past
 * the last one. Any thread may call this.
 */
gfxpack_layer gfxpack_cache_file_layer(const struct gfxpack_cache *cache, size_t index);

/**
 * Looks a kernel up.
 *
 * The key is taken byte for byte: `kernel_name` is the source's name and ".o"
 * ("conv.cl.o"), `kernel_args` the options and " -mcpu=" and the device's name
 * (" -DX=1 -mcpu=gfx90a").
 *
 * GFXPACK_STATUS_OK where there is a kernel, GFXPACK_STATUS_MISS where there
 * is none; `out` receives, in both cases, a lookup that the caller owns, and
 * null in all others. Any number of threads may call this with one cache.
 */
gfxpack_status gfxpack_get(const struct gfxpack_cache *cache,
                           const char *kernel_name,
                           const char *kernel_args,
                           struct gfxpack_lookup **out);

/**
 * Looks a kernel up, and where no kdb has it compiles it and saves it in the
 * user's.
 *
 * GFXPACK_STATUS_OK where there is a kernel, saved or not: `out` then
 * receives a lookup that the caller owns. GFXPACK_STATUS_COMPILER_FAILED
 * where `compile` fails or gives no bytes; gfxpack_last_error() then has its
 * words. In that and all other cases `out` receives null. `user_data` is handed
 * to `compile` and may be null. Any number of threads may call this with one
 * cache.
 */
gfxpack_status gfxpack_get_or_compile(const struct gfxpack_cache *cache,
                                      const char *kernel_name,
                                      const char *kernel_args,
                                      gfxpack_compile_fn compile,
                                      void *user_data,
                                      struct gfxpack_lookup **out);

/**
 * Puts the code object that was compiled where the cache finds it. The bytes
 * are copied. A second call takes the place of the first. Null, or more bytes
 * than any object can have, change nothing; none at all are no code object.
 * Only the thread that the compiler was called by may call this.
 */
void gfxpack_compiled_set(struct gfxpack_compiled *compiled, const uint8_t *data, size_t size);

/**
 * Says in words why there is no code object. The text is copied. Only the
 * thread that the compiler was called by may call this.
 */
void gfxpack_compiled_fail(struct gfxpack_compiled *compiled, const char *text);

/**
 * Ends a lookup and all that it handed out. Null is fine. Any thread may call
 * this, once no other uses it.
 */
void gfxpack_lookup_free(struct gfxpack_lookup *lookup);

/**
 * The kernel's bytes, for hipModuleLoadData(); null where there is none.
 *
 * Their number is put into `size` unless that is null. They are checked: MD5
 * and gfx target. Owned by the lookup; not to be written to. Any thread may
 * call this.
 */
const uint8_t *gfxpack_lookup_data(const struct gfxpack_lookup *lookup, size_t *size);

/**
 * Where the kernel came from; GFXPACK_LAYER_NONE for a miss or null. Any
 * thread may call this.
 */
gfxpack_layer gfxpack_lookup_layer(const struct gfxpack_lookup *lookup);

/**
 * The kdb that holds the kernel; null where it came from no file. Owned by the
 * lookup. Any thread may call this.
 */
const char *gfxpack_lookup_file(const struct gfxpack_lookup *lookup);

/**
 * Why a kernel that was compiled was not saved, in one line; null where it
 * was, or where there was nothing to save. The kernel itself is as good. Owned
 * by the lookup. Any thread may call this.
 */
const char *gfxpack_lookup_not_stored(const struct gfxpack_lookup *lookup);

/**
 * How many kdbs were asked in vain; 0 for null. Any thread may call this.
 */
size_t gfxpack_lookup_miss_count(const struct gfxpack_lookup *lookup);

/**
 * One of them, in the order in which they were asked, counted from 0; null
 * past the last one. Owned by the lookup. Any thread may call this.
 */
const struct gfxpack_miss *gfxpack_lookup_miss(const struct gfxpack_lookup *lookup, size_t index);

/**
 * Whether it was an installed kdb or the user's; GFXPACK_LAYER_NONE for null.
 * Any thread may call this.
 */
gfxpack_layer gfxpack_miss_layer(const struct gfxpack_miss *miss);

/**
 * Why it gave nothing; GFXPACK_REASON_OTHER for null. Any thread may call
 * this.
 */
gfxpack_reason gfxpack_miss_reason(const struct gfxpack_miss *miss);

/**
 * The kdb's path, absolute; null for null. Owned by the lookup. Any thread may
 * call this.
 */
const char *gfxpack_miss_file(const struct gfxpack_miss *miss);

/**
 * Why it gave nothing, in one line of words; null for null. Owned by the
 * lookup. Any thread may call this.
 */
const char *gfxpack_miss_text(const struct gfxpack_miss *miss);

/**
 * What the user can do about it, in one line; null for null. Owned by the
 * lookup. Any thread may call this.
 */
const char *gfxpack_miss_hint(const struct gfxpack_miss *miss);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GFXPACK_RUNTIME_H */
