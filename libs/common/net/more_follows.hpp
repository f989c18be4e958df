#pragma once

namespace gitops::net {

// Says, for as long as it lives, that the bytes that this thread writes to a channel are not the last
// ones that the writer has: a socket need not send them by themselves, and does not wake its peer for
// them. A channel that takes less than it was offered says so while it writes to the one below; the
// writer comes back with the rest. An attempt to write does not suspend, so nothing else is written
// meanwhile.
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
