#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "app-proxy/git/failure_codes.hpp"
#include "common/core/error.hpp"

namespace gitops::app_proxy {

// An unnamed file that is written once and then read from its beginning. It disappears with the
// object, also when the process is killed. Blocks; one thread.
class Spool {
 public:
  static Result<Spool> in(const std::filesystem::path& folder);
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&& other) noexcept;
  ~Spool();

  // Appends bytes. The subcode of the error is kDiskFull when the disk is full. Must not be called
  // after an error.
  Result<void> write(std::string_view bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Passes all bytes to `take`, in parts of 64 KiB. Ends with the first error.
  Result<void> each(const std::function<Result<void>(std::string_view)>& take) const;

 private:
  explicit Spool(int file) : file_(file) {}
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace gitops::app_proxy
