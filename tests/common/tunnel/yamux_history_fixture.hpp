#pragma once

#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/tunnel/yamux_referee.hpp"

// A random history of two joined sessions, with a model of what each side must have received.
namespace gitops::tunnel::yamux {

// What is written at a place of a stream, by either side.
inline char byte_at(StreamId stream, std::size_t side, std::uint64_t offset) {
  return static_cast<char>(stream * 131 + side * 7 + offset * 31 + offset / 256);
}

// One side's user of a stream.
struct User {
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::uint64_t released = 0;
  bool ended = false;       // this side ended its sending side
  bool aborted = false;     // this side aborted or closed early
  bool peer_ended = false;  // as the session said
  bool gone = false;        // no further calls
};

class YamuxHistory {
 public:
  explicit YamuxHistory(unsigned seed)
      : random_(seed),
        options_{options(Role::client), options(Role::server)},
        sessions_{Session(options_[0], now_), Session(options_[1], now_)},
        referees_{Referee(options_[0]), Referee(options_[1])} {}

  // One random step.
  void step() {
    const auto side = pick(2);
    switch (pick(16)) {
      case 0:
        if (users_[side].size() < 40) open(side);
        break;
      case 1:
        now_ += std::chrono::milliseconds(pick(300));
        for (auto& session : sessions_) session.tick(now_);
        break;
      case 2:
        finish(side);
        break;
      case 3:
      case 4:
      case 5:
        release(side, pick(3) == 0 ? 1'000'000 : pick(50'000));
        break;
      case 6:
      case 7:
      case 8:
      case 9:
        write(side, pick(4) == 0 ? pick(60'000) : pick(300));
        break;
      default:
        send(side, 1 + pick(pick(2) == 0 ? 40 : 30'000));
        deliver(1 - side, 1 + pick(pick(2) == 0 ? 40 : 30'000));
        break;
    }
  }

  // Damages a byte on its way, or drops some; the sessions may fail from then on.
  void damage() {
    const auto side = pick(2);
    auto& wire = wires_[side];
    if (wire.empty()) return;
    damaged_ = true;
    const auto at = pick(wire.size());
    if (pick(2) == 0) {
      wire[at] = static_cast<char>(pick(256));
    } else {
      wire.erase(at, 1 + pick(20));
    }
  }
  [[nodiscard]] bool damaged() const { return damaged_; }

  // Everybody reads all, ends and closes; then nothing is left.
  void settle() {
    for (int round = 0; round < 400 && !settled(); ++round) {
      for (std::size_t side = 0; side < 2; ++side) {
        for (auto& [id, user] : users_[side]) {
          if (user.gone) continue;
          release_all(side, id, user);
          sessions_[side].end(id);
          user.ended = true;
          if (user.peer_ended) close(side, id, user);
        }
        send(side, 1'000'000);
        deliver(1 - side, 1'000'000);
      }
      now_ += std::chrono::milliseconds(500);
      for (auto& session : sessions_) session.tick(now_);
    }
    for (const auto& session : sessions_) {
      EXPECT_FALSE(session.failure()) << session.failure()->message;
      EXPECT_EQ(session.stream_count(), 0u);
    }
  }

  // Nothing arrives any more: both sessions notice.
  void go_silent() {
    for (int i = 0; i < 16; ++i) {
      now_ += std::chrono::milliseconds(1000);
      for (auto& session : sessions_) session.tick(now_);
    }
    for (const auto& session : sessions_) {
      EXPECT_TRUE(session.failure());
      EXPECT_EQ(session.due(), kNever);
      EXPECT_EQ(session.stream_count(), 0u);
    }
  }

  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  SessionOptions options(Role role) {
    return {.role = role,
            .receive_window = pick(2) == 0 ? kInitialWindow : kInitialWindow + 100'000,
            .max_streams = 60};
  }
  std::size_t pick(std::size_t below) { return random_() % below; }

  // A random stream that the side still uses.
  std::pair<const StreamId, User>* any_user(std::size_t side) {
    auto& users = users_[side];
    if (users.empty()) return nullptr;
    auto at = users.lower_bound(static_cast<StreamId>(pick(users.rbegin()->first + 1)));
    if (at == users.end()) at = users.begin();
    return at->second.gone ? nullptr : &*at;
  }

  void open(std::size_t side) {
    if (const auto id = sessions_[side].open(now_)) users_[side][*id] = {};
  }

  void write(std::size_t side, std::size_t size) {
    auto* user = any_user(side);
    if (user == nullptr || user->second.ended) return;
    auto& [id, state] = *user;
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(id, side, state.written + i);
    state.written += sessions_[side].write(id, bytes);
  }

  void release(std::size_t side, std::size_t size) {
    auto* user = any_user(side);
    if (user == nullptr) return;
    auto& [id, state] = *user;
    const auto now = std::min<std::uint64_t>(size, state.read - state.released);
    state.released += now;
    sessions_[side].release(id, static_cast<std::size_t>(now));
  }
  void release_all(std::size_t side, StreamId id, User& user) {
    sessions_[side].release(id, static_cast<std::size_t>(user.read - user.released));
    user.released = user.read;
  }

  void close(std::size_t side, StreamId id, User& user) {
    sessions_[side].close(id, now_);
    user.gone = user.ended = true;
  }

  // Ends a stream in one of the ways that there are.
  void finish(std::size_t side) {
    auto* user = any_user(side);
    if (user == nullptr) return;
    auto& [id, state] = *user;
    switch (pick(4)) {
      case 0:
        state.aborted = state.gone = state.ended = true;
        sessions_[side].abort(id);
        break;
      case 1:
        state.aborted = state.aborted || !state.peer_ended;
        close(side, id, state);
        break;
      default:
        state.ended = true;
        sessions_[side].end(id);
        break;
    }
  }

  void send(std::size_t side, std::size_t most) {
    const auto output = sessions_[side].output();
    EXPECT_LE(output.size(), 65'000u);
    const auto part = output.substr(0, most);
    if (!damaged_) referees_[side].sent(part);
    wires_[side] += part;
    sessions_[side].sent(part.size());
    for (const auto id : sessions_[side].take_writable()) {
      EXPECT_TRUE(users_[side].contains(id));
    }
  }

  void deliver(std::size_t side, std::size_t most) {
    auto& wire = wires_[1 - side];
    const std::string part = wire.substr(0, most);
    wire.erase(0, part.size());
    if (!damaged_) referees_[side].received(part);
    std::string_view input = part;
    while (true) {
      const auto step = sessions_[side].receive(input, now_);
      if (step.event == Session::Step::Event::more) break;
      take(side, step);
    }
    EXPECT_TRUE(input.empty());
    EXPECT_TRUE(damaged_ || !sessions_[side].failure());
  }

  void take(std::size_t side, const Session::Step& step) {
    if (step.event == Session::Step::Event::opened) {
      EXPECT_FALSE(users_[side].contains(step.stream));
      users_[side][step.stream] = {};
      return;
    }
    if (step.event == Session::Step::Event::draining) {
      EXPECT_TRUE(damaged_);  // nobody here leaves
      return;
    }
    const auto found = users_[side].find(step.stream);
    ASSERT_NE(found, users_[side].end());
    auto& user = found->second;
    const auto& peer = users_[1 - side][step.stream];
    ASSERT_FALSE(user.gone) << "an event behind close()";
    switch (step.event) {
      case Session::Step::Event::data:
        EXPECT_FALSE(user.peer_ended);
        for (const char byte : step.data) {
          const bool as_written = byte == byte_at(step.stream, 1 - side, user.read);
          ASSERT_TRUE(as_written || damaged_);
          ++user.read;
          ++bytes_read_;
        }
        EXPECT_LE(user.read - user.released, options_[side].receive_window);
        break;
      case Session::Step::Event::ended:
        EXPECT_FALSE(user.peer_ended);
        EXPECT_TRUE(damaged_ || (peer.ended && user.read == peer.written));
        user.peer_ended = true;
        break;
      case Session::Step::Event::reset:
        EXPECT_TRUE(damaged_ || peer.aborted || !users_[1 - side].contains(step.stream));
        user.peer_ended = true;
        close(side, step.stream, user);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] bool settled() const {
    return sessions_[0].stream_count() == 0 && sessions_[1].stream_count() == 0;
  }

  std::mt19937 random_;
  Clock::time_point now_{};
  std::array<SessionOptions, 2> options_;
  std::array<Session, 2> sessions_;
  std::array<Referee, 2> referees_;
  std::array<std::string, 2> wires_;  // from that side to the other one
  std::array<std::map<StreamId, User>, 2> users_;
  std::uint64_t bytes_read_ = 0;
  bool damaged_ = false;
};

inline unsigned long from_environment(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

inline constexpr unsigned kStepsOfOne = 2'000;

// Plays histories, one for each seed.
template <class Play>
void for_each_seed(const Play& play) {
  const auto only = from_environment("GITOPS_SEED", 0);
  const unsigned long count =
      from_environment("GITOPS_LONG", 0) != 0 ? 10'000'000 / kStepsOfOne : 12;
  for (unsigned long seed = 1; seed <= count; ++seed) {
    if (only != 0 && seed != only) continue;
    SCOPED_TRACE("GITOPS_SEED=" + std::to_string(seed));
    play(static_cast<unsigned>(seed));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace gitops::tunnel::yamux
