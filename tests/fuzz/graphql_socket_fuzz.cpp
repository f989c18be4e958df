// Lines of text as messages of a client, for either protocol. Every message that is sent is JSON, and
// operations are bounded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <simdjson.h>

#include "common/graphql/socket_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  using namespace gitops::graphql;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  const auto protocol = text.front() == 'l' ? SocketProtocol::legacy : SocketProtocol::transport;
  text.remove_prefix(1);
  const Clock::time_point now{};
  SocketSession session(protocol, {.max_operations = 3}, now);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    for (const SocketAction& action : session.receive(text.substr(0, end), now)) {
      if (action.kind == SocketAction::Kind::open) session.accept(now);
      if (action.kind == SocketAction::Kind::start) session.next(action.id, "{\"data\":1}");
    }
    if (session.operations() > 3) std::abort();
    for (const std::string& message : session.output()) {
      simdjson::dom::parser parser;
      if (parser.parse(message).error() != simdjson::SUCCESS) std::abort();
    }
    session.output().clear();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}
