#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "app-proxy/git/answer_check.hpp"
#include "app-proxy/git/repository.hpp"
#include "common/core/crypto.hpp"

// What a hostile Git server answers, read by the whole transport and libgit2. The first byte chooses
// what is asked for; the rest is the list of branches and the answer to the second request, divided
// by "--answer--". libgit2 may refuse everything, but must come back, and no name may leave the
// repository's folder.
namespace {

using namespace gitops;
using namespace gitops::app_proxy;

constexpr std::string_view kDivider = "--answer--";
constexpr const char* kToken = "canary-token";

void require(bool holds) {
  if (!holds) std::abort();
}

// A repository with one commit, recreated whenever an input has added to it.
class Clone {
 public:
  Clone()
      : folder_(std::filesystem::temp_directory_path() /
                ("gitops-fuzz-git-" + std::to_string(::getpid()))) {
    make();
  }
  ~Clone() {
    repository_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Clone(const Clone&) = delete;
  Clone& operator=(const Clone&) = delete;

  void make() {
    static unsigned number = 0;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto made = BareRepository::create(folder_ / std::to_string(++number));
    require(made.has_value());
    repository_.emplace(std::move(*made));
    auto commit = repository_->commit(
        {}, {.changes = {{.path = "a", .content = "a\n"}}, .message = "a", .author = {}});
    require(commit.has_value());
    head_ = *commit;
    require(repository_->remember("main", head_).has_value());
  }
  BareRepository& repository() { return *repository_; }
  const std::string& head() const { return head_; }

 private:
  std::filesystem::path folder_;
  std::optional<BareRepository> repository_;
  std::string head_;
};

// A bare pack with the checksum that belongs to it, so that more than its header is read.
std::string with_checksum(std::string answer) {
  const auto begin = answer.find("PACK");
  if (begin == std::string::npos || answer.size() < begin + 32) return answer;
  const std::string_view pack(answer);
  const auto sum = sha1(pack.substr(begin, pack.size() - begin - 20));
  answer.replace(answer.size() - 20, 20, bytes_of(sum));
  return answer;
}

struct Server {
  std::vector<std::string> bodies;
  std::vector<std::string> types;
  std::size_t next = 0;
  std::string_view left = {};

  WireCalls calls() {
    return {
        .begin = [](auto&&...) { return Result<void>(); },
        .write = [](std::string_view) { return Result<void>(); },
        .finish = [] { return Result<void>(); },
        .head = [this]() -> Result<http::Response> {
          const auto now = std::min(next++, bodies.size() - 1);
          left = bodies[now];
          return http::Response{
              .status = 200, .headers = {{"Content-Type", types[now]}}, .body = {}};
        },
        .read = [this](std::span<char> buffer) -> Result<std::size_t> {
          const auto part = left.substr(0, buffer.size());
          std::ranges::copy(part, buffer.begin());
          left.remove_prefix(part.size());
          return part.size();
        },
    };
  }
};

// A pack is judged alike in any pieces.
void check_pieces(std::string_view bytes) {
  PackCheck whole({.objects = 1'000, .object = 1'000'000, .chain = 10'000'000});
  PackCheck pieces({.objects = 1'000, .object = 1'000'000, .chain = 10'000'000});
  const bool taken = whole.feed(bytes).has_value();
  bool still = true;
  for (std::size_t at = 0; still && at < bytes.size(); at += 3) {
    still = pieces.feed(bytes.substr(at, 3)).has_value();
  }
  require(taken == still && (!taken || whole.complete() == pieces.complete()));
}

void check_list(std::string_view bytes) {
  std::string out;
  std::string again;
  ReferenceList list("git-upload-pack", {"main"});
  if (!list.feed(bytes, out) || !list.complete()) return;
  // What was written is a list that passes unchanged.
  ReferenceList second("git-upload-pack", {"main"});
  require(second.feed(out, again).has_value() && second.complete() && out == again);
  require(!out.contains("..") && !out.contains(" refs/tags/"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Clone clone;
  if (size < 1) return 0;
  const bool pushes = (data[0] & 1U) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto divider = std::min(text.find(kDivider), text.size());
  const auto list = text.substr(0, divider);
  std::string answer(text.substr(std::min(divider + kDivider.size(), text.size())));
  if ((data[0] & 2U) != 0) answer = with_checksum(std::move(answer));
  check_list(list);
  check_pieces(answer);

  const std::string service = pushes ? "git-receive-pack" : "git-upload-pack";
  Server server{.bodies = {std::string(list), answer},
                .types = {"application/x-" + service + "-advertisement",
                          "application/x-" + service + "-result"}};
  Wire wire(parse_repository_url("https://git.test/o/r.git").value(),
            {.username = "ann", .password = Secret(kToken)}, server.calls());
  auto session = clone.repository().connect(
      wire, pushes ? BareRepository::Direction::push : BareRepository::Direction::fetch, {"main"});
  if (!session) {
    require(!session.error().message.contains(kToken));
    return 0;
  }
  if (pushes) {
    const auto pushed = session->push("main", clone.head());
    require(!pushed.error.message.contains(kToken));
    return 0;
  }
  const auto fetched = session->fetch("main");
  if (!fetched) {
    require(!fetched.error().message.contains(kToken));
  } else {
    clone.make();
  }
  return 0;
}
