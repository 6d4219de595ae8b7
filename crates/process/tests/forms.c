/* Asks of files in every form that the C library has, once for a file that is
 * there and once for one that is not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);

static void shut(int file) {
    if (file >= 0)
        close(file);
}

static void shut_stream(FILE *stream) {
    if (stream != NULL)
        fclose(stream);
}

static void shut_dir(DIR *dir) {
    if (dir != NULL)
        closedir(dir);
}

/* Older programs have these from the library by their older names. */
typedef int xstat(int, const char *, struct stat *);

static void ask(const char *name) {
    char text[8192];
    struct stat file;
    struct stat64 file64;
    struct statx filex;
    struct statfs system;
    struct statvfs system_v;
    shut(open(name, O_RDONLY));
    shut(open64(name, O_RDONLY));
    shut(openat(AT_FDCWD, name, O_RDONLY));
    shut(openat64(AT_FDCWD, name, O_RDONLY));
    shut(__open_2(name, O_RDONLY));
    shut(__open64_2(name, O_RDONLY));
    shut(__openat_2(AT_FDCWD, name, O_RDONLY));
    shut(__openat64_2(AT_FDCWD, name, O_RDONLY));
    shut_stream(fopen(name, "r"));
    shut_stream(fopen64(name, "re"));
    FILE *stream = freopen(name, "r", fopen("/dev/null", "r"));
    shut_stream(stream);
    stat(name, &file);
    stat64(name, &file64);
    lstat(name, &file);
    lstat64(name, &file64);
    fstatat(AT_FDCWD, name, &file, 0);
    fstatat(AT_FDCWD, name, &file, AT_SYMLINK_NOFOLLOW);
    fstatat64(AT_FDCWD, name, &file64, 0);
    statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &filex);
    const char *old[] = {"__xstat", "__lxstat", "__xstat64", "__lxstat64"};
    for (int i = 0; i < 4; i++) {
        xstat *call = (xstat *)dlsym(RTLD_DEFAULT, old[i]);
        if (call != NULL)
            call(1, name, &file);
    }
    access(name, R_OK);
    faccessat(AT_FDCWD, name, R_OK, 0);
    readlink(name, text, sizeof text);
    readlinkat(AT_FDCWD, name, text, sizeof text);
    __readlink_chk(name, text, sizeof text, sizeof text);
    __readlinkat_chk(AT_FDCWD, name, text, sizeof text, sizeof text);
    shut_dir(opendir(name));
    statfs(name, &system);
    statvfs(name, &system_v);
}

/* What takes several calls. */
static void resolve(const char *name) {
    char text[8192];
    free(realpath(name, NULL));
    __realpath_chk(name, text, sizeof text);
    free(canonicalize_file_name(name));
    eaccess(name, F_OK);
    euidaccess(name, F_OK);
}

static void change(void) {
    struct utimbuf times = {1, 1};
    struct timeval both[2] = {{1, 0}, {1, 0}};
    struct timespec exact[2] = {{1, 0}, {1, 0}};
    shut(creat("made", 0600));
    shut(creat64("made", 0600));
    shut(open("made", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    shut_stream(fopen("made", "w"));
    shut_stream(fopen("made", "a+"));
    char name[] = "tempXXXXXX";
    shut(mkostemp(name, O_CLOEXEC));
    chmod("made", 0640);
    fchmodat(AT_FDCWD, "made", 0600, 0);
    chown("made", (uid_t)-1, (gid_t)-1);
    lchown("made", (uid_t)-1, (gid_t)-1);
    fchownat(AT_FDCWD, "made", (uid_t)-1, (gid_t)-1, 0);
    truncate("made", 3);
    truncate64("made", 4);
    utime("made", &times);
    utimes("made", both);
    lutimes("made", both);
    utimensat(AT_FDCWD, "made", exact, 0);
    rename("made", "moved");
    renameat(AT_FDCWD, "moved", AT_FDCWD, "made");
    renameat2(AT_FDCWD, "made", AT_FDCWD, "moved", RENAME_NOREPLACE);
    link("moved", "other");
    linkat(AT_FDCWD, "moved", AT_FDCWD, "third", 0);
    symlink("moved", "soft");
    symlinkat("moved", AT_FDCWD, "softer");
    mkdir("dir", 0700);
    mkdirat(AT_FDCWD, "dir/below", 0700);
    mkfifo("pipe", 0600);
    rmdir("dir/below");
    unlink("other");
    unlinkat(AT_FDCWD, "third", 0);
    unlinkat(AT_FDCWD, "dir", AT_REMOVEDIR);
    remove("pipe");
}

/* By functions that list directories for the program. */
static void find(void) {
    struct dirent **list;
    struct dirent64 **list64;
    glob_t found = {0};
    glob64_t found64 = {0};
    scandir("below", &list, NULL, alphasort);
    scandir("absent", &list, NULL, alphasort);
    scandir64(".", &list64, NULL, alphasort64);
    scandirat(AT_FDCWD, "below", &list, NULL, alphasort);
    if (glob("*/none", 0, NULL, &found) != GLOB_NOMATCH ||
        glob("l*", GLOB_MARK, NULL, &found) != 0 || found.gl_pathc != 1 ||
        glob("th*", GLOB_APPEND, NULL, &found) != 0 || found.gl_pathc != 2 ||
        glob("absent/*", GLOB_NOCHECK | GLOB_APPEND, NULL, &found) != 0 || found.gl_pathc != 3 ||
        strcmp(found.gl_pathv[0], "link") != 0 || strcmp(found.gl_pathv[1], "there") != 0)
        abort();
    if (glob64("./b*/..", GLOB_ONLYDIR, NULL, &found64) != 0 || found64.gl_pathc != 1)
        abort();
    globfree(&found);
    globfree64(&found64);
}

static void wait_for(pid_t pid) {
    int status;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

/* Programs, by name and by file. */
static void start(void) {
    char *words[] = {"true", "word", NULL};
    char *none[] = {NULL};
    pid_t pid = -1;
    setenv("PATH", "absent:below:/nowhere:/usr/bin", 1);
    if (posix_spawn(&pid, "/usr/bin/true", NULL, NULL, words, environ) != 0)
        abort();
    wait_for(pid);
    if (posix_spawn(&pid, "absent", NULL, NULL, words, environ) != ENOENT)
        abort();
    if (posix_spawnp(&pid, "true", NULL, NULL, words, environ) != 0)
        abort();
    wait_for(pid);
    if (posix_spawnp(&pid, "no-such-program", NULL, NULL, words, environ) != ENOENT)
        abort();
    if ((pid = fork()) == 0) {
        execvp("true", words);
        _exit(1);
    }
    wait_for(pid);
    if ((pid = vfork()) == 0) {
        execlp("true", "true", "word", NULL);
        _exit(1);
    }
    wait_for(pid);
    if ((pid = fork()) == 0) {
        execvp("no-such-program", words);
        execvp("./there", words);
        if (errno != EACCES)
            _exit(1);
        execve("below", words, none);
        execl("/usr/bin/true", "true", NULL);
        _exit(1);
    }
    wait_for(pid);
    /* A script without its interpreter's name. */
    FILE *script = fopen("below/script", "w");
    fputs("test \"$1\" = word\n", script);
    fclose(script);
    chmod("below/script", 0755);
    if ((pid = fork()) == 0) {
        execvp("script", words);
        _exit(1);
    }
    wait_for(pid);
    unlink("below/script");
    FILE *stream = popen("cat there", "r");
    while (stream != NULL && fgetc(stream) != EOF)
        continue;
    if (pclose(stream) != 0 || system("exit 3") >> 8 != 3 || system(NULL) == 0)
        abort();
}

static void *ask_often(void *unused) {
    for (int i = 0; i < 500; i++)
        access("there", R_OK);
    return unused;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[2] : "";
    if (strcmp(what, "forms") == 0) {
        ask("there");
        ask("absent");
        ask("link");
        change();
        chdir("below");
        ask("../there");
        return 0;
    }
    if (strcmp(what, "resolve") == 0) {
        resolve("link");
        resolve("absent");
        return 0;
    }
    if (strcmp(what, "dirs") == 0) {
        int dir = open("below", O_RDONLY | O_DIRECTORY);
        struct stat file;
        fstatat(dir, "none", &file, 0);
        shut(openat(dir, "../there", O_RDONLY));
        shut_dir(fdopendir(dir));
        return 0;
    }
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, ask_often, NULL);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        _exit(0);
    }
    if (strcmp(what, "find") == 0) {
        find();
        return 0;
    }
    if (strcmp(what, "start") == 0) {
        start();
        return 0;
    }
    if (strcmp(what, "popen") == 0)
        return pclose(popen("true", "r"));
    if (strcmp(what, "popen unwatched") == 0) {
        unsetenv("LD_PRELOAD");
        return pclose(popen("true", "r"));
    }
    if (strcmp(what, "tmpfile") == 0)
        return tmpfile() == NULL;
    if (strcmp(what, "full") == 0) {
        for (int i = 0; i < 300000; i++)
            access("there", R_OK);
        return 0;
    }
    if (strcmp(what, "crash") == 0)
        abort();
    return 3;
}
