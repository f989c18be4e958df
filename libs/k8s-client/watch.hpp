#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "k8s-client/record.hpp"

namespace gitops::k8s {

// One event of a watch.
struct WatchEvent {
  enum class Type {
    added,
    modified,
    deleted,
    bookmark,            // resource_version only
    initial_events_end,  // a bookmark that ends a streaming list
    error,               // `error` says what; the watch is over
    dropped,             // of an object that `keep` refused; resource_version is set
    quarantined,         // `quarantined` says why; resource_version is set if it could be read
  };
  Type type = Type::error;
  Record record;                 // added, modified, deleted
  std::string_view text;         // its JSON, valid until the callback returns
  std::string resource_version;
  Error error;
  Quarantined quarantined;
};

// Newline-separated JSON of a watch answer, in pieces as they arrive -> events, in order. Pure.
// Lines over the object limit are skipped without being stored and quarantined.
class WatchDecoder {
 public:
  explicit WatchDecoder(ObjectDecoder& decoder) : decoder_(decoder) {}

  void feed(std::string_view bytes, const std::function<void(WatchEvent&&)>& on_event);
  // The stream ended: true when it ended between two lines.
  [[nodiscard]] bool at_line_end() const { return pending_.empty() && !skipping_; }
  // Forgets a half line; for the next watch.
  void reset();

 private:
  void decode_line(std::string_view line, const std::function<void(WatchEvent&&)>& on_event);

  ObjectDecoder& decoder_;
  std::string pending_;
  std::size_t skipped_bytes_ = 0;
  bool skipping_ = false;
};

}  // namespace gitops::k8s
