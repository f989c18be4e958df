#include "common/net/relay.hpp"

#include <array>

namespace gitops::net {
namespace {

// Number of bytes moved without waiting before other tasks of the loop run.
constexpr std::size_t kMuch = 256 * 1024;

enum class Step { moved, stuck, ended, broken };

// Moves bytes from one end to the other without waiting.
Step move_some(RelayEnd& from, Channel& to, std::size_t& moved) {
  bool any = false;
  while (true) {
    if (from.received.empty()) {
      const auto read = from.channel.read_now(from.received);
      if (read.what == Transfer::nothing) return any ? Step::moved : Step::stuck;
      if (read.what == Transfer::end) return Step::ended;
      if (read.what != Transfer::data) return Step::broken;
    }
    const auto bytes = from.received.bytes();
    const std::array<asio::const_buffer, 1> parts{asio::buffer(bytes.data(), bytes.size())};
    const auto written = to.write_now(parts);
    if (from.seen) from.seen(bytes.substr(0, written.size));
    from.received.consume(written.size);
    from.passed_on += written.size;
    moved += written.size;
    any = any || written.size > 0;
    if (written.what == Transfer::nothing || moved >= kMuch) return any ? Step::moved : Step::stuck;
    if (written.what != Transfer::data) return Step::broken;
  }
}

}  // namespace

Task<> relay(RelayEnd a, RelayEnd b, std::chrono::milliseconds idle) {
  const auto executor = co_await asio::this_coro::executor;
  std::array<RelayEnd*, 2> ends{&a, &b};
  std::array<bool, 2> ended{};
  const auto set_deadlines = [&] {
    const auto deadline = a.channel.reactor().now() + idle;
    a.channel.set_deadline(deadline);
    b.channel.set_deadline(deadline);
  };
  set_deadlines();
  while (!ended[0] || !ended[1]) {
    bool any = false;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ended[i]) continue;
      Channel& to = ends[1 - i]->channel;
      const auto step = move_some(*ends[i], to, moved);
      if (step == Step::broken) {
        a.channel.abort();
        b.channel.abort();
        co_return;
      }
      any = any || step != Step::stuck;
      if (step == Step::ended && ends[i]->end_closes) {
        ends[i]->channel.close();
        co_return co_await to.close_gracefully();
      }
      if (step == Step::ended) {
        ended[i] = true;
        to.shutdown_send();
      }
    }
    if (any) {
      set_deadlines();
      if (moved >= kMuch) co_await asio::post(executor, use_task);
      continue;
    }
    AnyChannel either{&a.channel, &b.channel};
    co_await either.happens(executor);
  }
}

}  // namespace gitops::net
