#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/proxy/transaction.hpp"
#include "support/script.hpp"

namespace gitops::proxy {

// A transaction without a driver: directives are what a driver would report, the output is what the
// transaction asks for and what it sends. Both connections take every byte that is offered.
class TransactionScript {
 public:
  test::Lines run(test::Directive& directive) {
    lines_.clear();
    const auto& name = directive.name();
    if (name == "new") {
      connection_ = std::make_unique<Connection>(directive);
      return lines_;
    }
    if (!connection_) throw std::invalid_argument("begin with new");
    if (name == "sleep") {
      now_ += directive.duration();
      pass_deadlines();
    } else if (name == "client" || name == "upstream") {
      take_bytes(directive);
    } else if (name == "deadlines") {
      print_deadlines();
    } else if (name == "hang-up") {
      connection_->transaction.client_hung_up(now_);
    } else {
      resolve(directive);
    }
    step();
    return lines_;
  }

 private:
  using Action = Transaction::Action;
  using Transfer = net::Transfer;

  // One client connection and the upstream's.
  struct Connection {
    explicit Connection(test::Directive& directive)
        : totals(std::make_shared<Totals>(
              SharedLimits{.max_held = directive.number_option("max-held", 1 << 20)})),
          context{.blocks = blocks, .totals = totals, .id_prefix = 1} {
      context.draining = directive.flag("draining");
      peer.use = totals->of({});
    }
    ~Connection() {
      if (begun) transaction.end();
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    net::BlockPool blocks;
    std::shared_ptr<Totals> totals;
    TransactionContext context;
    PeerInfo peer{.text = "192.0.2.1"};
    net::Buffer in{blocks, net::BlockPool::kSmall};
    net::Buffer upstream_in{blocks};
    Transaction transaction{context};
    bool begun = false;
    std::string client_bytes;    // sent by the client and not read yet
    std::string upstream_bytes;  // sent by the upstream and not read yet
  };

  void print(std::string line) { lines_.push_back(std::move(line)); }

  // -- the peers --

  void take_bytes(test::Directive& directive) {
    const bool client = directive.name() == "client";
    auto& transaction = connection_->transaction;
    if (!directive.flag("ends") && !directive.flag("breaks")) {
      (client ? connection_->client_bytes : connection_->upstream_bytes) += directive.word();
      return;
    }
    // Reported only to a side that reads.
    if (client && connection_->begun && transaction.client_room() != nullptr) {
      transaction.client_read({.what = Transfer::end}, now_);
    } else if (!client && transaction.upstream_room() != nullptr) {
      transaction.upstream_read({.what = Transfer::end}, now_);
    } else {
      print("not noticed");
    }
  }

  static std::size_t fill(net::Buffer& buffer, std::string& bytes) {
    const auto room = buffer.room();
    const auto size = std::min(room.size(), bytes.size());
    if (size > 0) std::memcpy(room.data(), bytes.data(), size);
    buffer.commit(size);
    bytes.erase(0, size);
    return size;
  }

  void pass_deadlines() {
    auto& transaction = connection_->transaction;
    if (!connection_->begun) return;
    const auto deadlines = transaction.deadlines();
    const Transfer timeout{.what = Transfer::timeout};
    if (deadlines.upstream_read <= now_ && transaction.upstream_room() != nullptr) {
      transaction.upstream_read(timeout, now_);
    } else if (deadlines.client_read <= now_ && transaction.client_room() != nullptr) {
      transaction.client_read(timeout, now_);
    }
  }

  void print_deadlines() {
    const auto& deadlines = connection_->transaction.deadlines();
    const auto add = [&](std::string_view name, Deadline deadline) {
      if (deadline == kNever) return;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now_);
      print(test::concat(name, " within ", format_duration(left)));
    };
    add("client reads", deadlines.client_read);
    add("client writes", deadlines.client_write);
    add("upstream reads", deadlines.upstream_read);
    add("upstream writes", deadlines.upstream_write);
  }

  // -- outcomes of actions --

  void resolve(test::Directive& directive) {
    auto& transaction = connection_->transaction;
    const auto& name = directive.name();
    const auto expect = [&](bool fits) {
      if (!fits) throw std::invalid_argument("not awaited: " + name);
    };
    const auto action = transaction.action();
    if (name == "forward") {
      expect(action == Action::decide);
      transaction.decided(forward(directive), now_);
    } else if (name == "answer") {
      expect(action == Action::decide || action == Action::admit || action == Action::keep ||
             action == Action::render_error);
      const auto status = static_cast<int>(directive.number());
      transaction.answer({.status = status, .headers = {}, .body = directive.word()}, "now", now_);
    } else if (name == "room" || name == "no-room") {
      expect(action == Action::await_room);
      transaction.room_came(name == "room", now_);
    } else if (name == "admitted") {
      expect(action == Action::admit);
      transaction.admitted();
    } else if (name == "not-kept") {
      expect(action == Action::keep);
      transaction.not_kept();
    } else if (name == "connected") {
      expect(action == Action::get_upstream);
      transaction.upstream_ready(connection_->upstream_in, directive.flag("pooled"), now_);
    } else if (name == "not-connected") {
      expect(action == Action::get_upstream);
      transaction.upstream_failed(
          {.code = test::error_code(directive.word()), .message = "scripted"});
    } else if (name == "relayed") {
      expect(action == Action::relay);
      const auto in = directive.number();
      transaction.relayed(in, directive.number());
    } else {
      directive.unknown();
    }
    printed_ = false;
  }

  Forward forward(test::Directive& directive) {
    auto route = std::make_shared<Route>();
    route->name = "route";
    route->host = "upstream";
    route->limits.websocket = directive.flag("websocket");
    route->limits.gzip = directive.flag("gzip");
    route->limits.max_body = directive.number_option("max-body", 0);
    Forward forward{.route = route, .target = connection_->transaction.head()->target};
    if (directive.flag("inspected")) forward.inspection = std::make_unique<RequestInspection>();
    if (directive.flag("kept")) {
      forward.inspection->undelivered = [](const WholeRequest&,
                                           const Problem&) -> Task<std::optional<http::Response>> {
        co_return std::nullopt;
      };
    }
    return forward;
  }

  // -- the driver --

  // Moves bytes until the transaction waits for a peer or for a directive.
  void step() {
    while (true) {
      if (!connection_->begun && !begin()) return;
      const auto action = connection_->transaction.action();
      if (action == Action::move_bytes) {
        printed_ = false;
        if (!move_bytes()) return;
      } else if (action == Action::drop_upstream) {
        print("drop the upstream connection");
        connection_->upstream_bytes.clear();
        connection_->upstream_in.consume(connection_->upstream_in.bytes().size());
        connection_->transaction.upstream_dropped();
      } else if (action == Action::finish) {
        finish();
      } else {
        if (!std::exchange(printed_, true)) print_action(action);
        return;
      }
    }
  }

  bool begin() {
    if (connection_->in.empty() && fill(connection_->in, connection_->client_bytes) == 0)
      return false;
    connection_->begun = true;
    printed_ = false;
    connection_->transaction.begin(connection_->in, connection_->peer, now_);
    return true;
  }

  bool move_bytes() {
    auto& transaction = connection_->transaction;
    if (const auto& out = transaction.to_upstream(); !out.empty()) {
      const auto size = print_bytes("upstream", out);
      transaction.upstream_wrote({.what = Transfer::data, .size = size}, now_);
      return true;
    }
    if (const auto& out = transaction.to_client(); !out.empty()) {
      const auto size = print_bytes("client", out);
      transaction.client_wrote({.what = Transfer::data, .size = size}, now_);
      return true;
    }
    if (auto* room = transaction.upstream_room(); room != nullptr) {
      if (const auto size = fill(*room, connection_->upstream_bytes); size > 0) {
        transaction.upstream_read({.what = Transfer::data, .size = size}, now_);
        return true;
      }
    }
    if (auto* room = transaction.client_room(); room != nullptr) {
      if (const auto size = fill(*room, connection_->client_bytes); size > 0) {
        transaction.client_read({.what = Transfer::data, .size = size}, now_);
        return true;
      }
    }
    return false;
  }

  // Prints a head line by line, and other bytes as one text.
  std::size_t print_bytes(std::string_view to, const Outgoing& out) {
    std::string bytes;
    for (const auto& part : out.parts()) {
      bytes.append(static_cast<const char*>(part.data()), part.size());
    }
    std::string_view rest = bytes;
    const auto end = rest.find("\r\n\r\n");
    if (const auto first = rest.substr(0, rest.find('\r'));
        end != std::string_view::npos && first.contains("HTTP/1.1")) {
      print(test::concat("> ", to, ": ", first));
      rest.remove_prefix(first.size() + 2);
      while (!rest.starts_with("\r\n")) {
        const auto field = rest.substr(0, rest.find('\r'));
        print(test::concat("    ", field));
        rest.remove_prefix(field.size() + 2);
      }
      rest.remove_prefix(2);
    }
    if (!rest.empty()) print(test::concat("> ", to, ": ", test::in_quotes(rest)));
    return bytes.size();
  }

  void print_action(Action action) {
    const auto& transaction = connection_->transaction;
    const auto& problem = transaction.problem();
    const auto whole = [&] {
      std::string body;
      for (const auto part : transaction.whole().body) body += part;
      return test::in_quotes(body);
    };
    switch (action) {
      case Action::decide:
        return print(
            test::concat("decide ", transaction.head()->method, " ", transaction.head()->target));
      case Action::await_room:
        return print("await room");
      case Action::admit:
        return print("admit " + whole());
      case Action::keep:
        return print(test::concat("keep ", whole(), ", since ", to_string(problem.failure)));
      case Action::render_error:
        return print(test::concat("render ", problem.status, " ", to_string(problem.failure), ": ",
                                  problem.detail));
      case Action::get_upstream:
        return print(transaction.may_reuse() ? "get a pooled connection or a new one"
                                             : "get a new connection");
      case Action::relay:
        return print("relay");
      case Action::move_bytes:
      case Action::drop_upstream:
      case Action::finish:
        break;
    }
  }

  void finish() {
    static constexpr std::string_view kEnds[] = {"stays", "is closed", "is closed after its input",
                                                 "is reset"};
    auto& transaction = connection_->transaction;
    const auto client_end = transaction.client_end();
    if (transaction.recordable()) {
      const auto record = transaction.record(now_);
      print(test::concat("record ", record.status, " ", to_string(record.failure), ", ",
                         record.bytes_in, " bytes in, ", record.bytes_out, " out"));
    }
    print(test::concat("the client's connection ", kEnds[static_cast<int>(client_end)]));
    if (transaction.upstream_reusable()) print("the upstream's connection is pooled");
    transaction.recorded();
    transaction.end();
    connection_->begun = false;
    connection_->upstream_bytes.clear();
    connection_->upstream_in.consume(connection_->upstream_in.bytes().size());
    if (client_end == Transaction::ClientEnd::keep) return;
    connection_->client_bytes.clear();
    connection_->in.consume(connection_->in.bytes().size());
  }

  Clock::time_point now_ = Clock::time_point() + std::chrono::hours(1);
  std::unique_ptr<Connection> connection_;
  bool printed_ = false;  // the current action
  test::Lines lines_;
};

}  // namespace gitops::proxy
