#include <cstring>
#include <dlfcn.h>
#include <netdb.h>

#include <unistd.h>

// Stands in front of the system's getaddrinfo in a program that preloads this library: the lookup of
// a name that begins with "silent" never ends, as with a name server that does not answer.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  while (name != nullptr && std::strncmp(name, "silent", 6) == 0) ::pause();
  using Function = int(const char*, const char*, const addrinfo*, addrinfo**);
  static auto* const next = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(name, service, hints, list);
}
