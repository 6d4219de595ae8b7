/* Tells what a process sees: for each path a line with three digits, for whether
 * it can be asked for, read and listed. Functions that disagree are named. The
 * first arguments are a class, `raw` to make system calls, and a record if this is
 * to be like a forked job. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The functions that found nothing, and those that did. */
static char functions[2][1000];

static void note(int found, const char *call) {
    strncat(functions[found], call, strcspn(call, "("));
    strcat(functions[found], " ");
}
#define ASK(call) (errno = 0, (void)(call), note(errno != ENOENT, #call))

static void tell(void) {
    int both = functions[0][0] != 0 && functions[1][0] != 0;
    printf(both ? "(%sbut not %s)" : "%d", both ? functions[1] : functions[1][0] != 0, functions[0]);
    functions[0][0] = functions[1][0] = 0;
}

static int ends(int file) {
    char byte;
    int ends = file >= 0 && pread(file, &byte, 1, 0) >= 0;
    close(file);
    return ends;
}

static int stream_ends(FILE *stream) {
    int ends = stream != NULL && (fgetc(stream) != EOF || feof(stream));
    if (stream != NULL)
        fclose(stream);
    return ends;
}

static int is_listed(DIR *dir) {
    return dir != NULL && readdir(dir) != NULL;
}

static void look(const char *path) {
    struct stat file;
    struct statx more;
    struct statfs system;
    struct statvfs other;
    char text[PATH_MAX];
    ASK(stat(path, &file));
    ASK(lstat(path, &file));
    ASK(fstatat(AT_FDCWD, path, &file, 0));
    ASK(statx(AT_FDCWD, path, 0, STATX_ALL, &more));
    ASK(access(path, F_OK));
    ASK(faccessat(AT_FDCWD, path, F_OK, 0));
    ASK(eaccess(path, F_OK));
    ASK(readlink(path, text, sizeof text));
    ASK(realpath(path, text));
    ASK(statfs(path, &system));
    ASK(statvfs(path, &other));
    ASK(getxattr(path, "user.x", text, sizeof text));
    ASK(open(path, O_PATH));
    ASK(open(path, O_RDONLY));
    tell();
    note(ends(open(path, O_RDONLY)), "open");
    note(ends(openat(AT_FDCWD, path, O_RDONLY)), "openat");
    note(stream_ends(fopen(path, "r")), "fopen");
    note(stream_ends(freopen(path, "r", stdin)), "freopen");
    tell();
    note(is_listed(opendir(path)), "opendir");
    note(is_listed(fdopendir(open(path, O_RDONLY | O_DIRECTORY))), "fdopendir");
    tell();
}

static void look_past(const char *path) {
    char bytes[1000];
    note(ends((int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0)), "openat");
    tell();
    int dir = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    note(dir >= 0 && syscall(SYS_getdents64, dir, bytes, sizeof bytes) > 0, "getdents64");
    tell();
}

int main(int argc, char **argv) {
    void (*watch)(const char *, int, char **) = dlsym(RTLD_DEFAULT, "gfxpack_watch");
    if (argv[3][0] != 0)
        watch(argv[3], argc, argv);
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[2], "raw") == 0)
            look_past(argv[i]);
        else if (strcmp(argv[2], "start") == 0)
            printf("%d", execv(argv[i], argv) < 0 && errno == EPERM);
        else if (argv[i][0] == '@')
            printf("%s", chdir(argv[i] + 1) == 0 ? "@" : "no @");
        else
            look(argv[i]);
        printf(" %s\n", argv[i]);
    }
    return 0;
}
