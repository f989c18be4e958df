#include <map>
#include <span>
#include <utility>

#include "app-proxy/git/failure_codes.hpp"
#include "app-proxy/git/libgit2.hpp"
#include "app-proxy/git/repository.hpp"

namespace gitops::app_proxy {

using namespace libgit2;

struct BareRepository::Session::State {
  git_repository* repository = nullptr;
  Wire* wire = nullptr;
  RemotePtr remote;
  std::map<std::string, std::string> branches;  // short name → commit; the requested ones
  bool has_branches = false;
  std::string default_branch;
  const std::function<void(const FetchProgress&)>* progress = nullptr;
  std::string refusal;  // of the push, by the server
  bool reported = false;

  git_remote_callbacks callbacks();
  static int on_progress(const git_indexer_progress* stats, void* state);
  static int on_push_progress(unsigned, unsigned, std::size_t, void* state);
  static int on_pack_progress(int, std::uint32_t, std::uint32_t, void* state);
  static int on_reference(const char* name, const char* status, void* state);
  static int on_transport(git_transport** out, git_remote* owner, void* state);
};

int BareRepository::Session::State::on_progress(const git_indexer_progress* stats, void* state) {
  auto& self = *static_cast<State*>(state);
  if (self.progress != nullptr && *self.progress) {
    (*self.progress)({.received_objects = stats->received_objects,
                      .indexed_objects = stats->indexed_objects + stats->indexed_deltas,
                      .total_objects = stats->total_objects,
                      .bytes = stats->received_bytes});
  }
  return self.wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_push_progress(unsigned, unsigned, std::size_t, void* state) {
  return static_cast<State*>(state)->wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_pack_progress(int, std::uint32_t, std::uint32_t,
                                                     void* state) {
  return static_cast<State*>(state)->wire->stopped() ? -1 : 0;
}

int BareRepository::Session::State::on_reference(const char* /*name*/, const char* status,
                                                 void* state) {
  auto& self = *static_cast<State*>(state);
  self.reported = true;
  if (status != nullptr) self.refusal = *status == '\0' ? "no reason" : status;
  return 0;
}

int BareRepository::Session::State::on_transport(git_transport** out, git_remote* owner,
                                                 void* state) {
  return Wire::make_transport(out, owner, static_cast<State*>(state)->wire);
}

git_remote_callbacks BareRepository::Session::State::callbacks() {
  git_remote_callbacks callbacks;
  ::git_remote_init_callbacks(&callbacks, GIT_REMOTE_CALLBACKS_VERSION);
  callbacks.transfer_progress = on_progress;
  callbacks.pack_progress = on_pack_progress;
  callbacks.push_transfer_progress = on_push_progress;
  callbacks.push_update_reference = on_reference;
  callbacks.transport = on_transport;
  callbacks.payload = this;
  return callbacks;
}

namespace {

constexpr std::size_t kMaxReason = 150;
constexpr std::size_t kMaxWords = 250;

// Returns the server's texts beside the response to a push, as the end of a message.
std::string server_says(const Wire& wire) {
  const auto words = wire.quoted(wire.push_report().words(), kMaxWords);
  return words.empty() ? std::string() : "; it says: \"" + words + "\"";
}

// Checks for a response by which the server, or something before it, has not taken the push. Other
// errors of servers may come after it was carried out.
bool says_nothing_was_done(const Error& error) {
  const int status = error.http_status;
  return error.subcode == kNotGit || (status >= 300 && status < 500) || status == 501 ||
         status == 505 || status == 507 || status == 511;
}

PushAnswer refused_push(const Wire& wire, const std::string& branch, const std::string& refusal) {
  const auto words = wire.push_report().words();
  const auto cause = cause_of_refusal(refusal, words);
  const bool passes = is_passing(refusal, words);
  Error error{.code = passes ? ErrorCode::unavailable : ErrorCode::forbidden,
              .message = wire.url().http.host_header() +
                         (passes ? " cannot take the push to " : " refuses the push to ") + branch +
                         (passes ? " now: " : ": ") + wire.quoted(refusal, kMaxReason)};
  if (!cause.empty()) {
    error.message += "; " + std::string(cause);
    error.subcode = kServerLimit;
  }
  error.message += server_says(wire);
  return {.kind = passes ? PushAnswer::Kind::not_now : PushAnswer::Kind::refused,
          .error = std::move(error)};
}

}  // namespace

BareRepository::Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
BareRepository::Session::Session(Session&&) noexcept = default;
BareRepository::Session& BareRepository::Session::operator=(Session&&) noexcept = default;
BareRepository::Session::~Session() = default;

Result<BareRepository::Session> BareRepository::Session::open(git_repository* repository,
                                                              Wire& wire, Direction direction,
                                                              std::vector<std::string> branches) {
  auto state = std::make_unique<State>();
  state->repository = repository;
  state->wire = &wire;
  wire.take_error();
  wire.show(std::move(branches));
  forget_failures();
  git_remote_create_options made;
  ::git_remote_create_options_init(&made, GIT_REMOTE_CREATE_OPTIONS_VERSION);
  made.repository = state->repository;
  made.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF | GIT_REMOTE_CREATE_SKIP_DEFAULT_FETCHSPEC;
  git_remote* remote = nullptr;
  if (::git_remote_create_with_opts(&remote, wire.url().to_string().c_str(), &made) != 0) {
    return local_failure("naming the server");
  }
  state->remote.reset(remote);
  git_remote_connect_options options;
  ::git_remote_connect_options_init(&options, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
  options.callbacks = state->callbacks();
  const auto way = direction == Direction::fetch ? GIT_DIRECTION_FETCH : GIT_DIRECTION_PUSH;
  const git_remote_head** heads = nullptr;
  std::size_t count = 0;
  if (::git_remote_connect_ext(remote, way, &options) != 0 ||
      ::git_remote_ls(&heads, &count, remote) != 0) {
    return std::unexpected(remote_error(wire, "asking for branches"));
  }
  state->has_branches = wire.has_branches();
  constexpr std::string_view kBranches = "refs/heads/";
  for (const git_remote_head* head : std::span(heads, count)) {
    const std::string_view name(head->name);
    if (name.starts_with(kBranches)) {
      state->branches.emplace(name.substr(kBranches.size()), text_of(head->oid));
    } else if (name == "HEAD" && head->symref_target != nullptr &&
               std::string_view(head->symref_target).starts_with(kBranches)) {
      state->default_branch = std::string_view(head->symref_target).substr(kBranches.size());
    }
  }
  return Session(std::move(state));
}

const std::string& BareRepository::Session::tip(const std::string& branch) const {
  static const std::string kNone;
  const auto found = state_->branches.find(branch);
  return found == state_->branches.end() ? kNone : found->second;
}

bool BareRepository::Session::has_branches() const {
  return state_->has_branches;
}

const std::string& BareRepository::Session::default_branch() const {
  return state_->default_branch;
}

Result<void> BareRepository::Session::fetch(
    const std::string& branch, const std::function<void(const FetchProgress&)>& progress) {
  const std::string commit = tip(branch);
  if (commit.empty()) {
    return fail(ErrorCode::not_found, state_->wire->url().name + " has no branch " + branch);
  }
  state_->progress = &progress;
  forget_failures();
  git_fetch_options options;
  ::git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
  options.callbacks = state_->callbacks();
  options.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
  std::string spec = "+refs/heads/" + branch + ":refs/heads/" + branch;
  char* specs[] = {spec.data()};
  const git_strarray refspecs{.strings = specs, .count = 1};
  const int failed = ::git_remote_download(state_->remote.get(), &refspecs, &options);
  state_->progress = nullptr;
  if (failed != 0) return std::unexpected(remote_error(*state_->wire, "fetching"));
  return set_reference(state_->repository, "refs/heads/" + branch, commit);
}

PushAnswer BareRepository::Session::push(const std::string& branch, const std::string& commit) {
  Wire& wire = *state_->wire;
  wire.take_error();
  wire.expect_push();
  forget_failures();
  wire.spool_in(std::filesystem::path(::git_repository_path(state_->repository)));
  state_->refusal.clear();
  state_->reported = false;
  git_push_options options;
  ::git_push_options_init(&options, GIT_PUSH_OPTIONS_VERSION);
  options.callbacks = state_->callbacks();
  options.pb_parallelism = 1;
  // libgit2 only pushes a reference.
  constexpr const char* kPushed = "refs/gitops/pushed";
  if (auto named = set_reference(state_->repository, kPushed, commit); !named) {
    return {.kind = PushAnswer::Kind::not_sent, .error = std::move(named.error())};
  }
  std::string spec = std::string(kPushed) + ":refs/heads/" + branch;
  char* specs[] = {spec.data()};
  const git_strarray refspecs{.strings = specs, .count = 1};
  const int failed = ::git_remote_upload(state_->remote.get(), &refspecs, &options);
  // libgit2 fails in the same way without a response and for "unpack <error>".
  auto refusal = wire.push_report().refusal();
  if (refusal.empty()) refusal = state_->refusal;
  if (!refusal.empty()) return refused_push(wire, branch, refusal);
  if (failed == 0 && state_->reported) return {.kind = PushAnswer::Kind::accepted};
  const bool began = wire.push_began();
  if (failed == 0) {
    return {.kind = began ? PushAnswer::Kind::lost : PushAnswer::Kind::not_sent,
            .error = {.code = ErrorCode::protocol, .message = "the server reports no result"}};
  }
  if (failed == GIT_ENONFASTFORWARD) {
    return {.kind = PushAnswer::Kind::refused,
            .error = {.code = ErrorCode::conflict, .message = "the branch has moved on"}};
  }
  Error error = remote_error(wire, "pushing");
  error.message += server_says(wire);
  const int status = error.http_status;
  if (status == 408 || status == 429) {
    return {.kind = PushAnswer::Kind::not_now, .error = std::move(error)};
  }
  if (says_nothing_was_done(error)) {
    return {.kind = PushAnswer::Kind::refused, .error = std::move(error)};
  }
  return {.kind = began ? PushAnswer::Kind::lost : PushAnswer::Kind::not_sent,
          .error = std::move(error)};
}

}  // namespace gitops::app_proxy
