#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "common/http/body_reader.hpp"
#include "common/proxy/head.hpp"

namespace gitops::tunnel_client {

// Follows the requests on a connection whose bytes somebody else moves, so that a connection that
// carries none can be told from one that does. Changes and refuses nothing: after an upgrade, and
// after anything that is not HTTP/1, the connection counts as in use until it ends. Pure. Holds a
// head that comes in parts, at most 32 KiB in each direction.
class HttpActivityTracker {
 public:
  void from_user(std::string_view bytes);
  void from_upstream(std::string_view bytes);

  // Every request that came has had its whole answer, and there was one. A server may close such a
  // connection at any time (RFC 9112 section 9.5).
  [[nodiscard]] bool is_idle() const;
  // Requests that came; of a connection that is not HTTP/1, one.
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

 private:
  // One direction.
  template <class Parser>
  struct Side {
    Parser parser{proxy::HeadLimits{}};
    std::string head;  // the part of it that came
    http::BodyReader body{proxy::HeadLimits{}.max_head};

    [[nodiscard]] bool is_between_messages() const { return head.empty() && body.done(); }
  };

  template <class Parser, class Begin>
  void follow(Side<Parser>& side, std::string_view bytes, Begin begin);
  void request_begins();
  void answer_begins();
  void give_up();

  Side<proxy::RequestHeadParser> request_;
  Side<proxy::ResponseHeadParser> answer_;
  std::deque<std::string> methods_;  // of requests whose answer has not begun
  std::uint64_t requests_ = 0;
  bool is_opaque_ = false;
};

}  // namespace gitops::tunnel_client
