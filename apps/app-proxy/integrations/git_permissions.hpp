#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// Permissions of a user's own token for the repository of a Git source.
struct UserPermission {
  std::string user_id;
  bool read = false;
  bool write = false;
  bool operator==(const UserPermission&) const = default;
};

// A Git source as the control plane has it.
struct KnownGitSource {
  std::string account_id;
  std::string name;
  std::string source_namespace;
  std::string repository_url;
  std::vector<UserPermission> permissions;  // last reported, by any replica
};

// Returns the repository of a clone URL at a host; nullopt when the URL is of another host. Pure.
std::optional<RepositoryName> repository_at(const ApiRoot& root, std::string_view clone_url);

// Reports to the control plane which users may read and write the repositories of the runtime's Git
// sources, if the account filters by Git permissions. The host is asked about each registered token
// and each repository of the host: at once for a new token or Git source, then once in a period, as
// background work within the token's rate budget. Where the host includes permissions in its lists,
// one list covers several questions of a token; repositories that it lacks are asked one by one. A
// permission that the host cannot report now keeps its last value. A report is sent only when it
// differs from the state of the control plane, so restarts and changes of the leader send none.
// Only the leader of several replicas asks and reports. Loop thread; its dependencies outlive it.
class GitPermissions {
 public:
  struct Options {
    std::chrono::milliseconds period = std::chrono::hours(1);      // between two asks of a question
    std::chrono::milliseconds tick = std::chrono::minutes(1);      // between looks for new ones
    std::size_t max_questions = 60;                                // per tick
    std::chrono::milliseconds timeout = std::chrono::seconds(20);  // per question
    std::size_t list_from = 4;                                     // due questions of a token
    std::size_t max_pages = 5;                                     // of such a list, per tick
  };
  using List = std::function<Task<Result<std::vector<KnownGitSource>>>(Deadline)>;
  // Checks whether the account filters by Git permissions.
  using Filters = std::function<Task<Result<bool>>(Deadline)>;
  using Report = std::function<Task<Result<void>>(const KnownGitSource&, Deadline)>;
  GitPermissions(GitIntegrations& integrations, Leadership& leadership, Filters filters, List list,
                 Report report, Options options);

  // Runs until the group is cancelled. A change of the leader starts a tick at once.
  void start(TaskGroup& group);
  // Runs one tick.
  Task<> round();
  // Entry for /statusz.
  [[nodiscard]] StatusEntry status() const;

 private:
  // Key of a question: integration, user, repository.
  using Question = std::tuple<std::string, std::string, std::string>;
  struct Answer {
    std::string sealed;  // the token of the last question
    std::optional<Permissions> permissions;
    Clock::time_point due{};
  };
  // Checks whether the account filters by Git permissions, at most once in ten ticks. Returns the
  // last known value while the control plane does not respond.
  Task<bool> are_wanted();
  [[nodiscard]] bool is_due(const Answer& answer, const UserToken& token) const {
    return answer.due <= Clock::now() || answer.sealed != token.sealed.text;
  }
  // Returns the record of a question. A new record has the permissions of the last report, of any
  // process.
  Answer& answer_to(const Question& question, const UserToken& token, const KnownGitSource& source);
  // Fills in the permissions from the lists of tokens that have enough due questions.
  Task<> read_lists(const std::vector<Integration>& integrations,
                    const std::vector<KnownGitSource>& sources, std::size_t& questions);
  Task<> ask(const Integration& integration, const UserToken& token, RepositoryName name,
             Answer& answer);
  Clock::duration around(std::chrono::milliseconds period);

  GitIntegrations& integrations_;
  Leadership& leadership_;
  Filters filters_;
  bool wanted_ = true;
  Clock::time_point wanted_until_{};
  List list_;
  Report report_;
  Options options_;
  std::map<Question, Answer> answers_;
  std::size_t sources_ = 0;
  std::string last_error_;
  RepeatFilter failures_{std::chrono::minutes(10)};
  std::minstd_rand random_;
  Log log_{"git-permissions"};
};

}  // namespace gitops::app_proxy
