#pragma once

#include <cstddef>
#include <string>

#include "common/core/error.hpp"

// Small files that users or Kubernetes provide to a program: settings, tokens, certificates.
namespace gitops {

// Returns the content of a regular file of at most `limit` bytes; anything else (a folder, a pipe)
// is refused, so the call cannot block on a writer. Errors: not_found, unavailable, invalid_data,
// too_large; their messages say "cannot be read: ..." or "is ...", the caller names the file.
Result<std::string> read_small_file(const std::string& path, std::size_t limit = 1024 * 1024);

// Returns the version of a file, which changes whenever the file is replaced or written; empty when
// there is no file. Take it before reading, and read again when it has changed.
std::string file_fingerprint(const std::string& path);

// Tells a file that was emptied from one that is being written in place, which is empty for a
// moment. Without its content something may be open to everybody, so an empty file counts only
// when it stays as it is.
class EmptyFileWatch {
 public:
  // Takes a look at a file of this version. Returns true for an empty file at the second look in a
  // row that finds this version.
  bool stays_empty(bool is_empty, const std::string& fingerprint);

 private:
  std::string seen_;  // version of the file if it was empty at the last look
};

}  // namespace gitops
