#include "common/proxy/transaction.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "common/http/wire_text.hpp"
#include "common/proxy/forward.hpp"

namespace gitops::proxy {
namespace {

using net::Transfer;

constexpr std::size_t kMaxTrailers = 8 * 1024;
constexpr std::size_t kKeepOutput = 2 * 1024;  // capacity kept for the next request
constexpr std::size_t kMaxReason = 200;
constexpr http::HeadLimits kAnswerLimits{
    .max_line = 32 * 1024, .max_head = 32 * 1024, .max_fields = 200};
constexpr int kMaxInterim = 16;  // 1xx responses before the final one
constexpr auto kHangUpGrace = std::chrono::seconds(1);
constexpr std::size_t kWorthCompressing = 1000;  // bytes, when the length is known
constexpr int kCompressionLevel = 4;
// Maximum size of a response that is compressed as a whole. A JSON of 20 KB takes 0.37 of the time
// of a stream, and 0.95 of its size; holding it takes no more memory than a stream's state.
constexpr std::size_t kCompressedWhole = 64UL * 1024;
constexpr int kHeldParts = 16;  // blocks of a held body in one write
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

boost::asio::const_buffer buffer_of(std::string_view text) {
  return boost::asio::const_buffer(text.data(), text.size());
}

std::string_view text_of(boost::asio::const_buffer buffer) {
  return {static_cast<const char*>(buffer.data()), buffer.size()};
}

void append_hex(std::string& out, std::uint64_t value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[value >> shift & 0xfU];
}

// Computes one step of SplitMix64: consecutive requests get ids that look unrelated.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30U) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27U) * 0x94d049bb133111ebU;
  return value ^ value >> 31U;
}

void trim(std::string& text) {
  // Swaps, since an assignment would keep the memory.
  if (text.capacity() > kKeepOutput) std::string().swap(text);
}

bool is_compressible(std::string_view type) {
  const auto name = http::media_type(type);
  for (const std::string_view known :
       {"application/json", "text/html", "text/plain", "text/css", "application/xml", "text/xml",
        "application/javascript", "text/javascript", "application/yaml", "text/yaml"}) {
    if (http::equal_ignoring_case(name, known)) return true;
  }
  return false;
}

// Evaluates Accept-Encoding (RFC 9110 section 12.5.3) for gzip: an entry for gzip takes precedence
// over "*".
bool accepts_gzip(const http::RequestHead& head) {
  std::optional<bool> named;
  bool any = false;
  for (const auto& field : head.fields) {
    if (field.id != http::FieldId::accept_encoding) continue;
    http::for_each_element(field.value, [&](std::string_view element) {
      const auto semicolon = element.find(';');
      auto coding = element.substr(0, semicolon);
      while (!coding.empty() && coding.back() == ' ') coding.remove_suffix(1);
      const auto weight =
          semicolon == std::string_view::npos ? std::string_view{} : element.substr(semicolon);
      const auto value = weight.find("q=");
      const bool zero = value != std::string_view::npos &&
                        weight.find_first_not_of("0.", value + 2) == std::string_view::npos;
      if (http::equal_ignoring_case(coding, "gzip")) named = !zero;
      if (coding == "*") any = !zero;
    });
  }
  return named.value_or(any);
}

bool is_compressible(const http::ResponseHead& answer) {
  if (answer.status != 200 || answer.find(http::FieldId::content_encoding)) return false;
  if (answer.content_length && *answer.content_length < kWorthCompressing) return false;
  const auto type = answer.find(http::FieldId::content_type);
  if (!type || !is_compressible(*type)) return false;
  const auto cache = answer.find("Cache-Control");
  return !cache || !cache->contains("no-transform");
}

// Rounds a number of bytes up to whole blocks of the pool.
std::size_t blocks_for(std::size_t bytes) {
  constexpr auto kBlock = net::BlockPool::kLarge;
  constexpr auto kMax = std::numeric_limits<std::size_t>::max() / 2;
  return (std::min(bytes, kMax) + kBlock - 1) / kBlock * kBlock;
}

http::BodyPace::Limits pace_of(const RouteLimits& limits) {
  return {.min_body_rate = limits.min_body_rate,
          .body_grace = limits.body_grace,
          .body_deadline = limits.body_deadline,
          .body_timeout = limits.body_timeout};
}

// Tightens the limits of a body that holds memory, or reserves it: it must arrive faster than one
// that is only relayed.
http::BodyPace::Limits pace_of_held(const RouteLimits& limits) {
  auto pace = pace_of(limits);
  pace.body_deadline = std::min(limits.body_deadline, limits.held_deadline);
  return pace;
}

Problem too_large() {
  return {
      .failure = Failure::body_too_large, .status = 413, .detail = "the request body is too large"};
}

Problem too_much_held() {
  return {.failure = Failure::too_much_held,
          .status = 503,
          .detail = "too many request bodies are held"};
}

Problem lost(std::string detail) {
  return {.failure = Failure::upstream_lost, .status = 502, .detail = std::move(detail)};
}

Problem malformed_answer(std::string detail) {
  return {.failure = Failure::malformed_answer, .status = 502, .detail = std::move(detail)};
}

}  // namespace

Transaction::Transaction(TransactionContext& context)
    : context_(context),
      body_in_(context.blocks),
      parser_(context.limits),
      answer_parser_(kAnswerLimits),
      request_body_(kMaxTrailers),
      answer_body_(kMaxTrailers),
      deflater_place_(*context.totals),
      held_charge_(*context.totals) {}

Transaction::~Transaction() {
  release_held();
}

void Transaction::begin(net::Buffer& in, const PeerInfo& peer, Clock::time_point now) {
  in_ = &in;
  upstream_in_ = nullptr;
  peer_ = &peer;
  action_ = Action::move_bytes;
  client_end_ = ClientEnd::close;
  now_ = {};
  now_.began = now;
  deadlines_ = {};
  problem_ = {};
  request_id_.clear();
  traceparent_.clear();
  parser_.reset();
  request_body_.start({}, BodyFraming::Kind::none);
  to_client_.clear();
  to_upstream_.clear();
  in.compact();
  parse_head(now);
}

void Transaction::end() {
  in_->consume(now_.head_size + now_.body_taken);
  body_in_.consume(now_.gathered);
  if (in_->empty() && !body_in_.empty()) in_->swap(body_in_);
  body_in_.consume(body_in_.bytes().size());
  body_in_.release();
  release_held();
  forward_ = {};
  deflater_.reset();
  deflater_place_.release();
  uncompressed_.clear();
  for (auto* text : {&request_, &out_, &own_body_, &uncompressed_, &compressed_}) trim(*text);
}

// -- the request --

void Transaction::parse_head(Clock::time_point now) {
  while (true) {
    const auto size = parser_.next(in_->bytes());
    if (!size) {
      return fail({.failure = Failure::malformed_request,
                   .status = size.error().http_status,
                   .detail = size.error().message});
    }
    if (*size > 0) {
      now_.head_size = *size;
      break;
    }
    if (!in_->grow()) {
      if (in_->room().empty()) {
        return fail({.failure = Failure::malformed_request,
                     .status = 431,
                     .detail = "the request head is too large"});
      }
      if (!std::exchange(now_.head_begun, true)) {
        deadlines_.client_read = now + context_.head_timeout;
      }
      return;
    }
    parser_.reset();  // its slices pointed into the smaller block
  }
  now_.head_read = true;
  now_.began = now;
  deadlines_.client_read = kNever;
  action_ = Action::decide;
}

void Transaction::decided(Forward forward, Clock::time_point now) {
  forward_ = std::move(forward);
  make_request_id(forward_.request_id);
  if (forward_.span.is_recorded()) traceparent_ = forward_.span.context().traceparent();
  action_ = Action::move_bytes;
  start_forwarding(now);
}

void Transaction::start_forwarding(Clock::time_point now) {
  const auto& head = parser_.head();
  framing_ = request_framing(head);
  if (limits().max_body > 0 && head.content_length.value_or(0) > limits().max_body) {
    return fail(too_large());
  }
  if (forward_.inspection && !fits_in_block()) {
    now_.collected = Collected::apart;
    now_.collecting = true;
    request_body_.start(framing_, BodyFraming::Kind::none);
    pace_.start(pace_of_held(limits()), now);
    const auto length = head.content_length.value_or(0);
    return has_room(length) ? collect_apart(now) : want_room(length);
  }
  request_body_.start(framing_, framing_.kind);
  if (auto problem = feed_body()) return fail(std::move(problem));
  inspect();
  now_.body_taken = std::exchange(now_.piece, 0);
  if (request_body_.done()) return collected();
  pace_.start(pace_of(limits()), now);
  if (begin_in_place(now)) return;
  build_request();
  action_ = Action::get_upstream;
}

void Transaction::build_request() {
  RequestEdits edits;
  edits.target =
      forward_.rewritten.empty() ? forward_.target : std::string_view(forward_.rewritten);
  const std::string_view host = forward_.route->host;
  edits.host = host.empty() ? parser_.head().host : host;
  edits.client = peer_->text;
  edits.scheme = peer_->tls ? "https" : "http";
  edits.request_id = request_id_;
  edits.traceparent = traceparent_;
  edits.trusted_peer = forward_.trusted_peer;
  edits.websocket = limits().websocket && parser_.head().wants_websocket();
  request_.clear();
  append_forwarded_request(request_, parser_.head(), edits, framing_);
}

// Returns the unsent bytes of the body: those behind the head first, then those received later.
std::string_view Transaction::body_input() {
  const auto with_head = in_->bytes().substr(now_.head_size + now_.body_taken);
  return with_head.empty() ? body_in_.bytes() : with_head;
}

void Transaction::consume_body(std::size_t size) {
  if (in_->bytes().size() > now_.head_size + now_.body_taken) {
    now_.body_taken += size;
  } else {
    body_in_.consume(size);
    body_in_.release();
  }
}

// Prepares the next piece of the body and enforces the limit.
Problem Transaction::feed_body() {
  const auto fed = request_body_.feed(body_input());
  if (!fed) {
    return {.failure = Failure::malformed_body,
            .status = fed.error().http_status,
            .detail = fed.error().message};
  }
  now_.piece = *fed;
  if (limits().max_body > 0 && request_body_.total() > limits().max_body) return too_large();
  return {};
}

// -- bodies that are collected before an upstream is chosen --

bool Transaction::fits_in_block() const {
  const auto& head = parser_.head();
  return !head.chunked && head.content_length.value_or(0) <= net::BlockPool::kLarge;
}

const std::shared_ptr<PeerUse>& Transaction::charged() const {
  const bool other = forward_.inspection && forward_.inspection->holder;
  return other ? forward_.inspection->holder : peer_->use;
}

// Returns whether `bytes` more of the body can be held, and charges them if possible.
bool Transaction::has_room(std::size_t bytes) {
  const auto needed = blocks_for(held_size_ + bytes);
  if (needed <= now_.room) return true;
  if (!held_charge_.charge(charged(), needed - now_.room)) return false;
  now_.room = needed;
  return true;
}

void Transaction::want_room(std::size_t bytes) {
  now_.wanted_room = blocks_for(held_size_ + bytes) - now_.room;
  action_ = Action::await_room;
}

Task<bool> Transaction::room(Clock::time_point now) {
  return held_charge_.await_charge(charged(), now_.wanted_room, now + limits().room_timeout);
}

void Transaction::room_came(bool came, Clock::time_point now) {
  action_ = Action::move_bytes;
  if (!came) {
    const auto& all = context_.totals->limits;
    const auto most = std::min(all.max_held, all.max_held_per_peer);
    return fail(now_.room + now_.wanted_room > most ? too_large() : too_much_held());
  }
  now_.room += std::exchange(now_.wanted_room, 0);
  pace_.start(pace_of_held(limits()), now);
  if (now_.collected == Collected::in_place) return collect_in_place(now);
  collect_apart(now);
}

// Collects a body in place. Returns false if the rest of the body is relayed as it arrives. A
// client that waits for "100 Continue" gets it once the upstream is connected.
bool Transaction::begin_in_place(Clock::time_point now) {
  const bool may_pass = !forward_.inspection;
  if (!fits_in_block() || (may_pass && parser_.head().expects_continue)) return false;
  const bool has_room = held_charge_.charge(charged(), net::BlockPool::kLarge);
  if (!has_room && may_pass) return false;
  now_.collected = Collected::in_place;
  now_.collecting = true;
  if (has_room) {
    await_body(now);
  } else {
    want_room(net::BlockPool::kLarge);
  }
  return true;
}

void Transaction::collect_in_place(Clock::time_point now) {
  // Cannot fail: a body with a length is never malformed.
  now_.gathered += request_body_.feed(body_in_.bytes().substr(now_.gathered)).value_or(0);
  inspect();
  if (request_body_.done()) return collected();
  await_body(now);
}

void Transaction::collect_apart(Clock::time_point now) {
  while (!request_body_.done()) {
    const auto input = body_input();
    if (input.empty()) return await_body(now);
    // Charges a body of unknown length as it arrives.
    if (framing_.kind != BodyFraming::Kind::length && !has_room(input.size())) {
      return want_room(input.size());
    }
    if (auto problem = feed_body()) return fail(std::move(problem));
    inspect();
    for (const auto& slice : request_body_.data()) hold(text_of(slice));
    consume_body(std::exchange(now_.piece, 0));
  }
  framing_ = {.kind = BodyFraming::Kind::length, .length = held_size_};
  collected();
}

// Copies data into blocks that were charged before.
void Transaction::hold(std::string_view data) {
  constexpr auto kBlock = net::BlockPool::kLarge;
  while (!data.empty()) {
    const auto used = held_size_ % kBlock;
    if (used == 0) held_.push_back(context_.blocks.take(kBlock));
    const auto size = std::min(data.size(), kBlock - used);
    std::memcpy(held_.back() + used, data.data(), size);
    held_size_ += size;
    data.remove_prefix(size);
  }
}

void Transaction::inspect() {
  if (!forward_.inspection || !forward_.inspection->inspect) return;
  for (const auto& slice : request_body_.data()) forward_.inspection->inspect(text_of(slice));
}

// Continues when the whole request was received.
void Transaction::collected() {
  now_.collecting = false;
  now_.whole = now_.body_read = true;
  deadlines_.client_read = kNever;
  build_request();
  action_ = forward_.inspection ? Action::admit : Action::get_upstream;
}

WholeRequest Transaction::whole() const {
  WholeRequest request{
      .head = parser_.head(), .request_id = request_id_, .forwarded_head = request_};
  const auto add = [&request](std::string_view part) {
    if (!part.empty()) request.body.push_back(part);
  };
  if (now_.collected != Collected::apart) {
    add(in_->bytes().substr(now_.head_size, now_.body_taken));
    add(body_in_.bytes().substr(0, now_.gathered));
    return request;
  }
  constexpr auto kBlock = net::BlockPool::kLarge;
  for (std::size_t at = 0; at < held_size_; at += kBlock) {
    add({held_[at / kBlock], std::min(kBlock, held_size_ - at)});
  }
  return request;
}

void Transaction::admitted() {
  now_.admitted = true;
  action_ = Action::get_upstream;
}

void Transaction::await_body(Clock::time_point now) {
  offer_continue(now);
  deadlines_.client_read = pace_.wait(now);
}

// Sends "100 Continue" to a client that waits for it.
void Transaction::offer_continue(Clock::time_point now) {
  if (!parser_.head().expects_continue || now_.continue_sent) return;
  if (in_->bytes().size() > now_.head_size) return;
  now_.continue_sent = true;
  to_client_.add(buffer_of(kContinue));
  deadlines_.client_write = now + context_.head_timeout;
}

// -- to the upstream --

void Transaction::upstream_ready(net::Buffer& in, bool reused, Clock::time_point now) {
  upstream_in_ = &in;
  now_.tried = true;
  now_.has_upstream = true;
  now_.reused = reused;
  now_.untouched = true;
  now_.upload = Upload::first;
  now_.answer = Answer::awaited;
  now_.answer_begun = false;
  now_.interim = 0;
  answer_parser_.reset();
  to_upstream_.clear();
  to_upstream_.add(buffer_of(request_));
  offer_body();
  deadlines_.upstream_write = now + limits().body_timeout;
  deadlines_.upstream_read = kNever;
  if (!now_.whole) offer_continue(now);
  action_ = Action::move_bytes;
}

// Offers the part of the body that is sent together with the head.
void Transaction::offer_body() {
  now_.held_offered = 0;
  switch (now_.collected) {
    case Collected::none:
      to_upstream_.add(request_body_.buffers());
      return;
    case Collected::in_place:
      to_upstream_.add(buffer_of(in_->bytes().substr(now_.head_size, now_.body_taken)));
      to_upstream_.add(buffer_of(body_in_.bytes().substr(0, now_.gathered)));
      return;
    case Collected::apart:
      offer_held();
      return;
  }
}

void Transaction::offer_held() {
  constexpr auto kBlock = net::BlockPool::kLarge;
  for (int i = 0; i < kHeldParts && now_.held_offered < held_size_; ++i) {
    const auto size = std::min(kBlock, held_size_ - now_.held_offered);
    to_upstream_.add(buffer_of({held_[now_.held_offered / kBlock], size}));
    now_.held_offered += size;
  }
}

void Transaction::upstream_failed(const Error& error) {
  Problem problem{.failure = Failure::connect_failed, .status = 502, .detail = error.message};
  if (error.code == ErrorCode::not_found) problem.failure = Failure::no_such_host;
  if (error.code == ErrorCode::forbidden) problem.failure = Failure::address_refused;
  if (error.code == ErrorCode::too_many_requests) problem.status = 503;
  if (error.code == ErrorCode::timeout) {
    problem.failure = Failure::connect_timeout;
    problem.status = 504;
  }
  now_.tried = true;
  fail(std::move(problem));
}

void Transaction::upstream_wrote(Transfer written, Clock::time_point now) {
  if (written.what == Transfer::data) {
    now_.untouched = false;
    to_upstream_.consume(written.size);
    if (to_upstream_.empty()) return go_on_uploading(now);
    deadlines_.upstream_write = now + limits().body_timeout;
    return;
  }
  const bool timed_out = written.what == Transfer::timeout;
  if (now_.upload == Upload::first && (timed_out || now_.untouched)) {
    return fail(lost(timed_out ? "the upstream took the request too slowly"
                               : "the connection to the upstream was lost"));
  }
  // The upstream accepts no more of the body; its response gives the reason.
  now_.upload = Upload::stopped;
  to_upstream_.clear();
  deadlines_.client_read = kNever;
  deadlines_.upstream_write = kNever;
  if (now_.answer == Answer::awaited) deadlines_.upstream_read = now + limits().answer_timeout;
}

// Continues after the offered bytes were sent: offers the next piece of the body, or waits for the
// response.
void Transaction::go_on_uploading(Clock::time_point now) {
  deadlines_.upstream_write = kNever;
  if (now_.held_offered < held_size_) {
    offer_held();
    deadlines_.upstream_write = now + limits().body_timeout;
    return;
  }
  if (now_.upload == Upload::first) {
    now_.upload = now_.whole ? Upload::complete : Upload::streaming;
  } else {
    consume_body(std::exchange(now_.piece, 0));
  }
  while (now_.upload == Upload::streaming) {
    if (request_body_.done()) {
      now_.upload = Upload::complete;
      now_.body_read = true;
      break;
    }
    if (body_input().empty()) return await_body(now);
    if (auto problem = feed_body()) return fail(std::move(problem));
    if (!request_body_.buffers().empty()) {
      to_upstream_.add(request_body_.buffers());
      deadlines_.client_read = kNever;
      deadlines_.upstream_write = now + limits().body_timeout;
      return;
    }
    consume_body(std::exchange(now_.piece, 0));
  }
  deadlines_.client_read = kNever;
  if (now_.answer == Answer::awaited) deadlines_.upstream_read = now + limits().answer_timeout;
}

// -- from the client --

net::Buffer* Transaction::client_room() {
  if (action_ != Action::move_bytes) return nullptr;
  if (!now_.head_read) return now_.answer == Answer::none ? in_ : nullptr;
  const bool uploads = now_.upload == Upload::streaming && to_upstream_.empty();
  return now_.collecting || uploads ? &body_in_ : nullptr;
}

void Transaction::client_read(Transfer read, Clock::time_point now) {
  if (!now_.head_read) {
    if (read.what == Transfer::data) return parse_head(now);
    if (read.what != Transfer::timeout) return finish(ClientEnd::close);
    return fail({.failure = Failure::head_timeout,
                 .status = 408,
                 .detail = "the request head took too long"});
  }
  if (read.what != Transfer::data) return client_problem(read.what);
  pace_.came(read.size, now);
  if (!now_.collecting) return go_on_uploading(now);
  if (now_.collected == Collected::in_place) return collect_in_place(now);
  collect_apart(now);
}

// Handles a client that is lost or too slow within its body.
void Transaction::client_problem(Transfer::What what) {
  if (what == Transfer::timeout) {
    return fail({.failure = Failure::body_timeout,
                 .status = 408,
                 .detail = "the request body took too long"});
  }
  fail({.failure = Failure::client_gone,
        .status = 499,
        .detail = "the client went away within its request"});
}

bool Transaction::waits_for_upstream() const {
  if (action_ != Action::move_bytes || !now_.has_upstream || !to_client_.empty()) return false;
  return now_.upload == Upload::complete || now_.upload == Upload::stopped;
}

void Transaction::client_hung_up(Clock::time_point now) {
  if (!waits_for_upstream() || may_be_kept()) return;
  const auto given_up = now_.began + kHangUpGrace;
  if (now < given_up) {
    deadlines_.client_read = given_up;
    return;
  }
  fail({.failure = Failure::client_gone, .status = 499, .detail = {}});
}

// -- from the upstream --

net::Buffer* Transaction::upstream_room() {
  if (action_ != Action::move_bytes || !now_.has_upstream) return nullptr;
  if (now_.answer == Answer::awaited) return upstream_in_;
  const bool passes = now_.answer == Answer::passing && to_client_.empty() && !answer_body_.done();
  return passes ? upstream_in_ : nullptr;
}

void Transaction::upstream_read(Transfer read, Clock::time_point now) {
  if (now_.answer == Answer::awaited) {
    switch (read.what) {
      case Transfer::data:
        now_.answer_begun = true;
        return parse_answer(now);
      case Transfer::timeout:
        return fail({.failure = Failure::answer_timeout,
                     .status = 504,
                     .detail = "the upstream did not answer in time"});
      default:
        return fail(lost("the upstream closed the connection before it answered"));
    }
  }
  switch (read.what) {
    case Transfer::data:
      return pass_answer(now);
    case Transfer::timeout:
      return fail({.failure = Failure::answer_timeout,
                   .status = 504,
                   .detail = "the upstream's answer came to a halt"});
    case Transfer::end:
      if (!answer_body_.feed_eof()) {
        return fail(lost("the upstream closed the connection within its answer"));
      }
      now_.answer_ended = true;
      return pass_answer(now);
    default:
      return fail(lost("the connection to the upstream was lost"));
  }
}

void Transaction::parse_answer(Clock::time_point now) {
  while (!upstream_in_->empty()) {
    const auto size = answer_parser_.next(upstream_in_->bytes());
    if (!size) return fail(malformed_answer(size.error().message));
    if (*size == 0) {
      if (upstream_in_->room().empty()) {
        fail(malformed_answer("the head of the answer is too large"));
      }
      return;
    }
    now_.answer_head_size = *size;
    const int status = answer_parser_.head().status;
    if (status >= 200 || status == 101) return start_answer(now);
    if (++now_.interim > kMaxInterim) return fail(malformed_answer("too many interim answers"));
    upstream_in_->consume(*size);
    upstream_in_->compact();
    answer_parser_.reset();
  }
}

void Transaction::start_answer(Clock::time_point now) {
  const auto& head = parser_.head();
  const auto& answer = answer_parser_.head();
  if (answer.status == 101) {
    if (limits().websocket && head.wants_websocket()) return switch_protocols(now);
    return fail(malformed_answer("the upstream switched protocols unasked"));
  }
  if (is_unavailable(answer.status) && may_be_kept()) {
    return fail({.failure = Failure::upstream_unavailable,
                 .status = answer.status,
                 .detail = "the upstream answered " + std::to_string(answer.status)});
  }
  const bool varies = limits().gzip && is_compressible(answer);
  const bool gzip = varies && head.http_1_1 && head.method != "HEAD" && accepts_gzip(head) &&
                    deflater_place_.take();
  now_.gzip_whole = gzip && answer.content_length && *answer.content_length <= kCompressedWhole;
  if (now_.gzip_whole) {
    uncompressed_.reserve(*answer.content_length);
  } else if (gzip) {
    deflater_.emplace(kCompressionLevel);
  }
  const auto body = answer_body(answer, head.method, head.http_1_1, gzip);
  answer_body_.start(body.in, body.out.kind);
  now_.status = answer.status;
  now_.answer = Answer::passing;
  now_.streamed =
      body.in.kind == BodyFraming::Kind::chunked || body.in.kind == BodyFraming::Kind::until_close;
  now_.keep = client_keeps() && now_.body_read && body.out.kind != BodyFraming::Kind::until_close;
  // Reads it once for each connection.
  if (!now_.reused) {
    const auto field = answer.find(http::FieldId::keep_alive);
    now_.upstream_keeps = http::keep_alive_timeout(field.value_or(""));
  }
  now_.answer_allows_reuse = answer.keep_alive() && body.in.kind != BodyFraming::Kind::until_close;

  AnswerEdits edits;
  edits.client_http_1_1 = head.http_1_1;
  edits.keep_alive = now_.keep;
  edits.gzip = gzip;
  edits.gzip_varies = varies;
  edits.request_id = request_id_;
  edits.own_origin = forward_.route->own_origin;
  edits.location_prefix = forward_.route->location_prefix;
  out_.clear();
  append_forwarded_answer(out_, answer, edits, body.out);
  upstream_in_->consume(now_.answer_head_size);
  to_client_.add(buffer_of(out_));
  pass_answer(now);
}

void Transaction::switch_protocols(Clock::time_point now) {
  AnswerEdits edits;
  edits.websocket = true;
  edits.request_id = request_id_;
  out_.clear();
  append_forwarded_answer(out_, answer_parser_.head(), edits, {});
  upstream_in_->consume(now_.answer_head_size);
  const auto early = in_->bytes().substr(now_.head_size);
  if (!early.empty()) std::memcpy(body_in_.room().data(), early.data(), early.size());
  body_in_.commit(early.size());
  now_.body_taken = early.size();
  now_.status = 101;
  now_.answer = Answer::switching;
  to_client_.add(buffer_of(out_));
  deadlines_.client_write = now + limits().stream_timeout;
  deadlines_.upstream_read = kNever;
}

std::chrono::milliseconds Transaction::relay_idle() const {
  return limits().stream_timeout;
}

void Transaction::relayed(std::uint64_t bytes_in, std::uint64_t bytes_out) {
  now_.bytes_in = bytes_in;
  now_.bytes_out = bytes_out;
  finish(ClientEnd::close);
}

void Transaction::compress_piece() {
  if (!now_.gzip_whole && !deflater_) return;
  if (answer_body_.fed() == 0 && !answer_body_.done()) return;
  using Flush = http::Deflater::Flush;
  compressed_.clear();
  if (now_.gzip_whole) {
    for (const auto& slice : answer_body_.data()) uncompressed_ += text_of(slice);
    if (answer_body_.done()) compressed_ = http::gzip_compress(uncompressed_);
    answer_body_.replace_data(compressed_);
    return;
  }
  for (const auto& slice : answer_body_.data()) {
    deflater_->feed(text_of(slice), Flush::none, compressed_);
  }
  deflater_->feed({}, answer_body_.done() ? Flush::finish : Flush::sync, compressed_);
  answer_body_.replace_data(compressed_);
}

// Offers the next piece of the response, behind the head if that was not sent yet, or waits for it.
void Transaction::pass_answer(Clock::time_point now) {
  while (true) {
    if (!now_.answer_ended) {
      const auto fed = answer_body_.feed(upstream_in_->bytes());
      if (!fed) return fail(malformed_answer(fed.error().message));
      upstream_in_->consume(*fed);
    }
    compress_piece();
    for (const auto& part : answer_body_.buffers()) {
      to_client_.add(part);
      now_.bytes_out += part.size();
    }
    if (!to_client_.empty()) {
      deadlines_.upstream_read = kNever;
      deadlines_.client_write = now + limits().body_timeout;
      return;
    }
    if (answer_body_.done()) {
      return finish_answer();
    }
    if (upstream_in_->empty()) {
      deadlines_.upstream_read =
          now + (now_.streamed ? limits().stream_timeout : limits().body_timeout);
      return;
    }
  }
}

// Finishes after the client has received all of the upstream's response.
void Transaction::finish_answer() {
  // After an early response the rest of the request is missing.
  const bool sent = now_.upload == Upload::complete;
  now_.upstream_reusable = now_.answer_allows_reuse && sent && upstream_in_->empty();
  if (now_.keep) return finish(ClientEnd::keep);
  finish(now_.body_read ? ClientEnd::close : ClientEnd::linger);
}

// -- to the client --

void Transaction::client_wrote(Transfer written, Clock::time_point now) {
  if (written.what != Transfer::data) {
    if (now_.answer == Answer::own) return finish(ClientEnd::close);
    return fail({.failure = Failure::client_gone,
                 .status = 499,
                 .detail = written.what == Transfer::timeout
                               ? "the client took the answer too slowly"
                               : "the client went away within its answer"});
  }
  to_client_.consume(written.size);
  if (!to_client_.empty()) return;
  deadlines_.client_write = kNever;
  switch (now_.answer) {
    case Answer::own:
      return finish(now_.keep ? ClientEnd::keep
                              : (now_.status == 408 ? ClientEnd::close : ClientEnd::linger));
    case Answer::passing:
      if (!answer_body_.done()) return pass_answer(now);
      return finish_answer();
    case Answer::switching:
      deadlines_ = {};
      action_ = Action::relay;
      return;
    case Answer::none:
    case Answer::awaited:
      return;  // 100 Continue
  }
}

// Responds in place of the upstream, without waiting for the rest of the request's body.
void Transaction::answer(http::Response response, std::string_view date, Clock::time_point now) {
  const auto& head = parser_.head();
  if (request_id_.empty()) make_request_id({});
  absorb_body();
  now_.upload = Upload::stopped;
  now_.collecting = false;
  now_.answer = Answer::own;
  now_.status = response.status;
  now_.keep = now_.body_read && client_keeps();
  own_body_ = std::move(response.body);
  const bool no_content = response.status == 204 || response.status == 304;
  const bool bodiless = (now_.head_read && head.method == "HEAD") || no_content;
  out_.assign("HTTP/1.1 ");
  http::append_number(out_, static_cast<std::uint64_t>(response.status));
  out_.append(" ").append(http::reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) http::append_field(out_, name, value);
  http::append_field(out_, "Date", date);
  http::append_field(out_, "X-Request-Id", request_id_);
  if (!no_content) http::append_field(out_, "Content-Length", own_body_.size());
  if (!now_.keep) {
    out_.append("Connection: close\r\n");
  } else if (!head.http_1_1) {
    out_.append("Connection: keep-alive\r\n");
  }
  out_.append("\r\n");
  to_client_.add(buffer_of(out_));
  if (!bodiless) to_client_.add(buffer_of(own_body_));
  now_.bytes_out = bodiless ? 0 : own_body_.size();
  deadlines_ = {};
  deadlines_.client_write = now + context_.head_timeout;
  action_ = Action::move_bytes;
}

// Consumes an unneeded body that was received with its head.
void Transaction::absorb_body() {
  const auto& head = parser_.head();
  if (!now_.head_read || now_.body_read) return;
  if (!head.has_body()) {
    now_.body_read = true;
    return;
  }
  if (now_.continue_sent || request_body_.total() > 0) return;
  request_body_.start(request_framing(head), BodyFraming::Kind::none);
  now_.body_taken = 0;
  while (!request_body_.done()) {
    const auto fed = request_body_.feed(in_->bytes().substr(now_.head_size + now_.body_taken));
    if (!fed || *fed == 0) return;
    now_.body_taken += *fed;
  }
  now_.body_read = true;
}

// -- failures and the end --

void Transaction::fail(Problem problem) {
  problem_ = std::move(problem);
  deadlines_ = {};
  if (now_.has_upstream) {
    action_ = Action::drop_upstream;
  } else {
    end_failed();
  }
}

void Transaction::upstream_dropped() {
  now_.has_upstream = false;
  upstream_in_ = nullptr;
  to_upstream_.clear();
  const bool again = problem_.failure == Failure::upstream_lost && now_.reused && now_.whole &&
                     now_.answer == Answer::awaited && !now_.answer_begun &&
                     (now_.untouched || http::is_idempotent(parser_.head().method));
  if (!again) return end_failed();
  problem_ = {};
  action_ = Action::get_upstream;
}

void Transaction::end_failed() {
  if (now_.answer == Answer::passing || now_.answer == Answer::switching) {
    return finish(ClientEnd::abort);
  }
  if (may_be_kept()) {
    now_.asked_to_keep = true;
    action_ = Action::keep;
    return;
  }
  if (problem_.failure == Failure::client_gone) {
    now_.status = 499;
    return finish(ClientEnd::abort);
  }
  now_.answer = Answer::none;
  action_ = Action::render_error;
}

bool Transaction::may_be_kept() const {
  return now_.admitted && !now_.asked_to_keep && forward_.inspection->undelivered;
}

void Transaction::finish(ClientEnd client) {
  client_end_ = client;
  deadlines_ = {};
  action_ = Action::finish;
}

TransactionRecord Transaction::record(Clock::time_point now) const {
  TransactionRecord record;
  record.head = head();
  record.route = route();
  record.peer = peer_;
  record.status = now_.status;
  record.failure = problem_.failure;
  record.detail = std::string_view(problem_.detail).substr(0, kMaxReason);
  record.request_id = request_id_;
  record.traceparent = traceparent_;
  if (traceparent_.empty() && record.head != nullptr) {
    record.traceparent = record.head->find(http::FieldId::traceparent).value_or("");
  }
  record.bytes_in = request_body_.total() + now_.bytes_in;
  record.bytes_out = now_.bytes_out;
  record.took = now - now_.began;
  record.reused = now_.reused;
  record.upgraded = now_.status == 101;
  return record;
}

void Transaction::recorded() {
  forward_.admission.reset();
  release_held();
}

void Transaction::release_held() {
  held_charge_.release();
  if (held_.empty()) return;
  for (char* block : held_) context_.blocks.give(block, net::BlockPool::kLarge);
  held_ = {};
  held_size_ = 0;
}

void Transaction::make_request_id(std::string_view given) {
  request_id_.clear();
  if (!given.empty()) {
    request_id_ = given;
    return;
  }
  append_hex(request_id_, context_.id_prefix);
  append_hex(request_id_, mix(context_.id_prefix + ++context_.ids));
}

bool Transaction::client_keeps() const {
  return now_.head_read && parser_.head().keep_alive() && !context_.draining;
}

}  // namespace gitops::proxy
