#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/time.hpp"

namespace gitops::reporter {

// The last deliveries of each object, for people who trace its events. Holds no payloads and no
// responses. Bounded in bytes: evicts the object whose last delivery is the oldest. Loop thread
// only.
class Journal {
 public:
  struct Options {
    std::size_t per_object = 5;
    std::size_t max_bytes = std::size_t{4} * 1024 * 1024;  // of memory, estimated
  };
  // One attempt to deliver one event.
  struct Entry {
    WallTime time;  // end of the attempt
    std::string part;
    std::string event_id;
    unsigned attempt = 1;     // number of the attempt at this event, from 1
    std::string_view result;  // a literal: "acknowledged", "failed", …
    int http_status = 0;      // 0: no response
    std::size_t bytes = 0;    // size of the event, before compression
    std::chrono::milliseconds took{0};
  };

  explicit Journal(Options options) : options_(options) {}

  // Adds an attempt. `subject` is "namespace/name" of an application, followed by a space and the
  // resource for one of its resources.
  void add(const std::string& subject, Entry entry);

  // {"deliveries":[{"subject":…,"time":…,"part":…,"event_id":…,"attempt":…,"result":…,
  // "http_status":…,"bytes":…,"milliseconds":…}]}, newest first, of one subject, or of an application
  // and its resources. `refused`, unless empty, is the JSON of the member "refused".
  [[nodiscard]] std::string json(std::string_view object, std::string_view refused = {}) const;
  // Returns the same JSON for the `limit` subjects with the latest deliveries.
  [[nodiscard]] std::string json_all(std::size_t limit, std::string_view refused = {}) const;
  // Serves GET /journal with this query: "object=ns/name", or "limit=N" (default 100) for all.
  // `refused` makes the JSON array of the refused events of an object ("": of all objects), which
  // becomes the member "refused".
  using Refused = std::function<std::string(std::string_view object)>;
  [[nodiscard]] std::string answer(std::string_view query, const Refused& refused = {}) const;

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t subjects() const { return subjects_.size(); }

 private:
  struct Kept {
    Entry entry;
    std::uint64_t number;  // ascending over all deliveries
  };
  struct Subject {
    std::vector<Kept> entries;                      // oldest first
    std::list<const std::string*>::iterator place;  // position in order_
  };
  using Found = std::vector<std::pair<const std::string*, const Kept*>>;  // with their subjects
  static std::string write(Found found, std::string_view refused = {});
  void forget(const std::string& subject);

  Options options_;
  std::map<std::string, Subject, std::less<>> subjects_;
  std::list<const std::string*> order_;  // keys of subjects_, the one delivered last at the end
  std::size_t bytes_ = 0;
  std::uint64_t added_ = 0;
};

}  // namespace gitops::reporter
