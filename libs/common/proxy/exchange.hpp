#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/http/gzip.hpp"
#include "common/proxy/body.hpp"
#include "common/proxy/server.hpp"

namespace gitops::proxy {

// Why a request cannot go on, and what its client is told.
struct ProxyProblem {
  ProxyFailure failure = ProxyFailure::none;
  int status = 0;
  std::string detail = {};
  explicit operator bool() const { return failure != ProxyFailure::none; }
};

// One request of a connection and its answer: all that is needed from the first byte of the head to
// the record of its end; internal to the proxy core. The server lends it to a connection and takes
// it back, so that an idle connection has none, and the next request finds it in the caches of the
// CPU.
class ProxyExchange {
 public:
  explicit ProxyExchange(ProxyServer& server);
  ~ProxyExchange();
  ProxyExchange(const ProxyExchange&) = delete;
  ProxyExchange& operator=(const ProxyExchange&) = delete;

  // Before and after a request of this connection, which holds its first bytes, and those behind it
  // afterwards.
  void begin(ProxyConnection& connection);
  void end();
  // True: the connection goes on with its next request.
  Task<bool> run();
  // Looks whether the client has gone while we wait for the upstream.
  void check_client();

 private:
  using UpstreamPtr = std::shared_ptr<UpstreamConnection>;
  using Problem = ProxyProblem;
  struct UploadEnd;

  // exchange.cpp
  Task<bool> refuse(const Problem& problem, const ProxyRoute* route);
  Task<bool> reply(http::Response response);
  Task<bool> send_continue();
  // The request's body: what is there of it behind the head or beyond; the step that waits for
  // something and feeds it; and the one that is done with as much.
  [[nodiscard]] std::string_view body_input();
  Task<Problem> next_piece(const RouteLimits& limits, std::size_t& taken);
  void consume_body(std::size_t size);
  void absorb_body();
  void finish(const ProxyRoute* route, int status, const Problem& problem = {});
  void release_held();
  void make_request_id(std::string_view given);
  [[nodiscard]] bool client_keeps() const;

  // To the upstream and to the head of its answer; exchange_request.cpp. What forward() would inline
  // grows its frame, which is allocated for each request, from 848 to 1,088 bytes: too large for
  // what Asio and malloc keep at hand.
  Task<bool> forward(Forward& to);
  Task<bool> verify_body(const Forward& to, bool& again);
  Task<Problem> hold_body(const RouteLimits& limits);
  [[gnu::noinline]] Problem feed_request(const RouteLimits& limits, std::size_t& taken);
  [[gnu::noinline]] void build_request(const Forward& to, const BodyFraming& framing);
  Task<UpstreamPtr> connect_upstream(const ProxyRoute& route, Problem& problem);
  std::span<const asio::const_buffer> request_parts(const Forward& to,
                                                    std::span<asio::const_buffer> parts) const;
  [[gnu::noinline]] bool send_now(Wire& upstream, const Forward& to, std::size_t& written);
  Task<Problem> send_rest(Wire& upstream, const Forward& to, std::size_t& written);
  [[gnu::noinline]] bool take_answer(UpstreamConnection& upstream, const RouteLimits& limits,
                                     Problem& problem);

  // The answer and what goes on beside it; exchange_streams.cpp.
  void start_upload(const UpstreamPtr& upstream, const RouteLimits& limits);
  Task<> upload(UpstreamPtr upstream, RouteLimits limits);
  Task<Problem> upload_all(Wire& upstream, const RouteLimits& limits);
  Task<> end_upload();
  Task<bool> pass_answer(UpstreamPtr upstream, const Forward& to);
  Task<Problem> pass_body(UpstreamConnection& upstream, const RouteLimits& limits,
                          http::Deflater* deflater);
  Task<> tunnel(UpstreamPtr upstream, const Forward& to);
  Task<> pump(Wire& from, ProxyBuffer& buffer, Wire& to, std::chrono::milliseconds idle,
              std::uint64_t& count);

  // Of the connection.
  [[nodiscard]] Wire& client();
  [[nodiscard]] ProxyBuffer& in();
  [[nodiscard]] const PeerInfo& peer() const;
  [[nodiscard]] Clock::time_point now() const { return server_.loop_.poller.now(); }
  [[nodiscard]] Deadline deadline_in(std::chrono::milliseconds wait) const { return now() + wait; }

  ProxyServer& server_;
  ProxyConnection* connection_ = nullptr;
  ProxyBuffer body_in_;  // what comes while the head is still in use
  RequestHeadParser parser_;
  ResponseHeadParser answer_parser_;
  BodyRelay request_body_;
  BodyRelay answer_body_;
  std::string out_;   // the head that is sent next
  std::string held_;  // a body that is verified before it goes on
  std::string compressed_;
  std::string request_id_;

  std::size_t head_size_ = 0;   // where in() begins with
  std::size_t body_taken_ = 0;  // of in(), behind the head
  std::size_t answer_head_size_ = 0;
  int interim_ = 0;  // 1xx answers so far
  bool head_begun_ = false;
  bool head_read_ = false;
  bool body_read_ = false;  // everything of the request was taken in
  bool continue_sent_ = false;
  bool answer_begun_ = false;
  bool recorded_ = false;
  bool reused_ = false;
  Clock::time_point began_{};
  std::uint64_t bytes_in_tunnel_ = 0;
  std::uint64_t bytes_out_ = 0;

  // While its body is sent up by the second coroutine.
  bool uploading_ = false;
  bool upload_stopped_ = false;
  Problem upload_problem_;
  Wire* waiting_for_ = nullptr;  // the upstream whose answer we wait for
  bool client_gone_ = false;
  Event upload_ended_;
};

}  // namespace gitops::proxy
