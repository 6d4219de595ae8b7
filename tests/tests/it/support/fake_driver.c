/* A stand-in for MIOpenDriver, for tests of running it. The operation decides what it does. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fake_load(const char *name, const char *arguments);
int fake_load_environment(void);

int main(int argc, char **argv) {
  char arguments[256] = "";
  const char *operation = argv[1];
  int i;
  printf("MIOpenDriver %s\n", operation);
  if (strcmp(operation, "adam") == 0) /* crashes */
    raise(SIGSEGV);
  if (strcmp(operation, "cat") == 0) /* hangs */
    for (;;)
      pause();
  if (strcmp(operation, "glu") == 0) /* fails */
    return 3;
  if (strcmp(operation, "rope") == 0) { /* ends well, and has done nothing */
    printf("Input Flag: Q Not Found !");
    return 0;
  }
  if (strcmp(operation, "gemm") == 0) /* wants no kernel */
    return 0;
  if (strcmp(operation, "dropout") == 0) /* keeps what it is started with */
    return fake_load_environment();
  for (i = 1; i < argc; i++) {
    strcat(arguments, " ");
    strcat(arguments, argv[i]);
  }
  if (fake_load("driver.cpp.o", arguments))
    return 7;
  if (strcmp(operation, "ctc") == 0) /* fails after that */
    fprintf(stderr, "MIOpen Error: ctc.cpp:1: no\n");
  return 0;
}
