#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/process.hpp"

// A folder with small programs in place of the daemons, for what makes images of them.
namespace gitops::test {

inline const std::vector<std::string> kPrograms{
    "event-reporter", "request-router", "tunnel-client", "tunnel-server", "app-proxy",
    "control-plane",  "gitopsctl",      "gitops-runtime"};  // one program that is all of them
// As cmake/compiler.cmake has them for a release.
inline const std::vector<std::string> kHardened{"-O2",
                                                "-fPIE",
                                                "-fstack-protector-strong",
                                                "-D_FORTIFY_SOURCE=2",
                                                "-pie",
                                                "-Wl,-z,relro,-z,now"};

// A program that needs two libraries beside the C library, compiled with these flags. more: further
// lines of its source.
inline void compile_stub(const std::filesystem::path& program,
                         const std::vector<std::string>& flags, const std::string& more = {}) {
  const auto source = program.string() + ".c";
  write_file(source,
             more +
                 "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <zlib.h>\n"
                 "int main(int n, char** a) {\n"
                 "  char text[32];\n"
                 "  strcpy(text, a[n - 1]);\n"
                 "  return printf(\"%s %s\\n\", text, zlibVersion()) < 0;\n}\n");
  std::vector<std::string> command{"clang-19", source, "-o", program, "-fuse-ld=lld"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.push_back("-lz");
  run_or_throw(command);
  std::filesystem::remove(source);
}

inline std::vector<std::string> with_symbols() {
  auto flags = kHardened;
  flags.emplace_back("-g");
  return flags;
}

// One such program under each name.
inline void make_stub_programs(const std::filesystem::path& bin) {
  std::filesystem::create_directories(bin);
  compile_stub(bin / kPrograms[0], with_symbols());
  for (const auto& name : kPrograms) {
    if (name != kPrograms[0]) std::filesystem::copy_file(bin / kPrograms[0], bin / name);
  }
  // Archives have it, images do not.
  std::filesystem::copy_file(bin / kPrograms[0], bin / "gitops-demo");
}

}  // namespace gitops::test
