#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "common/core/metrics.hpp"
#include "common/core/time.hpp"
#include "common/proxy/server.hpp"

namespace gitops::router {

// Appends one line of JSON for a request, with its line end: time, client, request and outcome.
// Omits query strings, which may contain tokens, and bodies. Pure.
void append_access_line(std::string& out, const proxy::TransactionRecord& record,
                        std::string_view client, std::string_view time);

// Writes lines to a descriptor that may be slow, without waiting for it. Buffers up to 256 KiB;
// further lines are dropped and counted. Lines stay whole and in order. All loops share one writer.
// Any thread.
class LineWriter {
 public:
  LineWriter(int descriptor, Counter& dropped);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Writes or buffers any number of whole lines.
  void write(std::string_view lines);
  // Writes buffered lines. Returns true if none is left.
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
  // Writes the collected lines. Call it regularly, so that lines are not delayed for long.
  void flush();

 private:
  LineWriter& writer_;
  std::string lines_;
  std::string time_;  // text of `second_`, without milliseconds
  std::int64_t second_ = -1;
};

}  // namespace gitops::router
