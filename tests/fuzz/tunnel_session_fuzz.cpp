// A whole session from bytes, as server and as client, of both wires: yamux, what each stream begins
// with, and the control stream behind it. What comes out must not depend on how the bytes are split,
// what is held for a peer is bounded, and a session that fails says nothing more.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/tunnel/client_control.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/server_control.hpp"
#include "common/tunnel/yamux_session.hpp"

namespace {

using namespace gitops;
using namespace gitops::tunnel;
using Event = yamux::Session::Step::Event;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::size_t kMaxStreams = 8;

// What a side did: the events, and what it sent on each stream. A stream that fails counts as one that
// sent nothing, since what it had to send may have gone before or not.
struct Record {
  std::string events;
  std::map<yamux::StreamId, std::string> sent;

  void failed(yamux::StreamId stream) {
    if (std::exchange(sent[stream], "!") != "!") events += "!";
  }
  bool operator==(const Record&) const = default;
};

// Gives the data of each stream to `take`, which returns what is to be sent on it; nothing: the stream
// is reset.
template <class Take>
void feed(yamux::Session& session, std::string_view bytes, std::string_view sizes, Record& record,
          const Take& take) {
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    const std::size_t size =
        sizes.empty() ? bytes.size() : 1U + static_cast<unsigned char>(sizes[turn % sizes.size()]);
    auto part = bytes.substr(0, size);
    bytes.remove_prefix(part.size());
    while (true) {
      const auto step = session.receive(part, {});
      if (step.event == Event::more) break;
      require(session.stream_count() <= kMaxStreams);
      if (step.event != Event::data) continue;
      const std::optional<std::string> answer = take(step.stream, std::string(step.data));
      session.release(step.stream, step.data.size());
      if (answer) {
        if (record.sent[step.stream] != "!") record.sent[step.stream] += *answer;
        (void)session.write(step.stream, *answer);
      } else {
        session.abort(step.stream);
      }
    }
    require(part.empty() || session.failure());
    const auto output = session.output().size();
    require(output <= 64 * 1024);
    session.sent(output);
  }
}

struct ServerStream {
  OpeningReader opening;
  std::optional<ServerControl> control;
  bool is_over = false;
};

Record play_server(std::string_view bytes, std::string_view sizes) {
  yamux::Session session({.role = yamux::Role::server, .max_streams = kMaxStreams}, {});
  std::map<yamux::StreamId, ServerStream> streams;
  Record record;
  feed(session, bytes, sizes, record,
       [&](yamux::StreamId id, std::string data) -> std::optional<std::string> {
         auto& stream = streams[id];
         if (stream.is_over) return std::string();
         std::string answer;
         std::string_view input = data;
         if (!stream.control) {
           auto opening = stream.opening.next(input);
           if (!opening) {
             stream.is_over = true;
             record.failed(id);
             return std::string();
           }
           if (!*opening) return std::string();
           auto& begin = **opening;
           if (std::holds_alternative<NewWorkConn>(begin.message)) {
             stream.is_over = true;
             require(
                 append_message(answer, StartWorkConn{.proxy_name = "a"}, begin.wire).has_value());
             return answer;
           }
           const auto* login = std::get_if<Login>(&begin.message);
           if (login == nullptr || (begin.wire == Wire::v2) != begin.hello.has_value()) {
             stream.is_over = true;
             return std::string();
           }
           ServerControlOptions options{.version = "1.0.0"};
           if (begin.hello) {
             ServerOpening own{.hello = std::move(*begin.hello),
                               .random = std::string(ClientHello::kRandomSize, 'r'),
                               .nonce = std::string(kSealNonceSize, 'n')};
             if (!own.hello.is_supported) {
               stream.is_over = true;
               refuse_login(answer, "1.0.0", "no", &own);
               return answer;
             }
             options.opening = std::move(own);
           }
           stream.control.emplace(std::move(options), *login, "run", std::string(16, 'i'));
         }
         std::vector<ServerControl::Event> events;
         std::string rest(input);
         stream.control->receive(rest, events);
         for (const auto& event : events) {
           record.events += static_cast<char>(event.what);
           record.events += event.proxy.proxy_name;
           if (event.what == ServerControl::Event::What::new_proxy) {
             stream.control->accept_proxy(event.proxy.proxy_name, "here");
           }
         }
         if (stream.control->failure()) {
           require(stream.control->output().empty());
           stream.is_over = true;
           record.failed(id);
         }
         answer += std::exchange(stream.control->output(), {});
         return answer;
       });
  return record;
}

Record play_client(std::string_view bytes, std::string_view sizes, Wire wire) {
  yamux::Session session({.role = yamux::Role::client, .max_streams = kMaxStreams}, {});
  const auto control_stream = session.open({});
  require(control_stream.has_value());
  ClientControlOptions options{.proxies = {{.proxy_name = "a"}}};
  if (wire == Wire::v2) options.opening = ClientOpening{.transport = "tcp"};
  ClientControl control(std::move(options),
                        {.iv = std::string(16, 'i'),
                         .seed = 1,
                         .random = std::string(ClientHello::kRandomSize, 'r'),
                         .nonce = std::string(kSealNonceSize, 'n')},
                        WallTime{}, {});
  (void)session.write(*control_stream, control.output());
  control.output().clear();
  Record record;
  feed(session, bytes, sizes, record,
       [&](yamux::StreamId id, std::string data) -> std::optional<std::string> {
         if (id != *control_stream) return std::nullopt;
         std::vector<ClientControl::Event> events;
         control.receive(data, {}, events);
         for (const auto& event : events) {
           record.events += static_cast<char>(event.what);
           record.events += event.proxy + event.text;
         }
         if (control.failure()) {
           require(control.output().empty() && control.due() == kNever);
           record.failed(id);
         }
         require(control.output().size() <= 64 * 1024);
         return std::exchange(control.output(), {});
       });
  return record;
}

// The head of a data frame that opens a stream, or goes on with the client's.
std::string data_head(yamux::StreamId stream, std::uint16_t flags, std::size_t size) {
  std::string head;
  yamux::append_frame_head(head, {.type = yamux::FrameType::data,
                                  .flags = flags,
                                  .stream = stream,
                                  .length = static_cast<std::uint32_t>(size)});
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first bytes choose the split.
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (all.size() < 4) return 0;
  const auto sizes = all.substr(0, 3);
  const auto bytes = all.substr(3);
  require(play_server(bytes, {}) == play_server(bytes, sizes));
  // On a stream of the client, and on one of the server's control stream, more of it is read.
  const auto opened = data_head(1, 1, bytes.size()) + std::string(bytes);
  require(play_server(opened, {}) == play_server(opened, sizes));
  for (const auto wire : {Wire::v1, Wire::v2}) {
    require(play_client(bytes, {}, wire) == play_client(bytes, sizes, wire));
    const auto answered = data_head(1, 2, bytes.size()) + std::string(bytes);
    require(play_client(answered, {}, wire) == play_client(answered, sizes, wire));
  }
  return 0;
}
