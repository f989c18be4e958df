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
    error,               // `error` is set; the watch has ended
    dropped,             // `keep` refused the object; resource_version is set
    quarantined,         // `quarantined` is set; resource_version if it could be read
  };
  Type type = Type::error;
  Record record;                 // added, modified, deleted
  std::string_view text;         // the JSON of `record`, valid until the callback returns
  std::string resource_version;  // set for all types but error
  Error error;
  Quarantined quarantined;
  bool quarantined_deletion = false;  // quarantined: the object was deleted
};

// Returns the stable name of a type, for metric labels: "added", "quarantined", …
std::string_view to_string(WatchEvent::Type type);

// Turns the newline-separated JSON of a watch into events, in order. Pure; takes the bytes in
// pieces of any size. A line within one piece is decoded in place; a line in several pieces is
// assembled first. A line over the object limit is not stored; its event is `quarantined`, at its
// end.
class WatchDecoder {
 public:
  using OnEvent = std::function<void(WatchEvent&&)>;

  explicit WatchDecoder(ObjectDecoder& decoder) : decoder_(decoder) {}

  void feed(std::string_view bytes, const OnEvent& on_event);
  // Returns true when the stream ended between two lines.
  [[nodiscard]] bool at_line_end() const { return pending_.empty() && skipped_bytes_ == 0; }
  // Drops an incomplete line. Called before the next watch.
  void reset();

 private:
  // Maximum length of a line: the object limit, and room for the rest of the line.
  [[nodiscard]] std::size_t max_line() const { return decoder_.limits_.max_bytes + 4096; }
  void keep_part(std::string_view part);
  void end_line(std::string_view last_part, const OnEvent& on_event);
  void decode_line(std::string_view line, const OnEvent& on_event);

  ObjectDecoder& decoder_;
  std::string pending_;            // a line without its end
  std::size_t skipped_bytes_ = 0;  // > 0: the length so far of a line that is too long
  WatchEvent too_long_;            // the event of that line
};

}  // namespace gitops::k8s
