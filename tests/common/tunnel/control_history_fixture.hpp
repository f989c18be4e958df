#pragma once

#include <array>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/crypto.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/server_control.hpp"

// A random history of the two sides of a control stream.
namespace gitops::tunnel {

inline const Secret kToken("token");

class ControlHistory {
 public:
  explicit ControlHistory(unsigned seed) : random_(seed) { connect(); }

  void step() {
    switch (pick(24)) {
      case 0:
        advance(pick(4'000));
        break;
      case 1:
        advance(pick(40'000));
        break;
      case 2:
        if (server_) server_->want_work();
        break;
      case 3:
        if (pick(20) == 0) silent_ = !silent_;
        break;
      case 4:
        if (pick(40) == 0) damage();
        break;
      case 5:
        if (pick(40) == 0) connect();
        break;
      case 6:
        if (pick(100) == 0) stop();
        break;
      case 7:
      case 8:
        answer(pick(3) == 0);
        break;
      default:
        pass_on(1 + pick(pick(2) == 0 ? 5 : 200));
        break;
    }
    check();
  }

  // No further faults: the client must get where it wants within a bounded time.
  void recover() {
    silent_ = false;
    if (is_stopped_) connect();
    for (int i = 0; i < 400 && !runs(); ++i) {
      for (int turn = 0; turn < 20; ++turn) {
        pass_on(10'000);
        answer(false);
      }
      advance(500);
    }
    EXPECT_TRUE(runs());
    EXPECT_TRUE(!client_->failure()) << client_->failure()->message;
  }

  [[nodiscard]] int logins() const { return logins_; }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  std::string random_bytes_of(std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(pick(256));
    return bytes;
  }

  // A new connection and a new session.
  void connect() {
    const NewProxy proxy{.proxy_name = "a", .proxy_type = "http"};
    ClientControlOptions options{.login = {.version = "1.0.0", .pool_count = 1},
                                 .token = kToken,
                                 .proxies = {proxy, {.proxy_name = "b"}}};
    if (pick(2) == 0) options.opening = ClientOpening{.transport = "tcp"};  // wire v2
    client_.emplace(std::move(options),
                    ClientControl::Randomness{.iv = random_bytes_of(Aes128Cfb::kIvSize),
                                              .seed = random_(),
                                              .random = random_bytes_of(ClientHello::kRandomSize),
                                              .nonce = random_bytes_of(kSealNonceSize)},
                    WallTime(std::chrono::milliseconds(random_())), now_);
    server_.reset();
    login_ = {};
    wires_ = {};
    asked_.clear();
    is_stopped_ = false;
  }

  void advance(std::size_t time) {
    now_ += std::chrono::milliseconds(time);
    client_->tick(now_);
    if (client_->failure()) {
      EXPECT_EQ(client_->due(), kNever);
      connect();
    } else {
      EXPECT_GT(client_->due(), now_) << "due again although it was just done";
    }
  }

  void stop() {
    is_stopped_ = is_stopped_ || client_->is_logged_in();
    client_->stop(now_);
  }

  void damage() {
    auto& wire = wires_[pick(2)];
    if (!wire.empty()) wire[pick(wire.size())] = static_cast<char>(pick(256));
  }

  // The server's owner answers one proxy.
  void answer(bool refuse) {
    if (asked_.empty() || !server_) return;
    const auto name = asked_.front();
    asked_.pop_front();
    if (refuse) {
      server_->refuse_proxy(name, "not now");
    } else {
      server_->accept_proxy(name, "here");
    }
  }

  void pass_on(std::size_t most) {
    take_output();
    const auto side = pick(2);
    auto& wire = wires_[side];
    std::string part = wire.substr(0, most);
    wire.erase(0, part.size());
    if (side == 1) {
      std::vector<ClientControl::Event> events;
      client_->receive(part, now_, events);
      for (const auto& event : events) {
        logins_ += event.what == ClientControl::Event::What::logged_in ? 1 : 0;
      }
    } else if (!silent_) {
      server_receives(part);
    }
  }

  void take_output() {
    wires_[0] += std::exchange(client_->output(), {});
    if (server_) wires_[1] += std::exchange(server_->output(), {});
  }

  void server_receives(std::string part) {
    if (!server_) {
      std::string_view bytes = part;
      auto opening = login_.next(bytes);
      if (!opening) return connect();
      if (!*opening) return;
      const auto* login = std::get_if<Login>(&(*opening)->message);
      auto& hello = (*opening)->hello;
      const bool is_v2 = (*opening)->wire == Wire::v2;
      if (login == nullptr || hello.has_value() != is_v2 || (hello && !hello->is_supported)) {
        return connect();
      }
      ServerControlOptions options{.version = "1.0.0", .token = kToken};
      if (hello) {
        options.opening = ServerOpening{.hello = std::move(*hello),
                                        .random = random_bytes_of(ClientHello::kRandomSize),
                                        .nonce = random_bytes_of(kSealNonceSize)};
      }
      server_.emplace(std::move(options), *login, "run", random_bytes_of(Aes128Cfb::kIvSize));
      part.erase(0, part.size() - bytes.size());
    }
    std::vector<ServerControl::Event> events;
    server_->receive(part, events);
    for (auto& event : events) {
      if (event.what == ServerControl::Event::What::new_proxy)
        asked_.push_back(event.proxy.proxy_name);
    }
    // Its owner closes the stream.
    if (server_->failure()) connect();
  }

  void check() {
    if (client_->failure()) connect();
    for (const auto& proxy : client_->proxies()) {
      using State = ClientControl::Proxy::State;
      const bool waits_for_time = client_->is_logged_in() &&
                                  (proxy.state == State::waiting || proxy.state == State::refused);
      EXPECT_EQ(proxy.due != kNever, waits_for_time);
    }
  }

  [[nodiscard]] bool runs() const {
    if (!client_->is_logged_in()) return false;
    for (const auto& proxy : client_->proxies()) {
      if (proxy.state != ClientControl::Proxy::State::running) return false;
    }
    return true;
  }

  std::mt19937 random_;
  Clock::time_point now_{};
  std::optional<ClientControl> client_;
  std::optional<ServerControl> server_;
  OpeningReader login_;
  std::array<std::string, 2> wires_;  // to the server, to the client
  std::deque<std::string> asked_;     // proxies that the server's owner has not answered
  bool silent_ = false;               // the server does not read
  bool is_stopped_ = false;           // the client, by its owner
  int logins_ = 0;
};

}  // namespace gitops::tunnel
