#include <array>
#include <optional>

#include "common/http/message.hpp"
#include "common/proxy/connection.hpp"
#include "common/proxy/exchange.hpp"

// An answer on its way to the client, a body on its way to the upstream beside it, and tunnels.
namespace gitops::proxy {
namespace {

constexpr std::size_t kWorthCompressing = 1000;  // bytes, when the length is known
constexpr int kCompressionLevel = 4;

bool is_compressible(std::string_view type) {
  const auto name = type.substr(0, type.find_first_of("; \t"));
  for (const std::string_view known :
       {"application/json", "text/html", "text/plain", "text/css", "application/xml", "text/xml",
        "application/javascript", "text/javascript", "application/yaml", "text/yaml"}) {
    if (http::equal_ignoring_case(name, known)) return true;
  }
  return false;
}

// RFC 9110 section 12.5.3, as far as it is about gzip.
bool accepts_gzip(const RequestHead& head) {
  bool accepted = false;
  for (const auto& field : head.fields) {
    if (field.id != FieldId::accept_encoding) continue;
    for_each_element(field.value, [&accepted](std::string_view element) {
      const auto semicolon = element.find(';');
      auto coding = element.substr(0, semicolon);
      while (!coding.empty() && coding.back() == ' ') coding.remove_suffix(1);
      if (!http::equal_ignoring_case(coding, "gzip") && coding != "*") return;
      const auto weight =
          semicolon == std::string_view::npos ? std::string_view{} : element.substr(semicolon);
      const auto value = weight.find("q=");
      const bool zero = value != std::string_view::npos &&
                        weight.find_first_not_of("0.", value + 2) == std::string_view::npos;
      accepted = !zero;
    });
  }
  return accepted;
}

bool is_compressible(const ResponseHead& answer) {
  if (answer.status != 200 || answer.find(FieldId::content_encoding)) return false;
  if (answer.content_length && *answer.content_length < kWorthCompressing) return false;
  const auto type = answer.find(FieldId::content_type);
  if (!type || !is_compressible(*type)) return false;
  const auto cache = answer.find("Cache-Control");
  return !cache || !cache->contains("no-transform");
}

}  // namespace

// Tells the request's own coroutine that the second one has ended.
struct ProxyExchange::UploadEnd {
  explicit UploadEnd(ProxyExchange& e) : exchange(e) {}
  ~UploadEnd() {
    exchange.uploading_ = false;
    exchange.upload_ended_.notify_all();
  }
  UploadEnd(const UploadEnd&) = delete;
  UploadEnd& operator=(const UploadEnd&) = delete;
  ProxyExchange& exchange;
};

void ProxyExchange::start_upload(const UpstreamPtr& upstream, const RouteLimits& limits) {
  uploading_ = true;
  server_.tasks_.spawn("upload", [this, connection = connection_->shared_from_this(), upstream,
                                  limits] { return upload(upstream, limits); });
}

Task<> ProxyExchange::upload(UpstreamPtr upstream, RouteLimits limits) {
  const UploadEnd end(*this);
  auto problem = co_await upload_all(upstream->wire, limits);
  if (problem && !upload_stopped_) {
    upload_problem_ = std::move(problem);
    upstream->wire.abort();
  } else if (waiting_for_ == &upstream->wire) {
    upstream->wire.set_read_deadline(deadline_in(limits.answer_timeout));
  }
}

// A problem is one of the client. When the upstream takes no more, its answer tells why.
Task<ProxyExchange::Problem> ProxyExchange::upload_all(Wire& upstream, const RouteLimits& limits) {
  while (!request_body_.done()) {
    std::size_t taken = 0;
    auto problem = co_await next_piece(limits, taken);
    if (problem) co_return problem;
    upstream.set_write_deadline(deadline_in(limits.body_timeout));
    if (auto sent = co_await upstream.write(request_body_.buffers()); !sent) co_return Problem{};
    consume_body(taken);
  }
  body_read_ = true;
  co_return Problem{};
}

// The body is not needed any more.
Task<> ProxyExchange::end_upload() {
  if (!uploading_) co_return;
  upload_stopped_ = !upload_problem_;
  client().stop_reading();
  while (uploading_) co_await upload_ended_.wait();
  client().resume_reading();
}

Task<bool> ProxyExchange::pass_answer(UpstreamPtr upstream, const Forward& to) {
  const auto& head = parser_.head();
  const auto& answer = answer_parser_.head();
  const auto& route = *to.route;
  const int status = answer.status;
  if (status == 101) {
    if (route.limits.websocket && head.wants_websocket()) {
      co_await tunnel(std::move(upstream), to);
      co_return false;
    }
    upstream->wire.abort();
    co_await end_upload();
    co_return co_await refuse({.failure = ProxyFailure::malformed_answer,
                               .status = 502,
                               .detail = "the upstream switched protocols unasked"},
                              &route);
  }
  const bool varies = route.limits.gzip && is_compressible(answer);
  std::optional<http::Deflater> deflater;
  if (varies && head.http_1_1 && head.method != "HEAD" && accepts_gzip(head)) {
    deflater.emplace(kCompressionLevel);
  }
  const auto body = answer_body(answer, head.method, head.http_1_1, deflater.has_value());
  answer_body_.start(body.in, body.out.kind);
  const bool keep = client_keeps() && body_read_ && body.out.kind != BodyFraming::Kind::until_close;
  bool reusable = answer.keep_alive() && body.in.kind != BodyFraming::Kind::until_close;

  AnswerEdits edits;
  edits.client_http_1_1 = head.http_1_1;
  edits.keep_alive = keep;
  edits.gzip = deflater.has_value();
  edits.gzip_varies = varies;
  edits.request_id = request_id_;
  edits.own_origin = route.own_origin;
  edits.location_prefix = route.location_prefix;
  out_.clear();
  append_forwarded_answer(out_, answer, edits, body.out);
  upstream->in.consume(answer_head_size_);

  auto problem = co_await pass_body(*upstream, route.limits, deflater ? &*deflater : nullptr);
  if (client_gone_) problem = {.failure = ProxyFailure::client_gone};
  if (problem) {
    // What the client got must not look complete.
    upstream->wire.abort();
    client().abort();
    co_await end_upload();
    finish(&route, status, problem);
    co_return false;
  }
  if (uploading_) {
    upstream->wire.abort();
    co_await end_upload();
  }
  reusable = reusable && body_read_ && upstream->in.empty();
  if (reusable && upstream->wire.is_open()) route.upstream->put(std::move(upstream));
  finish(&route, status);
  if (!keep && !body_read_) co_await client().close_gracefully();
  co_return keep;
}

// Sends out_ and the body behind it.
Task<ProxyExchange::Problem> ProxyExchange::pass_body(UpstreamConnection& upstream,
                                                      const RouteLimits& limits,
                                                      http::Deflater* deflater) {
  bool ended = false;  // the upstream closed, which was the end of the body
  bool first = true;
  while (true) {
    if (!ended) {
      const auto fed = answer_body_.feed(upstream.in.bytes());
      if (!fed) {
        co_return Problem{.failure = ProxyFailure::malformed_answer, .detail = fed.error().message};
      }
      upstream.in.consume(*fed);
    }
    if (deflater != nullptr && (answer_body_.fed() > 0 || answer_body_.done())) {
      compressed_.clear();
      for (const auto& slice : answer_body_.data()) {
        deflater->feed({static_cast<const char*>(slice.data()), slice.size()},
                       http::Deflater::Flush::none, compressed_);
      }
      deflater->feed(
          {}, answer_body_.done() ? http::Deflater::Flush::finish : http::Deflater::Flush::sync,
          compressed_);
      answer_body_.replace_data(compressed_);
    }
    std::array<asio::const_buffer, 16> parts;
    std::size_t count = 0;
    if (std::exchange(first, false)) parts[count++] = asio::buffer(out_);
    for (const auto& buffer : answer_body_.buffers()) parts[count++] = buffer;
    if (count > 0) {
      client().set_write_deadline(deadline_in(limits.body_timeout));
      const auto all = std::span<const asio::const_buffer>(parts).first(count);
      std::size_t written = 0;
      Result<void> sent;
      if (!client().write_now(all, written)) sent = co_await client().write(all, &written);
      if (!sent) {
        co_return Problem{.failure = ProxyFailure::client_gone, .detail = sent.error().message};
      }
      for (std::size_t i = 0; i < count; ++i) bytes_out_ += parts[i].size();
    }
    if (answer_body_.done()) break;
    if (!upstream.in.empty()) continue;
    upstream.wire.set_read_deadline(deadline_in(limits.body_timeout));
    waiting_for_ = &upstream.wire;
    auto read = upstream.wire.read_now(upstream.in);
    while (read.what == WireRead::nothing) {
      co_await upstream.wire.readable();
      read = upstream.wire.read_now(upstream.in);
    }
    waiting_for_ = nullptr;
    if (read.what == WireRead::timeout) {
      co_return Problem{.failure = ProxyFailure::answer_timeout,
                        .detail = "the upstream's answer came to a halt"};
    }
    if (read.what == WireRead::lost) {
      co_return Problem{.failure = ProxyFailure::upstream_lost,
                        .detail = "the connection to the upstream was lost"};
    }
    if (read.what == WireRead::end) {
      if (!answer_body_.feed_eof()) {
        co_return Problem{.failure = ProxyFailure::upstream_lost,
                          .detail = "the upstream closed the connection within its answer"};
      }
      ended = true;
    }
  }
  client().set_write_deadline(kNever);
  co_return Problem{};
}

// The upstream has agreed: from here on bytes are passed in both directions, unread, until both
// ends have ended.
Task<> ProxyExchange::tunnel(UpstreamPtr upstream, const Forward& to) {
  AnswerEdits edits;
  edits.websocket = true;
  edits.request_id = request_id_;
  out_.clear();
  append_forwarded_answer(out_, answer_parser_.head(), edits, {});
  upstream->in.consume(answer_head_size_);
  const auto idle = to.route->limits.tunnel_timeout;
  const auto early = in().bytes().substr(head_size_);
  const std::array<asio::const_buffer, 2> down{
      asio::buffer(out_), asio::buffer(upstream->in.bytes().data(), upstream->in.bytes().size())};
  const std::array<asio::const_buffer, 1> up{asio::buffer(early.data(), early.size())};
  client().find_dead_peer();
  upstream->wire.find_dead_peer();
  client().set_write_deadline(deadline_in(idle));
  if (co_await client().write(down) && co_await upstream->wire.write(up)) {
    upstream->in.consume(upstream->in.bytes().size());
    uploading_ = true;
    server_.tasks_.spawn(
        "tunnel", [this, connection = connection_->shared_from_this(), upstream, idle]() -> Task<> {
          const UploadEnd end(*this);
          co_await pump(client(), body_in_, upstream->wire, idle, bytes_in_tunnel_);
        });
    co_await pump(upstream->wire, upstream->in, client(), idle, bytes_out_);
    while (uploading_) co_await upload_ended_.wait();
  }
  finish(to.route.get(), 101);
  upstream->wire.close();
}

Task<> ProxyExchange::pump(Wire& from, ProxyBuffer& buffer, Wire& to,
                           std::chrono::milliseconds idle, std::uint64_t& count) {
  while (true) {
    // Whatever moves, in either direction, keeps both alive.
    const auto deadline = deadline_in(idle);
    from.set_read_deadline(deadline);
    to.set_read_deadline(deadline);
    to.set_write_deadline(deadline);
    const auto read = co_await from.read_into(buffer);
    if (read.what == WireRead::end) {
      to.shutdown_send();
      co_return;
    }
    if (read.what != WireRead::data) break;
    const auto bytes = buffer.bytes();
    const std::array<asio::const_buffer, 1> parts{asio::buffer(bytes.data(), bytes.size())};
    if (auto sent = co_await to.write(parts); !sent) break;
    count += bytes.size();
    buffer.consume(bytes.size());
    buffer.release();
  }
  from.abort();
  to.abort();
}

}  // namespace gitops::proxy
