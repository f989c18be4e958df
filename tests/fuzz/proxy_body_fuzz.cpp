// Bodies in any framing and in pieces of any size. Data must come out once and in order, and what
// is sent on in chunks must be read back as the same data by the same rules.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "common/proxy/body.hpp"

namespace {

using namespace gitops::proxy;
using Kind = BodyFraming::Kind;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Sent {
  std::string bytes;
  std::size_t consumed = 0;
  bool done = false;
};

std::optional<Sent> relay(std::string_view input, BodyFraming in, Kind out, std::size_t step) {
  BodyRelay body(512);
  body.start(in, out);
  Sent sent;
  while (sent.consumed < input.size() && !body.done()) {
    const auto fed = body.feed(input.substr(sent.consumed, step));
    if (!fed) return std::nullopt;
    require(*fed > 0);
    for (const auto& buffer : body.buffers()) {
      sent.bytes.append(static_cast<const char*>(buffer.data()), buffer.size());
    }
    sent.consumed += *fed;
  }
  sent.done = body.done();
  return sent;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t step = data[0] % 64U + 1U;
  const BodyFraming framing = data[1] % 2 == 0
                                  ? BodyFraming{.kind = Kind::chunked}
                                  : BodyFraming{.kind = Kind::length, .length = data[1]};
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);

  const auto plain = relay(input, framing, Kind::until_close, input.size() + 1);
  const auto pieces = relay(input, framing, Kind::until_close, step);
  require(plain.has_value() == pieces.has_value());
  if (!plain) return 0;
  require(plain->bytes == pieces->bytes && plain->done == pieces->done &&
          plain->consumed == pieces->consumed);

  const auto chunks = relay(input, framing, Kind::chunked, step);
  require(chunks && chunks->done == plain->done);
  const auto back = relay(chunks->bytes, {.kind = Kind::chunked}, Kind::until_close, 7);
  require(back && back->bytes == plain->bytes && back->done == plain->done);
  require(back->consumed == chunks->bytes.size());
  return 0;
}
