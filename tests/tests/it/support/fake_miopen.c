/* A stand-in for libMIOpen, for tests of asking it. The number of images of a problem decides what it
 * does. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sqlite3_open_v2(const char *, void **, int, const char *);
int sqlite3_prepare_v2(void *, const char *, int, void **, const char **);
int sqlite3_step(void *);
const void *sqlite3_column_blob(void *, int);
int sqlite3_finalize(void *);
int sqlite3_close(void *);
int hipModuleLoadData(void **, const void *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleUnload(void *);
#ifdef WANTS
int WANTS(void);
#endif

/* Looks a kernel up as MIOpen does; returns 0 if it is found. */
int fake_load(const char *name, const char *arguments) {
  char sql[1024];
  void *db, *statement, *module, *function;
  int found;
#ifdef SILENT
  return 0;
#endif
#ifdef WANTS
  WANTS();
#endif
  snprintf(sql, sizeof sql,
           "SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE "
           "(kernel_name = '%s') AND (kernel_args = '%s');",
           name, arguments);
  if (sqlite3_open_v2("user.ukdb", &db, 6, NULL))
    return 1;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL))
    return 1;
  found = sqlite3_step(statement) == 100 &&
          hipModuleLoadData(&module, sqlite3_column_blob(statement, 0)) == 0 &&
          hipModuleGetFunction(&function, module, "run") == 0;
  if (found)
    hipModuleUnload(module);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return !found;
}

/* Looks a kernel up whose arguments are the names of the environment's variables. */
int fake_load_environment(void) {
  extern char **environ;
  char names[900] = "";
  char **variable;
  for (variable = environ; *variable; variable++) {
    strcat(names, " ");
    strncat(names, *variable, strcspn(*variable, "="));
  }
  return fake_load("environment.cpp.o", names);
}

/* The parent of a process. */
static int parent_of(int process) {
  char path[64];
  int parent = -1;
  FILE *file;
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  file = fopen(path, "r");
  if (file == NULL || fscanf(file, "%*d %*s %*c %d", &parent) != 1)
    abort();
  fclose(file);
  return parent;
}

static int compute(size_t images, const char *mode) {
  char name[64];
  if (fake_load("naive_conv.cpp.o", mode))
    return 7;
  switch (images) {
  case 600: /* crashes, which a signal that is only sent would not do: Rust handles this one */
    *(volatile char *)images = 0;
    break;
  case 601: /* hangs */
    for (;;)
      pause();
  case 602: /* ends */
    _exit(3);
  case 603: /* refuses */
    return 3;
  case 604: /* kills the worker that it was forked from */
    kill(getppid(), SIGKILL);
    pause();
    break;
  case 605: /* kills the process that workers are forked from */
    kill(parent_of(getppid()), SIGKILL);
    break;
  case 700: /* tells what it is started with */
    return fake_load_environment();
  case 606: /* leaves its own directory */
    if (chdir("/"))
      return 8;
    break;
  }
#ifdef WRITES
  FILE *file = fopen(WRITES, "w");
  if (file)
    fclose(file);
#endif
  snprintf(name, sizeof name, "kernel%zu.cpp.o", images);
#ifdef SOURCES /* the kernel's is not among them */
  if (images == 607 && fake_load(name, mode))
    return fake_load("other.cpp.o", mode) && fake_load("naive_conv.cpp.o", " again");
#endif
  return fake_load(name, mode);
}

#ifdef SOURCES
const char MIOPEN_KERNEL_NAIVE_CONV[] = "text";
const unsigned long MIOPEN_KERNEL_NAIVE_CONV_SIZE = 4;
const char *const names[] = {"naive_conv.cpp"};
#endif

int miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
  *major = 9;
  *minor = 8;
  *patch = 7;
  return 0;
}

int miopenCreate(void **handle) {
#ifdef FALLS
  raise(SIGSEGV);
#endif
  *handle = malloc(1);
  return 0;
}
int miopenDestroy(void *handle) {
  free(handle);
  return 0;
}
int miopenCreateTensorDescriptor(void **tensor) {
  *tensor = calloc(1, 64);
  return 0;
}
int miopenSetTensorDescriptorV2(void *tensor, int type, int count, const size_t *lengths,
                                const size_t *strides) {
  memcpy(tensor, lengths, count * sizeof *lengths);
  return 0;
}
int miopenGetTensorNumBytes(void *tensor, size_t *bytes) {
  *bytes = 4096;
  return 0;
}
int miopenCreateConvolutionDescriptor(void **convolution) {
  *convolution = calloc(1, 64);
  return 0;
}
int miopenInitConvolutionNdDescriptor(void *convolution, int axes, const int *pads,
                                      const int *strides, const int *dilations, int mode) {
  return 0;
}
int miopenSetConvolutionGroupCount(void *convolution, int groups) { return 0; }
int miopenSetTransposeConvNdOutputPadding(void *convolution, int axes, const int *pads) {
  return 0;
}
int miopenSetConvolutionFindMode(void *convolution, int mode) { return 0; }
int miopenGetSolverIdConvAlgorithm(uint64_t id, int *algorithm) { return id != 1; }
int miopenConvolutionForwardBias() { return 0; }
int miopenConvolutionBackwardBias() { return 0; }

#define DIRECTION(NAME)                                                                           \
  int miopenFindConvolution##NAME##Algorithm(                                                     \
      void *handle, void *a, const void *a_address, void *b, const void *b_address,               \
      void *convolution, void *c, void *c_address, int wanted, int *found, void *results,         \
      void *workspace, size_t bytes, char exhaustive) {                                           \
    *found = 1;                                                                                   \
    return compute(*(size_t *)a, " find " #NAME);                                                 \
  }                                                                                               \
  int miopenConvolution##NAME() { return 0; }                                                     \
  int miopenConvolution##NAME##GetSolutionCount(void *handle, void *a, void *b,                   \
                                                void *convolution, void *c, size_t *count) {      \
    *count = 1;                                                                                   \
    return 0;                                                                                     \
  }                                                                                               \
  int miopenConvolution##NAME##GetSolution(void *handle, void *a, void *b, void *convolution,     \
                                           void *c, size_t most, size_t *count,                   \
                                           void *solutions) {                                     \
    *count = 1;                                                                                   \
    return 0;                                                                                     \
  }                                                                                               \
  int miopenConvolution##NAME##CompileSolution() {                                                \
    return fake_load("immediate.cpp.o", " " #NAME);                                                    \
  }                                                                                               \
  int miopenConvolution##NAME##Immediate() { return 0; }

DIRECTION(Forward)
DIRECTION(BackwardData)
DIRECTION(BackwardWeights)
