#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "common/core/metrics.hpp"
#include "common/core/time.hpp"
#include "common/proxy/server.hpp"

namespace gitops::router {

// One line of JSON for a request, with its line end: when, who, what, how it ended. No query
// strings, which hold tokens, and no bodies. Pure; appends to `out`.
void append_access_line(std::string& out, const proxy::TransactionRecord& record,
                        std::string_view client, std::string_view time);

// Writes lines to a descriptor that may be slow, and never waits for it. Up to 256 KiB are
// buffered; after that, lines are dropped and counted. Lines stay whole and in order. All loops
// share one writer. Any thread.
class LineWriter {
 public:
  LineWriter(int descriptor, Counter& dropped);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Takes any number of whole lines.
  void write(std::string_view lines);
  // Writes buffered lines; true when none are left.
  bool flush();

 private:
  std::size_t write_now(std::string_view text) const;
  void write_kept();

  const int descriptor_;
  const bool never_waits_;  // a file
  Counter& dropped_;
  std::mutex mutex_;
  std::string kept_;
};

// Collects the access lines of one loop and writes many at once. Loop thread only.
class AccessLog {
 public:
  explicit AccessLog(LineWriter& writer) : writer_(writer) {}

  void add(const proxy::TransactionRecord& record, std::string_view client, WallTime now);
  // Called from time to time, so that lines are not held back for long.
  void flush();

 private:
  LineWriter& writer_;
  std::string lines_;
  std::string time_;  // of `second_`, up to the milliseconds
  std::int64_t second_ = -1;
};

}  // namespace gitops::router
