#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "common/tunnel/yamux_frame.hpp"

namespace gitops::tunnel::yamux {

// Initial window of each direction of a stream, in bytes.
inline constexpr std::uint32_t kInitialWindow = 256 * 1024;
// Maximum payload of a sent frame, in bytes. Small frames let streams alternate often.
inline constexpr std::size_t kMaxPayload = 16 * 1024;
// Maximum queue of a stream that waits for its turn or for the peer's window, in bytes.
inline constexpr std::size_t kMaxQueue = 32 * 1024;

// The client is the side that dialled.
enum class Role : std::uint8_t { client, server };

struct SessionOptions {
  Role role = Role::client;
  // Number of bytes that a peer may send on a stream before they are released; at least
  // kInitialWindow. A stream without a reader buffers as much.
  std::uint32_t receive_window = kInitialWindow;
  // Maximum number of streams at a time, of both sides. Further streams of the peer are reset.
  std::size_t max_streams = 1024;
  // A ping is sent after the peer was silent for ping_interval. The session fails after another
  // ping_timeout of silence.
  std::chrono::milliseconds ping_interval{9'000};
  std::chrono::milliseconds ping_timeout{5'000};
  // Time of silence after sent data after which a ping is also sent; 0: never.
  std::chrono::milliseconds answer_timeout{0};
  // Time after which an opened stream without an ACK fails the session.
  std::chrono::milliseconds ack_timeout{75'000};
  // Time after which a closed stream that the peer has not ended is reset.
  std::chrono::milliseconds close_timeout{30'000};
  // Id of the first opened stream, as if earlier ids had been used; 0: the first id of the role.
  StreamId first_stream = kNoStream;
};

// One end of a yamux session without I/O: streams over one sequence of bytes. Takes bytes and time;
// returns bytes to send, data and the states of streams. Not thread-safe.
//
// Bounds: each stream buffers at most receive_window bytes that are not released, and queues
// kMaxQueue bytes. Streams are independent of each other's readers. Streams with data to send take
// turns of kMaxPayload bytes; a stream that was empty has its first turn before streams that have
// had theirs. The output holds at most 96 KiB. Responses that a peer can cause beyond that (to
// pings, resets) are limited, and exceeding the limit fails the session.
//
// Calls for unknown streams do nothing, since a stream may just have ended.
class Session {
 public:
  Session(SessionOptions options, Clock::time_point now);

  // -- the connection --

  struct Step {
    enum class Event : std::uint8_t {
      more,      // all input was consumed
      opened,    // the peer opened the stream
      data,      // data of the stream; the owner releases it when it is no longer needed
      ended,     // the peer ended its sending side of the stream
      reset,     // the peer ended both sides of the stream; its remaining data is lost
      draining,  // the peer accepts no further streams
    };
    Event event = Event::more;
    StreamId stream = kNoStream;
    std::string_view data = {};  // a slice of the input
  };
  // Consumes bytes from the front of `input` up to the next event. Call it until the event is
  // `more`.
  Step receive(std::string_view& input, Clock::time_point now);

  // Returns the bytes to send now; unsent bytes remain at the front. Adds no bytes beyond `most`,
  // so that on a slow path the order of streams is decided shortly before the bytes are sent.
  static constexpr std::size_t kOutput = 32 * 1024;
  [[nodiscard]] std::string_view output(std::size_t most = kOutput);
  // Removes the first `size` bytes of output(), which were sent.
  void sent(std::size_t size);

  // Sends a due ping and checks the timeouts. Call it at due() or later, after all received bytes
  // were processed.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;
  // Sends a ping now, unless one is unanswered. As with any ping, the session fails if the peer
  // stays silent for ping_timeout.
  void ping(Clock::time_point now);
  // Time of the peer's last bytes, and the time at which the unanswered ping was sent.
  [[nodiscard]] Clock::time_point heard() const { return heard_; }
  [[nodiscard]] std::optional<Clock::time_point> pinged() const { return pinged_; }

  // The error that ended the session. After it, output() returns the rest and a last frame with the
  // reason; all other calls do nothing.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  // -- streams --

  // Opens a stream, which is writable immediately. Returns nothing at the limit of streams, when
  // 256 streams wait for the peer's ACK, or when the peer is draining.
  std::optional<StreamId> open(Clock::time_point now);
  // Queues as many bytes as there is room for and returns their number. If that is not all,
  // take_writable() lists the stream as soon as there is room.
  std::size_t write(StreamId stream, std::string_view bytes);
  [[nodiscard]] std::vector<StreamId> take_writable();
  // Releases received bytes of the stream; the peer may send as many again.
  void release(StreamId stream, std::size_t size);
  // Ends the sending side after the queued data.
  void end(StreamId stream);
  // Closes the stream: sends the queued data, then the end. Further data of the peer is answered
  // with a reset. No event of this stream follows.
  void close(StreamId stream, Clock::time_point now);
  // Resets both sides and drops the queued data. No event of this stream follows.
  void abort(StreamId stream);
  // Drains: accepts no further streams of the peer and sends GoAway. frp's programs ignore GoAway.
  void drain();
  // Changes SessionOptions::max_streams.
  void limit_streams(std::size_t max_streams) { options_.max_streams = max_streams; }

  // Returns whether three quarters of this side's stream ids are used up. Ids are never reused, so
  // another session should take over.
  [[nodiscard]] bool is_worn_out() const { return next_stream_ > kWornOut; }
  static constexpr StreamId kWornOut = 0xC000'0000;

  // Number of streams that are open for at least one side.
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }

 private:
  struct Stream {
    // Sending.
    std::uint32_t send_window = kInitialWindow;
    std::string queue;
    bool blocked = false;  // write() had no room
    enum class End : std::uint8_t { no, wanted, sent } end = End::no;
    // Receiving.
    std::uint32_t receive_window = 0;  // bytes that the peer may still send
    std::uint32_t credit = 0;          // part of receive_window not announced yet
    bool peer_ended = false;
    // Both.
    std::uint16_t flags = 0;  // SYN or ACK, sent with the credit
    bool has_turn = false;    // listed in first_turns_ or turns_
    bool waits_for_ack = false;
    bool reset = false;         // by the peer
    bool closed = false;        // here
    Clock::time_point since{};  // time of its opening or closing here
  };
  enum class Phase : std::uint8_t { head, begin, payload, end };

  // Steps of receive(), one for each phase of a frame.
  std::optional<Step> take_head(std::string_view& input);
  std::optional<Step> begin_frame();
  std::optional<Step> take_payload(std::string_view& input);
  std::optional<Step> end_frame();
  void take_ping();
  std::optional<Step> take_go_away();
  std::optional<Step> accept();

  Stream* find(StreamId stream);
  Stream& add(StreamId stream, std::uint16_t flag, Clock::time_point now);
  void acknowledged(Stream& stream);
  void forget(StreamId stream);
  void forget_if_over(StreamId id, const Stream& stream);
  void queue_reset(StreamId stream);
  [[nodiscard]] bool has_something_to_send(const Stream& stream) const;
  void ask_for_turn(StreamId id, Stream& stream);
  void take_turn(std::size_t most);
  [[nodiscard]] bool is_first_turn_due();
  void fill(std::size_t most);
  void append_head(const FrameHead& head) { append_frame_head(output_, head); }
  [[nodiscard]] Clock::time_point ping_due() const;
  void check_streams(Clock::time_point now);
  void fail_session(ErrorCode code, std::string message);

  SessionOptions options_;
  std::optional<Error> failure_;
  std::unordered_map<StreamId, Stream> streams_;
  StreamId next_stream_;
  std::size_t waiting_for_ack_ = 0;  // streams
  std::size_t closing_ = 0;          // streams that are closed here and not over
  bool draining_ = false;
  bool peer_is_draining_ = false;
  // Receiving.
  Phase phase_ = Phase::head;
  std::string head_bytes_;
  FrameHead frame_;
  std::uint32_t payload_left_ = 0;
  // Sending.
  std::string output_;
  std::size_t sent_ = 0;              // bytes at the front of output_
  std::deque<std::uint32_t> pongs_;   // numbers of pings to respond to
  std::deque<StreamId> resets_;       // streams to reset that were removed here
  std::deque<StreamId> first_turns_;  // streams that had no data before
  std::deque<StreamId> turns_;        // others, and those that a turn emptied
  int first_in_row_ = 0;              // first turns since the last one of turns_
  std::vector<StreamId> writable_;
  // Signs of life.
  Clock::time_point heard_;  // the last byte of the peer
  std::optional<Clock::time_point> pinged_;
  bool unanswered_ = false;                         // data was sent since heard_
  std::optional<Clock::time_point> unanswered_at_;  // time at which tick() noticed it
  std::uint32_t pings_ = 0;
  Clock::time_point next_check_;  // of the streams' deadlines
};

}  // namespace gitops::tunnel::yamux
