/* Keeps a program before its main, and lets two copies of it in at once, each
 * with arguments and a record of its own: how compilers are started that are
 * loaded once. Its arguments: a record and a file of arguments, each of them
 * ended by a zero, for each copy. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int main_fn(int, char **, char **);
typedef int start_fn(main_fn *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
typedef void watch_fn(const char *, int, char **);

static main_fn *program_main;

static void run(const char *record, const char *file, char **environment) {
    static char text[1 << 16], *arguments[4096];
    FILE *stream = fopen(file, "r");
    size_t length = fread(text, 1, sizeof text, stream);
    fclose(stream);
    int count = 0;
    for (char *at = text; at < text + length; at += strlen(at) + 1)
        arguments[count++] = at;
    ((watch_fn *)dlsym(RTLD_DEFAULT, "gfxpack_watch"))(record, count, arguments);
    exit(program_main(count, arguments, environment));
}

static int let_in(int argc, char **argv, char **environment) {
    int bad = argc != 5;
    for (int i = 1; i + 1 < argc; i += 2)
        if (fork() == 0)
            run(argv[i], argv[i + 1], environment);
    for (int i = 1, status; i + 1 < argc; i += 2)
        bad |= wait(&status) < 0 || status != 0;
    _exit(bad);
}

int __libc_start_main(main_fn *main_function, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    start_fn *start = (start_fn *)dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = main_function;
    return start(let_in, argc, argv, init, fini, rtld_fini, stack_end);
}
