#include "common/net/relay.hpp"

#include <array>

namespace gitops::net {
namespace {

// Number of bytes moved without waiting before other tasks of the loop run.
constexpr std::size_t kMuch = 256 * 1024;
// Limits of the wait for a reader before its connection is reset.
constexpr std::size_t kMaxDropped = 1024 * 1024;
constexpr auto kReaderGrace = std::chrono::seconds(2);

enum class Step {
  moved,
  stuck,
  ended,
  refused,  // the end that receives takes no more
  broken,
};

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
    if (written.what == Transfer::timeout) return Step::broken;
    if (written.what != Transfer::data) return Step::refused;
  }
}

// Gives a peer time to read what it was sent, which a reset would destroy. Drops what it sends.
Task<> await_reader(Channel& channel) {
  channel.set_deadline(deadline_after(kReaderGrace));
  std::array<char, 4096> sink;
  for (std::size_t dropped = 0; dropped < kMaxDropped;) {
    const auto read = channel.read_now(sink);
    dropped += read.size;
    if (read.what == Transfer::nothing) {
      co_await channel.readable();
    } else if (read.what != Transfer::data) {
      co_return;
    }
  }
}

// Passes on what an end sent before it stopped to read, such as an early response, and closes both
// ends. `has_ended`: all of that was passed on before.
Task<> pass_last(RelayEnd& from, Channel& to, bool has_ended, std::chrono::milliseconds idle) {
  const auto executor = co_await asio::this_coro::executor;
  auto step = has_ended ? Step::ended : Step::moved;
  std::size_t moved = 0;
  while (step == Step::moved || step == Step::stuck) {
    std::size_t now = 0;
    step = move_some(from, to, now);
    moved += now;
    if (step == Step::moved) {
      const auto deadline = deadline_after(idle);
      from.channel.set_deadline(deadline);
      to.set_deadline(deadline);
      co_await asio::post(executor, use_task);
    } else if (step == Step::stuck) {
      AnyChannel either{&from.channel, &to};
      co_await either.happens(executor);
    }
  }
  if (step == Step::ended) {
    from.channel.close();
    co_return co_await to.close_gracefully();
  }
  if (step == Step::broken && moved > 0) co_await await_reader(to);
  from.channel.abort();
  to.abort();
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
      const auto before = ends[i]->passed_on;
      const auto step = move_some(*ends[i], to, moved);
      if (step == Step::broken) {
        if (ends[i]->passed_on > before) co_await await_reader(to);
        a.channel.abort();
        b.channel.abort();
        co_return;
      }
      if (step == Step::refused) {
        co_return co_await pass_last(*ends[1 - i], ends[i]->channel, ended[1 - i], idle);
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
