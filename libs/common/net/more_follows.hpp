#pragma once

namespace gitops::net {

// Marks the bytes that this thread writes to a channel during its life as incomplete: more will
// follow. A socket may delay them, and does not wake its peer for them. A channel that accepts only
// a part sets the mark while it writes to the channel below; the writer then continues with the
// rest. An attempt to write does not suspend, so the mark applies to no other write.
class MoreFollows {
 public:
  explicit MoreFollows(bool is_more) : before_(is_set()) { set(before_ || is_more); }
  ~MoreFollows() { set(before_); }
  MoreFollows(const MoreFollows&) = delete;
  MoreFollows& operator=(const MoreFollows&) = delete;

  [[nodiscard]] static bool is_set();

 private:
  static void set(bool value);
  bool before_;
};

}  // namespace gitops::net
