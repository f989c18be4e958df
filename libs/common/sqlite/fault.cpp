#include "common/sqlite/fault.hpp"

#include <cerrno>
#include <system_error>

namespace gitops::sqlite {
namespace {

Fault::Kind kind_of_errno(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Fault::Kind::full;
    case EROFS:
    case EACCES:
    case EPERM:
      return Fault::Kind::read_only;
    default:
      return Fault::Kind::io;
  }
}

}  // namespace

std::string_view to_string(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::full:
      return "full";
    case Fault::Kind::read_only:
      return "read_only";
    case Fault::Kind::io:
      return "io";
    case Fault::Kind::locked:
      return "locked";
    case Fault::Kind::damaged:
      return "damaged";
    case Fault::Kind::other:
      return "other";
  }
  return "other";
}

Error error_of(Fault fault) {
  switch (fault.kind) {
    case Fault::Kind::locked:
      return {.code = ErrorCode::conflict, .message = std::move(fault.message)};
    case Fault::Kind::other:
      return {.code = ErrorCode::unsupported, .message = std::move(fault.message)};
    default:
      return {.code = ErrorCode::unavailable, .message = std::move(fault.message)};
  }
}

Fault fault_of_errno(const std::string& what, int error) {
  return {.kind = kind_of_errno(error),
          .message = error == 0 ? what : what + ": " + std::generic_category().message(error)};
}

}  // namespace gitops::sqlite
