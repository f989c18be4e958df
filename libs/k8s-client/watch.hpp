#pragma once

#include <cstddef>
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
  std::string resource_version;  // all but error
  Error error;
  Quarantined quarantined;
  bool quarantined_deletion = false;  // quarantined: the object was deleted
};

// The stable name of a type, as the metric label has it: "added", "quarantined", …
std::string_view to_string(WatchEvent::Type type);

// Newline-separated JSON of a watch answer, in pieces as they arrive -> events, in order. Pure. A
// line that lies wholly in one piece is decoded where it lies, a line in parts is put together
// first. Lines over the object limit are skipped without being kept and reported as quarantined
// when they end.
class WatchDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent&&)>;

  explicit WatchDecoder(ObjectDecoder& decoder) : decoder_(decoder) {}

  void feed(std::string_view bytes, const OnEvent& on_event);
  // The stream ended: true when it ended between two lines.
  [[nodiscard]] bool at_line_end() const { return pending_.empty() && skipped_bytes_ == 0; }
  // Forgets a half line; for the next watch.
  void reset();

 private:
  // Room for what stands around the object in its line.
  [[nodiscard]] std::size_t max_line() const { return decoder_.limits_.max_bytes + 4096; }
  void keep_part(std::string_view part);
  void end_line(std::string_view last_part, const OnEvent& on_event);
  void decode_line(std::string_view line, const OnEvent& on_event);

  ObjectDecoder& decoder_;
  std::string pending_;            // a line without its end
  std::size_t skipped_bytes_ = 0;  // > 0: of a line that is too long
  WatchEvent too_long_;            // what is known of that line
};

}  // namespace gitops::k8s
