#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::sqlite {

// The failure to open, read or write a database.
struct Fault {
  enum class Kind {
    full,       // no space, or over a quota
    read_only,  // the file, its folder or its file system may not be written
    io,         // any other refusal of the operating system
    locked,     // another process uses it
    damaged,    // no valid database any more
    other,      // no fault of the file: another program's file, or a wrong statement
  };
  Kind kind = Kind::other;
  std::string message;  // one line; names the file
};
using Outcome = std::expected<void, Fault>;

// The lower-case name of a kind, for metric labels.
std::string_view to_string(Fault::Kind kind);
// Converts a Fault for callers that only pass it on: locked is conflict, other is unsupported, and
// the rest, which may go away, unavailable.
Error error_of(Fault fault);
// Returns the Fault of a failed call to the operating system: the text of its errno behind `what`.
Fault fault_of_errno(const std::string& what, int error);

}  // namespace gitops::sqlite
