#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>

#include "common/http/body_pace.hpp"
#include "common/http/gzip.hpp"
#include "common/net/buffer.hpp"
#include "common/net/channel.hpp"
#include "common/proxy/body.hpp"
#include "common/proxy/policy.hpp"

namespace gitops::proxy {

// Shared state of one server's transactions. Loop thread only, except for the totals.
struct TransactionContext {
  net::BlockPool& blocks;
  http::HeadLimits limits = {};
  std::chrono::milliseconds head_timeout{10'000};  // first byte to end of head
  std::shared_ptr<Totals> totals = std::make_shared<Totals>();
  bool draining = false;        // responses close client connections
  std::uint64_t id_prefix = 0;  // random; distinguishes the request ids of servers
  std::uint64_t ids = 0;        // number of ids generated so far
};

// Bytes to write, as slices of memory that does not move.
class Outgoing {
 public:
  [[nodiscard]] bool empty() const { return first_ == count_; }
  [[nodiscard]] std::span<const boost::asio::const_buffer> parts() const {
    return std::span(parts_).subspan(first_, count_ - first_);
  }
  void add(boost::asio::const_buffer part) {
    if (empty()) first_ = count_ = 0;
    if (part.size() > 0) parts_[count_++] = part;
  }
  void add(std::span<const boost::asio::const_buffer> parts) {
    for (const auto& part : parts) add(part);
  }
  void clear() { first_ = count_ = 0; }
  void consume(std::size_t size) {
    while (size > 0) {
      const auto step = std::min(size, parts_[first_].size());
      parts_[first_] += step;
      size -= step;
      if (parts_[first_].size() == 0) ++first_;
    }
  }

 private:
  std::array<boost::asio::const_buffer, 18> parts_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// One proxied request and its response, from the first byte of the head to the final record. A pure
// state machine: it owns no connection and reads no clock. A driver (driver.hpp) performs action(),
// moves the bytes offered by to_client(), client_room() and the like, and reports the outcome.
// Objects are reused for later requests, so that their memory is still in the CPU's caches.
//
// Rules of the state machine. A body with a known length that fits in one block is collected before
// an upstream is chosen, so that a slow client occupies none, and so that the request can be
// retried. A longer body that must be held is not read before there is room for all of it, so that
// partly held bodies never wait for each other. An early response of the upstream ends the upload.
// A request is retried once, only on a new connection, after a pooled one broke before any byte of
// a response, and only if the request is idempotent or nothing of it had been written. A truncated
// response never looks complete to the client.
class Transaction {
 public:
  explicit Transaction(TransactionContext& context);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Begins a request. `in` holds its first bytes, and after end() the bytes behind it. Both
  // references must stay valid until end().
  void begin(net::Buffer& in, const PeerInfo& peer, Clock::time_point now);
  void end();

  enum class Action {
    move_bytes,     // read and write the offered bytes, then wait
    decide,         // call the policy with head(), then decided() or answer()
    await_room,     // await room() for the body to hold, then room_came()
    admit,          // call forward().inspection with whole(), then admitted() or answer()
    keep,           // call forward().inspection with problem(), then answer() or not_kept()
    render_error,   // get a response to problem() from the policy, then answer()
    get_upstream,   // a pooled connection if may_reuse(), else a new one; then
                    // upstream_ready() or upstream_failed()
    drop_upstream,  // abort the connection to the upstream, then upstream_dropped()
    relay,          // relay bytes in both directions, then relayed()
    finish,         // take record(), then apply client_end() and upstream_reusable()
  };
  [[nodiscard]] Action action() const { return action_; }

  // -- inputs and outputs of the actions --
  [[nodiscard]] const http::RequestHead* head() const {
    return now_.head_read ? &parser_.head() : nullptr;
  }
  // Returns whether the head is incomplete and no response has begun.
  [[nodiscard]] bool reads_head() const {
    return !now_.head_read && !problem_ && action_ == Action::move_bytes;
  }
  [[nodiscard]] const Route* route() const { return forward_.route.get(); }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] Forward& forward() { return forward_; }
  // The account that is charged for the request's resources.
  [[nodiscard]] const std::shared_ptr<PeerUse>& charged() const;
  void decided(Forward forward, Clock::time_point now);
  // Waits for room. Returns false after RouteLimits::room_timeout.
  [[nodiscard]] Task<bool> room(Clock::time_point now);
  void room_came(bool came, Clock::time_point now);
  [[nodiscard]] WholeRequest whole() const;
  void admitted();
  void not_kept() { end_failed(); }
  // Responds to the client. `date`: value of the Date field.
  void answer(http::Response response, std::string_view date, Clock::time_point now);
  [[nodiscard]] bool may_reuse() const { return !now_.tried; }
  // Sets the upstream connection. `in` is its buffer until it is returned or dropped.
  void upstream_ready(net::Buffer& in, bool reused, Clock::time_point now);
  void upstream_failed(const Error& error);
  void upstream_dropped();
  // Buffer that holds the client's early data.
  [[nodiscard]] net::Buffer& relay_buffer() { return body_in_; }
  [[nodiscard]] std::chrono::milliseconds relay_idle() const;
  void relayed(std::uint64_t bytes_in, std::uint64_t bytes_out);

  // -- bytes; each `_room` is null while nothing may be read --
  [[nodiscard]] net::Buffer* client_room();
  void client_read(net::Transfer read, Clock::time_point now);
  [[nodiscard]] const Outgoing& to_client() const { return to_client_; }
  void client_wrote(net::Transfer written, Clock::time_point now);
  [[nodiscard]] net::Buffer* upstream_room();
  void upstream_read(net::Transfer read, Clock::time_point now);
  [[nodiscard]] const Outgoing& to_upstream() const { return to_upstream_; }
  void upstream_wrote(net::Transfer written, Clock::time_point now);

  // Deadlines of the next reads and writes.
  struct Deadlines {
    Deadline client_read = kNever;
    Deadline client_write = kNever;
    Deadline upstream_read = kNever;
    Deadline upstream_write = kNever;
  };
  [[nodiscard]] const Deadlines& deadlines() const { return deadlines_; }
  // Handles a client that has closed its sending side, or whose connection broke. Abandons the
  // request unless the response arrives within a second of its begin, since a stream of events
  // without events would never end. The driver calls this each time it has nothing to move;
  // deadlines().client_read is the time of the next call.
  void client_hung_up(Clock::time_point now);

  // -- the end --
  // Returns false if the connection ended before a head was parsed: there is nothing to record.
  [[nodiscard]] bool recordable() const { return now_.head_read || problem_; }
  [[nodiscard]] TransactionRecord record(Clock::time_point now) const;
  // Releases the admission and a held body, after the record was taken.
  void recorded();
  enum class ClientEnd {
    keep,  // the connection continues with its next request
    close,
    linger,  // close after the client has read the response: there is unread input
    abort,   // reset, so that the client does not take a truncated response as complete
  };
  [[nodiscard]] ClientEnd client_end() const { return client_end_; }
  // Returns whether the upstream connection can serve another request.
  [[nodiscard]] bool upstream_reusable() const { return now_.upstream_reusable; }
  // Time for which the upstream keeps an idle connection, from the first response on it
  // (Keep-Alive: timeout=). Nothing if it is unknown or the connection was used before.
  [[nodiscard]] std::optional<std::chrono::seconds> upstream_keeps() const {
    return now_.upstream_keeps;
  }

 private:
  // State of the request to the upstream.
  enum class Upload {
    none,       // without an upstream
    first,      // its head, and the part of its body received with it
    streaming,  // the rest of its body, as it arrives
    complete,
    stopped,  // the upstream accepts no more; its response gives the reason
  };
  // Place of a body that is collected before it is forwarded.
  enum class Collected {
    none,      // in `in`, as far as received with its head; the rest is not collected
    in_place,  // in `in` and body_in_, which keep it
    apart,     // in held_
  };
  enum class Answer {
    none,
    awaited,
    passing,    // from the upstream
    own,        // ours
    switching,  // 101, to be followed by a relay
  };
  // Plain values of one request.
  struct Now {
    std::size_t head_size = 0;     // at the front of in()
    std::size_t body_taken = 0;    // bytes of in() consumed behind the head
    std::size_t piece = 0;         // bytes of the body's input being sent
    std::size_t gathered = 0;      // bytes of body_in_ that stay until the end
    std::size_t held_offered = 0;  // bytes of held_ offered
    std::size_t room = 0;          // charged for held_
    std::size_t wanted_room = 0;   // bytes waited for
    std::size_t answer_head_size = 0;
    int interim = 0;  // 1xx responses so far
    int status = 0;   // of the response
    Upload upload = Upload::none;
    Answer answer = Answer::none;
    Collected collected = Collected::none;
    bool head_begun = false;
    bool head_read = false;
    bool body_read = false;  // all of the request was read
    bool whole = false;      // the first part is the whole request, so it can be retried
    bool admitted = false;
    bool asked_to_keep = false;
    bool collecting = false;
    bool continue_sent = false;
    bool answer_begun = false;
    bool answer_ended = false;  // the upstream's close ended its body
    bool streamed = false;      // the response has no length
    bool keep = false;
    bool tried = false;  // a pooled connection was tried
    bool reused = false;
    bool has_upstream = false;
    bool gzip_whole = false;  // the response is compressed as a whole
    bool untouched = true;    // nothing was written to the upstream
    bool upstream_reusable = false;
    bool answer_allows_reuse = false;
    Clock::time_point began{};
    std::optional<std::chrono::seconds> upstream_keeps;
    std::uint64_t bytes_in = 0;  // of a relay
    std::uint64_t bytes_out = 0;
  };

  void parse_head(Clock::time_point now);
  void start_forwarding(Clock::time_point now);
  void build_request();
  [[nodiscard]] std::string_view body_input();
  void consume_body(std::size_t size);
  Problem feed_body();
  [[nodiscard]] bool fits_in_block() const;
  [[nodiscard]] bool begin_in_place(Clock::time_point now);
  void collect_in_place(Clock::time_point now);
  void collect_apart(Clock::time_point now);
  [[nodiscard]] bool has_room(std::size_t bytes);
  void want_room(std::size_t bytes);
  void hold(std::string_view data);
  [[nodiscard]] bool may_be_kept() const;
  void collected();
  void await_body(Clock::time_point now);
  void inspect();
  void offer_body();
  void offer_held();
  void go_on_uploading(Clock::time_point now);
  void offer_continue(Clock::time_point now);
  void client_problem(net::Transfer::What what);
  void parse_answer(Clock::time_point now);
  void start_answer(Clock::time_point now);
  void switch_protocols(Clock::time_point now);
  void pass_answer(Clock::time_point now);
  void compress_piece();
  void finish_answer();
  void fail(Problem problem);
  void end_failed();
  void finish(ClientEnd client);
  void absorb_body();
  void release_held();
  void make_request_id(std::string_view given);
  [[nodiscard]] bool client_keeps() const;
  [[nodiscard]] bool waits_for_upstream() const;
  [[nodiscard]] const RouteLimits& limits() const { return forward_.route->limits; }

  TransactionContext& context_;
  net::Buffer* in_ = nullptr;
  net::Buffer* upstream_in_ = nullptr;
  const PeerInfo* peer_ = nullptr;
  Action action_ = Action::move_bytes;
  ClientEnd client_end_ = ClientEnd::close;
  Now now_;
  Deadlines deadlines_;
  Problem problem_;
  Forward forward_;
  BodyFraming framing_;
  net::Buffer body_in_;  // bytes received while the head is still in use
  http::RequestHeadParser parser_;
  http::ResponseHeadParser answer_parser_;
  BodyRelay request_body_;
  BodyRelay answer_body_;
  http::BodyPace pace_;  // of a body that was not received with its head
  std::optional<http::Deflater> deflater_;
  DeflaterPlace deflater_place_;
  Outgoing to_client_;
  Outgoing to_upstream_;
  std::string request_;   // the head for the upstream
  std::string out_;       // the head for the client
  std::string own_body_;  // of our own response
  // Separately collected body, in blocks of the pool.
  std::vector<char*> held_;
  std::size_t held_size_ = 0;
  Held held_charge_;
  std::string uncompressed_;  // part received so far of a response that is compressed as a whole
  std::string compressed_;
  std::string request_id_;
  std::string traceparent_;  // of our span; empty: the client's is forwarded
};

}  // namespace gitops::proxy
