#pragma once

#include <cstddef>
#include <string>

#include "common/core/error.hpp"

// Small files that people and Kubernetes put beside a program: settings, tokens, certificates.
namespace gitops {

// The whole of a regular file of at most `limit` bytes; anything else (a folder, a pipe) is
// refused, so this never waits for somebody. Errors: not_found, unavailable, invalid_data,
// too_large; their messages say "cannot be read: ..." or "is ...", the caller names the file.
Result<std::string> read_small_file(const std::string& path, std::size_t limit = 1024 * 1024);

// Another text whenever the file behind the path is another one or was written; empty when there is
// none. Taken before the file is read it tells later whether to read again.
std::string file_fingerprint(const std::string& path);

}  // namespace gitops
