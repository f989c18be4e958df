#pragma once

#include <string>
#include <string_view>

#include "common/core/error.hpp"

namespace gitops::http {

// A streaming decoder of compressed bodies with a limit of its output.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  // Decodes these bytes and appends the result to `out`. Errors: too_large above the limit,
  // invalid_data for corrupt bytes.
  virtual Result<void> feed(std::string_view bytes, std::string& out) = 0;
  // Returns whether the bytes so far end where a body may end; false before the first byte.
  [[nodiscard]] virtual bool finished() const = 0;
};

}  // namespace gitops::http
