/* Asks of files in every form that the C library has, once for a file that is
 * there and once for one that is not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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
    shut_stream(setmntent(name, "r"));
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

/* By a function that lists a directory for the program. */
static void find(void) {
    struct dirent **list;
    scandir("below", &list, NULL, alphasort);
}

static void wait_for(pid_t pid) {
    int status;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

/* Programs, by name and by file. */
static void start(void) {
    char *args[] = {"true", "word", NULL};
    char *none[] = {NULL};
    pid_t pid = -1;
    setenv("PATH", "absent:below:/nowhere:/usr/bin", 1);
    if (posix_spawn(&pid, "/usr/bin/true", NULL, NULL, args, environ) != 0)
        abort();
    wait_for(pid);
    if (posix_spawn(&pid, "absent", NULL, NULL, args, environ) != ENOENT)
        abort();
    if (posix_spawnp(&pid, "true", NULL, NULL, args, environ) != 0)
        abort();
    wait_for(pid);
    if (posix_spawnp(&pid, "no-such-program", NULL, NULL, args, environ) != ENOENT)
        abort();
    if ((pid = fork()) == 0) {
        execvp("true", args);
        _exit(1);
    }
    wait_for(pid);
    if ((pid = vfork()) == 0) {
        execlp("true", "true", "word", NULL);
        _exit(1);
    }
    wait_for(pid);
    if ((pid = fork()) == 0) {
        execvp("no-such-program", args);
        execvp("./there", args);
        if (errno != EACCES)
            _exit(1);
        execve("below", args, none);
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
        execvp("script", args);
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

static int bad;

/* A call that has to fail with EACCES. */
#define REFUSED(call) FAILS(call, EACCES)
#define FAILS(call, error)                                                                         \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long result = (long)(call);                                                                \
        if ((result != -1 && result != 0) || errno != error)                                       \
            bad = 1, fprintf(stderr, "%s: %ld, %s\n", #call, result, strerror(errno));             \
    } while (0)

/* All forms of starting a program, each of which has to fail. */
static void start_nothing(void) {
    char *args[] = {"true", NULL};
    pid_t pid;
    FAILS(execve("/bin/true", args, environ), EPERM);
    FAILS(execl("/bin/true", "true", NULL), EPERM);
    FAILS(execvp("true", args), EPERM);
    FAILS(fexecve(open("/bin/true", O_RDONLY), args, environ), EPERM);
    FAILS((errno = posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ), -1), EPERM);
    FAILS((errno = posix_spawnp(&pid, "true", NULL, NULL, args, environ), -1), EPERM);
    FAILS(system("true"), EPERM);
    FAILS(popen("true", "r"), EPERM);
    FAILS(syscall(SYS_execve, "/bin/true", args, environ), EPERM);
    if ((pid = fork()) == 0) {
        execv("/bin/true", args);
        _exit(errno == EPERM ? 0 : 1);
    }
    wait_for(pid);
}

/* All forms of writing at paths that begin so; `own` may be written. */
static void write_below(const char *base) {
    char file[4096], new[4096], dir[4096], temp[4096];
    struct utimbuf times = {1, 1};
    struct timeval both[2] = {{1, 0}, {1, 0}};
    struct timespec exact[2] = {{1, 0}, {1, 0}};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    posix_spawn_file_actions_t actions;
    snprintf(file, sizeof file, "%s/file", base);
    snprintf(new, sizeof new, "%s/new", base);
    snprintf(dir, sizeof dir, "%s/dir/", base);
    snprintf(temp, sizeof temp, "%s/tempXXXXXX", base);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/new", base);
    REFUSED(open(file, O_WRONLY));
    REFUSED(open64(file, O_RDWR));
    REFUSED(openat(AT_FDCWD, file, O_RDONLY | O_TRUNC));
    REFUSED(open(new, O_RDONLY | O_CREAT, 0600));
    REFUSED(open(new, O_WRONLY | O_CREAT | O_EXCL, 0600));
    REFUSED(open(file, O_WRONLY | O_NOFOLLOW));
    REFUSED(open(dir, O_TMPFILE | O_RDWR, 0600));
    REFUSED(creat(file, 0600));
    REFUSED(fopen(file, "w"));
    REFUSED(fopen(file, "a"));
    REFUSED(fopen64(file, "r+"));
    REFUSED(freopen(new, "w", stdin));
    REFUSED(mkstemp(temp));
    REFUSED(mkostemp(temp, O_CLOEXEC));
    REFUSED(mkdtemp(temp));
    REFUSED(unlink(file));
    REFUSED(unlinkat(AT_FDCWD, dir, AT_REMOVEDIR));
    REFUSED(rmdir(dir));
    REFUSED(remove(file));
    REFUSED(rename(file, "mine"));
    REFUSED(rename("own", new));
    REFUSED(renameat2(AT_FDCWD, "own", AT_FDCWD, file, RENAME_EXCHANGE));
    REFUSED(link(file, "mine"));
    REFUSED(linkat(AT_FDCWD, "own", AT_FDCWD, new, 0));
    REFUSED(symlink("own", new));
    REFUSED(mkdir(new, 0700));
    REFUSED(mknod(new, S_IFREG | 0600, 0));
    REFUSED(mkfifo(new, 0600));
    REFUSED(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    REFUSED(chmod(file, 0777));
    REFUSED(fchmodat(AT_FDCWD, dir, 0777, 0));
    REFUSED(chown(file, 1, 1));
    REFUSED(lchown(file, 1, 1));
    REFUSED(truncate(file, 0));
    REFUSED(utime(file, &times));
    REFUSED(utimes(file, both));
    REFUSED(lutimes(file, both));
    REFUSED(utimensat(AT_FDCWD, dir, exact, 0));
    REFUSED(setxattr(file, "user.x", "y", 1, 0));
    REFUSED(removexattr(file, "user.x"));
    int open_file = open(file, O_RDONLY), open_dir = open(dir, O_RDONLY | O_DIRECTORY);
    REFUSED(fchmod(open_file, 0777));
    REFUSED(fchown(open_file, 1, 1));
    REFUSED(futimens(open_dir, exact));
    REFUSED(utimensat(open_file, NULL, exact, 0));
    REFUSED(fsetxattr(open_file, "user.x", "y", 1, 0));
    REFUSED(openat(open_dir, "new", O_CREAT | O_WRONLY, 0600));
    REFUSED(openat(open_dir, "../file", O_WRONLY));
    REFUSED(mkdirat(open_dir, "new", 0700));
    posix_spawn_file_actions_init(&actions);
    REFUSED((errno = posix_spawn_file_actions_addopen(&actions, 1, new, O_CREAT | O_WRONLY, 0600), -1));
    close(open_file);
    close(open_dir);
}

/* What a link in a directory that may be written leads to. */
static void write_by_links(void) {
    REFUSED(open("to-file", O_WRONLY));
    REFUSED(open("to-nothing", O_WRONLY | O_CREAT, 0600));
    REFUSED(fopen("to-nothing", "w"));
    REFUSED(truncate("to-file", 0));
    REFUSED(chmod("to-file", 0777));
    REFUSED(link("to-dir/file", "mine"));
    REFUSED(rmdir("to-dir/dir/../dir"));
    REFUSED(mkdir("to-dir/dir/.", 0700));
    if (unlink("to-file") != 0 || open("/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600) < 0 ||
        open("absent/file", O_WRONLY | O_CREAT, 0600) >= 0 || errno != ENOENT)
        abort();
}

/* Past the functions of the C library. */
static void past(const char *base) {
    char file[4096], new[4096], dir[4096];
    snprintf(file, sizeof file, "%s/file", base);
    snprintf(new, sizeof new, "%s/new", base);
    snprintf(dir, sizeof dir, "%s/dir", base);
    syscall(SYS_truncate, file, 1);
    close(syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_TRUNC, 0));
    close(syscall(SYS_openat, AT_FDCWD, new, O_WRONLY | O_CREAT, 0600));
    syscall(SYS_unlinkat, AT_FDCWD, file, 0);
    syscall(SYS_unlinkat, AT_FDCWD, dir, AT_REMOVEDIR);
    syscall(SYS_renameat2, AT_FDCWD, "own", AT_FDCWD, file, 0);
    syscall(SYS_symlinkat, "own", AT_FDCWD, new);
    /* What may be done still may be. */
    if (syscall(SYS_openat, AT_FDCWD, "past", O_RDWR | O_CREAT | O_TRUNC, 0600) < 0 ||
        syscall(SYS_mkdirat, AT_FDCWD, "below/dir", 0700) != 0 ||
        syscall(SYS_renameat2, AT_FDCWD, "past", AT_FDCWD, "below/past", 0) != 0 ||
        syscall(SYS_truncate, "below/past", 1) != 0 ||
        syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600) < 0 ||
        syscall(SYS_unlinkat, AT_FDCWD, "below/past", 0) != 0 ||
        syscall(SYS_unlinkat, AT_FDCWD, "below/dir", AT_REMOVEDIR) != 0)
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
    if (strcmp(what, "write") == 0) {
        for (int i = 3; i < argc; i++)
            write_below(argv[i]);
        write_by_links();
        change();
        return bad;
    }
    if (strcmp(what, "start nothing") == 0) {
        start_nothing();
        return bad;
    }
    if (strcmp(what, "load") == 0)
        return dlclose(dlopen("libresolv.so.2", RTLD_NOW));
    if (strcmp(what, "touch") == 0) {
        struct timespec times[2] = {{1, 0}, {1, 0}};
        return utimensat(AT_FDCWD, argv[3], times, 0) != 0;
    }
    if (strcmp(what, "past") == 0) {
        past(argv[3]);
        return 0;
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
    if (strcmp(what, "long names") == 0) {
        static char name[70000];
        struct stat file;
        memset(name, 'x', sizeof name - 1);
        return open(name, O_RDONLY) != -1 || stat(name, &file) != -1 || access(name + 65000, R_OK) != -1;
    }
    if (strcmp(what, "crash") == 0)
        abort();
    return 3;
}
