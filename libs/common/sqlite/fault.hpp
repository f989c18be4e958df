#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::sqlite {

// Why a database could not be opened, read or written.
struct Fault {
  enum class Kind {
    full,       // no space, or over a quota
    read_only,  // the file, its folder or its file system may not be written
    io,         // any other refusal of the operating system
    locked,     // another process uses it
    damaged,    // not a database any more
    other,      // not the file's fault: another program's file, or a statement of ours
  };
  Kind kind = Kind::other;
  std::string message;  // one line; names the file
};
using Outcome = std::expected<void, Fault>;

// The lower-case name of a kind, for metric labels.
std::string_view to_string(Fault::Kind kind);
// For callers that only pass it on: locked is conflict, other is unsupported, and the rest, which
// may go away, unavailable.
Error error_of(Fault fault);
// What a failed call to the operating system means: its errno behind `what`.
Fault fault_of_errno(const std::string& what, int error);

}  // namespace gitops::sqlite
