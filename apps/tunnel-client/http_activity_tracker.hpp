#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "common/http/body_reader.hpp"
#include "common/http/head.hpp"

namespace gitops::tunnel_client {

// Tracks the HTTP requests on a relayed connection, to distinguish an idle connection from a busy
// one. Only observes the bytes. After an upgrade, or after anything that is not HTTP/1, the
// connection counts as in use until it ends. Pure. Buffers an incomplete head, at most 32 KiB in
// each direction.
class HttpActivityTracker {
 public:
  void from_user(std::string_view bytes);
  void from_upstream(std::string_view bytes);

  // Returns whether at least one request was received and every request has its complete response.
  // A server may close such a connection at any time (RFC 9112 section 9.5).
  [[nodiscard]] bool is_idle() const;
  // Number of requests received; 1 for a connection that is not HTTP/1.
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

 private:
  // Parser state of one direction.
  template <class Parser>
  struct Side {
    Parser parser{http::HeadLimits{}};
    std::string head;  // received part of an incomplete head
    http::BodyReader body{http::HeadLimits{}.max_head};

    [[nodiscard]] bool is_between_messages() const { return head.empty() && body.done(); }
  };

  template <class Parser, class Begin>
  void follow(Side<Parser>& side, std::string_view bytes, Begin begin);
  void request_begins();
  void answer_begins();
  void give_up();

  Side<http::RequestHeadParser> request_;
  Side<http::ResponseHeadParser> answer_;
  std::deque<std::string> methods_;  // of requests whose response has not begun
  std::uint64_t requests_ = 0;
  bool is_opaque_ = false;
};

}  // namespace gitops::tunnel_client
