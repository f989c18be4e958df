#pragma once

#include <string>
#include <string_view>

#include "common/core/time.hpp"
#include "common/http/proxy.hpp"

namespace gitops::router {

// One line of JSON for a request, with its line end: when, who, what, how it ended. No query
// strings, which hold tokens, and no bodies. Pure; appends to `out`.
void append_access_line(std::string& out, const http::ExchangeRecord& record,
                        std::string_view client, std::string_view time);

// Collects access lines and writes them to a descriptor, many at once. Loop thread only.
class AccessLog {
 public:
  explicit AccessLog(int descriptor) : descriptor_(descriptor) {}
  ~AccessLog() { flush(); }
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void add(const http::ExchangeRecord& record, std::string_view client, WallTime now);
  // Called from time to time, so that lines are not kept for long.
  void flush();

 private:
  int descriptor_;
  std::string lines_;
  std::string time_;  // of `second_`, up to the milliseconds
  std::int64_t second_ = -1;
};

}  // namespace gitops::router
