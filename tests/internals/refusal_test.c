/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the shared object named on the command line into a program without a C++ runtime, as the Python interpreter is
 * one, and looks at what it says to a bad value.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  char message[512] = "";
  void (*refuse)(char*, size_t) = NULL;
  void* object = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void* symbol = object ? dlsym(object, "refuse") : NULL;
  if (!symbol) {
    fprintf(stderr, "cannot load the shared object: %s\n", object || count == 2 ? dlerror() : "name one");
    return 2;
  }
  memcpy(&refuse, &symbol, sizeof symbol); /* ISO C has no conversion from void* to a function */
  refuse(message, sizeof message);
  puts(message);
  return strstr(message, "covariance[1, 2] is -inf") ? 0 : 1;
}
