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

// What a user's own token may do with the repository of a Git source.
struct UserPermission {
  std::string user_id;
  bool read = false;
  bool write = false;
  bool operator==(const UserPermission&) const = default;
};

// A Git source as the control plane knows it.
struct KnownGitSource {
  std::string account_id;
  std::string name;
  std::string source_namespace;
  std::string repository_url;
  std::vector<UserPermission> permissions;  // as they were reported last, by any replica
};

// The repository that a clone URL names at a host; nothing when it is another host's. Pure.
std::optional<RepositoryName> repository_at(const ApiRoot& root, std::string_view clone_url);

// Reports to the control plane which users may read and write the repositories of the runtime's Git
// sources, unless the account does not filter by them. Each registered token is asked about each
// repository of its host: at once when the token or the Git source is new, then once in a period, as
// background work within the token's rate budget. Several questions of one token are answered by its
// list of repositories, where the host tells permissions there; what the list lacks is asked one by one.
// What a host does not tell now stays as it was. A report is sent only when it differs from what the
// control plane has, so restarts and changes of the leader send none. Only the leader of several replicas
// asks and reports. Loop thread; its dependencies outlive it.
class GitPermissions {
 public:
  struct Options {
    std::chrono::milliseconds period = std::chrono::hours(1);      // of a question, about
    std::chrono::milliseconds tick = std::chrono::minutes(1);      // of a look for what is new
    std::size_t max_questions = 60;                                // in a tick
    std::chrono::milliseconds timeout = std::chrono::seconds(20);  // for one question
    std::size_t list_from = 4;                                     // questions of one token
    std::size_t max_pages = 5;                                     // of such a list in a tick
  };
  using List = std::function<Task<Result<std::vector<KnownGitSource>>>(Deadline)>;
  // Whether the account filters by Git permissions.
  using Filters = std::function<Task<Result<bool>>(Deadline)>;
  using Report = std::function<Task<Result<void>>(const KnownGitSource&, Deadline)>;
  GitPermissions(GitIntegrations& integrations, Leadership& leadership, Filters filters, List list,
                 Report report, Options options);

  // Runs until the group is cancelled. A change of the leader starts a tick at once.
  void start(TaskGroup& group);
  // One tick.
  Task<> round();
  // For /statusz.
  [[nodiscard]] StatusEntry status() const;

 private:
  // Integration, user, repository.
  using Question = std::tuple<std::string, std::string, std::string>;
  struct Answer {
    std::string sealed;  // the token that was asked
    std::optional<Permissions> permissions;
    Clock::time_point due{};
  };
  // Whether permissions are wanted; asked once in the time of ten ticks. As last known while the control
  // plane does not tell.
  Task<bool> are_wanted();
  [[nodiscard]] bool is_due(const Answer& answer, const UserToken& token) const {
    return answer.due <= Clock::now() || answer.sealed != token.sealed.text;
  }
  // The answer to a question; at first as it was reported, perhaps by another process.
  Answer& answer_to(const Question& question, const UserToken& token, const KnownGitSource& source);
  // Answers what the lists of tokens tell, where enough is due.
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
