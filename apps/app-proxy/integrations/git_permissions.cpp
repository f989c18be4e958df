#include "app-proxy/integrations/git_permissions.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/core/backoff.hpp"

namespace gitops::app_proxy {
namespace {

// Compares names without regard to case, as hosts do.
struct IgnoringCase {
  bool operator()(std::string_view a, std::string_view b) const {
    return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
  }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
};

}  // namespace

std::optional<RepositoryName> repository_at(const ApiRoot& root, std::string_view clone_url) {
  const auto url = http::parse_url(clone_url);
  if (!url || (url->host != root.url.host && url->host != root.web_host())) return std::nullopt;
  std::string_view path = url->path;
  // A host below a path has its repositories below it, too: "/gitlab/api/v4", "/gitlab/owner/name".
  const bool is_server = root.kind == ProviderKind::bitbucket_server;
  const auto api = root.url.path.find(is_server ? "/rest/" : "/api/");
  if (api != std::string::npos && path.starts_with(root.url.path.substr(0, api))) {
    path.remove_prefix(api);
  }
  constexpr std::string_view kServerPath = "/scm";
  if (is_server && path.starts_with(kServerPath)) path.remove_prefix(kServerPath.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with(".git")) path.remove_suffix(4);
  auto name = parse_repository_name(path);
  if (!name) return std::nullopt;
  return std::move(*name);
}

GitPermissions::GitPermissions(GitIntegrations& integrations, Leadership& leadership,
                               Filters filters, List list, Report report, Options options)
    : integrations_(integrations),
      leadership_(leadership),
      filters_(std::move(filters)),
      list_(std::move(list)),
      report_(std::move(report)),
      options_(options),
      random_(random_seed() % 0x7fffffff) {}

void GitPermissions::start(TaskGroup& group) {
  group.spawn("Git permissions of users", [this]() -> Task<> {
    while (true) {
      (void)co_await leadership_.changed().wait(deadline_after(options_.tick));
      co_await round();
    }
  });
}

StatusEntry GitPermissions::status() const {
  auto entry = status_entry("Git permissions of users", last_error_);
  if (!leadership_.leads()) {
    entry.state = StatusState::standby;
    entry.message = "another replica checks them";
    return entry;
  }
  if (!wanted_) {
    entry.state = StatusState::unavailable;
    entry.message = "not wanted: the account does not filter by them";
    return entry;
  }
  const auto known = std::ranges::count_if(
      answers_, [](const auto& answer) { return answer.second.permissions.has_value(); });
  entry.add_count_of("known", static_cast<std::uint64_t>(known), answers_.size());
  entry.add_count("git_sources", sources_, "Git sources");
  return entry;
}

// Returns a random time between half and one and a half of the period.
Clock::duration GitPermissions::around(std::chrono::milliseconds period) {
  std::uniform_int_distribution<std::int64_t> some(period.count() / 2,
                                                   period.count() + period.count() / 2);
  return std::chrono::milliseconds(some(random_));
}

Task<> GitPermissions::ask(const Integration& integration, const UserToken& token,
                           RepositoryName name, Answer& answer) {
  const auto told = co_await integrations_.permissions(integration, token.user_id, std::move(name),
                                                       deadline_after(options_.timeout));
  answer.sealed = token.sealed.text;
  if (told) answer.permissions = *told;
  // After a failure the host is asked sooner, but not in every tick.
  answer.due = Clock::now() + around(told ? options_.period : options_.period / 4);
}

Task<bool> GitPermissions::are_wanted() {
  if (Clock::now() < wanted_until_) co_return wanted_;
  if (const auto told = co_await filters_(deadline_after(options_.timeout))) {
    wanted_ = *told;
    wanted_until_ = Clock::now() + 10 * options_.tick;
  }
  co_return wanted_;
}

GitPermissions::Answer& GitPermissions::answer_to(const Question& question, const UserToken& token,
                                                  const KnownGitSource& source) {
  const auto [entry, is_new] = answers_.try_emplace(question);
  auto& answer = entry->second;
  const auto reported =
      std::ranges::find(source.permissions, token.user_id, &UserPermission::user_id);
  if (answer.sealed.empty() && !token.sealed.text.empty() && reported != source.permissions.end()) {
    // The permission comes from a report before this process, so it is not urgent.
    answer = {.sealed = token.sealed.text,
              .permissions = Permissions{.read = reported->read, .write = reported->write},
              .due = Clock::now() + around(options_.period) / 2};
  }
  return answer;
}

Task<> GitPermissions::read_lists(const std::vector<Integration>& integrations,
                                  const std::vector<KnownGitSource>& sources,
                                  std::size_t& questions) {
  for (const auto& integration : integrations) {
    // Bitbucket's hosts do not report permissions in lists.
    const auto kind = integration.root.kind;
    if (kind == ProviderKind::bitbucket || kind == ProviderKind::bitbucket_server) continue;
    for (const auto& token : integration.users) {
      co_await asio::post(co_await asio::this_coro::executor, use_task);
      std::map<std::string, Question, IgnoringCase> due;  // by the repository's name
      for (const auto& source : sources) {
        if (integration.account_id != source.account_id) continue;
        const auto name = repository_at(integration.root, source.repository_url);
        if (!name) continue;
        const Question question{integration.name, token.user_id, name->full()};
        if (is_due(answer_to(question, token, source), token)) {
          due.emplace(name->full(), question);
        }
      }
      if (due.size() < options_.list_from) continue;
      // A list that costs more than the single questions is not read further.
      const auto most = std::min(options_.max_pages, due.size() / 2);
      for (std::size_t page = 1; page <= most && !due.empty(); ++page) {
        if (questions == options_.max_questions || !leadership_.leads()) co_return;
        ++questions;
        const auto told = co_await integrations_.listed_permissions(
            integration, token.user_id, page, deadline_after(options_.timeout));
        if (!told) break;
        for (const auto& [name, permissions] : told->by_name) {
          const auto found = due.find(name);
          if (found == due.end()) continue;
          answers_[found->second] = {.sealed = token.sealed.text,
                                     .permissions = permissions,
                                     .due = Clock::now() + around(options_.period)};
          due.erase(found);
        }
        if (!told->has_next) break;
      }
    }
  }
}

Task<> GitPermissions::round() {
  // Old answers would be outdated when this replica leads again.
  if (!leadership_.leads() || !co_await are_wanted()) {
    answers_.clear();
    sources_ = 0;
    co_return;
  }
  const auto sources = co_await list_(deadline_after(options_.timeout));
  const auto integrations =
      sources ? co_await integrations_.store().list(deadline_after(options_.timeout))
              : Result<std::vector<Integration>>(std::unexpected(sources.error()));
  last_error_ = integrations ? "" : integrations.error().message;
  if (!integrations) {
    if (failures_.check("list", Clock::now()).pass) {
      log_.warning("Git permissions of users are not checked now", {{"reason", last_error_}});
    }
    co_return;
  }
  sources_ = sources->size();
  std::size_t questions = 0;
  co_await read_lists(*integrations, *sources, questions);
  std::set<Question> kept;  // questions that still have a token and a Git source
  for (const auto& source : *sources) {
    co_await asio::post(co_await asio::this_coro::executor, use_task);  // lets other tasks run
    std::map<std::string, Permissions> found;                           // by user
    for (const auto& integration : *integrations) {
      if (integration.account_id != source.account_id) continue;
      const auto name = repository_at(integration.root, source.repository_url);
      if (!name) continue;
      for (const auto& token : integration.users) {
        const Question question{integration.name, token.user_id, name->full()};
        const auto reported =
            std::ranges::find(source.permissions, token.user_id, &UserPermission::user_id);
        auto& answer = answer_to(question, token, source);
        kept.insert(question);
        if (!leadership_.leads()) co_return;
        if (is_due(answer, token) && questions < options_.max_questions) {
          ++questions;
          // No other task changes the answers meanwhile.
          co_await ask(integration, token, *name, answer);
        }
        if (answer.permissions) {
          auto& all = found[token.user_id];
          all.read = all.read || answer.permissions->read;
          all.write = all.write || answer.permissions->write;
        } else if (reported != source.permissions.end()) {
          found.try_emplace(token.user_id,
                            Permissions{.read = reported->read, .write = reported->write});
        }
      }
    }
    KnownGitSource now = source;
    now.permissions.clear();
    for (const auto& [user_id, may] : found)
      now.permissions.push_back({user_id, may.read, may.write});
    auto before = source.permissions;
    std::ranges::sort(before, {}, &UserPermission::user_id);
    if (now.permissions == before) continue;
    if (!leadership_.leads()) co_return;
    if (auto sent = co_await report_(now, deadline_after(options_.timeout)); !sent) {
      last_error_ = sent.error().message;
      if (failures_.check("report", Clock::now()).pass) {
        log_.warning("Git permissions of users could not be reported",
                     {{"git_source", source.name}, {"reason", last_error_}});
      }
    }
  }
  std::erase_if(answers_, [&](const auto& entry) { return !kept.contains(entry.first); });
}

}  // namespace gitops::app_proxy
