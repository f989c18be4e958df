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

// The window that each direction of a stream begins with.
inline constexpr std::uint32_t kInitialWindow = 256 * 1024;
// Payload of a frame that is sent, so that streams take turns often.
inline constexpr std::size_t kMaxPayload = 16 * 1024;
// Bytes of one stream that are taken over while it waits for its turn or for the peer's window.
inline constexpr std::size_t kMaxQueue = 32 * 1024;

// The client is the side that dialled.
enum class Role : std::uint8_t { client, server };

struct SessionOptions {
  Role role = Role::client;
  // What a peer may send on a stream before it is released; at least kInitialWindow. A stream that
  // nobody reads holds as much.
  std::uint32_t receive_window = kInitialWindow;
  // Streams at a time, of both sides. Beyond it the peer's are reset.
  std::size_t max_streams = 1024;
  // A ping is sent after the peer was silent for ping_interval. When it stays silent for another
  // ping_timeout, the session fails.
  std::chrono::milliseconds ping_interval{9'000};
  std::chrono::milliseconds ping_timeout{5'000};
  // A ping is sent, too, when data was sent and the peer was silent for so long since; 0: not for that
  // reason.
  std::chrono::milliseconds answer_timeout{0};
  // The session fails when the peer leaves a stream of ours without an ACK for as long.
  std::chrono::milliseconds ack_timeout{75'000};
  // A stream that was closed here is reset when the peer has not ended it by then.
  std::chrono::milliseconds close_timeout{30'000};
  // The first stream that is opened here, as if those before it had been; 0: the first of the role.
  StreamId first_stream = kNoStream;
};

// One end of a yamux session without its connection: streams over one sequence of bytes. Bytes and
// time come in; bytes to send, data and the states of streams come out.
//
// Bounds: for each stream at most receive_window bytes are received and not released, and kMaxQueue
// bytes are queued. No stream waits for another one's reader. Streams that have something to send
// take turns of kMaxPayload bytes; one that had nothing to send has its first turn before those that
// have had theirs. The output holds at most 96 KiB; what a peer can demand beyond that (answers to
// pings, resets) is limited, and more than the limit fails the session.
//
// Calls for a stream that the session does not know do nothing: it may just have ended.
class Session {
 public:
  Session(SessionOptions options, Clock::time_point now);

  // -- the connection --

  struct Step {
    enum class Event : std::uint8_t {
      more,      // all input was taken
      opened,    // the peer opened the stream
      data,      // a part of what the peer sent on the stream; to be released once it is not needed
      ended,     // the peer ended its sending side of the stream
      reset,     // the peer ended both sides of the stream; the rest of its data will not come
      draining,  // the peer accepts no further streams
    };
    Event event = Event::more;
    StreamId stream = kNoStream;
    std::string_view data = {};  // a slice of the input
  };
  // Takes bytes from the front of `input` up to the next event. Call it until the event is `more`.
  Step receive(std::string_view& input, Clock::time_point now);

  // The bytes to send now; those that were not sent yet stay in front. Beyond `most` bytes none are
  // added, so that on a thin path a stream's turn is not decided long before it is sent.
  static constexpr std::size_t kOutput = 32 * 1024;
  [[nodiscard]] std::string_view output(std::size_t most = kOutput);
  // The first bytes of output() were sent.
  void sent(std::size_t size);

  // Sends a ping and notices what took too long. Call it at due() or later, after what has come was
  // received.
  void tick(Clock::time_point now);
  [[nodiscard]] Clock::time_point due() const;
  // Sends a ping now, unless one is unanswered; as with any ping, the session fails when the peer stays
  // silent for ping_timeout.
  void ping(Clock::time_point now);
  // When the peer's last bytes came, and since when a ping is unanswered.
  [[nodiscard]] Clock::time_point heard() const { return heard_; }
  [[nodiscard]] std::optional<Clock::time_point> pinged() const { return pinged_; }

  // Why the session is over. From then on the output is what is left of it and a last frame that
  // tells the peer; everything else does nothing.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  // -- streams --

  // Opens a stream, which can be written to at once. Nothing when there are too many streams, when
  // 256 of them wait for the peer's ACK, or when the peer is draining.
  std::optional<StreamId> open(Clock::time_point now);
  // Queues bytes to send, as many as there is room for; how many that were. When that is not all, the
  // stream stands in take_writable() as soon as there is room.
  std::size_t write(StreamId stream, std::string_view bytes);
  [[nodiscard]] std::vector<StreamId> take_writable();
  // Received bytes of the stream are not needed any more; the peer may send as many again.
  void release(StreamId stream, std::size_t size);
  // Ends the sending side behind what is queued.
  void end(StreamId stream);
  // The stream is not used any more: what is queued is sent, then its end. What the peer still sends
  // is answered with a reset. No event of this stream follows.
  void close(StreamId stream, Clock::time_point now);
  // Ends both sides; what is queued is dropped. No event of this stream follows.
  void abort(StreamId stream);
  // Accepts no further streams of the peer and tells it so. frp's programs do not react to it.
  void drain();
  // Changes SessionOptions::max_streams.
  void limit_streams(std::size_t max_streams) { options_.max_streams = max_streams; }

  // Three quarters of the ids of streams that can be opened here are used up. No id is used twice, so
  // another session should take over.
  [[nodiscard]] bool is_worn_out() const { return next_stream_ > kWornOut; }
  static constexpr StreamId kWornOut = 0xC000'0000;

  // Streams that are not over for both sides.
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }

 private:
  struct Stream {
    // Sending.
    std::uint32_t send_window = kInitialWindow;
    std::string queue;
    bool blocked = false;  // write() had no room
    enum class End : std::uint8_t { no, wanted, sent } end = End::no;
    // Receiving.
    std::uint32_t receive_window = 0;  // what the peer may still send
    std::uint32_t credit = 0;          // of that, what it was not told yet
    bool peer_ended = false;
    // Both.
    std::uint16_t flags = 0;  // SYN or ACK, to be sent with the credit
    bool has_turn = false;    // stands in first_turns_ or turns_
    bool waits_for_ack = false;
    bool reset = false;         // by the peer
    bool closed = false;        // here
    Clock::time_point since{};  // when it was opened here, or closed
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
  std::deque<std::uint32_t> pongs_;   // answers to pings
  std::deque<StreamId> resets_;       // streams that are forgotten here
  std::deque<StreamId> first_turns_;  // streams that had nothing to send before
  std::deque<StreamId> turns_;        // the others, and those whose last turn sent all they had
  int first_in_row_ = 0;              // turns since one of turns_
  std::vector<StreamId> writable_;
  // Signs of life.
  Clock::time_point heard_;  // the last byte of the peer
  std::optional<Clock::time_point> pinged_;
  bool unanswered_ = false;                         // data was sent since heard_
  std::optional<Clock::time_point> unanswered_at_;  // when tick() found so
  std::uint32_t pings_ = 0;
  Clock::time_point next_check_;  // of the streams' deadlines
};

}  // namespace gitops::tunnel::yamux
