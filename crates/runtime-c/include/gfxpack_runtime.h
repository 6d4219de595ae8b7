/*
 * gfxpack: finds precompiled GPU kernels, and keeps what had to be compiled.
 *
 * Link with -lgfxpack_runtime, or ask pkg-config for gfxpack-runtime, or CMake for the package
 * gfxpack-runtime and its target gfxpack::runtime.
 *
 * Every fault of a kernel database (kdb) is a miss with a reason, and one warning: no call fails
 * because of a file. Texts are UTF-8 and NUL-terminated; paths may contain any bytes. The caller
 * owns what it receives by an `out` pointer, and frees it with the _free() function of its type; it
 * does not own returned pointers to const. A handle must come from this library, or be null.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef GFXPACK_RUNTIME_H
#define GFXPACK_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Version of the header; compare it with gfxpack_version().
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
 * The outcome of a call. Negative for errors of the caller or of its compiler;
 * gfxpack_last_error() then has the message.
 *
 * Problems with a cache's files are never errors: they are misses.
 */
enum gfxpack_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Success; for a lookup: there is a kernel.
     */
    GFXPACK_STATUS_OK = 0,
    /**
     * The kernel is neither in memory nor in any file. The lookup says why.
     */
    GFXPACK_STATUS_MISS = 1,
    /**
     * A pointer is null that must not be.
     */
    GFXPACK_STATUS_NULL_POINTER = -1,
    /**
     * A text is not UTF-8, a path is not absolute, or a number is undefined.
     */
    GFXPACK_STATUS_INVALID_ARGUMENT = -2,
    /**
     * The target can't be parsed.
     */
    GFXPACK_STATUS_INVALID_TARGET = -3,
    /**
     * The caller's compiler failed, or returned no code.
     */
    GFXPACK_STATUS_COMPILER_FAILED = -4,
    /**
     * A bug in this library. The panic was caught.
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
 * Where the properties of a device were found.
 */
enum gfxpack_source
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Another source.
     */
    GFXPACK_SOURCE_UNKNOWN = 0,
    /**
     * MIOPEN_DEVICE_ARCH, whatever GPU is installed.
     */
    GFXPACK_SOURCE_ENVIRONMENT = 1,
    /**
     * The HIP runtime library, which MIOpen uses too.
     */
    GFXPACK_SOURCE_HIP = 2,
    /**
     * The kernel driver's topology below /sys/class/kfd.
     */
    GFXPACK_SOURCE_KFD = 3,
    /**
     * The PCI device ID only: the compute units are unknown.
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
     * A file has less than 512 bytes: most likely it is a Git LFS pointer.
     */
    GFXPACK_WARNING_CLASS_TOO_SMALL = 1,
    /**
     * A file is not an SQLite file, is damaged, or contains a damaged kernel.
     */
    GFXPACK_WARNING_CLASS_CORRUPT = 2,
    /**
     * The operating system refuses to read the file.
     */
    GFXPACK_WARNING_CLASS_UNREADABLE = 3,
    /**
     * The file has unexpected tables or columns.
     */
    GFXPACK_WARNING_CLASS_WRONG_SCHEMA = 4,
    /**
     * The file is in WAL mode, in a place in which that can't be read.
     */
    GFXPACK_WARNING_CLASS_WAL_MODE = 5,
    /**
     * The file contains code for other devices, or no code.
     */
    GFXPACK_WARNING_CLASS_WRONG_TARGET = 6,
    /**
     * Another program keeps the file locked.
     */
    GFXPACK_WARNING_CLASS_BUSY = 7,
    /**
     * The user's cache is not in its usual place, or there is none.
     */
    GFXPACK_WARNING_CLASS_USER_PLACE = 8,
    /**
     * A file or directory belongs to another user, or others may write to it.
     */
    GFXPACK_WARNING_CLASS_UNTRUSTED = 9,
    /**
     * A compiled kernel could not be saved.
     */
    GFXPACK_WARNING_CLASS_NOT_STORED = 10,
    /**
     * Something else; see the text.
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
 * Why a kdb had no usable kernel. The first two reasons are no faults.
 */
enum gfxpack_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The file does not exist.
     */
    GFXPACK_REASON_NO_FILE = 0,
    /**
     * The file does not have the key.
     */
    GFXPACK_REASON_NO_KERNEL = 1,
    /**
     * The whole file is unusable: too small, damaged, not a kdb, or not
     * readable.
     */
    GFXPACK_REASON_UNREADABLE = 2,
    /**
     * Another program keeps the file locked.
     */
    GFXPACK_REASON_BUSY = 3,
    /**
     * The user's file was not a kdb and was moved aside.
     */
    GFXPACK_REASON_MOVED_ASIDE = 4,
    /**
     * Somebody else could have written the file.
     */
    GFXPACK_REASON_UNTRUSTED = 5,
    /**
     * The file has the key, but not the complete kernel.
     */
    GFXPACK_REASON_DAMAGED = 6,
    /**
     * The file has the key, with bytes that are not a code object.
     */
    GFXPACK_REASON_NO_CODE_OBJECT = 7,
    /**
     * The file has the key, with code for other devices.
     */
    GFXPACK_REASON_OTHER_TARGET = 8,
    /**
     * Something else; see the text.
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
 * Which layer is searched first.
 */
enum gfxpack_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The installed kdb, then the user's, as in MIOpen's documentation. The
     * default.
     */
    GFXPACK_ORDER_SYSTEM_FIRST = 0,
    /**
     * The user's, then the installed one, as in MIOpen's code.
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
 * Paths for gfxpack_options_set_path().
 */
enum gfxpack_path
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The directory of installed kdbs, unless MIOPEN_SYSTEM_DB_PATH names
     * another. Absolute.
     */
    GFXPACK_PATH_SYSTEM_DIR = 0,
    /**
     * The loaded library's path, absolute: installed kdbs are in
     * ../share/miopen/db relative to its directory.
     */
    GFXPACK_PATH_LIBRARY = 1,
    /**
     * The user cache's directory as the program was built with; a leading ~ is
     * the home directory, empty means no user cache. Default:
     * "~/.cache/miopen/".
     */
    GFXPACK_PATH_BUILD_TIME_CACHE_DIR = 2,
    /**
     * The user cache's sub-directory: "3.4.0." for MIOpen 3.4.0. Default: the
     * library's own version.
     */
    GFXPACK_PATH_VERSION = 3,
    /**
     * The directory that contains the ROCm prefixes. Default: "/".
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
 * Flags for gfxpack_options_set_flag().
 */
enum gfxpack_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Keeps hits in memory, so that repeated lookups read no file. Default:
     * off.
     */
    GFXPACK_FLAG_KEEP_HITS = 0,
    /**
     * Creates, changes and moves nothing on disk. A user kdb that can't be
     * read this way, because a write to it was interrupted, is a miss.
     * Default: off.
     */
    GFXPACK_FLAG_LOOK_ONLY = 1,
    /**
     * Reports warnings. Default: on.
     */
    GFXPACK_FLAG_WARN = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_flag gfxpack_flag;
#else
typedef int32_t gfxpack_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Limits for gfxpack_options_set_limit().
 */
enum gfxpack_limit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Size of one user kdb, in bytes. The least recently used kernels are
     * deleted first.
     */
    GFXPACK_LIMIT_USER_CACHE_BYTES = 0,
    /**
     * Size of the code objects kept in memory, in bytes.
     */
    GFXPACK_LIMIT_MEMORY_BYTES = 1,
    /**
     * How long one call waits in total for a user kdb that another process has
     * locked, in milliseconds. After a wait without success, no call waits for
     * this file for a minute, unless it turns out to be free.
     */
    GFXPACK_LIMIT_BUSY_WAIT_MS = 2,
    /**
     * How long to wait for another thread or process that compiles the same
     * key, before compiling it too, in milliseconds.
     */
    GFXPACK_LIMIT_COMPILE_WAIT_MS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gfxpack_limit gfxpack_limit;
#else
typedef int32_t gfxpack_limit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Finds kernels, and keeps compiled ones.
 *
 * The caller owns it and frees it with gfxpack_cache_free(). Any number of
 * threads may use it at once; one of them frees it, after the others are done.
 *
 * A child process made by fork() may go on using it: it reopens the files,
 * leaves its parent's alone, and may free the cache or not. fork() waits up to
 * a second for threads that are reading or writing a file. If one of them
 * still waits for another program by then, or if the process was made in a way
 * that skips the handlers of pthread_atfork(), every kdb may be unreadable in
 * the child.
 */
typedef struct gfxpack_cache gfxpack_cache;

/**
 * Receives the compiler's result. It is valid until that call of the compiler
 * returns, and only for the thread of that call.
 */
typedef struct gfxpack_compiled gfxpack_compiled;

/**
 * One GPU. Owned by the gfxpack_devices that returned it.
 */
typedef struct gfxpack_device gfxpack_device;

/**
 * The GPUs of this machine, and the problems in finding them.
 *
 * The caller owns it and frees it with gfxpack_devices_free(). All that it
 * returns belongs to it and is valid until then. It never changes: any number
 * of threads may use it.
 */
typedef struct gfxpack_devices gfxpack_devices;

/**
 * The result of a lookup.
 *
 * The caller owns it and frees it with gfxpack_lookup_free(). All that it
 * returns belongs to it and is valid until then, even if the cache is freed
 * earlier. It never changes: any number of threads may use it, and the last
 * one frees it.
 */
typedef struct gfxpack_lookup gfxpack_lookup;

/**
 * A kdb that was searched in vain.
 *
 * Owned by the lookup that returned it, and valid for as long as that is. It
 * never changes: any number of threads may use it.
 */
typedef struct gfxpack_miss gfxpack_miss;

/**
 * How to open a cache.
 *
 * The caller owns it and frees it with gfxpack_options_free(), at any time:
 * caches keep copies of what they need. One thread at a time may use it.
 */
typedef struct gfxpack_options gfxpack_options;

/**
 * A function that receives warnings, each once per cache and file.
 *
 * It is called by any thread that opens or uses the cache, before that call
 * returns; several calls may run at once. `file` and `text` belong to the
 * library and are valid until the function returns. `text` is one line, or two
 * for GFXPACK_WARNING_CLASS_MISSING_SYSTEM_KDB, without a final newline. The
 * function must return: no longjmp() and no C++ exception out of it (an
 * exception ends the process). It may use the cache.
 */
typedef void (*gfxpack_warning_fn)(void *user_data,
                                   gfxpack_warning_class kind,
                                   const char *file,
                                   const char *text);

/**
 * A function that compiles a kernel that is in no kdb.
 *
 * It passes the code object to gfxpack_compiled_set() and returns 0; or it
 * returns another number, optionally after gfxpack_compiled_fail() with an
 * error message. It is called by the thread that asks for the kernel, before
 * that call returns; if several ask for the same key at once, one of them
 * compiles. `kernel_name` and `kernel_args` are the pointers that the caller
 * passed. The function must return: no longjmp() and no C++ exception out of
 * it (an exception ends the process). It may use the cache.
 */
typedef int32_t (*gfxpack_compile_fn)(void *user_data,
                                      const char *kernel_name,
                                      const char *kernel_args,
                                      struct gfxpack_compiled *compiled);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the loaded library: "0.1.0".
 *
 * The text is static. Any thread may call this.
 */
const char *gfxpack_version(void);

/**
 * The error message of this thread's last failed call, in one line.
 *
 * Null if no call has failed. Successful calls do not change it. The text
 * belongs to the library and is valid until another call of this thread fails,
 * or the thread ends. Any thread may call this; each has its own message.
 */
const char *gfxpack_last_error(void);

/**
 * A hint on how to solve gfxpack_last_error(), in one line.
 *
 * Null if that is null. Owned by the library, and valid for as long as that
 * is. Any thread may call this.
 */
const char *gfxpack_last_error_hint(void);

/**
 * Finds the GPUs: with the HIP runtime first, then the kernel driver, then the
 * PCI bus; the environment overrides all of them.
 *
 * `sysfs` is the directory in which to find the kernel driver and the PCI bus,
 * null for "/sys". `hip_library` is the HIP runtime's file, null for the one
 * that is loaded or installed, empty for none; loading it runs its code, and
 * it stays loaded. If there is no GPU, or no way to find out, this returns
 * GFXPACK_STATUS_OK and the count is 0. `out` receives devices that the caller
 * owns, or null. This reads the environment, which no other thread may change
 * meanwhile; any thread may call it.
 */
gfxpack_status gfxpack_detect(const char *sysfs,
                              const char *hip_library,
                              struct gfxpack_devices **out);

/**
 * Frees devices and all that they returned. Null is allowed. Any thread may
 * call this, once no other uses them.
 */
void gfxpack_devices_free(struct gfxpack_devices *devices);

/**
 * Number of GPUs; 0 for null. Any thread may call this.
 */
size_t gfxpack_devices_count(const struct gfxpack_devices *devices);

/**
 * One of the GPUs, counted from 0, in the order of HIP's device numbers if HIP
 * was used; null past the last one. Owned by `devices`. Any thread may call
 * this.
 */
const struct gfxpack_device *gfxpack_devices_get(const struct gfxpack_devices *devices,
                                                 size_t index);

/**
 * The HIP runtime library that was used, "libamdhip64.so.6 (6.3.42134)"; null
 * if none was. Owned by `devices`. Any thread may call this.
 */
const char *gfxpack_devices_hip(const struct gfxpack_devices *devices);

/**
 * A sentence about a source that could not be used or was overridden, counted
 * from 0; null past the last one. Owned by `devices`. Any thread may call
 * this.
 */
const char *gfxpack_devices_note(const struct gfxpack_devices *devices, size_t index);

/**
 * The target for gfxpack_options_new(): "gfx90a:sramecc+:xnack-@104"; null for
 * null. Owned by the gfxpack_devices. Any thread may call this.
 */
const char *gfxpack_device_target(const struct gfxpack_device *device);

/**
 * Compute units as MIOpen counts them: from gfx10 on, work-group processors of
 * two. 0 if unknown, and for null. Any thread may call this.
 */
uint32_t gfxpack_device_compute_units(const struct gfxpack_device *device);

/**
 * Where the target and the compute units were found; GFXPACK_SOURCE_UNKNOWN
 * for null. Any thread may call this.
 */
gfxpack_source gfxpack_device_source(const struct gfxpack_device *device);

/**
 * The product name; null if unknown. Owned by the gfxpack_devices. Any thread
 * may call this.
 */
const char *gfxpack_device_name(const struct gfxpack_device *device);

/**
 * Its address on the PCI bus, "0000:03:00.0"; null if unknown. Owned by the
 * gfxpack_devices. Any thread may call this.
 */
const char *gfxpack_device_pci(const struct gfxpack_device *device);

/**
 * Creates options for a device, with all defaults.
 *
 * `target` has the form "gfx90a@104", "gfx90a:xnack+@104" or, for all numbers
 * of compute units, "gfx90a"; gfxpack_device_target() returns it. `out`
 * receives options that the caller owns, or null. Any thread may call this.
 */
gfxpack_status gfxpack_options_new(const char *target, struct gfxpack_options **out);

/**
 * Frees options. Null is allowed. Any thread may call this, once no other uses
 * them.
 */
void gfxpack_options_free(struct gfxpack_options *options);

/**
 * Sets which layer is searched first: a gfxpack_order. One thread at a time
 * may use the options.
 */
gfxpack_status gfxpack_options_set_order(struct gfxpack_options *options, int32_t order);

/**
 * Sets a path: a gfxpack_path. The text is copied. Null restores the default.
 * One thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_path(struct gfxpack_options *options,
                                        int32_t which,
                                        const char *value);

/**
 * Uses exactly these directories, and ignores the environment and
 * gfxpack_options_set_path(): installed kdbs in `system_dir`, none if it is
 * null; the user's kdb in `user_dir`, or only memory if it is null. Both are
 * absolute; they are copied. One thread at a time may use the options.
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
 * Sets the log level, overriding MIOPEN_LOG_LEVEL: at 1, 2 and 3 no warnings
 * are reported. One thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_log_level(struct gfxpack_options *options, uint8_t level);

/**
 * Sets a function that receives warnings, which otherwise go to standard
 * error; null restores that.
 *
 * `user_data` is passed to it and may be null. Both must be valid for as long
 * as a cache opened with these options exists; the library frees neither. One
 * thread at a time may use the options.
 */
gfxpack_status gfxpack_options_set_warning_callback(struct gfxpack_options *options,
                                                    gfxpack_warning_fn callback,
                                                    void *user_data);

/**
 * Opens a cache.
 *
 * This reads the environment, which no other thread may change meanwhile, but
 * no kdb: a problem with a place or file is a warning, and a miss of the
 * lookups that need it. In a program that has more rights than its caller
 * (set-user-ID, set-group-ID, file capabilities) no variable chooses a
 * directory. `options` remain the caller's. `out` receives a cache that the
 * caller owns, or null. Any thread may call this.
 */
gfxpack_status gfxpack_cache_open(const struct gfxpack_options *options,
                                  struct gfxpack_cache **out);

/**
 * Frees a cache. Its lookups remain valid. Null is allowed. Any thread may
 * call this, once no other uses the cache.
 */
void gfxpack_cache_free(struct gfxpack_cache *cache);

/**
 * Number of kdb files that are searched, whether they exist or not; 0 for
 * null. Any thread may call this.
 */
size_t gfxpack_cache_file_count(const struct gfxpack_cache *cache);

/**
 * The path of one of these files, in the order of the search, counted from 0;
 * null past the last one. Owned by the cache. Any thread may call this.
 */
const char *gfxpack_cache_file(const struct gfxpack_cache *cache, size_t index);

/**
 * Whether such a file is an installed kdb or the user's; GFXPACK_LAYER_NONE
 * past the last one. Any thread may call this.
 */
gfxpack_layer gfxpack_cache_file_layer(const struct gfxpack_cache *cache, size_t index);

/**
 * Looks up a kernel.
 *
 * The key is compared byte by byte: `kernel_name` is the source's name and
 * ".o" ("conv.cl.o"), `kernel_args` the options and " -mcpu=" and the device's
 * name (" -DX=1 -mcpu=gfx90a").
 *
 * Returns GFXPACK_STATUS_OK if there is a kernel, GFXPACK_STATUS_MISS if there
 * is none; in both cases `out` receives a lookup that the caller owns,
 * otherwise null. Any number of threads may call this with one cache.
 */
gfxpack_status gfxpack_get(const struct gfxpack_cache *cache,
                           const char *kernel_name,
                           const char *kernel_args,
                           struct gfxpack_lookup **out);

/**
 * Looks up a kernel; if no kdb has it, compiles it and saves it in the user's.
 *
 * Returns GFXPACK_STATUS_OK if there is a kernel, saved or not: `out` then
 * receives a lookup that the caller owns. Returns
 * GFXPACK_STATUS_COMPILER_FAILED if `compile` fails or gives no bytes;
 * gfxpack_last_error() then has its error message. In all cases but the first
 * `out` receives null. `user_data` is passed to `compile` and may be null. Any
 * number of threads may call this with one cache.
 */
gfxpack_status gfxpack_get_or_compile(const struct gfxpack_cache *cache,
                                      const char *kernel_name,
                                      const char *kernel_args,
                                      gfxpack_compile_fn compile,
                                      void *user_data,
                                      struct gfxpack_lookup **out);

/**
 * Passes the compiled code object to the cache. The bytes are copied. A second
 * call replaces the first. Null, or more bytes than any object can have,
 * change nothing; an empty code object counts as none. Only the thread on
 * which the compiler was called may call this.
 */
void gfxpack_compiled_set(struct gfxpack_compiled *compiled, const uint8_t *data, size_t size);

/**
 * Reports why there is no code object, as text. The text is copied. Only the
 * thread on which the compiler was called may call this.
 */
void gfxpack_compiled_fail(struct gfxpack_compiled *compiled, const char *text);

/**
 * Frees a lookup and all that it returned. Null is allowed. Any thread may
 * call this, once no other uses it.
 */
void gfxpack_lookup_free(struct gfxpack_lookup *lookup);

/**
 * The kernel's bytes, for hipModuleLoadData(); null if there is none.
 *
 * `size` receives their number, unless it is null. They have been checked: MD5
 * and gfx target. Owned by the lookup; must not be written to. Any thread may
 * call this.
 */
const uint8_t *gfxpack_lookup_data(const struct gfxpack_lookup *lookup, size_t *size);

/**
 * Where the kernel came from; GFXPACK_LAYER_NONE for a miss or null. Any
 * thread may call this.
 */
gfxpack_layer gfxpack_lookup_layer(const struct gfxpack_lookup *lookup);

/**
 * The kdb that the kernel came from; null if it came from no file. Owned by
 * the lookup. Any thread may call this.
 */
const char *gfxpack_lookup_file(const struct gfxpack_lookup *lookup);

/**
 * Why a compiled kernel was not saved, in one line; null if it was saved, or
 * if there was nothing to save. The kernel itself is valid either way. Owned
 * by the lookup. Any thread may call this.
 */
const char *gfxpack_lookup_not_stored(const struct gfxpack_lookup *lookup);

/**
 * Number of kdbs that were searched in vain; 0 for null. Any thread may call
 * this.
 */
size_t gfxpack_lookup_miss_count(const struct gfxpack_lookup *lookup);

/**
 * One of these misses, in the order of the search, counted from 0; null past
 * the last one. Owned by the lookup. Any thread may call this.
 */
const struct gfxpack_miss *gfxpack_lookup_miss(const struct gfxpack_lookup *lookup, size_t index);

/**
 * Whether it was an installed kdb or the user's; GFXPACK_LAYER_NONE for null.
 * Any thread may call this.
 */
gfxpack_layer gfxpack_miss_layer(const struct gfxpack_miss *miss);

/**
 * Why it had no usable kernel; GFXPACK_REASON_OTHER for null. Any thread may
 * call this.
 */
gfxpack_reason gfxpack_miss_reason(const struct gfxpack_miss *miss);

/**
 * The kdb's absolute path; null for null. Owned by the lookup. Any thread may
 * call this.
 */
const char *gfxpack_miss_file(const struct gfxpack_miss *miss);

/**
 * Why it had no usable kernel, in one line of text; null for null. Owned by
 * the lookup. Any thread may call this.
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
