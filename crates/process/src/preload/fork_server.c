/* Loaded into a compiler with LD_PRELOAD, this stops it before main and forks a
 * copy that runs main for every job. Dynamic linking and the start and end of a
 * compiler's libraries, which take longer than a small kernel, happen only once.
 *
 * Standard input is a socket to the process that started it; standard output and
 * error are those of all jobs.
 *   hello:   u32 GFXPACK_HELLO
 *   request: u32 number of bytes that follow; u32 number of arguments; then,
 *            each with a zero byte at its end: working directory, TMPDIR, the
 *            path of its record or nothing, arguments, the program's name first
 *   answer:  u64 wait status, user and system time in microseconds, peak of
 *            its memory in KiB
 * Numbers are in the machine's own byte order. When the client closes its end,
 * the running job is killed and answered, and then the server ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

#define GFXPACK_HELLO 0x31584647u

typedef int main_fn(int, char **, char **);
typedef int start_fn(main_fn *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

extern char **environ;
static main_fn *compiler_main;
/* Whether the program is one of LLVM's. */
static int is_llvm;

static int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

/* Returns the next of the strings between *at and end, or NULL. */
static char *next_string(char **at, char *end) {
    char *string = *at;
    char *zero = string < end ? memchr(string, 0, (size_t)(end - string)) : NULL;
    if (zero == NULL)
        return NULL;
    *at = zero + 1;
    return string;
}

/* Runs after the job's own exit handlers, and instead of those registered before the fork. Those
 * are destructors of LLVM's globals, which would write to hundreds of shared pages, and are
 * needed only for counters for debugging LLVM. */
static void end_here(int status, void *unused) {
    (void)unused;
    fflush(NULL);
    _exit(status);
}

/* Runs the job, in a process of its own. */
static void run_job(const char *directory, const char *temp_dir, const char *record, int argc, char **argv) {
    gfxpack_heap_apart();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || chdir(directory) != 0 || setenv("TMPDIR", temp_dir, 1) != 0)
        _exit(125);
    if (is_llvm)
        on_exit(end_here, NULL);
    if (*record != 0)
        gfxpack_watch(record, argc, argv);
    exit(compiler_main(argc, argv, environ));
}

/* Waits for the job; kills it and everything that it started if the client has gone. */
static void wait_for(pid_t job, int pidfd) {
    for (;;) {
        struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = 0, .events = POLLRDHUP}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        if (fds[0].revents != 0)
            return;
        if (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) {
            kill(-job, SIGKILL);
            return;
        }
    }
}

/* Runs jobs instead of the program's main. */
static int serve(int argc, char **argv, char **envp) {
    (void)argc, (void)argv, (void)envp;
    signal(SIGPIPE, SIG_IGN);
    int probe = open_pidfd(getpid());
    if (probe < 0)
        return 125;
    close(probe);
    is_llvm = gfxpack_start_llvm();
    uint32_t hello = GFXPACK_HELLO;
    if (write(0, &hello, sizeof hello) != sizeof hello)
        _exit(125);
    uint32_t size, count;
    while (recv(0, &size, sizeof size, MSG_WAITALL) == sizeof size) {
        char *text = malloc((size_t)size + 1);
        if (text == NULL || size < sizeof count || recv(0, text, size, MSG_WAITALL) != (ssize_t)size)
            _exit(125);
        memcpy(&count, text, sizeof count);
        char *at = text + sizeof count, *end = text + size;
        char *directory = next_string(&at, end), *temp_dir = next_string(&at, end);
        char *record = next_string(&at, end);
        char **arguments = count <= size ? calloc((size_t)count + 1, sizeof *arguments) : NULL;
        if (directory == NULL || temp_dir == NULL || record == NULL || arguments == NULL)
            _exit(125);
        for (uint32_t i = 0; i < count; i++)
            if ((arguments[i] = next_string(&at, end)) == NULL)
                _exit(125);
        pid_t pid = fork();
        if (pid == 0)
            run_job(directory, temp_dir, record, (int)count, arguments);
        /* Called by both processes, so that it is done before either goes on. */
        if (pid > 0)
            setpgid(pid, pid);
        int pidfd = pid > 0 ? open_pidfd(pid) : -1;
        if (pidfd < 0)
            _exit(125);
        wait_for(pid, pidfd);
        close(pidfd);
        int status = 0;
        struct rusage used = {0};
        while (wait4(pid, &status, 0, &used) < 0)
            if (errno != EINTR)
                _exit(125);
        uint64_t answer[4] = {
            (uint64_t)(uint32_t)status,
            (uint64_t)used.ru_utime.tv_sec * 1000000 + (uint64_t)used.ru_utime.tv_usec,
            (uint64_t)used.ru_stime.tv_sec * 1000000 + (uint64_t)used.ru_stime.tv_usec,
            (uint64_t)used.ru_maxrss,
        };
        if (write(0, answer, sizeof answer) != sizeof answer)
            break;
        free(arguments);
        free(text);
    }
    _exit(0);
}

/* The C library calls main through this function; ours is found first. */
PUBLIC int
__libc_start_main(main_fn *main_function, int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*rtld_fini)(void), void *stack_end) {
    start_fn *start = (start_fn *)dlsym(RTLD_NEXT, "__libc_start_main");
    if (start == NULL)
        _exit(125);
    if (getenv("GFXPACK_FORK_SERVER") != NULL) {
        unsetenv("GFXPACK_FORK_SERVER");
        unsetenv("LD_PRELOAD");
        unsetenv("LD_BIND_NOW");
        compiler_main = main_function;
        main_function = serve;
    }
    return start(main_function, argc, argv, init, fini, rtld_fini, stack_end);
}
