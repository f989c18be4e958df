// A yamux session that receives bytes from anywhere while its streams are used. What comes out must
// not depend on how the bytes are split, every bound holds, and nothing that it sends breaks the
// rules of Go's implementation.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/tunnel/yamux_referee.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel::yamux;
using Event = Session::Step::Event;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::size_t kMaxStreams = 8;

// A session whose users answer each event in a way that depends on the stream alone: they echo,
// end, close or abort it.
class Fixture {
 public:
  explicit Fixture(Role role)
      : options_{.role = role, .max_streams = kMaxStreams},
        session_(options_, now_),
        referee_(options_) {
    for (int i = 0; i < 3; ++i) {
      if (const auto id = session_.open(now_)) session_.write(*id, "hello");
    }
  }

  void receive(std::string_view bytes) {
    try {
      referee_.received(bytes);
    } catch (const std::logic_error&) {
      // A version or a type that does not exist; the session fails at the same place.
    }
    while (true) {
      const auto step = session_.receive(bytes, now_);
      require(session_.stream_count() <= kMaxStreams);
      if (step.event == Event::more) break;
      answer(step);
    }
    require(bytes.empty());
  }

  // Sends all that there is; what that was.
  std::string send() {
    std::string all;
    while (true) {
      const auto output = session_.output();
      require(output.size() <= 65'000);
      if (output.empty()) break;
      if (!session_.failure()) referee_.sent(output);
      all += output;
      session_.sent(output.size());
    }
    return all;
  }

  // The events, one after the other; data of one stream is joined.
  [[nodiscard]] const std::string& events() const { return events_; }
  [[nodiscard]] bool failed() const { return session_.failure().has_value(); }

  // A session whose peer is silent is over in a bounded time.
  void go_silent() {
    for (int i = 0; i < 20; ++i) {
      now_ += std::chrono::seconds(1);
      session_.tick(now_);
    }
    require(failed() && session_.due() == kNever && session_.stream_count() == 0);
  }

 private:
  void answer(const Session::Step& step) {
    const auto id = step.stream;
    if (step.event == Event::data) {
      require(!step.data.empty());
      data_[id] += step.data.size();
      if (id % 3 != 0) session_.release(id, step.data.size());
      if (id % 5 != 0) session_.write(id, step.data);
      return;
    }
    events_ += std::to_string(static_cast<int>(step.event)) + ":" + std::to_string(id) + ":" +
               std::to_string(data_[id]) + " ";
    if (step.event == Event::opened && id % 11 == 0) session_.abort(id);
    if (step.event == Event::ended && id % 2 == 0) session_.end(id);
    if (step.event == Event::reset || step.event == Event::ended) session_.close(id, now_);
  }

  Clock::time_point now_{};
  SessionOptions options_;
  Session session_;
  Referee referee_;
  std::map<StreamId, std::size_t> data_;
  std::string events_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the role and the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const Role role = (static_cast<unsigned char>(all[0]) & 1U) != 0 ? Role::client : Role::server;
  const auto sizes = all.substr(1, 3);
  auto bytes = all.substr(4);
  Fixture whole(role);
  Fixture split(role);
  whole.receive(bytes);
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    const auto piece = 1U + static_cast<unsigned char>(sizes[turn % sizes.size()]) % 32U;
    split.receive(bytes.substr(0, piece));
    bytes.remove_prefix(std::min<std::size_t>(bytes.size(), piece));
  }
  require(whole.events() == split.events() && whole.failed() == split.failed());
  const auto sent = whole.send();
  require(sent.size() == split.send().size() || whole.failed());
  whole.go_silent();
  return 0;
}
