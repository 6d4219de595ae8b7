//! Every function that compilers and linkers import from the C library is recorded, or there is a
//! known reason why not. An unknown function fails this test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_process::preload;
use object::{Object, ObjectSymbol, SymbolKind};

use super::kernels::{args, compilers, kernels};
use super::support::watched;

/// What reaches files or other programs, and is not replaced.
const UNTOLD: [(&str, &str); 48] = [
    // Paths that are told where they count.
    ("dlopen", "the loader's: what is loaded is listed at the end and before it is unloaded"),
    ("backtrace", "loads libgcc: likewise"),
    ("fork", "the copy announces itself"),
    ("getcwd", "the directory is told at the start and whenever it changes"),
    // Of a file that is open, which was told.
    ("fdopen", "by descriptor"),
    ("fopencookie", "no file"),
    ("fstat", "by descriptor"),
    ("fstat64", "by descriptor"),
    ("fstatfs", "by descriptor"),
    ("fstatvfs", "by descriptor"),
    ("ftruncate", "by descriptor, which is open for writing"),
    ("readdir", "of a listing that was told"),
    ("sendfile", "by descriptor"),
    ("inotify_init1", "watches nothing before inotify_add_watch"),
    ("memfd_create", "a file in memory, without a path"),
    // Sockets, of which connecting and naming one are told.
    ("socket", "reaches nothing before it is connected or named"),
    ("listen", "likewise"),
    ("accept", "of one that was named"),
    ("getaddrinfo", "asks name servers, for a connection"),
    ("gethostbyname", "likewise"),
    ("gethostname", "no file"),
    // The C library's own files: users, time zones, locales, character sets,
    // messages. No function that could be replaced opens them.
    ("endpwent", "users"),
    ("getgrgid_r", "users"),
    ("getgrnam_r", "users"),
    ("getpwent", "users"),
    ("getpwnam", "users"),
    ("getpwnam_r", "users"),
    ("getpwuid", "users"),
    ("getpwuid_r", "users"),
    ("setpwent", "users"),
    ("localtime", "time zone"),
    ("localtime_r", "time zone"),
    ("tzset", "time zone"),
    ("strftime", "time zone"),
    ("__strftime_l", "time zone"),
    ("__wcsftime_l", "time zone"),
    ("newlocale", "locale"),
    ("__newlocale", "locale"),
    ("setlocale", "locale"),
    ("iconv_open", "character sets"),
    ("bindtextdomain", "messages"),
    ("dgettext", "messages"),
    ("gettext", "messages"),
    ("strerror", "messages"),
    ("strerror_r", "messages"),
    ("strsignal", "messages"),
    ("get_nprocs", "how many processors there are"),
    ("sysconf", "likewise"),
];

/// What was looked at and reaches neither files nor programs.
const HARMLESS: &str = "
    __asprintf_chk __assert_fail __ctype_b_loc __ctype_get_mb_cur_max __ctype_tolower_loc
    __ctype_toupper_loc __cxa_atexit __cxa_finalize __cxa_thread_atexit_impl __duplocale
    __errno_location __explicit_bzero_chk __fdelt_chk __fprintf_chk __fpurge __freelocale
    __getdelim __h_errno_location __isoc99_scanf __isoc99_sscanf __iswctype_l
    __libc_start_main __longjmp_chk __memcpy_chk __memmove_chk __memset_chk __nl_langinfo_l
    __printf_chk __pthread_key_create __read_chk __register_atfork __sched_cpucount
    __snprintf_chk __sprintf_chk __stack_chk_fail __stpcpy_chk __strcat_chk __strcoll_l
    __strcpy_chk __strncpy_chk __strtod_l __strtod_nan __strtof128_nan __strtof_l __strtof_nan
    __strtold_nan __strxfrm_l __towlower_l __towupper_l __uselocale __vfprintf_chk
    __vsnprintf_chk __wcscoll_l __wcsxfrm_l __wctype_l _dl_find_object _setjmp abort alarm
    arc4random asctime backtrace_symbols_fd bcmp bind_textdomain_codeset btowc cfgetispeed
    cfgetospeed cfsetispeed cfsetospeed clearenv clock clock_gettime close closedir dirfd
    dl_iterate_phdr dladdr dlerror dlsym dup dup2 endmntent epoll_create1 epoll_ctl epoll_wait
    errno exit fclose fcntl fcntl64 ferror fflush fgetc fgetwc fileno flock flockfile fprintf
    fputc fputs fread freeaddrinfo freelocale fseek fseeko fseeko64 ftell ftello ftello64
    funlockfile fwrite getauxval getc getegid getentropy getenv geteuid getgid getline
    getmntent_r getopt getpagesize getpeername getpgid getpid getppid getpriority getrlimit
    getrusage getsid getsockname getsockopt gettimeofday getuid getwc gmtime gmtime_r
    hasmntopt iconv iconv_close inet_ntop inotify_rm_watch ioctl isalnum isalpha isatty
    isblank islower isspace isupper iswalnum iswalpha iswcntrl iswdigit iswgraph iswlower
    iswprint iswspace iswupper isxdigit kill localeconv lseek lseek64 mallinfo2 mbrtowc
    mbsnrtowcs mbsrtowcs mbstowcs mbtowc memchr memcmp memcpy memmove memset mmap mprotect
    munmap nanosleep nl_langinfo pipe pipe2 poll posix_madvise
    posix_spawn_file_actions_adddup2 posix_spawn_file_actions_destroy
    posix_spawn_file_actions_init pread printf pthread_attr_destroy pthread_attr_init
    pthread_attr_setstacksize pthread_cond_broadcast pthread_cond_destroy pthread_cond_init
    pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_condattr_destroy
    pthread_condattr_init pthread_condattr_setclock pthread_create pthread_detach
    pthread_equal pthread_getname_np pthread_getspecific pthread_join pthread_key_create
    pthread_key_delete pthread_mutex_clocklock pthread_mutex_destroy pthread_mutex_init
    pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_rwlock_rdlock
    pthread_rwlock_unlock pthread_rwlock_wrlock pthread_self pthread_setname_np
    pthread_setschedparam pthread_setspecific pthread_sigmask putc putchar puts putwc pwrite
    qsort raise rand rand_r read recv regcomp regexec regfree rewind sched_getaffinity
    sched_yield secure_getenv select send setenv setrlimit setsid setvbuf sigaction sigaddset
    sigaltstack sigemptyset sigfillset signal sigpending sigprocmask snprintf sprintf stpcpy
    strcasecmp strcat strchr strcmp strcoll strcpy strdup strlen strncat strncmp strncpy
    strnlen strpbrk strrchr strspn strstr strtod strtof strtoimax strtok_r strtol strtold
    strtold_l strtoll strtoul strtoull strtoumax tcflush tcgetattr tcsetattr tdelete tfind
    time tolower toupper towlower towupper tsearch twalk umask uname ungetc ungetwc uselocale
    usleep vsnprintf wait wait4 waitpid warnx wcrtomb wcschr wcscmp wcscspn wcsdup wcslen
    wcsncmp wcsncpy wcsnrtombs wcsstr wcstol wcstombs wctob wctomb wcwidth wmemchr wmemcmp
    wmemcpy wmemmove wmemset write writev
";

/// The names that a library gives to others, or takes from them.
fn symbols(file: &Path, defined: bool) -> BTreeSet<String> {
    let bytes = fs::read(file).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = file.dynamic_symbols().filter(|symbol| symbol.is_undefined() != defined);
    let functions = symbols.filter(|symbol| !defined || symbol.kind() != SymbolKind::Data);
    functions.map(|symbol| symbol.name().unwrap().to_owned()).collect()
}

#[test]
fn every_function_that_compilers_import_is_recorded() {
    let dir = kernels();
    let mut files = BTreeSet::new();
    for number in compilers() {
        for source in ["k.cl", "k.s", "k.cpp"] {
            let args = args(number, source);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            for process in watched(dir.path(), &args).unwrap().processes {
                files.extend(process.libraries);
                files.insert(process.program);
            }
        }
    }
    let named = |name: &str| -> PathBuf {
        let mut files = files.iter();
        let is = |file: &&PathBuf| file.file_name().is_some_and(|file| file == name);
        files.find(is).cloned().unwrap_or_else(|| panic!("no {name} among {:?}", files))
    };
    let library = symbols(&named("libc.so.6"), true);
    let mathematics = symbols(&named("libm.so.6"), true);
    let own = preload::path().unwrap();
    let wrapped = symbols(Path::new(own), true);
    // Who imports what.
    let mut imported: BTreeMap<String, BTreeSet<&Path>> = BTreeMap::new();
    let loader = |file: &Path| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-"))
    };
    for file in files.iter().filter(|file| !file.ends_with("libc.so.6") && !loader(file)) {
        for name in symbols(file, false) {
            if library.contains(&name) && !mathematics.contains(&name) && !wrapped.contains(&name) {
                imported.entry(name).or_default().insert(file);
            }
        }
    }
    let harmless: BTreeSet<&str> = HARMLESS.split_whitespace().collect();
    let known: BTreeSet<&str> = UNTOLD.iter().map(|(name, _)| *name).collect();
    imported.retain(|name, _| !harmless.contains(name.as_str()));
    let found: BTreeSet<&str> = imported.keys().map(String::as_str).collect();
    let new: Vec<_> = imported.iter().filter(|(name, _)| !known.contains(name.as_str())).collect();
    assert!(new.is_empty(), "not looked at, with those that import it: {new:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "nobody imports: {gone:?}");
    let both: Vec<_> = known.intersection(&harmless).collect();
    assert!(both.is_empty(), "{both:?}");
}
